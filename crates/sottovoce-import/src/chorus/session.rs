//! A saved session of chorus: a row in the database, and a file with the messages.

use std::collections::HashSet;

use jiff::Timestamp;
use serde::Deserialize;
use serde_json::value::RawValue;
use sottovoce::import::RefusalReason::{self, Corrupt};
use sottovoce::import::{ImportedSnapshot, Refusal};
use sottovoce::store::Snapshot;

use super::database::Saved;
use super::row::{Row, moment};
use crate::fields::json;

#[derive(Deserialize)]
struct Fields<'a> {
    #[serde(borrow)]
    messages: Vec<&'a RawValue>,
}

/// The name of a session's file.
pub(super) fn file(id: &str) -> String {
    format!("{id}.json")
}

/// The path of a session's file below the folder of chorus.
pub(super) fn place(saved: &Saved) -> String {
    format!("agents/{}/sessions/{}", saved.agent, file(&saved.id))
}

/// The snapshot without its messages. Checks that the id is a UUID, and so not a path.
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
            .unwrap_or(RefusalReason::Unstorable("its id cannot be used"))
    };
    let mut snapshot = snapshot.map_err(unstorable)?;
    snapshot.description.clone_from(&saved.description);
    if let Some(summary) = &saved.summary {
        snapshot.summary.clone_from(summary);
    }
    Ok(snapshot)
}

/// The fields of a session's file that its row has too.
#[derive(Deserialize)]
struct About {
    session_id: String,
    timestamp: Option<String>,
    description: Option<String>,
    summary: Option<String>,
    window_start: Option<String>,
    window_end: Option<String>,
}

/// Reads the fields of a session from a file without a row. Refuses a file whose name is not the session's id.
pub(super) fn about(agent: &str, id: &str, bytes: &[u8]) -> Result<Saved, RefusalReason> {
    let about: About = json::object(json::text(bytes)?, "its fields are not those of a session")?;
    if about.session_id != id {
        return Err(Corrupt("its session_id is not that of its name"));
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

/// Adds the messages of a session to its snapshot. Refuses a message that cannot be read, and reads on.
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
