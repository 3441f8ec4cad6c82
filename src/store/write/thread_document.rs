//! Keeps the document that lists the newest messages of each thread.

use crate::error::Result;
use crate::store::folder::document;
use crate::store::read::query::RangeQuery;
use crate::store::read::tail::Tail;
use crate::store::read::thread::tails::ThreadTails;
use crate::store::record::document::Document;
use crate::store::record::encoding::to_json;
use crate::store::record::seq_set::SeqSet;
use crate::store::write::committer::Committer;

/// The document is written again when a number passes a multiple of this.
const STEP: u64 = 512;
/// A conversation without the document gets one of all messages if it has no more numbers than this.
const SHORT: u64 = 4096;

/// Brings the document up to date after every so many messages, so that a reader has few to look at. A failure leaves
/// them more.
pub(crate) fn keep(committer: &Committer<'_>, tail: &Tail, before: u64) {
    if before / STEP != tail.last_seq / STEP
        && let Err(error) = renew(committer, tail)
    {
        tracing::warn!(%error, "could not note the newest messages of each thread");
    }
}

fn renew(committer: &Committer<'_>, tail: &Tail) -> Result<()> {
    let mut tails = match ThreadTails::load(committer.folder) {
        Some(tails) => tails,
        // Who uses no threads needs no document.
        None if tail.messages().all(|stored| stored.message.thread_id.is_none()) => return Ok(()),
        None if tail.last_seq <= SHORT => ThreadTails::default(),
        None => ThreadTails::after(tail.last_seq.saturating_sub(STEP)),
    };
    tails.catch_up(tail, |seqs| committer.reader.read_alone(tail, &RangeQuery::Seqs(seqs)))?;
    save(committer, &tails)
}

/// Replaces the document.
pub(crate) fn save(committer: &Committer<'_>, tails: &ThreadTails) -> Result<()> {
    document::check_replaceable(committer.folder, Document::Threads)?;
    committer.replace(Document::Threads, &to_json(tails)?)
}

/// Takes messages that are about to be forgotten out of the document. Where that fails, as on a full disk, the document
/// goes: it is made again from the messages.
pub(crate) fn withdraw(committer: &Committer<'_>, seqs: &SeqSet) -> Result<()> {
    if let Some(mut tails) = ThreadTails::load(committer.folder)
        && (!tails.withdraw(seqs) || save(committer, &tails).is_ok())
    {
        return Ok(());
    }
    committer.folder.directory.remove(Document::Threads.file_name())?;
    committer.folder.directory.sync()
}
