//! `pi-dispatch image`: the job image, built and verified.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context as _;
use clap::{Args, Subcommand};
use indicatif::{ProgressBar, ProgressStyle};
use worker::image::{BuildOptions, Progress, Subsets, build, verify};

use crate::{Context, open, terminal};

/// Arguments of `image`.
#[derive(Args)]
pub struct Image {
    #[command(subcommand)]
    action: Action,
}

#[derive(Subcommand)]
enum Action {
    /// Build it from Debian's packages and npm, without a registry; what did not change is not made again
    Build {
        /// The tag it gets
        #[arg(long, default_value = contract::IMAGE_TAG)]
        tag: String,
        /// The runner's binary; the one beside this program when not named
        #[arg(long, value_name = "FILE")]
        runner: Option<PathBuf>,
        /// Make the base anew: Debian's packages have changed
        #[arg(long)]
        fresh: bool,
    },
    /// Check an image against the contract without a model call, and print what was found as a page
    Verify {
        /// The image's name or id
        #[arg(default_value = contract::IMAGE_TAG)]
        image: String,
        /// Read back all 256 sets of exclusions, not only eleven (some minutes)
        #[arg(long)]
        all: bool,
    },
}

impl Image {
    /// Exit code 1 when an image is not as the contract wants it.
    pub async fn run(self, context: &Context) -> anyhow::Result<ExitCode> {
        let config = context.config()?;
        let docker = open::docker(&config.worker.docker)?;
        match self.action {
            Action::Build { tag, runner, fresh } => {
                let beside = std::env::current_exe()
                    .context("this program's own path")?
                    .with_file_name("runner");
                let options = BuildOptions {
                    runner: runner.unwrap_or(beside),
                    cache: config.data_dir.join("image"),
                    tag,
                    fresh,
                };
                let mut shown = Shown::new();
                let built = build(&docker, &options, &mut shown).await;
                shown.bar.finish_and_clear();
                let built = built?;
                let words = if built.unchanged { "is up to date" } else { "was built" };
                out!("job image {} {words} ({})", built.tag, built.id);
                Ok(ExitCode::SUCCESS)
            }
            Action::Verify { image, all } => {
                let subsets = if all { Subsets::All } else { Subsets::Some };
                let bar = spinner();
                bar.set_message(format!(
                    "reading pi's tools back from {} sets of exclusions",
                    subsets.list().len()
                ));
                let report = verify(&docker, &image, subsets).await;
                bar.finish_and_clear();
                let report = report?;
                out!("{}", report.page(&today()));
                Ok(if report.passed() {
                    ExitCode::SUCCESS
                } else {
                    ExitCode::FAILURE
                })
            }
        }
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "the page of a verification is dated by the program's own clock"
)]
fn today() -> String {
    chrono::Utc::now().format("%Y-%m-%d").to_string()
}

fn spinner() -> ProgressBar {
    let bar = ProgressBar::new_spinner();
    if let Ok(style) = ProgressStyle::with_template("{spinner} {elapsed:>4} {wide_msg}") {
        bar.set_style(style);
    }
    bar.enable_steady_tick(Duration::from_millis(120));
    bar
}

/// A spinner on a terminal, plain lines elsewhere.
struct Shown {
    bar: ProgressBar,
    step: String,
}

impl Shown {
    fn new() -> Self {
        Self {
            bar: spinner(),
            step: String::new(),
        }
    }
}

impl Progress for Shown {
    fn step(&mut self, what: &str) {
        what.clone_into(&mut self.step);
        if self.bar.is_hidden() {
            eprintln!("{what}");
        } else {
            self.bar.println(what);
        }
    }

    fn line(&mut self, text: &str) {
        self.bar
            .set_message(format!("{}: {}", self.step, terminal::line(text, 120)));
    }
}
