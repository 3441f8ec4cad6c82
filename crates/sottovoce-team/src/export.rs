//! Everything that a member may read at a team's server, opened

use jiff::Timestamp;
use serde::Serialize;
use serde_json::Value;
use sottovoce::ChatMessage;
use sottovoce::exchange::Origin;
use sottovoce_team_api::{Page, Record};

use crate::error::TeamResult;
use crate::log::contents::{Contents, Keys, What};
use crate::server::conversation_path;
use crate::teams::Teams;

/// One record of a team's log. `Debug` shows no words.
#[derive(Clone, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Exported {
    /// The conversation, as it is called here.
    pub conversation: String,
    /// The record's number in it.
    pub position: u64,
    /// When the server took it, by the server's clock.
    pub at: Timestamp,
    /// The name of the member that wrote it; `None` for what was forgotten.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    /// The message, if it is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<ChatMessage>,
    /// The name and the value of a setting, if it is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub setting: Option<(String, Value)>,
    /// The messages that were forgotten, if it is a forgetting.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub forgot: Vec<Origin>,
    /// Whether it was forgotten, so that nothing of it is left.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub is_forgotten: bool,
    /// Whether no key that is here opens it.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub is_sealed: bool,
}

impl Teams {
    /// Reads everything that this member may read at the server of a team, and hands it over record by record. Changes nothing
    /// here.
    ///
    /// # Errors
    /// Those of the server, and of `take`, which stop it.
    pub async fn export(
        &self,
        team: Option<&str>,
        mut take: impl FnMut(Exported) -> TeamResult<()> + Send,
    ) -> TeamResult<()> {
        let state = self.state().await?;
        let id = state.team(team)?;
        let team = state.membership(id)?;
        let server = self.server_of(team)?;
        for (conversation, shared) in &team.conversations {
            if shared.level.is_none() {
                continue;
            }
            let keys = Keys::new(*conversation, &shared.keys)?;
            let path = conversation_path(id, *conversation);
            let mut after = 0;
            loop {
                let page: Page = server.get(&format!("{path}?after={after}")).await?;
                let end = page.records.last().map_or(after, |record| record.pos);
                for record in page.records {
                    take(exported(&shared.scope, &keys, record))?;
                }
                if end >= page.last || end <= after {
                    break;
                }
                after = end;
            }
        }
        Ok(())
    }
}

fn exported(scope: &str, keys: &Keys, record: Record) -> Exported {
    let sealed = record.sealed.as_ref();
    let contents = sealed.and_then(|sealed| keys.open(record.rid, sealed.as_bytes()));
    let mut exported = Exported {
        conversation: scope.to_owned(),
        position: record.pos,
        at: record.at,
        by: None,
        message: None,
        setting: None,
        forgot: Vec::new(),
        is_forgotten: sealed.is_none(),
        is_sealed: sealed.is_some() && contents.is_none(),
    };
    let Some(Contents { by, what, .. }) = contents else { return exported };
    exported.by = Some(by);
    match what {
        What::Said(shared) => exported.message = Some(shared.message),
        What::Set { name, value, .. } => exported.setting = Some((name, value)),
        What::Forgot { messages, .. } => exported.forgot = messages,
        What::Void(_) => {}
    }
    exported
}

sottovoce::debug_shows!(Exported: conversation, position);
