//! How much is kept: what the limits hide, and deleting that.

use jiff::Timestamp;

use crate::error::{Error, Result};
use crate::store::record::finding::Finding;
use crate::store::record::profile::Profile;
use crate::store::record::retention::{Horizon, Retention};
use crate::store::record::seq_set::SeqSet;
use crate::store::record::validation::check_clock;
use crate::store::rules::StoreBackend;
use crate::store::rules::backend_state::BackendState;
use crate::store::rules::batch::Batch;
use crate::store::rules::current_state::{CurrentState, UnreadablePolicy, survey};
use crate::store::rules::forget_plan::MessageRefs;
use crate::store::rules::limits_effect::{
    AT_ONCE, CleanupReport, HiddenMessages, LimitsEffect, LimitsState, together,
};
use crate::store::rules::read::{Newest, has_expired, hidden_by, now};
use crate::store::rules::view::{View, delete, delete_artifacts, retried};

/// What other limits would hide and show.
pub(crate) async fn effect(
    state: &impl CurrentState,
    retention: Option<Retention>,
) -> Result<LimitsEffect> {
    if state.last_seq() == 0 {
        return Ok(LimitsEffect::default());
    }
    let limits = limits_state(state, retention).await?;
    let is_other = limits.before != limits.after;
    let mut effect = LimitsEffect::from_state(limits);
    if is_other {
        let there = SeqSet::up_to(state.last_seq()).without(&state.vacant());
        survey(state, &there, UnreadablePolicy::Recorded, &mut |stored| effect.note(stored))
            .await?;
    }
    Ok(effect)
}

/// Where the conversation begins now, and where it would with other limits.
pub(crate) async fn limits_state(
    state: &impl CurrentState,
    retention: Option<Retention>,
) -> Result<LimitsState> {
    let others = retention.unwrap_or(state.default_retention());
    Ok(LimitsState {
        last_seq: state.last_seq(),
        rev: state.profile().rev,
        before: state.horizon(state.retention()).await?,
        after: state.horizon(others).await?,
    })
}

/// Refuses limits that would show hidden messages again.
///
/// # Errors
/// [`Error::HiddenMessages`].
pub(crate) async fn check_hidden_stay(
    state: &impl CurrentState,
    retention: Option<Retention>,
) -> Result<()> {
    if retention == state.profile().retention {
        return Ok(());
    }
    let limits = limits_state(state, retention).await?;
    match limits.after.hides_less_than(limits.before) {
        true => Err(Error::HiddenMessages),
        false => Ok(()),
    }
}

pub(crate) async fn effect_on(
    store: &(impl StoreBackend + ?Sized),
    retention: Option<Retention>,
) -> Result<LimitsEffect> {
    let view = View::of(store).await?;
    effect(&BackendState { store, view: &view }, retention).await
}

pub(crate) async fn change(
    store: &(impl StoreBackend + ?Sized),
    retention: Option<Retention>,
    hidden: HiddenMessages,
    announced: &LimitsEffect,
) -> Result<Profile> {
    retried!(change_once(store, retention, hidden, announced))
}

async fn change_once(
    store: &(impl StoreBackend + ?Sized),
    retention: Option<Retention>,
    hidden: HiddenMessages,
    announced: &LimitsEffect,
) -> Result<Profile> {
    let mut view = View::of(store).await?;
    announced.check_state(&limits_state(&BackendState { store, view: &view }, retention).await?)?;
    let deletion = match hidden {
        HiddenMessages::Delete => {
            Some(Deletion::of(store, &view, view.retention.ttl_seconds.is_some()).await?)
        }
        HiddenMessages::Keep => None,
    };
    let batch = view.change(|profile| {
        if deletion.as_ref().is_some_and(|deletion| deletion.is_expired) {
            profile.drop_derived(&SeqSet::everything());
        }
        profile.retention = retention;
    })?;
    match deletion {
        Some(deletion) => deletion.commit(store, &view, batch).await?,
        None => _ = store.commit(batch).await?,
    }
    Ok(view.profile)
}

pub(crate) async fn cleanup(store: &(impl StoreBackend + ?Sized)) -> Result<CleanupReport> {
    retried!(cleanup_once(store))
}

async fn cleanup_once(store: &(impl StoreBackend + ?Sized)) -> Result<CleanupReport> {
    let mut view = View::of(store).await?;
    let deletion = Deletion::of(store, &view, !view.retention.is_forever()).await?;
    if deletion.seqs.is_empty() {
        return Ok(CleanupReport::default());
    }
    let (removed, expired) = (deletion.removed, deletion.is_expired);
    let batch = view.change(|profile| {
        if expired {
            profile.drop_derived(&SeqSet::everything());
        }
    })?;
    deletion.commit(store, &view, batch).await?;
    Ok(CleanupReport { removed, expired })
}

/// Deletes a conversation that has expired, before something new would make it last on. If it is long, notes that it has
/// expired, so that it stays hidden while later appends and clean-ups delete it. Returns the state afterwards.
pub(crate) async fn expire(store: &(impl StoreBackend + ?Sized)) -> Result<View> {
    let mut view = View::of(store).await?;
    if !has_expired(store, &view).await? {
        return Ok(view);
    }
    let all = SeqSet::up_to(view.state.last_seq).without(&view.state.forgotten);
    let last = view.state.last_seq;
    if all.count() > AT_ONCE {
        let batch = view.change(|profile| profile.expire(last))?;
        view.state = store.commit(batch).await?;
        return Ok(view);
    }
    let batch = view.change(|profile| profile.drop_derived(&SeqSet::everything()))?;
    Deletion::of_numbers(store, &view, all).await?.commit(store, &view, batch).await?;
    View::of(store).await
}

/// Deletes messages over the limit once there are enough of them. If that fails they stay hidden.
pub(crate) async fn trim(store: &(impl StoreBackend + ?Sized)) {
    if let Err(error) = retried!(trim_once(store)) {
        tracing::warn!(%error, "could not delete the messages over the limit");
    }
}

async fn trim_once(store: &(impl StoreBackend + ?Sized)) -> Result<()> {
    let view = View::of(store).await?;
    let expired = view.expired();
    let seqs = if expired.is_empty() {
        let Some(most) = view.retention.max_messages else { return Ok(()) };
        let together = together(most.get().into());
        if view.stored().saturating_sub(most.get().into()) < together {
            return Ok(());
        }
        let newest = Newest::of(store, &view, view.retention, 0).await?;
        check_readable(&newest)?;
        let hidden = hidden_by(store, &newest, newest.horizon(Timestamp::MIN), &view).await?;
        if hidden.count() < together {
            return Ok(());
        }
        hidden
    } else {
        expired
    };
    let deletion = Deletion::of_numbers(store, &view, seqs.lowest(AT_ONCE)).await?;
    let batch = Batch::new(&view.state);
    deletion.commit(store, &view, batch).await
}

/// What cannot be read just now may be what is shown, or hide where it begins.
fn check_readable(newest: &Newest) -> Result<()> {
    newest.result.skipped.iter().find_map(Finding::refusal).map_or(Ok(()), Err)
}

/// The deletion of what the limits hide.
struct Deletion {
    seqs: SeqSet,
    removed: usize,
    is_expired: bool,
    refs: MessageRefs,
}

impl Deletion {
    /// # Errors
    /// [`Error::ClockBehind`] if the clock counts and shows a time more than a week before the newest message's.
    async fn of(
        store: &(impl StoreBackend + ?Sized),
        view: &View,
        clock_counts: bool,
    ) -> Result<Self> {
        let newest = Newest::of(store, view, view.retention, 0).await?;
        let now = now(store);
        if clock_counts {
            check_clock(now, newest.last_said())?;
        }
        check_readable(&newest)?;
        let horizon = newest.horizon(now);
        let seqs = hidden_by(store, &newest, horizon, view).await?;
        let is_expired = horizon == Horizon::Expired;
        Ok(Self { is_expired, ..Self::of_numbers(store, view, seqs).await? })
    }

    /// The deletion of these numbers.
    async fn of_numbers(
        store: &(impl StoreBackend + ?Sized),
        view: &View,
        seqs: SeqSet,
    ) -> Result<Self> {
        let (mut removed, mut refs) = (0, MessageRefs::default());
        let state = BackendState { store, view };
        survey(&state, &seqs, UnreadablePolicy::Recorded, &mut |stored| {
            removed += 1;
            refs.note(stored);
        })
        .await?;
        Ok(Self { seqs, removed, is_expired: false, refs })
    }

    async fn commit(
        &self,
        store: &(impl StoreBackend + ?Sized),
        view: &View,
        batch: Batch,
    ) -> Result<()> {
        let ids: Vec<String> = match store.artifact_store() {
            Some(_) => self.refs.moved().cloned().collect(),
            None => Vec::new(),
        };
        store.commit(delete(batch, &view.state, &self.seqs)).await?;
        delete_artifacts(store, ids).await?;
        tracing::info!(removed = self.removed, "cleaned up");
        Ok(())
    }
}
