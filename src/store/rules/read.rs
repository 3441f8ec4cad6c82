//! Reading what the limits show, and snapshots.

use std::sync::Arc;

use jiff::Timestamp;

use crate::error::{Error, Result};
use crate::message::ChatRole;
use crate::store::record::document::DocumentId;
use crate::store::record::encoding::StoredMessage;
use crate::store::record::finding::{Finding, FindingKind};
use crate::store::record::name::RecordName;
use crate::store::record::profile::Profile;
use crate::store::record::read_result::ReadResult;
use crate::store::record::retention::{Horizon, NewestEnd, Retention};
use crate::store::record::seq_set::SeqSet;
use crate::store::record::snapshot::Snapshot;
use crate::store::rules::limits_effect::AT_ONCE;
use crate::store::rules::view::{View, parse};
use crate::store::rules::{ReadQuery, StoreBackend};

/// How many messages are read at a time where a limit begins.
const STRETCH: u64 = 256;

/// The newest messages and what they tell about where the conversation begins.
pub(crate) struct Newest {
    pub(crate) result: ReadResult,
    limits: Retention,
    is_whole: bool,
    /// How many messages there are that have not expired.
    stored: u64,
    expired: u64,
    /// Where the limit begins, and how many messages it shows, if that takes more than `result`.
    beginning: Option<(Horizon, u64)>,
}

impl Newest {
    /// At least the newest `n`, and where these limits begin.
    pub(crate) async fn of(
        store: &(impl StoreBackend + ?Sized),
        view: &View,
        limits: Retention,
        n: usize,
    ) -> Result<Self> {
        let wanted = if limits.is_forever() { n } else { n.max(1) };
        let mut result = store.read(ReadQuery::Tail(wanted)).await?;
        let is_whole = result.messages.len() < wanted;
        let expired = view.profile.expired;
        result.messages.retain(|stored| stored.seq > expired);
        let (stored, most) = (view.stored(), limits.most());
        let unread = unread(&result);
        let beginning = match !is_whole && stored > most && result.messages.len() as u64 <= most {
            true => Some(beginning(store, most.saturating_sub(unread)).await?),
            false => None,
        };
        Ok(Self { result, limits, is_whole, stored, expired, beginning })
    }

    /// From where on the limits show the conversation.
    pub(crate) fn horizon(&self, now: Timestamp) -> Horizon {
        let end = NewestEnd {
            is_whole: self.is_whole,
            last_said: self.last_said(),
            unread: unread(&self.result),
            stored: self.stored,
        };
        Horizon::within(self.limits, self.result.messages.iter(), end, || now)
            .or(self.beginning.map(|(horizon, _)| horizon))
            .unwrap_or(Horizon::Nothing)
            .after(self.expired)
    }

    /// How many messages a horizon of these limits shows.
    pub(crate) fn shown(&self, horizon: Horizon) -> u64 {
        match (horizon, self.beginning) {
            (Horizon::Nothing | Horizon::Expired, _) => 0,
            (_, Some((_, shown))) => shown,
            (Horizon::From { first, .. }, None) if first > RecordName::FIRST => {
                let shown = self.result.messages.iter().filter(|m| horizon.shows(m.name));
                shown.count() as u64
            }
            (Horizon::All | Horizon::From { .. }, None) => self.stored,
        }
    }

    /// When the newest message was said.
    pub(crate) fn last_said(&self) -> Option<Timestamp> {
        self.result.messages.last().map(|last| last.ordered_at())
    }
}

/// How many messages could not be read.
fn unread(result: &ReadResult) -> u64 {
    result.skipped.iter().filter(|finding| finding.seqs.is_some()).count() as u64
}

/// Where the newest `most` messages begin with an exchange, and how many they are from there. Reads some at a time, the
/// oldest first.
async fn beginning(store: &(impl StoreBackend + ?Sized), most: u64) -> Result<(Horizon, u64)> {
    // One more than the limit shows whether it hides anything.
    let mut end = most.saturating_add(1);
    let mut part = None;
    while end > 0 {
        let skip = end.saturating_sub(STRETCH);
        let as_size = |number| usize::try_from(number).unwrap_or(usize::MAX);
        let read = store.read_before(as_size(skip), as_size(end - skip)).await?.messages;
        let is_first = end > most;
        if is_first && (read.len() as u64) < end - skip {
            return Ok((Horizon::All, skip.saturating_add(read.len() as u64)));
        }
        let from = |at: usize, name| (Horizon::from(name), end - at as u64);
        let mut within = read.iter().enumerate().skip(usize::from(is_first));
        if let Some((at, first)) = within.clone().find(|(_, m)| m.message.starts_exchange()) {
            return Ok(from(at, first.name));
        }
        part = part.or_else(|| {
            let (at, first) = within.find(|(_, m)| m.message.role != ChatRole::Tool)?;
            Some(from(at, first.name))
        });
        end = skip;
    }
    Ok(part.unwrap_or((Horizon::Nothing, 0)))
}

pub(crate) async fn tail(store: &(impl StoreBackend + ?Sized), n: usize) -> Result<ReadResult> {
    let view = View::of(store).await?;
    let newest = Newest::of(store, &view, view.retention, n).await?;
    let horizon = newest.horizon(now(store));
    let mut result = newest.result;
    keep_shown(&mut result.messages, horizon);
    let surplus = result.messages.len().saturating_sub(n);
    result.messages.drain(..surplus);
    Ok(result)
}

pub(crate) async fn read(
    store: &(impl StoreBackend + ?Sized),
    query: ReadQuery,
) -> Result<ReadResult> {
    let mut result = store.read(query).await?;
    let view = View::of(store).await?;
    if !view.retention.is_forever() || view.profile.expired > 0 {
        let newest = Newest::of(store, &view, view.retention, 0).await?;
        keep_shown(&mut result.messages, newest.horizon(now(store)));
    }
    Ok(result)
}

/// The settings, without the summaries of a conversation that has expired.
pub(crate) async fn profile(store: &(impl StoreBackend + ?Sized)) -> Result<Profile> {
    let view = View::of(store).await?;
    if !view.profile.summaries.is_empty() && has_expired(store, &view).await? {
        return Ok(Profile { summaries: Vec::new(), ..view.profile });
    }
    Ok(view.profile)
}

/// Whether the conversation has expired: its last message is too old.
pub(crate) async fn has_expired(store: &(impl StoreBackend + ?Sized), view: &View) -> Result<bool> {
    if view.retention.ttl_seconds.is_none() {
        return Ok(false);
    }
    let limits = Retention { max_messages: None, ..view.retention };
    let newest = Newest::of(store, view, limits, 0).await?;
    Ok(newest.horizon(now(store)) == Horizon::Expired)
}

pub(crate) fn now(store: &(impl StoreBackend + ?Sized)) -> Timestamp {
    store.clock().now().timestamp()
}

fn keep_shown(messages: &mut Vec<Arc<StoredMessage>>, horizon: Horizon) {
    messages.retain(|stored| horizon.shows(stored.name));
}

/// The numbers that the limits hide, with these where they begin to show.
pub(crate) async fn hidden_by(
    store: &(impl StoreBackend + ?Sized),
    newest: &Newest,
    horizon: Horizon,
    view: &View,
) -> Result<SeqSet> {
    let mut hidden = view.expired();
    match horizon {
        Horizon::All => {}
        Horizon::Expired => hidden = SeqSet::up_to(view.state.last_seq),
        Horizon::From { .. } | Horizon::Nothing => {
            // Those before the visible ones, some at a time.
            let mut skip = usize::try_from(newest.shown(horizon)).unwrap_or(usize::MAX);
            let most = usize::try_from(AT_ONCE).unwrap_or(usize::MAX);
            loop {
                let read = store.read_before(skip, most).await?.messages;
                let older = read.iter().filter(|stored| !horizon.shows(stored.name));
                hidden.extend(older.map(|stored| stored.seq..=stored.seq));
                if read.len() < most {
                    break;
                }
                skip = skip.saturating_add(most);
            }
        }
    }
    Ok(hidden.without(&view.state.forgotten))
}

/// The snapshots that these settings list, newest first, and what is wrong with those that cannot be read.
pub(crate) async fn list_snapshots(
    store: &(impl StoreBackend + ?Sized),
    profile: &Profile,
) -> Result<(Vec<Snapshot>, Vec<Finding>)> {
    let (mut snapshots, mut findings) = (Vec::new(), Vec::new());
    for (id, rev) in profile.listed() {
        match open_snapshot(store, id, rev).await? {
            Ok(snapshot) => snapshots.push(snapshot),
            Err(kind) => findings.push(kind.in_file(snapshot_name(id).to_string())),
        }
    }
    snapshots.sort_by(|a: &Snapshot, b| (b.saved_at, &b.id).cmp(&(a.saved_at, &a.id)));
    Ok((snapshots, findings))
}

/// Reads a snapshot that the settings list.
pub(crate) async fn read_snapshot(
    store: &(impl StoreBackend + ?Sized),
    view: &View,
    id: &str,
) -> Result<Option<Snapshot>> {
    let Some(rev) = view.profile.revision(id) else { return Ok(None) };
    match open_snapshot(store, id, rev).await? {
        Ok(snapshot) => Ok(Some(snapshot)),
        Err(kind) => Err(Error::Damaged {
            place: snapshot_name(id).to_string(),
            reason: match kind {
                FindingKind::Absent => "it is gone",
                FindingKind::Outdated => "an older state of it was put back",
                _ => "it is no snapshot",
            },
        }),
    }
}

pub(crate) async fn open_snapshot(
    store: &(impl StoreBackend + ?Sized),
    id: &str,
    rev: u64,
) -> Result<std::result::Result<Snapshot, FindingKind>> {
    let id = snapshot_name(id);
    let bytes = match store.document(&id).await {
        Ok(Some(bytes)) => bytes,
        Ok(None) => return Ok(Err(FindingKind::Absent)),
        Err(Error::Damaged { reason, .. }) => return Ok(Err(FindingKind::Damaged(reason))),
        Err(error) => return Err(error),
    };
    Ok(match parse::<Snapshot>(&id, &bytes) {
        Err(_) => Err(FindingKind::BadRecord),
        Ok(snapshot) if snapshot_name(&snapshot.id) != id => Err(FindingKind::BadRecord),
        Ok(snapshot) if snapshot.rev < rev => Err(FindingKind::Outdated),
        Ok(snapshot) => Ok(snapshot),
    })
}

pub(crate) fn snapshot_name(id: &str) -> DocumentId {
    DocumentId::Snapshot(id.to_owned())
}
