//! A private copy of files in a temporary folder, which is removed when the copy is dropped. Each folder holds a
//! locked file. If nobody holds the lock, the process that created the folder was killed.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};
use sottovoce::{Error, Result};

use crate::source::SourceFile;

/// The bytes that are read at a time.
const PIECE: usize = 1 << 18;

/// The prefix of the folders' names, before 16 hexadecimal digits.
const PREFIX: &str = "sottovoce-";
/// The file that the folder's owner has locked.
const LOCK: &str = "lock";

/// A folder that only this user can read.
#[derive(Debug)]
pub(crate) struct Scratch {
    path: PathBuf,
    /// Held as long as the folder is in use.
    _lock: File,
}

/// Finds folders of this user that no process uses.
pub(crate) fn leftovers() -> Vec<PathBuf> {
    leftovers_in(&std::env::temp_dir())
}

/// Removes such folders.
pub(crate) fn sweep() {
    for path in leftovers() {
        match std::fs::remove_dir_all(&path) {
            Ok(()) => tracing::warn!(path = %path.display(), "removed what an import left behind"),
            Err(error) => {
                tracing::warn!(path = %path.display(), %error, "what an import left behind stays");
            }
        }
    }
}

fn leftovers_in(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    entries.map(|entry| entry.path()).filter(|path| is_leftover(path)).collect()
}

fn is_leftover(path: &Path) -> bool {
    let name = path.file_name().and_then(|name| name.to_str());
    let is_named = name.and_then(|name| name.strip_prefix(PREFIX)).is_some_and(|digits| {
        digits.len() == 16 && digits.bytes().all(|byte| byte.is_ascii_hexdigit())
    });
    // `/proc` reveals the user of this process, where it exists.
    let own = std::fs::metadata("/proc/self").ok().map(|own| own.uid());
    let is_own = |found: std::fs::Metadata| {
        found.is_dir() && found.mode() & 0o077 == 0 && own.is_none_or(|own| own == found.uid())
    };
    if !is_named || !path.symlink_metadata().is_ok_and(is_own) {
        return false;
    }
    // New folders are locked before they get this name. A folder without a lock is from an older program.
    match OpenOptions::new().write(true).open(path.join(LOCK)) {
        Ok(lock) => flock(&lock, FlockOperation::NonBlockingLockExclusive).is_ok(),
        Err(error) => error.kind() == io::ErrorKind::NotFound,
    }
}

impl Scratch {
    pub(crate) fn new() -> Result<Self> {
        let random = getrandom::u64().map_err(|_| Error::NoRandomness)?;
        let path = std::env::temp_dir().join(format!("{PREFIX}{random:016x}"));
        let failed = |error| Error::io("make the folder", &path, error);
        let begun = std::env::temp_dir().join(format!(".{PREFIX}{random:016x}"));
        DirBuilder::new().mode(0o700).create(&begun).map_err(failed)?;
        let mut options = OpenOptions::new();
        let lock = options.write(true).create_new(true).mode(0o600).open(begun.join(LOCK));
        let lock = lock.map_err(failed)?;
        flock(&lock, FlockOperation::NonBlockingLockExclusive)
            .map_err(|errno| failed(errno.into()))?;
        std::fs::rename(&begun, &path).map_err(failed)?;
        Ok(Self { path, _lock: lock })
    }

    /// The path of a file in the folder.
    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// Copies a file over any earlier copy.
    pub(crate) fn copy(&self, name: &str, source: &SourceFile) -> Result<()> {
        let path = self.file(name);
        let failed = |error| Error::io("write the file", &path, error);
        let mut options = OpenOptions::new();
        options.write(true).create(true).truncate(true).mode(0o600);
        let mut copy = options.open(&path).map_err(failed)?;
        pieces(source, &path, |piece| copy.write_all(piece).map(|()| true).map_err(failed))?;
        Ok(())
    }

    /// Whether the copy still equals the source.
    pub(crate) fn is_copy(&self, name: &str, source: &SourceFile) -> Result<bool> {
        use std::io::Read;
        let path = self.file(name);
        let failed = |error| Error::io("read the file", &path, error);
        let mut copy = std::fs::File::open(&path).map_err(failed)?;
        let mut buffer = vec![0; PIECE];
        let same = pieces(source, &path, |piece| {
            let Some(copied) = buffer.get_mut(..piece.len()) else { return Ok(false) };
            match copy.read_exact(copied) {
                Ok(()) => Ok(copied == piece),
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(false),
                Err(error) => Err(failed(error)),
            }
        })?;
        let ended = copy.read(&mut buffer).map_err(failed)? == 0;
        Ok(same && ended)
    }

    pub(crate) fn forget(&self, name: &str) -> Result<()> {
        match std::fs::remove_file(self.file(name)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                Err(Error::io("remove the file", self.file(name), error))
            }
            _ => Ok(()),
        }
    }
}

/// Calls `take` with the file's bytes in pieces until it returns `false`. Returns whether it took all.
fn pieces(
    source: &SourceFile,
    path: &Path,
    mut take: impl FnMut(&[u8]) -> Result<bool>,
) -> Result<bool> {
    let mut buffer = vec![0; PIECE];
    let mut offset = 0;
    loop {
        let read = source.read_at(offset, &mut buffer);
        let read = read.map_err(|error| Error::io("copy into the file", path, error))?;
        match buffer.get(..read).filter(|piece| !piece.is_empty()) {
            None => return Ok(true),
            Some(piece) if !take(piece)? => return Ok(false),
            Some(piece) => offset += piece.len() as u64,
        }
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        if let Err(error) = std::fs::remove_dir_all(&self.path)
            && error.kind() != io::ErrorKind::NotFound
        {
            tracing::warn!(path = %self.path.display(), %error, "a private copy could not be removed");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::Folder;
    use std::os::unix::fs::MetadataExt;

    #[test]
    fn the_rest_of_a_killed_process_is_distinguished_from_what_is_in_use() {
        let scratch = Scratch::new().unwrap();
        assert!(!leftovers().contains(&scratch.path));
        let path = scratch.path.clone();
        // As if the process had been killed.
        let Scratch { _lock: lock, .. } = &scratch;
        flock(lock, FlockOperation::Unlock).unwrap();
        std::fs::write(path.join("copy"), "plain words").unwrap();
        assert!(leftovers().contains(&path));
        let strange = tempfile::tempdir().unwrap();
        for name in ["sottovoce-", "sottovoce-0123", "sottovoce-0123456789abcdeg", "x"] {
            DirBuilder::new().mode(0o700).create(strange.path().join(name)).unwrap();
        }
        let file = strange.path().join("sottovoce-0123456789abcde0");
        std::fs::write(&file, "a file of somebody's").unwrap();
        let old = strange.path().join("sottovoce-0123456789abcdef");
        DirBuilder::new().mode(0o700).create(&old).unwrap();
        assert_eq!(leftovers_in(strange.path()), [old]);
        sweep();
        assert!(!path.exists());
    }

    #[test]
    fn a_copy_is_private_is_compared_to_the_byte_and_goes() {
        let folder = tempfile::tempdir().unwrap();
        let bytes: Vec<u8> = (0..PIECE + 7).map(|at| u8::try_from(at % 251).unwrap()).collect();
        let put = |bytes: &[u8]| std::fs::write(folder.path().join("a"), bytes).unwrap();
        put(&bytes);
        let blobs = Folder::named(folder.path()).unwrap();
        let source = || blobs.open("a").unwrap().unwrap();
        let scratch = Scratch::new().unwrap();
        scratch.copy("a", &source()).unwrap();
        let mode = |path: &Path| std::fs::metadata(path).unwrap().mode() & 0o777;
        assert_eq!((mode(&scratch.path), mode(&scratch.file("a"))), (0o700, 0o600));
        assert_eq!(std::fs::read(scratch.file("a")).unwrap(), bytes);
        assert!(scratch.is_copy("a", &source()).unwrap());
        let mut other = bytes.clone();
        other[PIECE] ^= 1;
        for other in [&other[..], &bytes[1..], &bytes[..PIECE], &[&bytes[..], &[0]].concat(), b""] {
            put(other);
            assert!(!scratch.is_copy("a", &source()).unwrap());
        }
        scratch.copy("a", &source()).unwrap();
        assert!(scratch.is_copy("a", &source()).unwrap());
        let path = scratch.path.clone();
        drop(scratch);
        assert!(!path.exists());
    }
}
