//! Spill files of pi's tools (long outputs, in `/tmp`) are kept beside the session, bounded.
//!
//! Best effort: the job wrote them, the host reads none of them through this, and nothing is missed without them.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::Path;

use rustix::fs::{Mode, OFlags, open};

/// How their names begin.
const PREFIXES: [&str; 3] = ["pi-bash-", "pi-mcp-", "pi-codemode-"];
/// Files that are kept.
const MOST_FILES: usize = 32;
/// Bytes of each.
const MOST_BYTES: u64 = 2 * 1024 * 1024;
/// Entries of the folder that are looked at.
const MOST_ENTRIES: usize = 10_000;

/// Copies them from `from` into a new folder `to`.
pub(crate) fn keep(from: &Path, to: &Path) -> io::Result<()> {
    let mut kept = 0;
    for entry in fs::read_dir(from)?.take(MOST_ENTRIES) {
        let name = entry?.file_name();
        let is_spill = name
            .to_str()
            .is_some_and(|name| PREFIXES.iter().any(|prefix| name.starts_with(prefix)));
        if !is_spill {
            continue;
        }
        if kept == MOST_FILES {
            return Ok(());
        }
        // Neither a link nor a FIFO may send or hold us elsewhere.
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let Ok(opened) = open(from.join(&name), flags, Mode::empty()) else {
            continue;
        };
        let opened = File::from(opened);
        if !opened.metadata()?.is_file() {
            continue;
        }
        fs::create_dir_all(to)?;
        let mut copy = File::create_new(to.join(&name))?;
        io::copy(&mut opened.take(MOST_BYTES), &mut copy)?;
        kept += 1;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_regular_spill_files_are_kept_and_only_their_beginning() {
        let (tmp, session) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        fs::write(tmp.path().join("pi-bash-1.log"), "out").unwrap();
        fs::write(tmp.path().join("other"), "x").unwrap();
        File::create(tmp.path().join("pi-bash-2.log"))
            .unwrap()
            .set_len(MOST_BYTES * 100)
            .unwrap();
        std::os::unix::fs::symlink("/etc/passwd", tmp.path().join("pi-mcp-link")).unwrap();
        fs::create_dir(tmp.path().join("pi-bash-folder")).unwrap();

        let to = session.path().join("spill");
        keep(tmp.path(), &to).unwrap();

        let mut kept: Vec<_> = fs::read_dir(&to)
            .unwrap()
            .map(|entry| entry.unwrap().file_name())
            .collect();
        kept.sort();
        assert_eq!(kept, ["pi-bash-1.log", "pi-bash-2.log"]);
        assert_eq!(fs::metadata(to.join("pi-bash-2.log")).unwrap().len(), MOST_BYTES);
    }
}
