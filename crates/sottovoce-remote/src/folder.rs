//! A folder as a remote: of another disk, of a file server, or of a program that carries files between devices

use std::fs::{File, OpenOptions};
use std::io::{ErrorKind as Io, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use rustix::fs::OFlags;

use crate::error::{Action, ErrorKind, RemoteError};
use crate::name::{self, Names};
use crate::remote::{MAX_OBJECT, Remote, Result};

/// How the names of temporary files start. No object has such a name.
const TEMPORARY: &str = ".put-";

/// The age at which a temporary file was left by a process that died.
const ABANDONED: Duration = Duration::from_secs(24 * 60 * 60);

#[derive(Debug, Clone)]
pub(crate) struct Folder {
    root: PathBuf,
}

/// A file or folder that an operation is about.
struct Place<'a> {
    root: &'a Path,
    path: PathBuf,
    action: Action,
}

impl Folder {
    pub(crate) fn open(root: &Path) -> Result<Self> {
        let place = Place { root, path: root.to_owned(), action: Action::Open };
        place.check_root()?;
        // A later change of the current folder changes nothing.
        let root = root.canonicalize().map_err(|error| place.error(&error))?;
        Ok(Self { root })
    }

    /// Does something on a thread that may block. It runs to its end even if nobody waits any longer.
    async fn run<T: Send + 'static>(
        &self,
        action: Action,
        name: &str,
        work: impl FnOnce(Place<'_>) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let root = self.root.clone();
        let path = if name.is_empty() { root.clone() } else { root.join(name) };
        let shown = path.display().to_string();
        name::check(action, &root.display().to_string(), name)?;
        let task = tokio::task::spawn_blocking(move || {
            let place = Place { root: &root, path, action };
            place.check_links()?;
            work(place)
        });
        let ended = |_| RemoteError::new(ErrorKind::Other, action, shown, "the runtime has ended");
        task.await.map_err(ended)?
    }
}

impl Place<'_> {
    fn error(&self, error: &std::io::Error) -> RemoteError {
        let kind = match error.kind() {
            Io::PermissionDenied | Io::ReadOnlyFilesystem => ErrorKind::Refused,
            Io::StaleNetworkFileHandle
            | Io::TimedOut
            | Io::HostUnreachable
            | Io::NetworkUnreachable => ErrorKind::Unreachable,
            _ => ErrorKind::Other,
        };
        RemoteError::new(kind, self.action, self.path.display().to_string(), error.to_string())
    }

    /// A folder that has gone, such as that of a disk that was taken out, must not look like an empty one.
    fn check_root(&self) -> Result<()> {
        match std::fs::metadata(self.root) {
            Ok(metadata) if metadata.is_dir() => Ok(()),
            Ok(_) => Err(self.no_container("it is not a folder")),
            Err(error) if matches!(error.kind(), Io::NotFound | Io::NotADirectory) => {
                Err(self.no_container("the folder does not exist"))
            }
            Err(error) => Err(self.error(&error)),
        }
    }

    /// A link in the folder must not make this process write or read elsewhere. One that takes a folder's place after this
    /// check is not noticed.
    fn check_links(&self) -> Result<()> {
        let below = self.path.ancestors().take_while(|folder| *folder != self.root);
        for folder in below {
            if folder.symlink_metadata().is_ok_and(|metadata| metadata.is_symlink()) {
                let reason =
                    "there is a symbolic link on the way, which may lead out of the remote";
                return Err(self.error(&std::io::Error::other(reason)));
            }
        }
        Ok(())
    }

    fn no_container(&self, reason: &str) -> RemoteError {
        RemoteError::new(
            ErrorKind::NoContainer,
            self.action,
            self.root.display().to_string(),
            reason,
        )
    }

    fn parent(&self) -> &Path {
        self.path.parent().unwrap_or(self.root)
    }

    fn put(&self, bytes: &[u8]) -> Result<()> {
        name::check_size(self.action, &self.path.display().to_string(), bytes.len() as u64)?;
        self.check_root()?;
        let put = || {
            self.create_folders(self.parent())?;
            let random = getrandom::u64().map_err(std::io::Error::other)?;
            let temporary = self.parent().join(format!("{TEMPORARY}{random:016x}"));
            let written = self.write(&temporary, bytes);
            if written.is_err() {
                // The first error is the one to report; a file that stays is removed by a later listing.
                drop(std::fs::remove_file(&temporary));
            }
            written?;
            sync(self.parent())
        };
        put().map_err(|error| self.error(&error))
    }

    fn write(&self, temporary: &Path, bytes: &[u8]) -> std::io::Result<()> {
        let mut file =
            OpenOptions::new().write(true).create_new(true).mode(0o600).open(temporary)?;
        file.write_all(bytes)?;
        file.sync_all()?;
        std::fs::rename(temporary, &self.path)
    }

    /// Creates the folders between the root and an object, but never the root. The parent of each is synced even if the folder is there:
    /// another process may have created it a moment ago.
    fn create_folders(&self, folder: &Path) -> std::io::Result<()> {
        let Some(above) = folder.parent().filter(|_| folder != self.root) else { return Ok(()) };
        self.create_folders(above)?;
        match std::fs::create_dir(folder) {
            Ok(()) => {}
            Err(error) if error.kind() == Io::AlreadyExists => {}
            Err(error) => return Err(error),
        }
        sync(above)
    }

    fn get(&self) -> Result<Option<Bytes>> {
        // A pipe that somebody put there would block for ever without NONBLOCK.
        let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
        let flags = flags.bits().try_into().unwrap_or_default();
        let file = match OpenOptions::new().read(true).custom_flags(flags).open(&self.path) {
            Ok(file) => file,
            Err(error) if matches!(error.kind(), Io::NotFound | Io::NotADirectory) => {
                return self.check_root().map(|()| None);
            }
            Err(error) => return Err(self.error(&error)),
        };
        let metadata = file.metadata().map_err(|error| self.error(&error))?;
        if metadata.is_dir() {
            return Ok(None);
        }
        if !metadata.is_file() {
            return Err(self.error(&std::io::Error::other("it is not a file")));
        }
        let mut bytes = Vec::new();
        let read = file.take(MAX_OBJECT as u64 + 1).read_to_end(&mut bytes);
        read.map_err(|error| self.error(&error))?;
        name::check_size(self.action, &self.path.display().to_string(), bytes.len() as u64)?;
        Ok(Some(bytes.into()))
    }

    fn list(&self) -> Result<Vec<String>> {
        let shown = self.path.display().to_string();
        let mut names = Names::new(&shown);
        let entries = match std::fs::read_dir(&self.path) {
            Ok(entries) => entries,
            Err(error) if matches!(error.kind(), Io::NotFound | Io::NotADirectory) => {
                return self.check_root().map(|()| names.finish());
            }
            Err(error) => return Err(self.error(&error)),
        };
        for entry in entries {
            let entry = entry.map_err(|error| self.error(&error))?;
            let name = entry.file_name();
            let name = name.to_string_lossy();
            let kind = entry.file_type().map_err(|error| self.error(&error))?;
            if name.starts_with(TEMPORARY) {
                remove_abandoned(&entry);
            } else if kind.is_file() || kind.is_dir() {
                names.add(&name, kind.is_dir())?;
            }
        }
        Ok(names.finish())
    }

    fn delete(&self) -> Result<()> {
        match std::fs::remove_file(&self.path) {
            Ok(()) => {}
            // As for a reader, a folder is no object.
            Err(error)
                if matches!(error.kind(), Io::NotFound | Io::NotADirectory | Io::IsADirectory) =>
            {
                self.check_root()?;
            }
            Err(error) => return Err(self.error(&error)),
        }
        match sync(self.parent()) {
            Err(error) if !matches!(error.kind(), Io::NotFound | Io::NotADirectory) => {
                Err(self.error(&error))
            }
            _ => Ok(()),
        }
    }
}

fn sync(folder: &Path) -> std::io::Result<()> {
    File::open(folder)?.sync_all()
}

/// Removes a temporary file of a process that died. A later listing tries again what fails here.
fn remove_abandoned(entry: &std::fs::DirEntry) {
    let written = entry.metadata().and_then(|metadata| metadata.modified());
    if written.ok().and_then(|at| at.elapsed().ok()).is_some_and(|age| age > ABANDONED) {
        drop(std::fs::remove_file(entry.path()));
    }
}

#[async_trait]
impl Remote for Folder {
    async fn put(&self, name: &str, bytes: Bytes) -> Result<()> {
        self.run(Action::Put, name, move |place| place.put(&bytes)).await
    }

    async fn get(&self, name: &str) -> Result<Option<Bytes>> {
        self.run(Action::Get, name, |place| place.get()).await
    }

    async fn list(&self, folder: &str) -> Result<Vec<String>> {
        self.run(Action::List, folder, |place| place.list()).await
    }

    async fn delete(&self, name: &str) -> Result<()> {
        self.run(Action::Delete, name, |place| place.delete()).await
    }
}
