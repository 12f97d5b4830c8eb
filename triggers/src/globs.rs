//! Globs on `owner/name`. Names of repositories are matched without regard to case, as the forges do.
//!
//! `*` and `?` never cross the slash. A lone `*` means every repository. A pattern without a slash would match
//! nothing, so it is refused instead.

use globset::{GlobBuilder, GlobMatcher};

/// A list of globs on `owner/name`.
#[derive(Debug, Clone)]
pub struct RepositoryGlobs {
    matchers: Vec<Pattern>,
}

#[derive(Debug, Clone)]
enum Pattern {
    Everything,
    Glob(GlobMatcher),
}

/// Why a glob is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum GlobFault {
    /// It is not `owner/name`.
    #[error("a repository is written `owner/name`, with `*` and `?` where they are wanted; `*` alone means all")]
    Shape,
    /// A character that no repository's name can have, and that is no glob either.
    #[error("`{}` can be in no repository's name", crate::source::visible(&.0.to_string()))]
    Character(char),
    /// Brackets or braces do not add up.
    #[error("the glob cannot be read: its brackets or braces do not add up")]
    Glob,
    /// It is longer than any repository's name.
    #[error("a glob has at most {MAX_GLOB} characters")]
    Long,
}

const MAX_GLOB: usize = 256;

impl RepositoryGlobs {
    /// Compiles the list. The fault comes with the position of the glob in it.
    pub fn new<S: AsRef<str>>(globs: &[S]) -> Result<Self, (usize, GlobFault)> {
        let compile = |(index, glob): (usize, &S)| compile(glob.as_ref()).map_err(|fault| (index, fault));
        let matchers = globs.iter().enumerate().map(compile).collect::<Result<_, _>>()?;
        Ok(RepositoryGlobs { matchers })
    }

    /// Whether one of them matches.
    pub fn matches(&self, repository: &str) -> bool {
        self.matchers.iter().any(|pattern| match pattern {
            Pattern::Everything => true,
            Pattern::Glob(glob) => glob.is_match(repository),
        })
    }

    /// Whether the list says `*`: every repository.
    pub fn everything(&self) -> bool {
        self.matchers
            .iter()
            .any(|pattern| matches!(pattern, Pattern::Everything))
    }
}

fn compile(glob: &str) -> Result<Pattern, GlobFault> {
    if glob == "*" {
        return Ok(Pattern::Everything);
    }
    if glob.len() > MAX_GLOB {
        return Err(GlobFault::Long);
    }
    if let Some(odd) = glob
        .chars()
        .find(|c| !c.is_ascii_alphanumeric() && !"._-/*?[]{},!".contains(*c))
    {
        return Err(GlobFault::Character(odd));
    }
    let owner_and_name = glob.split_once('/').is_some_and(|(owner, name)| {
        !owner.is_empty() && !name.is_empty() && !name.contains('/') && !glob.contains("**") && !glob.starts_with('!')
    });
    if !owner_and_name {
        return Err(GlobFault::Shape);
    }
    GlobBuilder::new(glob)
        .case_insensitive(true)
        .literal_separator(true)
        .backslash_escape(false)
        .build()
        .map(|glob| Pattern::Glob(glob.compile_matcher()))
        .map_err(|_| GlobFault::Glob)
}
