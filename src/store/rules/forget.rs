//! Forgetting: what goes, and carrying it out.

use std::collections::{BTreeSet, HashMap};

use zeroize::Zeroizing;

use crate::error::{Error, Result};
use crate::store::record::document::{Document, DocumentId};
use crate::store::record::encoding::StoredMessage;
use crate::store::record::finding::Finding;
use crate::store::record::profile::Profile;
use crate::store::record::seq_set::SeqSet;
use crate::store::record::snapshot::{Snapshot, Withdrawal};
use crate::store::rules::StoreBackend;
use crate::store::rules::backend_state::BackendState;
use crate::store::rules::batch::Batch;
use crate::store::rules::current_state::{CurrentState, UnreadablePolicy, survey};
use crate::store::rules::forget_plan::{ForgetPlan, ForgetReport, ForgetRequest, MessageRefs};
use crate::store::rules::restore::Copies;
use crate::store::rules::view::{View, delete, delete_artifacts, retried};

pub(crate) async fn plan(
    store: &(impl StoreBackend + ?Sized),
    asked: ForgetRequest,
) -> Result<ForgetPlan> {
    let view = View::of(store).await?;
    Ok(Prepared::of(&BackendState { store, view: &view }, &asked).await?.plan)
}

pub(crate) async fn forget(
    store: &(impl StoreBackend + ?Sized),
    asked: ForgetRequest,
    announced: Option<&ForgetPlan>,
) -> Result<ForgetReport> {
    retried!(forget_once(store, &asked, announced))
}

async fn forget_once(
    store: &(impl StoreBackend + ?Sized),
    asked: &ForgetRequest,
    announced: Option<&ForgetPlan>,
) -> Result<ForgetReport> {
    let mut view = View::of(store).await?;
    let prepared = Prepared::of(&BackendState { store, view: &view }, asked).await?;
    prepared.check(announced)?;
    let Prepared { plan, snapshots, related, restored, refs, .. } = prepared;
    let numbers = plan.numbers.without(&view.state.forgotten);
    if plan.is_nothing() && numbers.is_empty() {
        return Ok(ForgetReport::default());
    }
    let unread: Vec<&String> = plan.closed_snapshots.iter().collect();
    let withdrawal =
        Withdrawal::of(snapshots, |id| unread.iter().any(|u| *u == id), &related, &view.profile);
    let mut batch = Batch::new(&view.state);
    for snapshot in &withdrawal.changed {
        batch = batch.write(DocumentId::Snapshot(snapshot.id.clone()), snapshot.to_plaintext()?);
    }
    let is_whole = plan.is_whole;
    let mut batch = view.change_after(batch, |profile| {
        withdrawal.apply(profile);
        profile.restored = restored;
        if profile.has_any_made_of(&related) {
            profile.drop_derived(&related);
        }
        if is_whole {
            forget_rest(profile, &plan);
        }
    })?;
    let mut removed_snapshots: Vec<&String> = withdrawal.emptied.iter().map(|(id, _)| id).collect();
    if is_whole {
        removed_snapshots.extend(&plan.deleted_snapshots);
        removed_snapshots.sort_unstable();
        removed_snapshots.dedup();
        let calibration = Document::Calibration;
        if store.document(&calibration.into()).await?.is_some() {
            // How long its texts were tells which languages were spoken.
            batch = batch.write(calibration, Zeroizing::new(b"{}".to_vec()));
        }
    }
    for id in removed_snapshots {
        batch = batch.remove(DocumentId::Snapshot(id.clone()));
    }
    store.commit(delete(batch, &view.state, &plan.numbers)).await?;
    // Also those whose metadata cannot be read now, which are not in the list.
    let artifacts: BTreeSet<&String> = plan.artifacts.iter().chain(refs.moved()).collect();
    delete_artifacts(store, artifacts.into_iter().cloned().collect()).await?;
    let ForgetPlan { messages, answers, originals, copies, hidden, .. } = &plan;
    let removed = [messages, answers, originals, copies, hidden].into_iter().flatten();
    let mut removed: Vec<u64> = removed.copied().collect();
    removed.sort_unstable();
    tracing::info!(removed = removed.len(), "forgot");
    Ok(ForgetReport {
        numbers: numbers.count(),
        removed,
        snapshots: withdrawal.count,
        backups: 0,
        left: Vec::new(),
        plan,
    })
}

/// Takes out of the settings what a conversation holds beside its messages.
fn forget_rest(profile: &mut Profile, plan: &ForgetPlan) {
    for id in &plan.deleted_snapshots {
        if profile.revision(id).is_some() {
            profile.unlist(id, false);
        }
    }
    if plan.description {
        profile.forget_words();
    }
}

/// How many numbers after a message its answers are looked for.
const FAR: u64 = 256;

/// The numbers of what follows these messages in their threads, each up to the next message that starts an exchange.
async fn answers(state: &impl CurrentState, asked: &SeqSet) -> Result<SeqSet> {
    let last = state.last_seq();
    let near = asked.ranges().map(|range| *range.start()..=last.min(range.end() + FAR));
    let near = near.collect::<SeqSet>().without(state.forgotten());
    // Which threads answer one of them, and its number.
    let mut answered = HashMap::new();
    let mut answers = Vec::new();
    survey(
        state,
        &near,
        UnreadablePolicy::Recorded,
        &mut |StoredMessage { seq, message, .. }| {
            let (thread, is_asked) = (&message.thread_id, asked.contains(*seq));
            match message.starts_exchange() {
                true if is_asked => _ = answered.insert(thread.clone(), *seq),
                true => _ = answered.remove(thread),
                false if is_asked => {}
                false => {
                    // What was forgotten between them may have been the question.
                    let is_near = |question: &u64| {
                        question.abs_diff(*seq) <= FAR
                            && !state.forgotten().intersects(&(*question..=*seq))
                    };
                    if answered.get(thread).is_some_and(is_near) {
                        answers.push(*seq..=*seq);
                    }
                }
            }
        },
    )
    .await?;
    Ok(answers.into_iter().collect())
}

/// A plan with what is needed to carry it out.
pub(crate) struct Prepared {
    pub(crate) plan: ForgetPlan,
    pub(crate) snapshots: Vec<Snapshot>,
    /// Findings about snapshots that do not open.
    pub(crate) unread: Vec<Finding>,
    /// The requested numbers, with copies and originals.
    pub(crate) related: SeqSet,
    /// The numbers that may still be those of copies.
    pub(crate) restored: SeqSet,
    pub(crate) refs: MessageRefs,
}

impl Prepared {
    /// # Errors
    /// If something that may be affected can only be read under another key, by a newer program or at another time.
    pub(crate) async fn of(state: &impl CurrentState, asked: &ForgetRequest) -> Result<Self> {
        let mut plan = ForgetPlan::begin(asked, state.last_seq());
        match asked {
            ForgetRequest::Exchanges(_) => plan.answered_by(answers(state, &plan.asked).await?),
            ForgetRequest::Planned(_, answers) => plan.answered_by(answers.clone()),
            ForgetRequest::Numbers(_) | ForgetRequest::All => {}
        }
        let (snapshots, unread) = state.snapshots().await?;
        let forgotten = state.forgotten();
        let mut copies = Copies::of(&snapshots);
        let maybe = state.restored();
        let strict = UnreadablePolicy::Refused;
        survey(state, &maybe.without(forgotten), strict, &mut |stored| copies.note(stored)).await?;
        let related = copies.related(plan.asked.clone());
        let restored = copies.left_of(&maybe);
        // What the limits hide is not to take the place of what goes.
        let hidden = state.hidden().await?.without(&related);
        let concerned = related.without(forgotten);
        let mut refs = MessageRefs::wanting(concerned.clone());
        survey(state, &concerned, strict, &mut |stored| {
            refs.note(stored);
            plan.note(stored);
        })
        .await?;
        let concerned = hidden.without(forgotten);
        survey(state, &concerned, UnreadablePolicy::Recorded, &mut |stored| {
            refs.note(stored);
            plan.hidden.push(stored.seq);
        })
        .await?;
        plan.finish((&related, &hidden), &state.vacant(), state.profile(), &snapshots);
        plan.artifacts = state.artifacts_of(&refs, plan.is_whole).await?;
        if !plan.is_nothing() {
            plan.backups = state.backups();
        }
        Ok(Self { plan, snapshots, unread, related, restored, refs })
    }

    /// # Errors
    /// [`Error::MoreThanAnnounced`] if something would be removed that was not announced.
    pub(crate) fn check(&self, announced: Option<&ForgetPlan>) -> Result<()> {
        match announced.is_none_or(|announced| self.plan.is_within(announced)) {
            true => Ok(()),
            false => Err(Error::MoreThanAnnounced),
        }
    }
}
