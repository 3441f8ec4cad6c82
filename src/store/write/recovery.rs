//! Recovery on taking the lock: loads the tail and finishes interrupted work.

use std::mem::take;

use crate::error::{Error, Result};
use crate::store::folder::HeadState;
use crate::store::read::reader::Reader;
use crate::store::read::tail::Tail;
use crate::store::write::committer::Committer;
use crate::store::write::compact::Compactor;
use crate::store::write::compact::pack_recovery::{PreviousWriter, make_durable};
use crate::store::write::{forget, forgotten_conversation};

/// The current tail for the lock holder: the cached one if it is still valid.
pub(super) fn newest_end(reader: &Reader) -> Result<Tail> {
    let folder = &reader.folder;
    let mut tail = match reader.known() {
        Some(mut tail) if tail.is_current(folder)? => {
            if tail.is_intact(folder)? {
                // Without change stamps nobody can tell.
                tail.is_disturbed =
                    !matches!(tail.head, HeadState::Known(head) if head.stamp.is_some());
                return Ok(tail);
            }
            // Trouble with packs must not prevent appending.
            match Tail::load_alone(folder, 0, Some(&tail)) {
                Err(Error::FolderReplaced { .. }) if tail.is_survey => tail,
                loaded => loaded?,
            }
        }
        known => Tail::load_alone(folder, 0, known.as_ref())?,
    };
    tail.is_disturbed = match tail.head {
        HeadState::Known(head) => !folder.matches_stamps(&head)?,
        HeadState::Absent | HeadState::Damaged => true,
    };
    Ok(tail)
}

/// Makes a head for a folder's first record, removes forgotten files that came back, and finishes what an interrupted
/// writer began.
pub(super) fn prepare(
    committer: &Committer<'_>,
    tail: &mut Tail,
    compactor: &mut Compactor,
    before: PreviousWriter,
) -> Result<()> {
    if tail.is_fresh() {
        committer.make_head(tail)?;
    }
    if tail.last_seq == 0 {
        forgotten_conversation::record(committer, tail)?;
    }
    if before != PreviousWriter::Finished {
        // These packs count from now on, and numbers continue after them.
        for pack in take(&mut tail.ahead) {
            match make_durable(committer.folder, pack) {
                // Trouble with one pack must not prevent appending.
                Err(error @ (Error::Io { .. } | Error::NotPlain { .. })) => {
                    tracing::warn!(%error, "could not make a pack durable");
                }
                outcome => outcome?,
            }
        }
        if matches!(tail.head, HeadState::Known(head) if head.seq < tail.last_seq) {
            committer.folder.directory.sync()?;
            committer.acknowledge_packed(tail)?;
        }
    }
    committer.acknowledge_profile(tail)?;
    if !tail.resurrected.is_empty() {
        forget::finish(committer, tail)?;
    }
    compactor.recover(committer, tail, before);
    Ok(())
}
