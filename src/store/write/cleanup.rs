//! Deletes what retention hides, and records it as forgotten. Files that cannot be opened at the moment stay and are
//! never read. Nothing is deleted while the clock or the settings are in doubt.

use jiff::Timestamp;

use crate::error::Result;
use crate::store::read::tail::Tail;
use crate::store::record::finding::Finding;
use crate::store::record::retention::Horizon;
use crate::store::record::seq_set::SeqSet;
use crate::store::record::validation::check_clock;
use crate::store::rules::limits_effect::{AT_ONCE, CleanupReport, together};
use crate::store::write::committer::Committer;
use crate::store::write::forget;
use crate::store::write::locked_state::hidden;

/// Removes everything that is hidden.
///
/// # Errors
/// [`Error::ClockBehind`] if the clock is more than a week before the newest message's time. An error of the settings if they
/// could not be read.
pub(crate) fn cleanup(committer: &Committer<'_>, tail: &mut Tail) -> Result<CleanupReport> {
    tail.check_settings(committer.folder)?;
    let now = committer.reader.now();
    if !tail.retention.is_forever() {
        check_clock(now, tail.last_said())?;
    }
    remove_hidden(committer, tail, now)
}

/// Removes hidden messages on request before the limits are widened, which would show them again.
pub(crate) fn before_widening(committer: &Committer<'_>, tail: &mut Tail) -> Result<()> {
    if tail.retention.ttl_seconds.is_some() {
        return cleanup(committer, tail).map(drop);
    }
    remove_hidden(committer, tail, committer.reader.now()).map(drop)
}

fn remove_hidden(
    committer: &Committer<'_>,
    tail: &mut Tail,
    now: Timestamp,
) -> Result<CleanupReport> {
    let horizon = tail.horizon_alone(committer.folder, now)?;
    // A file that cannot be read at the moment may be visible, or decide which messages are.
    if let Some(refusal) = tail.unreadable().find_map(Finding::refusal) {
        return Err(refusal);
    }
    let hidden = hidden(committer.folder, tail, horizon)?;
    if hidden.is_empty() {
        return Ok(CleanupReport::default());
    }
    if horizon == Horizon::Expired {
        drop_summaries(committer, tail)?;
    }
    let removed = forget::erase(committer, tail, &hidden)?.removed.len();
    tracing::info!(removed, "cleaned up");
    Ok(CleanupReport { removed, expired: horizon == Horizon::Expired })
}

/// Removes an expired conversation before a new message would extend it. If it is long, notes that it has expired, so
/// that it stays hidden while later appends and clean-ups remove it.
pub(crate) fn expire(committer: &Committer<'_>, tail: &mut Tail) -> Result<()> {
    if tail.retention.ttl_seconds.is_none() || !tail.knows_settings() {
        return Ok(());
    }
    if tail.horizon_alone(committer.folder, committer.reader.now())? != Horizon::Expired {
        return Ok(());
    }
    let hidden = hidden(committer.folder, tail, Horizon::Expired)?;
    if hidden.count() > AT_ONCE {
        let last = tail.last_seq;
        let committer = committer.with_reserve();
        return committer.change_profile(tail, |profile| profile.expire(last));
    }
    drop_summaries(committer, tail)?;
    forget::erase(committer, tail, &hidden)?;
    Ok(())
}

/// Removes all summaries and a proposed title. They may be about messages that were removed earlier.
fn drop_summaries(committer: &Committer<'_>, tail: &mut Tail) -> Result<()> {
    let all = SeqSet::up_to(tail.last_seq);
    committer.with_reserve().drop_summaries(tail, &all)
}

/// Removes messages beyond the limit once there are enough of them, and messages that have expired. If that fails, they
/// stay hidden.
pub(crate) fn trim(committer: &Committer<'_>, tail: &mut Tail) -> Result<()> {
    let expired = SeqSet::up_to(tail.profile.expired);
    let has_expired = !expired.without(&tail.without_message()).is_empty();
    let together = tail.retention.max_messages.map_or(u64::MAX, |most| together(most.get().into()));
    // As far as numbers tell.
    let over = tail.stored().saturating_sub(tail.retention.most());
    if (over < together && !has_expired)
        || !tail.knows_settings()
        || tail.unreadable().next().is_some()
    {
        return Ok(());
    }
    let horizon = tail.horizon_alone(committer.folder, Timestamp::MIN)?;
    let hidden = hidden(committer.folder, tail, horizon)?;
    if has_expired || hidden.count() >= together {
        forget::erase(committer, tail, &hidden.lowest(AT_ONCE))?;
    }
    Ok(())
}
