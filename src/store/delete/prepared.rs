//! Carries out plans for forgetting.

use crate::error::{Error, Result};
use crate::store::artifact::artifact_files;
use crate::store::commit::committer::Committer;
use crate::store::delete::cleanup;
use crate::store::delete::forget;
use crate::store::delete::forget::{MessageRefs, UnreadablePolicy, survey};
use crate::store::delete::plan::ForgetReport;
use crate::store::folder::document;
use crate::store::read::reader::Reader;
use crate::store::read::tail::Tail;
use crate::store::record::document::Document;
use crate::store::record::finding::Finding;
use crate::store::record::seq_set::SeqSet;
use crate::store::record::snapshot::Snapshot;
use crate::store::settings::profile::Profile;
use crate::store::snapshot::restore::with_copies;
use crate::store::snapshot::snapshot_files;

use crate::store::delete::plan::{ForgetPlan, ForgetRequest};

/// A plan with the data to carry it out. Requires the lock.
pub(crate) struct Prepared {
    plan: ForgetPlan,
    snapshots: Vec<Snapshot>,
    unread: Vec<Finding>,
    /// The requested numbers, with copies and originals.
    related: SeqSet,
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
        let last = tail.last_seq;
        let is_whole = *asked == ForgetRequest::All;
        let asked: SeqSet = match asked {
            ForgetRequest::All => std::iter::once(1..=last).collect(),
            ForgetRequest::Numbers(ranges) => {
                ranges.iter().map(|range| *range.start()..=(*range.end()).min(last)).collect()
            }
        };
        let (snapshots, unread) = snapshot_files::all(committer.folder, &tail.profile)?;
        let related = with_copies(reader, tail, &snapshots, asked.clone())?;
        // Hidden messages must not become visible in place of the forgotten ones.
        let hidden = cleanup::hidden_now(reader, committer, tail)?.without(&related);
        let (mut refs, mut plan) =
            (MessageRefs::default(), ForgetPlan { is_whole, ..Default::default() });
        survey(
            reader,
            tail,
            &related.without(&tail.erased),
            UnreadablePolicy::Refused,
            |stored| {
                refs.note(stored);
                let place = match stored.message.restored_from() {
                    _ if asked.contains(stored.seq) => &mut plan.messages,
                    Some(_) => &mut plan.copies,
                    None => &mut plan.originals,
                };
                place.push(stored.seq);
            },
        )?;
        survey(
            reader,
            tail,
            &hidden.without(&tail.erased),
            UnreadablePolicy::Recorded,
            |stored| {
                refs.note(stored);
                plan.hidden.push(stored.seq);
            },
        )?;
        for numbers in [&mut plan.messages, &mut plan.originals, &mut plan.copies, &mut plan.hidden]
        {
            numbers.sort_unstable();
        }
        let there: SeqSet = plan.messages.iter().map(|number| *number..=*number).collect();
        plan.lost = asked.without(&tail.without_message()).without(&there).count();
        (plan.asked, plan.numbers) = (asked, related.clone());
        plan.numbers.extend(hidden.ranges());
        let profile = &tail.profile;
        plan.summaries = profile.made_of(&related);
        plan.proposed_title = profile.has_proposed_title();
        plan.artifacts = match is_whole {
            true => profile.artifacts().map(str::to_owned).collect(),
            false => refs.artifacts(profile),
        };
        plan.note_snapshots(&snapshots, profile, &related);
        plan.description = is_whole && profile.has_words();
        plan.keeps_context = profile.character.is_some();
        Ok(Self { plan, snapshots, unread, related, refs })
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
        let Self { plan, snapshots, mut unread, related, refs } = self;
        let withdrawn =
            snapshot_files::remove_messages(committer, tail, (snapshots, &unread), &related)?;
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
            snapshot_files::delete(committer, tail, id)?;
        }
    }
    artifact_files::delete(committer, tail, plan.artifacts.iter().map(String::as_str))?;
    if plan.description {
        committer.change_profile(tail, Profile::forget_words)?;
    }
    // Text lengths per token reveal which languages were spoken.
    match document::open(committer.folder, Document::Calibration)? {
        Some(_) => committer.replace(Document::Calibration, b"{}"),
        None => Ok(()),
    }
}
