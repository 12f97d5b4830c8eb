//! Building and verifying the job image.
//!
//! [`build`] needs no container registry: the base is made of Debian's packages by `mmdebstrap` and imported, pi and
//! node come from npm by a committed lock file, and the image is built without a network. Everything that goes into
//! it is part of this program (Dockerfile, bridge, guardrails, lock file) or lies beside it (the runner), so that an
//! image always belongs to the program that built it. What did not change is not made again: an image carries the
//! hash of its recipe as a label.
//!
//! [`verify`] looks at an image as a job would meet it: labels, modes, versions, and what the real pi in it reads back
//! for some sets of exclusions. It asks no model.
//!
//! Fails with [`ImageError`]; each variant is something else for the operator to do.

mod base;
mod context;
mod docker;
mod packages;
mod parts;
mod verify;

use std::{
    fs::{self, File},
    path::{Path, PathBuf},
};

use bollard::Docker;
use contract::labels;

pub use parts::pins;
pub use verify::{Check, ReadBackOf, Report, Subsets, read_backs, verify};

/// What to build, and where.
#[derive(Debug, Clone)]
pub struct BuildOptions {
    /// The runner's binary, as `cargo build -p runner` makes it.
    pub runner: PathBuf,
    /// A folder for what is kept between builds; about 160 MB.
    pub cache: PathBuf,
    /// The tag that the image gets.
    pub tag: String,
    /// Makes the base anew although its recipe did not change: Debian's packages have.
    pub fresh: bool,
}

/// Shows what is going on. A build takes a minute the first time.
pub trait Progress: Send {
    /// A step begins.
    fn step(&mut self, what: &str);
    /// A line of what the step's program says.
    fn line(&mut self, text: &str);
}

/// What came of a build.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Built {
    /// The image's id.
    pub id: String,
    /// Its tag.
    pub tag: String,
    /// It was there already.
    pub unchanged: bool,
}

/// Why there is no image.
#[derive(Debug, thiserror::Error)]
pub enum ImageError {
    /// Install it.
    #[error("`{program}` is not here: install the Debian package {package}")]
    Missing {
        /// The program.
        program: &'static str,
        /// The package that has it.
        package: &'static str,
    },
    /// Build it.
    #[error("the runner is not at {}: build it with `cargo build -p runner`", .0.display())]
    NoRunner(PathBuf),
    /// A program said no.
    #[error("{what} failed: {detail}")]
    Step {
        /// Which step.
        what: &'static str,
        /// The last thing that it said.
        detail: String,
    },
    /// Docker is away or said no.
    #[error("docker: {0}")]
    Docker(#[from] bollard::errors::Error),
    /// The cache or the runner cannot be read or written.
    #[error("{}: {error}", path.display())]
    File {
        /// Where.
        path: PathBuf,
        /// What.
        error: std::io::Error,
    },
}

impl ImageError {
    fn file(path: &Path) -> impl FnOnce(std::io::Error) -> ImageError + '_ {
        move |error| ImageError::File {
            path: path.to_owned(),
            error,
        }
    }
}

/// Builds the job image, unless an image with this tag was made from the very same recipe.
pub async fn build(docker: &Docker, options: &BuildOptions, progress: &mut dyn Progress) -> Result<Built, ImageError> {
    fs::create_dir_all(&options.cache).map_err(ImageError::file(&options.cache))?;
    // Two builds at once would write the same files. The lock ends with the file.
    let _locked = lock(&options.cache)?;
    let runner = fs::read(&options.runner).map_err(|_| ImageError::NoRunner(options.runner.clone()))?;
    let recipe = parts::recipe(&runner);
    let tag = options.tag.clone();
    if !options.fresh
        && let Some(found) = docker::image(docker, &tag).await?
        && found.label(labels::RECIPE) == Some(&recipe)
    {
        return Ok(Built {
            id: found.id,
            tag,
            unchanged: true,
        });
    }

    let base = base::ready(docker, options, progress).await?;
    let packages = packages::ready(&options.cache, progress).await?;
    progress.step("laying out the image");
    let context = context::lay_out(&options.cache, &packages, &runner)?;
    progress.step("building the image, without a network");
    let labels = parts::labels(&recipe);
    docker::build(docker, &context, &tag, &base, &labels, progress).await?;
    fs::remove_file(&context).map_err(ImageError::file(&context))?;

    let made = docker::image(docker, &tag).await?;
    let made = made.ok_or(ImageError::Step {
        what: "the build",
        detail: "it left no image".to_owned(),
    })?;
    Ok(Built {
        id: made.id,
        tag,
        unchanged: false,
    })
}

fn lock(cache: &Path) -> Result<File, ImageError> {
    let path = cache.join("lock");
    let file = File::create(&path).map_err(ImageError::file(&path))?;
    file.lock().map_err(ImageError::file(&path))?;
    Ok(file)
}
