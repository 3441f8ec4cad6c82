//! A private copy of files that other programs may be writing, gone when it is dropped.

use std::fs::{DirBuilder, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use super::Source;
use crate::error::{Error, Result};

/// How much is read at a time.
const PIECE: usize = 1 << 18;

/// A folder that only this user may look into.
#[derive(Debug)]
pub(crate) struct Scratch {
    path: PathBuf,
}

impl Scratch {
    pub(crate) fn new() -> Result<Self> {
        let random = getrandom::u64().map_err(|_| Error::NoRandomness)?;
        let path = std::env::temp_dir().join(format!("sottovoce-{random:016x}"));
        let made = DirBuilder::new().mode(0o700).create(&path);
        made.map_err(|error| Error::io("make the folder", &path, error))?;
        Ok(Self { path })
    }

    /// Where a file of that name is.
    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// Copies a file, or makes one that was copied before the same again.
    pub(crate) fn copy(&self, name: &str, source: &dyn Source) -> Result<()> {
        let path = self.file(name);
        let failed = |error| Error::io("write the file", &path, error);
        let mut options = OpenOptions::new();
        options.write(true).create(true).truncate(true).mode(0o600);
        let mut copy = options.open(&path).map_err(failed)?;
        pieces(source, &path, |piece| copy.write_all(piece).map(|()| true).map_err(failed))?;
        Ok(())
    }

    /// Whether the copy is still what the source says.
    pub(crate) fn is_copy(&self, name: &str, source: &dyn Source) -> Result<bool> {
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

/// Hands over the file's bytes until `take` has had enough, and says whether it took all.
fn pieces(
    source: &dyn Source,
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
    use crate::blob::{Blobs, fs::FsBlobs};
    use std::os::unix::fs::MetadataExt;

    #[test]
    fn a_copy_is_private_is_compared_to_the_byte_and_goes() {
        let folder = tempfile::tempdir().unwrap();
        let bytes: Vec<u8> = (0..PIECE + 7).map(|at| u8::try_from(at % 251).unwrap()).collect();
        let put = |bytes: &[u8]| std::fs::write(folder.path().join("a"), bytes).unwrap();
        put(&bytes);
        let blobs = FsBlobs::new(folder.path(), &[]).unwrap();
        let source = || blobs.open("a").unwrap().unwrap();
        let scratch = Scratch::new().unwrap();
        scratch.copy("a", &*source()).unwrap();
        let mode = |path: &Path| std::fs::metadata(path).unwrap().mode() & 0o777;
        assert_eq!((mode(&scratch.path), mode(&scratch.file("a"))), (0o700, 0o600));
        assert_eq!(std::fs::read(scratch.file("a")).unwrap(), bytes);
        assert!(scratch.is_copy("a", &*source()).unwrap());
        let mut other = bytes.clone();
        other[PIECE] ^= 1;
        for other in [&other[..], &bytes[1..], &bytes[..PIECE], &[&bytes[..], &[0]].concat(), b""] {
            put(other);
            assert!(!scratch.is_copy("a", &*source()).unwrap());
        }
        scratch.copy("a", &*source()).unwrap();
        assert!(scratch.is_copy("a", &*source()).unwrap());
        let path = scratch.path.clone();
        drop(scratch);
        assert!(!path.exists());
    }
}
