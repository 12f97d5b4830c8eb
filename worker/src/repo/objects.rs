//! Reading a commit as objects: `ls-tree` says what stands where, `cat-file` gives it. Nothing is checked out, no link
//! is followed, and everything that is read has a bound.

use super::GitError;
use super::git::Git;

/// An answer of `ls-tree` for the reading of few paths.
const MAX_ENTRIES: u64 = 1024 * 1024;

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

/// One line of `ls-tree -l -z`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) mode: Mode,
    pub(super) object: String,
    pub(super) size: u64,
    pub(super) path: Vec<u8>,
}

impl Entry {
    pub(super) fn is_file(&self) -> bool {
        matches!(self.mode, Mode::File | Mode::Executable)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mode {
    File,
    Executable,
    /// A link, a submodule, a folder, or a mode that git does not make.
    Other,
}

/// What stands at these paths of a commit, folders not entered; nothing for those that are not there.
pub(super) async fn entries(git: &Git<'_>, commit: &str, paths: &[&str]) -> Result<Vec<Entry>, GitError> {
    let mut arguments = vec!["ls-tree", "-l", "-z", "--full-tree", commit, "--"];
    arguments.extend(paths);
    let output = git.run(&arguments, None, MAX_ENTRIES).await?;
    parse(&output.stdout, output.cut)
}

/// All files beneath a folder of a commit (the whole commit for `None`), to a bound of bytes of output. `true`: cut.
pub(super) async fn entries_beneath(
    git: &Git<'_>,
    commit: &str,
    folder: Option<&str>,
    most: u64,
) -> Result<(Vec<Entry>, bool), GitError> {
    let mut arguments = vec!["ls-tree", "-r", "-l", "-z", "--full-tree", commit];
    arguments.extend(folder.iter().flat_map(|folder| ["--", folder]));
    let output = git.run(&arguments, None, most).await?;
    Ok((parse(&output.stdout, output.cut)?, output.cut))
}

/// `MODE TYPE OBJECT SIZE\tPATH\0…`; an entry that the bound cut in two is dropped.
fn parse(output: &[u8], cut: bool) -> Result<Vec<Entry>, GitError> {
    let mut lines: Vec<&[u8]> = output.split(|byte| *byte == 0).collect();
    // What stands behind the last zero: nothing, or half an entry.
    let rest = lines.pop();
    if !cut && rest.is_some_and(|rest| !rest.is_empty()) {
        return Err(GitError::Failed("ls-tree ended within an entry".to_owned()));
    }
    lines
        .into_iter()
        .map(|line| entry(line).ok_or_else(|| GitError::Failed("ls-tree said what it never says".to_owned())))
        .collect()
}

fn entry(line: &[u8]) -> Option<Entry> {
    let tab = line.iter().position(|byte| *byte == b'\t')?;
    let head = std::str::from_utf8(&line[..tab]).ok()?;
    let mut words = head.split_ascii_whitespace();
    let (mode, kind, object, size) = (words.next()?, words.next()?, words.next()?, words.next()?);
    let mode = match (mode, kind) {
        ("100644", "blob") => Mode::File,
        ("100755", "blob") => Mode::Executable,
        _ => Mode::Other,
    };
    let size = if size == "-" { 0 } else { size.parse().ok()? };
    Some(Entry {
        mode,
        object: object.to_owned(),
        size,
        path: line[tab + 1..].to_vec(),
    })
}

/// The contents of blobs, in the order asked for. The caller has looked at their sizes: together at most `most` bytes.
pub(super) async fn contents(git: &Git<'_>, blobs: &[&Entry], most: u64) -> Result<Vec<Vec<u8>>, GitError> {
    if blobs.is_empty() {
        return Ok(Vec::new());
    }
    let asked: String = blobs.iter().map(|blob| format!("{}\n", blob.object)).collect();
    let heads = u64::try_from(blobs.len()).unwrap_or(u64::MAX).saturating_mul(128);
    let output = git
        .run(
            &["cat-file", "--batch"],
            Some(asked.into_bytes()),
            most.saturating_add(heads),
        )
        .await?;
    if output.cut {
        return Err(GitError::TooLarge("more bytes than its sizes say"));
    }

    let mut rest = output.stdout.as_slice();
    let mut found = Vec::with_capacity(blobs.len());
    for blob in blobs {
        let (bytes, behind) =
            one_content(rest, blob).ok_or_else(|| GitError::Failed("cat-file gave another object".to_owned()))?;
        found.push(bytes.to_vec());
        rest = behind;
    }
    Ok(found)
}

/// `OBJECT blob SIZE\nBYTES\n`, and what follows it.
fn one_content<'a>(rest: &'a [u8], blob: &Entry) -> Option<(&'a [u8], &'a [u8])> {
    let feed = rest.iter().position(|byte| *byte == b'\n')?;
    let head = std::str::from_utf8(&rest[..feed]).ok()?;
    let size = head
        .strip_prefix(blob.object.as_str())?
        .strip_prefix(" blob ")?
        .parse::<usize>()
        .ok()?;
    let bytes = rest.get(feed + 1..)?.get(..size)?;
    let behind = rest.get(feed + 1 + size..)?.strip_prefix(b"\n")?;
    Some((bytes, behind))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_is_read_with_any_name() {
        let line = b"100755 blob 0123abcd      12\ta b\tc\nd\xff\x00120000 blob 4567      3\tlink\x00";

        let entries = parse(line, false).unwrap();

        assert_eq!(entries[0].path, b"a b\tc\nd\xff");
        assert_eq!((entries[0].mode, entries[0].size), (Mode::Executable, 12));
        assert_eq!(entries[1].mode, Mode::Other);
    }

    #[test]
    fn an_entry_that_the_bound_cut_is_dropped() {
        let cut = b"100644 blob 0123 1\ta\x00100644 blob 01";

        assert_eq!(parse(cut, true).unwrap().len(), 1);
        assert!(parse(cut, false).is_err());
    }

    #[test]
    fn a_content_is_believed_only_when_it_is_the_object_that_was_asked_for() {
        let blob = Entry {
            mode: Mode::File,
            object: "ab".to_owned(),
            size: 3,
            path: Vec::new(),
        };

        assert_eq!(
            one_content(b"ab blob 3\nxyz\nrest", &blob),
            Some((b"xyz".as_slice(), b"rest".as_slice()))
        );
        for other in [
            &b"cd blob 3\nxyz\n"[..],
            b"ab missing\n",
            b"ab tree 3\nxyz\n",
            b"ab blob 9\nxyz\n",
            b"ab blob 3\nxyz",
        ] {
            assert_eq!(one_content(other, &blob), None);
        }
    }
}
