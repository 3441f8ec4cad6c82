//! Statistics of a conversation.

use jiff::{SignedDuration, Timestamp};
use serde::Serialize;

use crate::directory::EntryKind;
use crate::error::Result;
use crate::store::folder::Folder;
use crate::store::read::reader::Reader;
use crate::store::record::name::RecordName;
use crate::store::record::retention::{Horizon, Retention};

/// Statistics of a conversation, taken from file names. Only the newest messages are opened.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Stats {
    /// Whether any message is visible.
    pub exists: bool,
    /// The number of visible messages.
    pub message_count: u64,
    /// The number of messages that retention hides but that are not removed yet.
    pub hidden: u64,
    /// The size of the conversation's files in bytes.
    pub bytes: u64,
    /// The first visible message's time, if there is one.
    #[serde(rename = "firstAt")]
    pub first: Option<Timestamp>,
    /// The last visible message's time.
    #[serde(rename = "lastAt")]
    pub last: Option<Timestamp>,
    /// When the conversation expires: by its limits or as a persona conversation. `None` if it never does.
    pub expires_at: Option<Timestamp>,
    /// The milliseconds until then; 0 if it has expired.
    pub expires_in: Option<i64>,
    /// The time up to which the context was cleared, if it was.
    #[serde(rename = "clearedAt")]
    pub cleared: Option<Timestamp>,
    /// The number of snapshots.
    pub snapshots: usize,
    /// The number of artifacts.
    pub artifacts: usize,
    /// The retention limits in force.
    pub retention: Retention,
}

pub(crate) fn stats(reader: &Reader) -> Result<Stats> {
    let folder = &reader.folder;
    let mut tail = reader.newest()?;
    if tail.horizon(|| Timestamp::MIN).is_none() {
        tail = reader.load(0)?;
    }
    let now = reader.now();
    let horizon = tail.horizon(|| now).unwrap_or(Horizon::Nothing);
    let names = Names::of(folder, tail.profile.expired)?;
    let kept = names.count;
    let message_count = match horizon {
        Horizon::All => kept,
        _ => tail.shown_count(horizon),
    };
    let last = tail.last_said();
    let by_limits = last.and_then(|last| tail.retention.expiry(last));
    let expiring = tail.profile.assigned_persona.as_ref();
    let expiring = expiring.filter(|assigned_persona| !assigned_persona.persona.is_lasting());
    let as_context = expiring.map(|assigned_persona| {
        assigned_persona.expires_at(
            last.map_or(assigned_persona.updated_at, |last| last.max(assigned_persona.updated_at)),
        )
    });
    let expires_at = [by_limits, as_context].into_iter().flatten().min();
    let in_ms = |at: Timestamp| {
        let left = at.duration_since(now).max(SignedDuration::ZERO).as_millis();
        i64::try_from(left).unwrap_or(i64::MAX)
    };
    let first = match horizon {
        Horizon::All => names.first,
        Horizon::From { first, .. } => Some(first.max(names.first.unwrap_or(first))),
        Horizon::Nothing | Horizon::Expired => None,
    };
    Ok(Stats {
        exists: message_count > 0,
        message_count,
        hidden: kept.saturating_sub(message_count),
        bytes: names.bytes,
        first: first.and_then(|first| first.time.timestamp()),
        last: last.filter(|_| message_count > 0),
        expires_at,
        expires_in: expires_at.map(in_ms),
        cleared: tail.profile.cleared.map(|cleared| cleared.at),
        snapshots: tail.profile.listed().count(),
        artifacts: tail.profile.artifacts().count(),
        retention: tail.retention,
    })
}

/// Statistics from the names of a conversation's files.
struct Names {
    count: u64,
    first: Option<RecordName>,
    bytes: u64,
}

impl Names {
    /// The first is that of the records whose numbers have not expired, as far as names tell.
    fn of(folder: &Folder, expired: u64) -> Result<Self> {
        let listing = folder.list()?;
        let messages = || listing.names.iter().filter(|name| !name.is_forget());
        let loose = messages().filter(|name| !listing.packs.iter().any(|pack| pack.covers(**name)));
        let count = loose.count() as u64 + listing.packs.iter().map(|pack| pack.count).sum::<u64>();
        let packs = listing.packs.iter().filter(|pack| pack.highest > expired);
        let loose = messages().copied().filter(|name| name.seq > expired);
        let first = loose.chain(packs.map(|pack| pack.first)).min();
        let mut bytes = 0;
        for directory in
            [&folder.directory, &folder.packs, &folder.snapshots, &folder.artifacts, &folder.recall]
        {
            let mut files = Vec::new();
            directory.list(&mut |name, kind| {
                if let (Ok(name), EntryKind::File) = (str::from_utf8(name), kind) {
                    files.push(name.to_owned());
                }
            })?;
            for file in files {
                bytes += directory.open(&file)?.map_or(0, |source| source.size());
            }
        }
        Ok(Self { count, first, bytes })
    }
}
