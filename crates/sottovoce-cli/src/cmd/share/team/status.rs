//! `sottovoce team status`

use jiff::Timestamp;
use serde::Serialize;
use sottovoce_team::TeamStatus;

use crate::cmd::share::team::{level_name, teams};
use crate::exit::{Exit, Outcome};
use crate::output;
use crate::output::table::{self, Cell};
use crate::session::Session;

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Row<'a> {
    team: &'a str,
    address: &'a str,
    called: &'a str,
    synced_at: Option<Timestamp>,
    /// When the access of this store ends unless it syncs before.
    expires: Timestamp,
    conversations: Vec<SharedRow>,
    /// Conversations that were granted and whose link was not opened here.
    without_key: usize,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct SharedRow {
    conversation: String,
    may: &'static str,
    unread: u64,
    unpublished: bool,
    unfetched_artifacts: usize,
}

impl<'a> Row<'a> {
    fn of(status: &'a TeamStatus) -> Self {
        let shared = status.conversations.iter().map(|shared| SharedRow {
            conversation: shared.scope.to_string(),
            may: level_name(shared.level),
            unread: shared.unread,
            unpublished: shared.is_unpublished,
            unfetched_artifacts: shared.unfetched,
        });
        Self {
            team: &status.name,
            address: &status.address,
            called: &status.called,
            synced_at: status.synced_at,
            expires: status.expires,
            conversations: shared.collect(),
            without_key: status.without_key,
        }
    }
}

pub(super) async fn run(session: &Session) -> Outcome {
    let teams = teams(session)?.status().await?;
    if session.json {
        for team in &teams {
            output::json(&Row::of(team))?;
        }
        return Ok(Exit::Done);
    }
    if teams.is_empty() {
        output::note("this store is in no team");
    }
    for team in &teams {
        let row = Row::of(team);
        let when = match row.synced_at {
            Some(at) => format!("last synced {}", at.strftime("%Y-%m-%d %H:%M")),
            None => "never synced".to_owned(),
        };
        let line = format!("{} at {}, as {}: {when}", row.team, row.address, row.called);
        output::line(output::one_line(&line))?;
        let cells = row.conversations.iter().map(|shared| {
            let waits = if shared.unpublished { "changed" } else { "" };
            [
                Cell::new(&shared.conversation).at_most(50),
                Cell::new(shared.may),
                Cell::new(waits),
                Cell::number(shared.unread),
                Cell::number(shared.unfetched_artifacts as u64),
            ]
        });
        let names = ["conversation", "you may", "here", "unread", "artifacts there"];
        for line in table::lines(names, cells.collect()) {
            output::line(line)?;
        }
        if row.without_key > 0 {
            let granted = output::counted(row.without_key as u64, "conversation");
            output::warning(&format!("{granted} granted without a link: ask for it"));
        }
    }
    Ok(Exit::Done)
}
