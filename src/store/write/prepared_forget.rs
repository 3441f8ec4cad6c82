//! Carries out plans for forgetting.

use crate::error::{Error, Result};
use crate::store::folder::{document, snapshot_files};
use crate::store::read::reader::Reader;
use crate::store::read::tail::Tail;
use crate::store::record::document::Document;
use crate::store::record::finding::Finding;
use crate::store::record::profile::Profile;
use crate::store::record::seq_set::SeqSet;
use crate::store::record::snapshot::Snapshot;
use crate::store::rules::forget_plan::{ForgetPlan, ForgetReport, ForgetRequest, MessageRefs};
use crate::store::rules::restore::Copies;
use crate::store::write::committer::Committer;
use crate::store::write::forget::{self, UnreadablePolicy, survey};
use crate::store::write::{artifacts, cleanup, snapshots};

/// A plan with the data to carry it out. Requires the lock.
pub(crate) struct Prepared {
    plan: ForgetPlan,
    snapshots: Vec<Snapshot>,
    unread: Vec<Finding>,
    /// The requested numbers, with copies and originals.
    related: SeqSet,
    /// The numbers that may still be those of copies.
    restored: SeqSet,
    refs: MessageRefs,
}

impl Prepared {
    /// # Errors
    /// If something that may be affected can only be read under another key, by a newer program or at another time.
    pub(crate) fn new(
        reader: &Reader,
        committer: &Committer<'_>,
        tail: &mut Tail,
        asked: &ForgetRequest,
    ) -> Result<Self> {
        let mut plan = ForgetPlan::begin(asked, tail.last_seq);
        let (snapshots, unread) = snapshot_files::all(committer.folder, &tail.profile)?;
        let mut copies = Copies::of(&snapshots);
        let maybe = match tail.knows_settings() {
            true => tail.profile.restored.clone(),
            // Any message may be a copy.
            false => std::iter::once(1..=tail.last_seq).collect(),
        };
        let maybe_here = maybe.without(&tail.erased);
        survey(reader, tail, &maybe_here, UnreadablePolicy::Refused, |stored| copies.note(stored))?;
        let related = copies.related(plan.asked.clone());
        let restored = copies.left_of(&maybe);
        // What the limits hide is not to take the place of what goes.
        let hidden = cleanup::hidden_now(reader, committer, tail)?.without(&related);
        let concerned = related.without(&tail.erased);
        let mut refs = MessageRefs::wanting(concerned.clone());
        survey(reader, tail, &concerned, UnreadablePolicy::Refused, |stored| {
            refs.note(stored);
            plan.note(stored);
        })?;
        let concerned = hidden.without(&tail.erased);
        survey(reader, tail, &concerned, UnreadablePolicy::Recorded, |stored| {
            refs.note(stored);
            plan.hidden.push(stored.seq);
        })?;
        let profile = &tail.profile;
        plan.finish((&related, &hidden), &tail.without_message(), profile, &snapshots);
        plan.artifacts = match plan.is_whole {
            true => profile.artifacts().map(str::to_owned).collect(),
            false => refs.artifacts(profile),
        };
        Ok(Self { plan, snapshots, unread, related, restored, refs })
    }

    pub(crate) fn plan(self) -> ForgetPlan {
        self.plan
    }

    /// # Errors
    /// [`Error::MoreThanAnnounced`] if something would be removed that was not announced.
    pub(crate) fn check(&self, announced: &ForgetPlan) -> Result<()> {
        match self.plan.is_within(announced) {
            true => Ok(()),
            false => Err(Error::MoreThanAnnounced),
        }
    }

    /// Removes messages from snapshots and summaries, records their numbers as forgotten, and removes their files.
    pub(crate) fn carry_out(
        self,
        reader: &Reader,
        committer: &Committer<'_>,
        tail: &mut Tail,
    ) -> Result<ForgetReport> {
        let Self { plan, snapshots, mut unread, related, restored, refs } = self;
        let committer = &committer.with_reserve();
        let withdrawn =
            snapshots::remove_messages(committer, tail, (snapshots, &unread), &related)?;
        if tail.knows_settings() && restored != tail.profile.restored {
            committer.change_profile(tail, |profile| profile.restored = restored)?;
        }
        committer.drop_summaries(tail, &related)?;
        let mut forgotten = forget::erase_surveyed(reader, committer, tail, &plan.numbers, &refs)?;
        if plan.is_whole {
            forget_rest(committer, tail, &plan)?;
            unread.clear();
        }
        forgotten.left.append(&mut unread);
        forgotten.snapshots = withdrawn;
        forgotten.plan = plan;
        tracing::info!(removed = forgotten.removed.len(), "forgot");
        Ok(forgotten)
    }
}

/// Deletes what a conversation has beside its messages.
fn forget_rest(committer: &Committer<'_>, tail: &mut Tail, plan: &ForgetPlan) -> Result<()> {
    for id in &plan.deleted_snapshots {
        if tail.profile.revision(id).is_some() {
            snapshots::delete(committer, tail, id)?;
        }
    }
    artifacts::delete(committer, tail, plan.artifacts.iter().map(String::as_str))?;
    for derived in [Document::Origins, Document::Threads] {
        committer.folder.directory.remove(derived.file_name())?;
    }
    if plan.description {
        committer.change_profile(tail, Profile::forget_words)?;
    }
    // Text lengths per token reveal which languages were spoken.
    match document::open(committer.folder, Document::Calibration)? {
        Some(_) => committer.replace(Document::Calibration, b"{}"),
        None => Ok(()),
    }
}
