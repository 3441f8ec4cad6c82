//! Deletes what retention hides, and records it as forgotten. Files that cannot be opened at the moment stay and are
//! never read. Nothing is deleted while the clock or the settings are in doubt.

use jiff::Timestamp;

use crate::error::{Error, Result};
use crate::store::folder::Folder;
use crate::store::read::reader::Reader;
use crate::store::read::tail::Tail;
use crate::store::record::finding::Finding;
use crate::store::record::retention::{Horizon, Retention};
use crate::store::record::seq_set::SeqSet;
use crate::store::rules::limits_effect::{
    AT_ONCE, CleanupReport, LimitsEffect, LimitsState, together,
};
use crate::store::write::committer::Committer;
use crate::store::write::forget::{self, UnreadablePolicy, survey};

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
    tail.check_settings(committer.folder)?;
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
    let removed =
        forget::erase(reader, committer, tail, &hidden, UnreadablePolicy::Recorded)?.removed.len();
    tracing::info!(removed, "cleaned up");
    Ok(CleanupReport { removed, expired: horizon == Horizon::Expired })
}

/// Removes an expired conversation before a new message would extend it. If it is long, notes that it has expired, so
/// that it stays hidden while later appends and clean-ups remove it.
pub(crate) fn expire(reader: &Reader, committer: &Committer<'_>, tail: &mut Tail) -> Result<()> {
    if tail.retention.ttl_seconds.is_none() || !tail.knows_settings() {
        return Ok(());
    }
    if tail.horizon_alone(committer.folder, reader.now())? != Horizon::Expired {
        return Ok(());
    }
    let hidden = hidden(committer.folder, tail, Horizon::Expired)?;
    if hidden.count() > AT_ONCE {
        let last = tail.last_seq;
        let committer = committer.with_reserve();
        return committer.change_profile(tail, |profile| profile.expire(last));
    }
    drop_summaries(committer, tail)?;
    forget::erase(reader, committer, tail, &hidden, UnreadablePolicy::Recorded)?;
    Ok(())
}

/// Removes all summaries and a proposed title. They may be about messages that were removed earlier.
fn drop_summaries(committer: &Committer<'_>, tail: &mut Tail) -> Result<()> {
    let all = std::iter::once(1..=tail.last_seq).collect();
    committer.with_reserve().drop_summaries(tail, &all)
}

/// Removes messages beyond the limit once there are enough of them, and messages that have expired. If that fails, they
/// stay hidden.
pub(crate) fn trim(reader: &Reader, committer: &Committer<'_>, tail: &mut Tail) -> Result<()> {
    let expired: SeqSet = std::iter::once(1..=tail.profile.expired).collect();
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
    let horizon = tail.horizon_alone(committer.folder, reader.now())?;
    if tail.shown_count(horizon).saturating_add(more as u64) <= tail.retention.most() {
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
    let horizon = tail.horizon_alone(committer.folder, reader.now())?;
    hidden(committer.folder, tail, horizon)
}

/// The numbers of the hidden messages: all except the visible ones and those whose place is unknown.
fn hidden(folder: &Folder, tail: &Tail, horizon: Horizon) -> Result<SeqSet> {
    let without_message = tail.without_message();
    let all: SeqSet = std::iter::once(1..=tail.last_seq).collect();
    let mut others = match horizon {
        Horizon::All => return Ok(SeqSet::default()),
        Horizon::Expired => SeqSet::default(),
        Horizon::From { .. } | Horizon::Nothing => {
            let mut shown = tail.shown_seqs(folder, horizon)?;
            shown.extend(tail.damaged_seqs());
            shown.without(&std::iter::once(1..=tail.profile.expired).collect())
        }
    };
    others.extend(without_message.ranges());
    Ok(all.without(&others))
}

impl LimitsState {
    fn of(reader: &Reader, tail: &Tail, retention: Option<Retention>) -> Result<Self> {
        let now = reader.now();
        let after = retention.unwrap_or(reader.folder.retention);
        Ok(Self {
            last_seq: tail.last_seq,
            rev: tail.profile.rev,
            before: horizon_within(reader, tail, tail.retention, now)?,
            after: horizon_within(reader, tail, after, now)?,
        })
    }
}

impl LimitsEffect {
    /// For the lock's holder.
    pub(crate) fn of(reader: &Reader, tail: &Tail, retention: Option<Retention>) -> Result<Self> {
        let state = LimitsState::of(reader, tail, retention)?;
        let is_other = state.before != state.after;
        let mut effect = Self::from_state(state);
        if is_other {
            let all: SeqSet = std::iter::once(1..=tail.last_seq).collect();
            let there = all.without(&tail.without_message());
            survey(reader, tail, &there, UnreadablePolicy::Recorded, |stored| effect.note(stored))?;
        }
        Ok(effect)
    }

    /// Fails if the limits would now have another effect than this one.
    ///
    /// # Errors
    /// [`Error::MoreThanAnnounced`].
    pub(crate) fn check(
        &self,
        reader: &Reader,
        tail: &Tail,
        retention: Option<Retention>,
    ) -> Result<()> {
        self.check_state(&LimitsState::of(reader, tail, retention)?)
    }
}

/// Whether new limits would show hidden messages, and whether they would hide visible ones. Requires the lock.
pub(crate) fn compare_limits(
    reader: &Reader,
    tail: &Tail,
    retention: Option<Retention>,
) -> Result<(bool, bool)> {
    let LimitsState { before, after, .. } = LimitsState::of(reader, tail, retention)?;
    Ok((after.hides_less_than(before), before.hides_less_than(after)))
}

/// Which part of the conversation these limits would show.
fn horizon_within(
    reader: &Reader,
    tail: &Tail,
    limits: Retention,
    now: Timestamp,
) -> Result<Horizon> {
    let mut within = tail.clone();
    within.retention = limits;
    within.horizon_alone(&reader.folder, now)
}
