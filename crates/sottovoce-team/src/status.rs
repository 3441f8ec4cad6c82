//! What a store shares with its teams, as it knows it without asking a server

use jiff::Timestamp;
use sottovoce::Scope;
use sottovoce::exchange::Exchange;
use sottovoce_team_api::Level;

use crate::error::TeamResult;
use crate::teams::Teams;

/// A team as a store knows it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct TeamStatus {
    /// Its name.
    pub name: String,
    /// The server's address.
    pub address: String,
    /// This member's name.
    pub called: String,
    /// When everything was last exchanged.
    pub synced_at: Option<Timestamp>,
    /// When this store's token expires. It is renewed 30 days before.
    pub expires: Timestamp,
    /// The shared conversations.
    pub conversations: Vec<SharedStatus>,
    /// How many conversations were granted whose keys are not here.
    pub without_key: usize,
}

/// A shared conversation.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct SharedStatus {
    /// What it is here.
    pub scope: Scope,
    /// What this member may do with it; `None` if it has no access any more.
    pub level: Option<Level>,
    /// How many records of others have not been read yet, as far as is known.
    pub unread: u64,
    /// Whether something here was not appended yet.
    pub is_unpublished: bool,
    /// How many artifacts of others were not fetched.
    pub unfetched: usize,
}

impl Teams {
    /// The teams, by name. Asks no server.
    ///
    /// # Errors
    /// Those of reading the store.
    pub async fn status(&self) -> TeamResult<Vec<TeamStatus>> {
        let mut teams = Vec::new();
        for team in self.state().await?.teams.into_values() {
            let mut conversations = Vec::new();
            for shared in team.conversations.values() {
                let scope = shared.scope()?;
                let position = Exchange::new(self.open(&scope).await?).position().await?;
                conversations.push(SharedStatus {
                    scope,
                    level: shared.level,
                    unread: shared.last.saturating_sub(shared.read),
                    is_unpublished: position != shared.own.position,
                    unfetched: shared.artifacts.len(),
                });
            }
            conversations.sort_by(|a, b| a.scope.cmp(&b.scope));
            teams.push(TeamStatus {
                name: team.name,
                address: team.address,
                called: team.called,
                synced_at: team.synced_at,
                expires: team.expires,
                conversations,
                without_key: team.without_key.len(),
            });
        }
        teams.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(teams)
    }
}
