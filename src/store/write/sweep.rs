//! Deletes what a conversation's folder holds after everything in it was forgotten: what a repair set aside, and what does not open.

use std::sync::Arc;

use crate::directory::{Directory, EntryKind};
use crate::error::Result;
use crate::store::folder::sealed_files::SealedFiles;
use crate::store::folder::{artifact_files, segments, snapshot_files};
use crate::store::read::reader::Reader;
use crate::store::read::tail::Tail;
use crate::store::record::layout::QUARANTINE;
use crate::store::record::seq_set::SeqSet;
use crate::store::write::Writer;
use crate::store::write::removal::empty;

/// Sweeps the folder while nobody adds an artifact, whose contents are there before the artifact is listed. What was said since
/// it was forgotten stays, and so do files of no known name. Blocks.
pub(crate) fn sweep(reader: &Reader, writer: &tokio::sync::Mutex<Writer>) -> Result<()> {
    let (_, timeout) = writer.blocking_lock().start_anew();
    let adding = reader.folder.artifacts.lock(timeout)?;
    let swept = writer.blocking_lock().sweep();
    adding.release_clean();
    swept
}

impl Writer {
    fn sweep(&mut self) -> Result<()> {
        self.locked(|committer, tail, _| {
            let folder = committer.folder;
            let listing = folder.list()?;
            let gone = listing.names.iter().filter(|name| !name.is_forget());
            for name in gone.filter(|name| tail.erased.contains(name.seq)) {
                folder.directory.remove(&name.to_string())?;
            }
            for pack in &listing.packs {
                let seqs: SeqSet = std::iter::once(pack.seqs()).collect();
                if seqs.without(&tail.erased).is_empty() {
                    folder.packs.remove(&pack.to_string())?;
                }
            }
            folder.directory.sync()?;
            for beside in [&folder.directory, &folder.packs] {
                remove_folder(beside, QUARANTINE)?;
            }
            for (files, is_empty) in [
                (&snapshot_files::FILES, tail.profile.snapshots().next().is_none()),
                (&artifact_files::FILES, tail.profile.artifacts().next().is_none()),
                (&segments::FILES, true),
            ] {
                let beside = (files.directory)(folder);
                remove_folder(beside, QUARANTINE)?;
                if is_empty {
                    remove_files(files, &**beside)?;
                }
            }
            *tail = Tail::load_alone(folder, 0, None)?;
            Ok(())
        })
    }
}

fn remove_folder(parent: &Arc<dyn Directory>, name: &str) -> Result<()> {
    empty(&*parent.folder(name))?;
    parent.remove_folder(name)
}

/// Removes all files that the store names so. Others are somebody's.
fn remove_files(files: &SealedFiles, folder: &dyn Directory) -> Result<()> {
    let mut names = Vec::new();
    folder.list(&mut |name, kind| {
        let is_ours = kind != EntryKind::Folder && files.id_of(name).is_ok();
        names.extend(str::from_utf8(name).ok().filter(|_| is_ours).map(str::to_owned));
    })?;
    names.iter().try_for_each(|name| folder.remove(name))?;
    folder.remove_temp_files()?;
    if names.is_empty() { Ok(()) } else { folder.sync() }
}
