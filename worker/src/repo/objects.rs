//! Reading a commit as objects.

/// What stands at a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Blob {
    /// A file.
    File {
        /// Its contents.
        bytes: Vec<u8>,
        /// Whether its mode says that it may be run.
        executable: bool,
    },
    /// A file with more bytes than the cap.
    TooLarge(u64),
    /// A link, a submodule or a folder: not read.
    NotAFile,
}

/// How much of a listing is taken.
#[derive(Debug, Clone, Copy)]
pub struct ListingBounds {
    /// Names.
    pub files: usize,
    /// Bytes of all names together.
    pub bytes: usize,
}

/// The names of a commit's files.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Listing {
    /// The names, in git's order. Somebody else's text.
    pub names: Vec<String>,
    /// There are more.
    pub cut: bool,
}
