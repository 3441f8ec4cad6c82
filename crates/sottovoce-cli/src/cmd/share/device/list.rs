//! `sottovoce device list`

use jiff::Timestamp;
use serde::Serialize;
use sottovoce_sync::SyncStatus;

use crate::cmd::share::{no_remote, syncer};
use crate::exit::{Exit, Outcome};
use crate::output::table::{self, Cell};
use crate::output::{self, DIM};
use crate::session::Session;

/// A device as JSON.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(in crate::cmd::share) struct DeviceRow<'a> {
    id: String,
    name: &'a str,
    /// Whether it is this one.
    here: bool,
    published_at: Option<Timestamp>,
    /// Its publishes that were not read here yet.
    unread: u64,
    /// The publishes of this device that it has not read yet.
    behind: u64,
}

/// The devices, first this one.
pub(in crate::cmd::share) fn rows(status: &SyncStatus) -> Vec<DeviceRow<'_>> {
    let here = DeviceRow {
        id: status.device.to_string(),
        name: &status.name,
        here: true,
        published_at: status.synced_at,
        unread: 0,
        behind: 0,
    };
    let peers = status.peers.iter().map(|peer| DeviceRow {
        id: peer.id.to_string(),
        name: &peer.name,
        here: false,
        published_at: peer.published_at,
        unread: peer.unread,
        behind: peer.behind,
    });
    std::iter::once(here).chain(peers).collect()
}

/// The devices as a table.
pub(in crate::cmd::share) fn lines(status: &SyncStatus) -> Vec<String> {
    let time = |at: Timestamp| at.strftime("%Y-%m-%d %H:%M").to_string();
    let cells = rows(status).into_iter().map(|row| {
        let name = match row.here {
            true => format!("{} (here)", row.name),
            false => row.name.to_owned(),
        };
        let published = row.published_at.map_or_else(|| "never".to_owned(), time);
        [
            Cell::new(&name).at_most(40),
            Cell::new(&published).style(DIM),
            Cell::number(row.unread),
            Cell::number(row.behind),
        ]
    });
    table::lines(["device", "published", "unread here", "unread there"], cells.collect())
}

pub(super) async fn run(session: &Session) -> Outcome {
    let status = syncer(session, no_remote())?.status().await?;
    if session.json {
        for row in rows(&status) {
            output::json(&row)?;
        }
        return Ok(Exit::Done);
    }
    for line in lines(&status) {
        output::line(line)?;
    }
    Ok(Exit::Done)
}
