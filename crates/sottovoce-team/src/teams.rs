//! A store and its teams: its state, and who may work on it

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use reqwest::Client;
use sottovoce::exchange::{self, Sharing, SyncLock};
use sottovoce::{Clock, FileConversationStore, Scope};
use sottovoce_sync::{Conversations, SyncError};
use sottovoce_team_api::{Id, Secret};

use crate::error::TeamResult;
use crate::server::Server;
use crate::state::{Membership, State};

/// How long another process may take that is at work on the same state.
const PATIENCE: Duration = Duration::from_secs(10);

/// How often it is looked whether that has ended.
const LOOK: Duration = Duration::from_millis(50);

/// The teams with which a store shares conversations.
///
/// Every operation reads and writes the state in the store, so several processes may have one; only one of them exchanges messages
/// at a time.
pub struct Teams {
    conversations: Arc<dyn Conversations>,
    clock: Arc<dyn Clock>,
    /// For servers that are asked by plain HTTP, and for those that are not.
    clients: [OnceLock<Client>; 2],
    /// What each server had last, to wait for more.
    seen: Mutex<BTreeMap<Id, Id>>,
}

impl Teams {
    /// The teams of the store that has these conversations.
    pub fn new(conversations: Arc<dyn Conversations>, clock: Arc<dyn Clock>) -> Self {
        Self { conversations, clock, clients: Default::default(), seen: Mutex::default() }
    }

    pub(crate) async fn open(&self, scope: &Scope) -> TeamResult<FileConversationStore> {
        Ok(self.conversations.open(scope).await?)
    }

    pub(crate) async fn scopes(&self) -> TeamResult<Vec<Scope>> {
        Ok(self.conversations.scopes().await?)
    }

    async fn root(&self) -> TeamResult<FileConversationStore> {
        self.open(&Scope::Default).await
    }

    pub(crate) async fn state(&self) -> TeamResult<State> {
        Ok(State::read(&self.root().await?).await?)
    }

    /// The state, and the lock under which it may be changed.
    pub(crate) async fn locked(&self) -> TeamResult<(FileConversationStore, State, SyncLock)> {
        let root = self.root().await?;
        let until = tokio::time::Instant::now() + PATIENCE;
        let lock = loop {
            match exchange::try_lock(&root, Sharing::Teams).await? {
                Some(lock) => break lock,
                None if tokio::time::Instant::now() >= until => return Err(SyncError::Busy.into()),
                None => tokio::time::sleep(LOOK).await,
            }
        };
        let state = State::read(&root).await?;
        Ok((root, state, lock))
    }

    /// The server at an address, as the one with this token sees it.
    pub(crate) fn server(&self, address: &str, token: Option<Secret>) -> TeamResult<Server> {
        let is_encrypted = address.starts_with("https:");
        let [plain, encrypted] = &self.clients;
        let clients = if is_encrypted { encrypted } else { plain };
        let client = match clients.get() {
            Some(client) => client.clone(),
            None => {
                let client = Server::client(is_encrypted)?;
                clients.get_or_init(|| client).clone()
            }
        };
        Server::new(client, address, token)
    }

    /// The server of a team, as its member.
    pub(crate) fn server_of(&self, team: &Membership) -> TeamResult<Server> {
        self.server(&team.address, Some(team.token.clone()))
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.clock.now().timestamp()
    }

    pub(crate) fn lock_seen(&self) -> MutexGuard<'_, BTreeMap<Id, Id>> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

sottovoce::debug_shows!(Teams: conversations);
