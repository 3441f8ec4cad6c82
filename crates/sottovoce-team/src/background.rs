//! What a host keeps at work: exchanges again and again, at once when a server has something new

use std::collections::BTreeMap;
use std::time::Duration;

use async_trait::async_trait;
use futures_util::future::select_all;
use jiff::Timestamp;
use sottovoce::Scope;
use sottovoce::exchange::{Exchange, Position};
use sottovoce_sync::{Repeated, SyncReport};
use sottovoce_team_api::{ConversationList, Id, Level, MAX_WAIT};

use crate::error::{TeamError, TeamResult};
use crate::server::{Server, list_path};
use crate::teams::Teams;

#[async_trait]
impl Repeated for Teams {
    type Error = TeamError;

    async fn sync(&self, _is_full: bool) -> TeamResult<SyncReport> {
        // A store that is in no team is not written to.
        match self.state().await?.teams.is_empty() {
            true => Err(TeamError::NoTeam),
            false => Self::sync(self, |_| {}).await,
        }
    }

    async fn positions(&self) -> TeamResult<BTreeMap<Scope, Position>> {
        let mut positions = BTreeMap::new();
        for team in self.state().await?.teams.values() {
            for shared in team.conversations.values() {
                let scope = shared.scope()?;
                let position = Exchange::new(self.open(&scope).await?).position().await?;
                positions.insert(scope, position);
            }
        }
        Ok(positions)
    }

    async fn is_unpublished(&self) -> TeamResult<bool> {
        let positions = Repeated::positions(self).await?;
        let state = self.state().await?;
        let mut shared = state.teams.values().flat_map(|team| team.conversations.values());
        Ok(shared.any(|shared| {
            let now = shared.scope().ok().and_then(|scope| positions.get(&scope).copied());
            shared.may(Level::Write) && now.is_some_and(|now| now != shared.own.position)
        }))
    }

    async fn news(&self) {
        if let Err(error) = self.wait_for_news().await {
            // The next exchange tells what is wrong.
            tracing::debug!(%error, "could not wait for a team's server");
            std::future::pending::<()>().await;
        }
    }

    fn now(&self) -> Timestamp {
        Self::now(self)
    }
}

impl Teams {
    /// Waits until one server has something that was not there with the last exchange.
    async fn wait_for_news(&self) -> TeamResult<()> {
        let state = self.state().await?;
        let seen = self.lock_seen().clone();
        let mut waits = Vec::new();
        for (id, team) in &state.teams {
            if let Some(seen) = seen.get(id) {
                waits.push(Box::pin(wait_at(self.server_of(team)?, *id, *seen)));
            }
        }
        match waits.is_empty() {
            true => std::future::pending().await,
            false => select_all(waits).await.0,
        }
    }
}

async fn wait_at(server: Server, team: Id, seen: Id) -> TeamResult<()> {
    let path = format!("{}?seen={seen}&wait={MAX_WAIT}", list_path(team));
    loop {
        let wait = Duration::from_secs(MAX_WAIT);
        let list: ConversationList = server.get_waiting(&path, wait).await?;
        if list.seen != seen {
            return Ok(());
        }
    }
}
