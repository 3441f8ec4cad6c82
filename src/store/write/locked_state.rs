//! The state of a conversation for the holder of its lock, who has the newest tail. Nothing here waits.

use crate::error::Result;
use crate::store::folder::{Folder, snapshot_files};
use crate::store::read::query::RangeQuery;
use crate::store::read::reader::Reader;
use crate::store::read::tail::Tail;
use crate::store::record::finding::Finding;
use crate::store::record::name::RecordName;
use crate::store::record::profile::Profile;
use crate::store::record::read_result::ReadResult;
use crate::store::record::retention::{Horizon, Retention};
use crate::store::record::seq_set::SeqSet;
use crate::store::record::snapshot::Snapshot;
use crate::store::rules::ReadQuery;
use crate::store::rules::current_state::CurrentState;
use crate::store::rules::forget_plan::MessageRefs;

pub(crate) struct LockedState<'a> {
    pub(crate) reader: &'a Reader,
    pub(crate) tail: &'a Tail,
}

impl LockedState<'_> {
    /// The tail under these limits, and from where on they show the conversation.
    fn under(&self, limits: Retention) -> Result<(Tail, Horizon)> {
        let mut tail = self.tail.clone();
        tail.retention = limits;
        let horizon = tail.horizon_alone(&self.reader.folder, self.reader.now())?;
        Ok((tail, horizon))
    }
}

impl CurrentState for LockedState<'_> {
    const STRETCH: u64 = 16_384;

    fn last_seq(&self) -> u64 {
        self.tail.last_seq
    }

    fn forgotten(&self) -> &SeqSet {
        &self.tail.erased
    }

    fn vacant(&self) -> SeqSet {
        self.tail.without_message()
    }

    fn profile(&self) -> &Profile {
        &self.tail.profile
    }

    fn restored(&self) -> SeqSet {
        match self.tail.knows_settings() {
            true => self.tail.profile.restored.clone(),
            // Any message may be a copy.
            false => SeqSet::up_to(self.last_seq()),
        }
    }

    fn retention(&self) -> Retention {
        self.tail.retention
    }

    fn default_retention(&self) -> Retention {
        self.reader.folder.retention
    }

    fn known_name(&self, seq: u64) -> Option<RecordName> {
        let known = self.tail.messages().find(|stored| stored.seq == seq)?;
        Some(known.name)
    }

    async fn read(&self, query: ReadQuery) -> Result<ReadResult> {
        let query = match query {
            ReadQuery::Tail(n) => return Ok(self.reader.load(n)?.newest(n).unwrap_or_default()),
            ReadQuery::Seqs(seqs) => RangeQuery::Seqs(seqs),
            ReadQuery::Times(times) => RangeQuery::Times(times),
        };
        self.reader.read_alone(self.tail, &query)
    }

    async fn horizon(&self, limits: Retention) -> Result<Horizon> {
        Ok(self.under(limits)?.1)
    }

    async fn hidden(&self) -> Result<SeqSet> {
        let (tail, horizon) = self.under(self.tail.retention)?;
        hidden(&self.reader.folder, &tail, horizon)
    }

    async fn shown_count(&self) -> Result<u64> {
        let (tail, horizon) = self.under(self.tail.retention)?;
        Ok(tail.shown_count(horizon))
    }

    async fn snapshots(&self) -> Result<(Vec<Snapshot>, Vec<Finding>)> {
        snapshot_files::all(&self.reader.folder, &self.tail.profile)
    }

    async fn snapshot(&self, id: &str) -> Result<Option<Snapshot>> {
        snapshot_files::read(&self.reader.folder, &self.tail.profile, id)
    }

    async fn artifacts_of(&self, refs: &MessageRefs, is_whole: bool) -> Result<Vec<String>> {
        let profile = &self.tail.profile;
        Ok(match is_whole {
            true => profile.artifacts().map(str::to_owned).collect(),
            false => refs.artifacts(profile),
        })
    }

    fn backups(&self) -> Vec<String> {
        let folder = &self.reader.folder;
        folder.backups.daily_of(&folder.scope).unwrap_or_default()
    }
}

/// The numbers of the hidden messages: all except the visible ones and those whose place is unknown.
pub(crate) fn hidden(folder: &Folder, tail: &Tail, horizon: Horizon) -> Result<SeqSet> {
    let without_message = tail.without_message();
    let all = SeqSet::up_to(tail.last_seq);
    let mut others = match horizon {
        Horizon::All => return Ok(SeqSet::default()),
        Horizon::Expired => SeqSet::default(),
        Horizon::From { .. } | Horizon::Nothing => {
            let mut shown = tail.shown_seqs(folder, horizon)?;
            shown.extend(tail.skipped.iter().filter_map(Finding::numbers));
            shown.without(&SeqSet::up_to(tail.profile.expired))
        }
    };
    others.extend(without_message.ranges());
    Ok(all.without(&others))
}
