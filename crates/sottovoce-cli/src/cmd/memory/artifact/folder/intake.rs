//! Adds a folder's files one by one.

use std::fs::File;
use std::io::{self, Seek};
use std::path::Path;
use std::sync::Arc;

use indicatif::ProgressBar;
use sottovoce::FileConversationStore;
use sottovoce::store::{AddedArtifact, ArtifactKind, NewArtifact};

use crate::cmd::memory::artifact::add::mime_of;
use crate::cmd::memory::artifact::folder::LeftOut;
use crate::cmd::memory::artifact::folder::tree::Tree;
use crate::cmd::memory::artifact::folder::walk;
use crate::cmd::memory::artifact::folder::walk::{Entry, What};
use crate::cmd::memory::artifact::source;
use crate::cmd::memory::artifact::source::{Guarded, Watch};
use crate::cmd::memory::stats::bytes;
use crate::exit::Failure;
use crate::interrupt::Interrupt;

/// The limits of adding a folder.
pub(super) struct Limits {
    pub(super) file: u64,
    pub(super) total: u64,
    pub(super) files: u64,
    pub(super) binary: bool,
}

/// The state of adding a folder.
pub(super) struct Intake<'a> {
    store: &'a FileConversationStore,
    root: &'a Path,
    limits: Limits,
    watch: &'a Arc<Watch>,
    bar: &'a ProgressBar,
    pub(super) tree: Tree,
    /// The artifacts in the tree.
    pub(super) ids: Vec<String>,
    pub(super) added: u64,
    pub(super) same: u64,
    pub(super) left_out: Vec<LeftOut>,
    size: u64,
}

impl<'a> Intake<'a> {
    pub(super) fn new(
        store: &'a FileConversationStore,
        root: &'a Path,
        limits: Limits,
        watch: &'a Arc<Watch>,
        bar: &'a ProgressBar,
    ) -> Self {
        let (tree, ids, left_out) = (Tree::new(), Vec::new(), Vec::new());
        Self { store, root, limits, watch, bar, tree, ids, added: 0, same: 0, left_out, size: 0 }
    }

    /// Adds an entry, or notes why it is skipped.
    pub(super) async fn take(
        &mut self,
        entry: &Entry,
        interrupt: &mut Interrupt,
    ) -> Result<(), Failure> {
        let reason = match &entry.what {
            What::Folder => {
                self.tree.add(entry, Err(""));
                return Ok(());
            }
            What::LeftOut(reason) => reason.clone(),
            What::File(size) => match self.open(entry, *size).await? {
                Err(reason) => reason,
                Ok(file) => match self.add(entry, file, interrupt).await? {
                    Err(reason) => reason,
                    Ok(()) => return Ok(()),
                },
            },
        };
        self.tree.add(entry, Err(&reason));
        self.left_out.push(LeftOut { path: entry.shown(), reason });
        Ok(())
    }

    /// Opens a file, or returns the reason to skip it.
    async fn open(&self, entry: &Entry, size: u64) -> Result<Result<File, String>, Failure> {
        let over = |what: &str, limit: u64| {
            Ok(Err(format!("{}, over {what} of {}", bytes(size), bytes(limit))))
        };
        if size > self.limits.file {
            return over("the limit", self.limits.file);
        }
        if self.size.saturating_add(size) > self.limits.total {
            return over("the limit for all together", self.limits.total);
        }
        if self.ids.len() as u64 >= self.limits.files {
            return Ok(Err(format!("more than {} files", self.limits.files)));
        }
        let (path, any) = (self.root.join(&entry.path), self.limits.binary);
        let watch = Arc::clone(self.watch);
        let looking = tokio::task::spawn_blocking(move || look(&path, any, &watch));
        let looked = looking.await.map_err(io::Error::other)?;
        Ok(match looked {
            Ok(Some(file)) => Ok(file),
            Ok(None) => Err("not text; --binary adds it".to_owned()),
            Err(error) => Err(unreadable(&error)),
        })
    }

    /// Adds a file, or returns the reason to skip it.
    async fn add(
        &mut self,
        entry: &Entry,
        file: File,
        interrupt: &mut Interrupt,
    ) -> Result<Result<(), String>, Failure> {
        let left = self.limits.total.saturating_sub(self.size).min(self.limits.file);
        // Each file has its own watch, so that one failure does not affect the next file.
        let watch = Arc::new(Watch::default());
        let content = Box::new(Guarded::new(file, left, self.bar, &watch));
        let name = entry.shown();
        let mut new = NewArtifact::new(ArtifactKind::File, name.as_str());
        if let Some(mime_type) = mime_of(&name) {
            new = new.mime_type(mime_type);
        }
        let added = source::add(self.store, new, content, &watch, interrupt).await;
        let AddedArtifact { artifact, was_there, .. } = match added {
            Err(error) if watch.is_stopped() => {
                self.watch.stop();
                return Err(error.into());
            }
            Err(_) if watch.is_over() => return Ok(Err("it grew over the limit".to_owned())),
            Err(_) if watch.has_failed() => return Ok(Err("it cannot be read".to_owned())),
            added => added?,
        };
        self.size = self.size.saturating_add(artifact.size);
        let counter = if was_there { &mut self.same } else { &mut self.added };
        *counter += 1;
        self.tree.add(entry, Ok(&artifact));
        self.ids.push(artifact.id.clone());
        if watch.is_stopped() {
            // The signal came too late for this file, but stops before the next.
            self.watch.stop();
            return Err(Failure::Interrupted(""));
        }
        Ok(Ok(()))
    }
}

/// Returns the file at its beginning; `None` if it is not text.
fn look(path: &Path, any: bool, watch: &Watch) -> io::Result<Option<File>> {
    let mut file = walk::open(path)?;
    if !any {
        if !walk::is_text(&mut file, watch)? {
            return Ok(None);
        }
        file.rewind()?;
    }
    Ok(Some(file))
}

fn unreadable(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::InvalidInput => "no plain file".to_owned(),
        kind => format!("it cannot be read: {kind}"),
    }
}
