//! `sottovoce sync status`

use jiff::Timestamp;
use serde::Serialize;
use sottovoce_sync::SyncStatus;

use crate::cmd::share::device::list::{DeviceRow, lines, rows};
use crate::cmd::share::selection::{SelectionRow, described};
use crate::cmd::share::{no_remote, syncer};
use crate::exit::{Exit, Outcome};
use crate::output;
use crate::session::Session;

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Row<'a> {
    address: &'a str,
    synced_at: Option<Timestamp>,
    /// Conversations that have changed here since.
    unpublished: usize,
    closed: bool,
    shares: SelectionRow<'a>,
    devices: Vec<DeviceRow<'a>>,
}

pub(super) async fn run(session: &Session) -> Outcome {
    let status = syncer(session, no_remote())?.status().await?;
    if session.json {
        output::json(&Row {
            address: &status.address,
            synced_at: status.synced_at,
            unpublished: status.unpublished,
            closed: status.is_closed,
            shares: SelectionRow::of(&status.selection),
            devices: rows(&status),
        })?;
        return Ok(Exit::Done);
    }
    output::line(in_words(&status))?;
    output::line(format!("shared: {}", described(&status.selection)))?;
    for line in lines(&status) {
        output::line(line)?;
    }
    if status.is_closed {
        output::warning(
            "a device was removed on another one: join the new space with `sottovoce device join`",
        );
    }
    Ok(Exit::Done)
}

fn in_words(status: &SyncStatus) -> String {
    let when = match status.synced_at {
        Some(at) => format!("last synced {}", at.strftime("%Y-%m-%d %H:%M")),
        None => "never synced".to_owned(),
    };
    let waiting = match status.unpublished {
        0 => "nothing waits to be published".to_owned(),
        number => format!("changed here since: {}", output::counted(number as u64, "conversation")),
    };
    format!("{}: {when}; {waiting}", output::one_line(&status.address))
}
