//! One saved session of chorus: its row in the database, and its file with the messages.

use std::collections::HashSet;

use jiff::Timestamp;
use serde::Deserialize;
use serde_json::value::RawValue;
use sottovoce::Snapshot;
use sottovoce::import::RefusalReason::{self, Corrupt};
use sottovoce::import::{ImportedSnapshot, Refusal};

use super::database::Saved;
use super::row::{Row, moment};
use crate::fields::json;

#[derive(Deserialize)]
struct Fields<'a> {
    #[serde(borrow)]
    messages: Vec<&'a RawValue>,
}

/// The file of a session, by its id.
pub(super) fn file(id: &str) -> String {
    format!("{id}.json")
}

/// Where the file of a session is, below the folder of chorus.
pub(super) fn place(saved: &Saved) -> String {
    format!("agents/{}/sessions/{}", saved.agent, file(&saved.id))
}

/// A session without its messages; its id is surely no path.
pub(super) fn begin(saved: &Saved) -> Result<Snapshot, RefusalReason> {
    let time = |text: &Option<String>, reason| {
        text.as_deref().map(|text| moment(text).ok_or(Corrupt(reason))).transpose()
    };
    let at = time(&saved.saved_at, "its saved_at is not a time")?;
    let at = at.ok_or(Corrupt("it has no saved_at"))?;
    let [start, end] = &saved.window;
    let window: (Timestamp, Timestamp) = (
        time(start, "its window_start is not a time")?.unwrap_or(at),
        time(end, "its window_end is not a time")?.unwrap_or(at),
    );
    let snapshot = Snapshot::new(at, window, Vec::new());
    let snapshot = snapshot.and_then(|snapshot| snapshot.with_id(saved.id.clone()));
    let unstorable = |error| {
        RefusalReason::for_store_error(&error)
            .unwrap_or(RefusalReason::Unstorable("it can be given no id"))
    };
    let mut snapshot = snapshot.map_err(unstorable)?;
    snapshot.description.clone_from(&saved.description);
    if let Some(summary) = &saved.summary {
        snapshot.summary.clone_from(summary);
    }
    Ok(snapshot)
}

/// What the file of a session says of itself, as its row would.
#[derive(Deserialize)]
struct About {
    session_id: String,
    timestamp: Option<String>,
    description: Option<String>,
    summary: Option<String>,
    window_start: Option<String>,
    window_end: Option<String>,
}

/// The session that a file by itself tells of, if it is the one that the file's name says.
pub(super) fn about(agent: &str, id: &str, bytes: &[u8]) -> Result<Saved, RefusalReason> {
    let about: About = json::object(json::text(bytes)?, "its fields are not those of a session")?;
    if about.session_id != id {
        return Err(Corrupt("its session_id is not what its name says"));
    }
    Ok(Saved {
        id: id.to_owned(),
        agent: agent.to_owned(),
        description: about.description,
        summary: about.summary,
        saved_at: about.timestamp,
        window: [about.window_start, about.window_end],
    })
}

/// The session with which messages it holds. A message that is none is refused alone.
pub(super) fn read(
    snapshot: Snapshot,
    bytes: &[u8],
    place: &str,
    refused: &mut Vec<Refusal>,
) -> Result<ImportedSnapshot, RefusalReason> {
    let fields: Fields<'_> =
        json::object(json::text(bytes)?, "its fields are not those of a session")?;
    let mut origins = HashSet::with_capacity(fields.messages.len());
    for (at, row) in fields.messages.iter().enumerate() {
        let row = json::object::<Row>(row.get(), "its fields are not those of a message");
        match row.and_then(Row::read) {
            Ok(message) => {
                origins.insert(message.origin());
            }
            Err(reason) => refused.push(Refusal::new(format!("{place}#{}", at + 1), reason)),
        }
    }
    Ok(ImportedSnapshot::new(snapshot, place.to_owned(), origins))
}
