//! Deletes what retention hides, and records it as forgotten. Files that cannot be opened at the moment stay and are
//! never read. Nothing is deleted while the clock or the settings are in doubt.

use jiff::Timestamp;

use crate::error::{Error, Result};
use crate::store::commit::committer::Committer;
use crate::store::delete::forget;
use crate::store::delete::forget::UnreadablePolicy;
use crate::store::folder::unstable_folder;
use crate::store::read::reader::Reader;
use crate::store::read::tail::Tail;
use crate::store::record::finding::Finding;
use crate::store::record::retention::Horizon;
use crate::store::record::seq_set::SeqSet;

/// The outcome of a clean-up.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct CleanupReport {
    /// The number of messages removed.
    pub removed: usize,
    /// Whether the whole conversation had expired.
    pub expired: bool,
}

/// The least and the most hidden messages that are collected before they are removed together.
const TOGETHER: (u64, u64) = (16, 1024);
/// The most messages that an append removes; more are left to the next ones, and to a clean-up.
pub(crate) const AT_ONCE: u64 = 4096;

/// How many messages over the limit of `most` are deleted together.
pub(crate) fn together(most: u64) -> u64 {
    let (least, greatest) = TOGETHER;
    (most / 8).clamp(least, greatest)
}

/// Removes everything that is hidden.
///
/// # Errors
/// [`Error::ClockBehind`] if the clock is before the newest message's time. An error of the settings if they could
/// not be read.
pub(crate) fn cleanup(
    reader: &Reader,
    committer: &Committer<'_>,
    tail: &mut Tail,
) -> Result<CleanupReport> {
    committer.check_settings(tail)?;
    let now = reader.now();
    if !tail.retention.is_forever()
        && let Some(newest) = tail.last_said().filter(|newest| now < *newest)
    {
        return Err(Error::ClockBehind { newest });
    }
    remove_hidden(reader, committer, tail, now)
}

/// Removes hidden messages on request before the limits are widened, which would show them again.
pub(crate) fn before_widening(
    reader: &Reader,
    committer: &Committer<'_>,
    tail: &mut Tail,
) -> Result<()> {
    if tail.retention.ttl_seconds.is_some() {
        return cleanup(reader, committer, tail).map(drop);
    }
    remove_hidden(reader, committer, tail, reader.now()).map(drop)
}

fn remove_hidden(
    reader: &Reader,
    committer: &Committer<'_>,
    tail: &mut Tail,
    now: Timestamp,
) -> Result<CleanupReport> {
    let horizon = horizon(committer, tail, now)?;
    // A file that cannot be read at the moment may be visible, or decide which messages are.
    if let Some(refusal) = tail.unreadable().find_map(Finding::refusal) {
        return Err(refusal);
    }
    let hidden = hidden(tail, horizon);
    if hidden.is_empty() {
        return Ok(CleanupReport::default());
    }
    if horizon == Horizon::Expired {
        drop_summaries(committer, tail)?;
    }
    let removed =
        forget::erase(reader, committer, tail, &hidden, UnreadablePolicy::Recorded)?.removed.len();
    tracing::info!(removed, "cleaned up");
    Ok(CleanupReport { removed, expired: horizon == Horizon::Expired })
}

/// Removes an expired conversation before a new message would extend it.
pub(crate) fn expire(reader: &Reader, committer: &Committer<'_>, tail: &mut Tail) -> Result<()> {
    if tail.retention.ttl_seconds.is_none() || !tail.knows_settings() {
        return Ok(());
    }
    if horizon(committer, tail, reader.now())? == Horizon::Expired {
        let hidden = hidden(tail, Horizon::Expired);
        drop_summaries(committer, tail)?;
        forget::erase(reader, committer, tail, &hidden, UnreadablePolicy::Recorded)?;
    }
    Ok(())
}

/// Removes all summaries and a proposed title. They may be about messages that were removed earlier.
fn drop_summaries(committer: &Committer<'_>, tail: &mut Tail) -> Result<()> {
    let all = std::iter::once(1..=tail.last_seq).collect();
    committer.drop_summaries(tail, &all)
}

/// Removes messages beyond the limit once there are enough of them. If that fails, they stay hidden.
pub(crate) fn trim(reader: &Reader, committer: &Committer<'_>, tail: &mut Tail) -> Result<()> {
    let Some(most) = tail.retention.max_messages.map(|most| u64::from(most.get())) else {
        return Ok(());
    };
    let together = together(most);
    // As far as numbers tell.
    let over = tail.last_seq.saturating_sub(tail.without_message().count()).saturating_sub(most);
    if over < together || !tail.knows_settings() || tail.unreadable().next().is_some() {
        return Ok(());
    }
    let horizon = horizon(committer, tail, Timestamp::MIN)?;
    let hidden = hidden(tail, horizon);
    if hidden.count() >= together {
        forget::erase(
            reader,
            committer,
            tail,
            &hidden.lowest(AT_ONCE),
            UnreadablePolicy::Recorded,
        )?;
    }
    Ok(())
}

/// Fails if messages that are not new would push others beyond the limit.
pub(crate) fn check_room(
    reader: &Reader,
    committer: &Committer<'_>,
    tail: &mut Tail,
    more: usize,
) -> Result<()> {
    let Some(most) = tail.retention.max_messages else { return Ok(()) };
    let horizon = horizon(committer, tail, reader.now())?;
    let shown = tail.shown_from(horizon).count();
    if shown.saturating_add(more) <= most.get() as usize {
        return Ok(());
    }
    Err(Error::InvalidMessage {
        reason: "the conversation's limit leaves no room for so many: raise it first",
    })
}

/// The numbers of the hidden messages.
pub(crate) fn hidden_now(
    reader: &Reader,
    committer: &Committer<'_>,
    tail: &mut Tail,
) -> Result<SeqSet> {
    let horizon = horizon(committer, tail, reader.now())?;
    Ok(hidden(tail, horizon))
}

fn horizon(committer: &Committer<'_>, tail: &mut Tail, now: Timestamp) -> Result<Horizon> {
    if let Some(horizon) = tail.horizon(|| now) {
        return Ok(horizon);
    }
    let disturbed = tail.is_disturbed;
    *tail = Tail::load_alone(committer.folder, 0, Some(&*tail))?;
    tail.is_disturbed = disturbed;
    tail.horizon(|| now).ok_or_else(|| unstable_folder(committer.folder))
}

/// The numbers of the hidden messages: all except the visible ones and those whose place is unknown.
fn hidden(tail: &Tail, horizon: Horizon) -> SeqSet {
    let mut others = tail.without_message();
    match horizon {
        Horizon::All => return SeqSet::default(),
        Horizon::Expired => {}
        Horizon::From(_) | Horizon::Nothing => {
            others.extend(tail.shown_from(horizon).map(|stored| stored.seq..=stored.seq));
            others.extend(tail.damaged_seqs());
        }
    }
    std::iter::once(1..=tail.last_seq).collect::<SeqSet>().without(&others)
}
