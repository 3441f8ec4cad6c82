//! Walks a folder and applies ignore files.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use ignore::{DirEntry, WalkBuilder};
use rustix::fs::{Mode, OFlags};

use crate::cmd::memory::artifact::source::Watch;
use crate::output;

/// The bytes of one read.
const PIECE: usize = 1 << 16;

/// An entry below the folder.
#[derive(Debug)]
pub(super) struct Entry {
    /// Its path below the folder; empty for the folder itself.
    pub(super) path: PathBuf,
    pub(super) what: What,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum What {
    Folder,
    /// A plain file of this size.
    File(u64),
    /// An entry that is listed but not added, with the reason.
    LeftOut(String),
}

impl Entry {
    /// Its path on one line.
    pub(super) fn shown(&self) -> String {
        output::one_line(&self.path.to_string_lossy())
    }

    /// Its depth below the folder.
    pub(super) fn depth(&self) -> usize {
        self.path.components().count()
    }
}

/// Everything below a folder in the order of names, each folder followed by its contents. Leaves out hidden entries,
/// ignored entries and those that must never be added.
pub(super) fn walk(root: &Path, never: &[PathBuf], watch: &Watch) -> Vec<Entry> {
    let never = never.to_vec();
    let mut builder = WalkBuilder::new(root);
    builder
        .follow_links(false)
        // Ignore files also apply outside git repositories.
        .require_git(false)
        .sort_by_file_path(Path::cmp)
        // An ignore file may include hidden files again, but never git's own folder.
        .filter_entry(move |entry| {
            entry.depth() == 0
                || (entry.file_name() != ".git" && !never.iter().any(|path| path == entry.path()))
        });
    let mut entries = Vec::new();
    for found in builder.build() {
        if watch.is_stopped() {
            break;
        }
        entries.push(match found {
            Ok(entry) => look(root, &entry),
            Err(error) => {
                let path = place(&error).map(|path| below(root, path)).unwrap_or_default();
                Entry { path, what: What::LeftOut(reason(&error)) }
            }
        });
    }
    entries.retain(|entry| !entry.path.as_os_str().is_empty() || entry.what != What::Folder);
    entries
}

fn look(root: &Path, entry: &DirEntry) -> Entry {
    let path = below(root, entry.path());
    let left_out = |why: &str| What::LeftOut(why.to_owned());
    let what = match entry.file_type() {
        Some(kind) if kind.is_dir() => What::Folder,
        Some(kind) if kind.is_symlink() => left_out("a link, which is not followed"),
        Some(kind) if kind.is_file() => match entry.metadata() {
            Ok(about) => What::File(about.len()),
            Err(error) => What::LeftOut(reason(&error)),
        },
        _ => left_out("no plain file"),
    };
    Entry { path, what }
}

fn below(root: &Path, path: &Path) -> PathBuf {
    path.strip_prefix(root).unwrap_or(path).to_owned()
}

fn place(error: &ignore::Error) -> Option<&Path> {
    match error {
        ignore::Error::WithPath { path, .. } => Some(path),
        ignore::Error::WithDepth { err, .. } | ignore::Error::WithLineNumber { err, .. } => {
            place(err)
        }
        _ => None,
    }
}

fn reason(error: &ignore::Error) -> String {
    let why = error.io_error().map_or_else(String::new, |error| format!(": {}", error.kind()));
    format!("it cannot be read{why}")
}

/// Opens a file that was plain when it was listed. If another entry has replaced it, the open neither follows it nor
/// blocks.
pub(super) fn open(path: &Path) -> io::Result<File> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = File::from(rustix::fs::open(path, flags, Mode::empty())?);
    match file.metadata()?.is_file() {
        true => Ok(file),
        false => Err(io::ErrorKind::InvalidInput.into()),
    }
}

/// Whether it is UTF-8 without zero bytes.
pub(super) fn is_text(mut file: impl Read, watch: &Watch) -> io::Result<bool> {
    let mut text = zeroize::Zeroizing::new(vec![0; PIECE]);
    let mut begun = 0;
    loop {
        let read = file.read(text.get_mut(begun..).unwrap_or_default())?;
        let bytes = text.get(..begun + read).unwrap_or_default();
        let valid = match str::from_utf8(bytes) {
            Ok(_) => bytes.len(),
            Err(error) if error.error_len().is_none() && read > 0 => error.valid_up_to(),
            Err(_) => return Ok(false),
        };
        if bytes.contains(&0) || watch.is_stopped() {
            return Ok(false);
        }
        if read == 0 {
            return Ok(true);
        }
        let end = begun + read;
        begun = end - valid;
        text.copy_within(valid..end, 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::symlink;

    fn names(root: &Path, never: &[PathBuf]) -> Vec<String> {
        let entries = walk(root, never, &Watch::default());
        entries.iter().map(|entry| format!("{} {:?}", entry.shown(), entry.what)).collect()
    }

    #[test]
    fn what_is_hidden_ignored_linked_or_gits_own_is_not_gone_into() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        for name in ["b/c", ".git", "b/.git", "out", "kept"] {
            fs::create_dir_all(root.join(name)).unwrap();
        }
        for name in [
            "a.rs",
            "b/z",
            "b/c/y",
            ".hidden",
            ".called",
            ".git/config",
            "b/.git/x",
            "out/o",
            "b/x.log",
        ] {
            fs::write(root.join(name), "1").unwrap();
        }
        fs::write(root.join(".gitignore"), "out/\n*.log\n!.called\n!.git\n").unwrap();
        fs::write(root.join(".ignore"), "z\n").unwrap();
        symlink("/etc", root.join("link")).unwrap();
        let kept = root.join("kept");
        assert_eq!(
            names(root, &[kept]),
            [
                ".called File(1)",
                "a.rs File(1)",
                "b Folder",
                "b/c Folder",
                "b/c/y File(1)",
                "link LeftOut(\"a link, which is not followed\")",
            ]
        );
    }

    #[test]
    fn what_became_a_link_or_a_pipe_is_not_opened() {
        let folder = tempfile::tempdir().unwrap();
        let (plain, link) = (folder.path().join("plain"), folder.path().join("link"));
        fs::write(&plain, "1").unwrap();
        symlink(&plain, &link).unwrap();
        assert!(open(&plain).is_ok() && open(&link).is_err() && open(folder.path()).is_err());
    }

    #[test]
    fn text_is_distinguished_from_other_bytes_wherever_a_piece_ends() {
        let watch = Watch::default();
        let long = "é".repeat(PIECE);
        for text in ["", "a", "Grüße 👩\n", &long, &format!("a{long}")] {
            assert!(is_text(text.as_bytes(), &watch).unwrap());
        }
        let zero = [long.as_bytes(), b"\0"].concat();
        let cut = &long.as_bytes()[..PIECE + 1];
        for other in [&b"\xff"[..], b"a\xc3", &zero, cut] {
            assert!(!is_text(other, &watch).unwrap());
        }
    }
}
