//! Forgetting: what goes, and carrying it out.

use zeroize::Zeroizing;

use crate::error::{Error, Result};
use crate::store::record::document::{Document, DocumentId};
use crate::store::record::profile::Profile;
use crate::store::record::seq_set::SeqSet;
use crate::store::record::snapshot::{Snapshot, Withdrawal};
use crate::store::rules::batch::Batch;
use crate::store::rules::forget_plan::{ForgetPlan, ForgetReport, ForgetRequest, MessageRefs};
use crate::store::rules::restore::Copies;
use crate::store::rules::view::{View, delete, delete_artifacts_of, retried, survey};
use crate::store::rules::{ArtifactStore, StoreBackend, limits, snapshot};

pub(crate) async fn plan(
    store: &(impl StoreBackend + ?Sized),
    asked: ForgetRequest,
) -> Result<ForgetPlan> {
    let view = View::of(store).await?;
    Ok(Prepared::of(store, &view, &asked).await?.plan)
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
    let prepared = Prepared::of(store, &view, asked).await?;
    if announced.is_some_and(|announced| !prepared.plan.is_within(announced)) {
        return Err(Error::MoreThanAnnounced);
    }
    let Prepared { plan, snapshots, related, restored, refs } = prepared;
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
    delete_artifacts_of(store, &refs).await?;
    if let Some(artifacts) = store.artifact_store().filter(|_| is_whole) {
        artifacts.delete_artifacts(&plan.artifacts).await?;
    }
    let mut removed: Vec<u64> = [&plan.messages, &plan.originals, &plan.copies, &plan.hidden]
        .into_iter()
        .flatten()
        .copied()
        .collect();
    removed.sort_unstable();
    tracing::info!(removed = removed.len(), "forgot");
    Ok(ForgetReport {
        numbers: numbers.count(),
        removed,
        snapshots: withdrawal.count,
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

/// A plan with what is needed to carry it out.
struct Prepared {
    plan: ForgetPlan,
    snapshots: Vec<Snapshot>,
    related: SeqSet,
    restored: SeqSet,
    refs: MessageRefs,
}

impl Prepared {
    async fn of(
        store: &(impl StoreBackend + ?Sized),
        view: &View,
        asked: &ForgetRequest,
    ) -> Result<Self> {
        let mut plan = ForgetPlan::begin(asked, view.state.last_seq);
        let (snapshots, _) = snapshot::list(store, &view.profile).await?;
        let forgotten = &view.state.forgotten;
        let mut copies = Copies::of(&snapshots);
        let restored = view.profile.restored.without(forgotten);
        survey(store, &restored, true, &mut |stored| copies.note(stored)).await?;
        let restored = copies.left_of(&view.profile.restored);
        let related = copies.related(plan.asked.clone());
        let hidden = limits::hidden(store, view).await?.without(&related);
        let mut refs = MessageRefs::default();
        survey(store, &related.without(forgotten), true, &mut |stored| {
            refs.note(stored);
            plan.note(stored);
        })
        .await?;
        survey(store, &hidden.without(forgotten), false, &mut |stored| {
            refs.note(stored);
            plan.hidden.push(stored.seq);
        })
        .await?;
        plan.finish((&related, &hidden), forgotten, &view.profile, &snapshots);
        plan.artifacts = artifacts(store.artifact_store(), plan.is_whole, &refs).await?;
        Ok(Self { plan, snapshots, related, restored, refs })
    }
}

/// The artifacts that go.
async fn artifacts(
    store: Option<&dyn ArtifactStore>,
    is_whole: bool,
    refs: &MessageRefs,
) -> Result<Vec<String>> {
    let Some(store) = store else { return Ok(Vec::new()) };
    let (artifacts, _) = store.artifacts().await?;
    let goes = |id: &String| is_whole || refs.moved().any(|moved| moved == id);
    Ok(artifacts.into_iter().map(|artifact| artifact.id.clone()).filter(goes).collect())
}
