//! A store's teams: exchanges what is new with their servers

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::select_all;
use jiff::{SignedDuration, Timestamp};
use sottovoce::exchange::{self, Exchange, Position, Sharing, SyncLock};
use sottovoce::{Clock, FileConversationStore, Scope};
use sottovoce_sync::{
    Conversations, Problem, Repeated, SyncError, SyncProgress, SyncReport, SyncResult,
};
use sottovoce_team_api::{ConversationList, CreateToken, Id, Level, MAX_WAIT, NewToken, Secret};

use crate::contents::Keys;
use crate::pull::{Log, note_problem};
use crate::server::{Server, is_absent, is_refused, team_path};
use crate::state::{Membership, Shared, State};

/// A token is renewed once it has less time left.
const RENEW: SignedDuration = SignedDuration::from_hours(30 * 24);

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
    /// What each server had last, to wait for more.
    seen: std::sync::Mutex<BTreeMap<Id, Id>>,
}

impl Teams {
    /// The teams of the store that has these conversations.
    pub fn new(conversations: Arc<dyn Conversations>, clock: Arc<dyn Clock>) -> Self {
        Self { conversations, clock, seen: std::sync::Mutex::default() }
    }

    /// Stores what members have shared since the last time, and appends what is new here, in each shared conversation of each
    /// team. An interrupted exchange loses nothing.
    ///
    /// # Errors
    /// [`SyncError::NoTeam`], [`SyncError::Busy`] if another process is at it, and those of the store. Those of a server after
    /// all other teams were asked.
    pub async fn sync(
        &self,
        progress: impl Fn(SyncProgress) + Send + Sync,
    ) -> SyncResult<SyncReport> {
        let (root, mut state, _lock) = self.locked().await?;
        if state.teams.is_empty() {
            return Err(SyncError::NoTeam);
        }
        let mut report = SyncReport::default();
        let mut failed = None;
        let ids: Vec<Id> = state.teams.keys().copied().collect();
        for id in ids {
            let synced = self.sync_team(&root, &mut state, id, &mut report, &progress).await;
            match synced {
                Ok(()) => {}
                Err(error @ (SyncError::Remote(_) | SyncError::NotAMember { .. })) => {
                    failed = failed.or(Some(error));
                }
                Err(error) => return Err(error),
            }
        }
        failed.map_or(Ok(report), Err)
    }

    async fn sync_team(
        &self,
        root: &FileConversationStore,
        state: &mut State,
        id: Id,
        report: &mut SyncReport,
        progress: &(dyn Fn(SyncProgress) + Send + Sync),
    ) -> SyncResult<()> {
        let Some(mut team) = state.teams.get(&id).cloned() else { return Ok(()) };
        let renewed = self.renewed(id, &mut team).await?;
        if let Some(old) = renewed {
            // The new token is kept before the old one ends.
            state.teams.insert(id, team.clone());
            state.write(root).await?;
            let server = Server::new(&team.address, Some(team.token.clone()))?;
            server.delete(&format!("{}/tokens/{old}", team_path(id))).await?;
        }
        let server = Server::new(&team.address, Some(team.token.clone()))?;
        let list: ConversationList = server.get(&list_path(id)).await?;
        note_levels(&mut team, &list, report);
        let ids: Vec<Id> = team.conversations.keys().copied().collect();
        for conversation in ids {
            let Some(mut shared) = team.conversations.get(&conversation).cloned() else { continue };
            if shared.level.is_none() {
                continue;
            }
            let exchange = Exchange::new(self.open(&shared.scope()?).await?);
            let position = exchange.position().await?;
            let last = list.conversations.iter().find(|listed| listed.id == conversation);
            if shared.is_exchanged(last.map_or(0, |listed| listed.last), position) {
                continue;
            }
            let keys = Keys::new(conversation, &shared.keys)?;
            let (team_id, id, device) = (id, conversation, team.device);
            let log = Log {
                server: &server,
                team: team_id,
                id,
                device,
                keys: &keys,
                exchange: &exchange,
            };
            let mut has_pushed = false;
            loop {
                let is_more = match log.pull(&mut shared, report, progress).await {
                    Ok(is_more) => is_more,
                    // Taken back since the list was read.
                    Err(error) if is_absent(&error) => {
                        shared.level = None;
                        break;
                    }
                    Err(error) => return Err(error),
                };
                let is_first = !is_more && !has_pushed;
                if is_first && shared.may(Level::Write) {
                    let pushed = self.push(root, &log, &team.called, &mut shared, report, progress);
                    match pushed.await {
                        Err(error) if is_absent(&error) || is_refused(&error) => {
                            shared.level = None;
                        }
                        pushed => pushed?,
                    }
                }
                has_pushed |= is_first;
                // What was appended is read back: the server has it, in its place.
                let is_to_read = is_more || is_first && shared.read < shared.last;
                if !is_to_read || shared.level.is_none() {
                    break;
                }
                team.conversations.insert(conversation, shared.clone());
                state.teams.insert(team_id, team.clone());
                state.write(root).await?;
            }
            if !shared.may(Level::Write) {
                shared.own.heard.clear();
                note_kept_back(&log, &mut shared, report).await?;
            }
            exchange.save_index().await;
            team.conversations.insert(conversation, shared);
        }
        team.synced_at = Some(self.now());
        state.teams.insert(id, team);
        state.write(root).await?;
        self.lock_seen().insert(id, list.seen);
        Ok(())
    }

    async fn push(
        &self,
        root: &FileConversationStore,
        log: &Log<'_>,
        called: &str,
        shared: &mut Shared,
        report: &mut SyncReport,
        progress: &(dyn Fn(SyncProgress) + Send + Sync),
    ) -> SyncResult<()> {
        let root = Exchange::new(root.clone());
        let scope = shared.scope()?;
        let removed = removal(root.removed_at(&scope).await?);
        if removed > shared.own.removed {
            let listed = root.forgotten().await?;
            log.push_removal(called, shared, &listed, report).await?;
            shared.own.removed = removed;
            (shared.own.seq, shared.own.origin) = (0, None);
            shared.own.position = Position::default();
        }
        log.push(called, shared, report, progress).await
    }

    /// Renews a token that expires soon. Returns the identifier of the old one.
    async fn renewed(&self, id: Id, team: &mut Membership) -> SyncResult<Option<Id>> {
        if team.expires.duration_since(self.now()) > RENEW {
            return Ok(None);
        }
        let server = Server::new(&team.address, Some(team.token.clone()))?;
        let request = CreateToken { same_device: true, seconds: None };
        let new: NewToken = server.create(&format!("{}/tokens", team_path(id)), &request).await?;
        team.token = new.token;
        team.expires = new.expires;
        Ok(Some(std::mem::replace(&mut team.token_id, new.id)))
    }

    pub(crate) async fn open(&self, scope: &Scope) -> SyncResult<FileConversationStore> {
        Ok(self.conversations.open(scope).await?)
    }

    pub(crate) async fn scopes(&self) -> SyncResult<Vec<Scope>> {
        Ok(self.conversations.scopes().await?)
    }

    async fn root(&self) -> SyncResult<FileConversationStore> {
        self.open(&Scope::Default).await
    }

    pub(crate) async fn state(&self) -> SyncResult<State> {
        State::read(&self.root().await?).await
    }

    /// The state, and the lock under which it may be changed.
    pub(crate) async fn locked(&self) -> SyncResult<(FileConversationStore, State, SyncLock)> {
        let root = self.root().await?;
        let until = tokio::time::Instant::now() + PATIENCE;
        let lock = loop {
            match exchange::try_lock(&root, Sharing::Teams).await? {
                Some(lock) => break lock,
                None if tokio::time::Instant::now() >= until => return Err(SyncError::Busy),
                None => tokio::time::sleep(LOOK).await,
            }
        };
        let state = State::read(&root).await?;
        Ok((root, state, lock))
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.clock.now().timestamp()
    }

    fn lock_seen(&self) -> std::sync::MutexGuard<'_, BTreeMap<Id, Id>> {
        self.seen.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// Waits until one server has something that was not there with the last exchange.
    async fn wait_for_news(&self) -> SyncResult<()> {
        let state = self.state().await?;
        let seen = self.lock_seen().clone();
        let waits = state.teams.iter().filter_map(|(id, team)| {
            let seen = *seen.get(id)?;
            Some(Box::pin(wait_at(*id, team.address.clone(), team.token.clone(), seen)))
        });
        let waits: Vec<_> = waits.collect();
        match waits.is_empty() {
            true => std::future::pending().await,
            false => select_all(waits).await.0,
        }
    }
}

/// One more than a number, and 0 for none.
pub(crate) fn removal(last: Option<u64>) -> u64 {
    last.map_or(0, |last| last + 1)
}

fn list_path(team: Id) -> String {
    format!("{}/context/conversations", team_path(team))
}

async fn wait_at(team: Id, address: String, token: Secret, seen: Id) -> SyncResult<()> {
    let server = Server::new(&address, Some(token))?;
    let path = format!("{}?seen={seen}&wait={MAX_WAIT}", list_path(team));
    loop {
        let wait = Duration::from_secs(MAX_WAIT);
        let list: ConversationList = server.get_waiting(&path, wait).await?;
        if list.seen != seen {
            return Ok(());
        }
    }
}

/// Notes what the member may do with each conversation, and reports what has changed.
fn note_levels(team: &mut Membership, list: &ConversationList, report: &mut SyncReport) {
    for (id, shared) in &mut team.conversations {
        let listed = list.conversations.iter().find(|listed| listed.id == *id);
        let level = listed.and_then(|listed| listed.level);
        if level.is_none() && shared.level.is_some() {
            let reason = "this member has no access to it any more; what is on this device stays";
            note_problem(report, shared, reason);
        }
        if level > shared.level {
            // What was said while it was not allowed to is to be appended.
            shared.own.position = Position::default();
        }
        shared.level = level;
    }
    let granted = list.conversations.iter().filter(|listed| listed.level.is_some());
    let without_key = granted.map(|listed| listed.id);
    let without_key: std::collections::BTreeSet<Id> =
        without_key.filter(|id| !team.conversations.contains_key(id)).collect();
    if !without_key.is_subset(&team.without_key) {
        report.problems.push(Problem::Unusable {
            place: team.name.clone(),
            reason: "a conversation was granted whose key is not here: ask for its link",
        });
    }
    team.without_key = without_key;
}

/// Reports that something was said here that the member may not share.
async fn note_kept_back(
    log: &Log<'_>,
    shared: &mut Shared,
    report: &mut SyncReport,
) -> SyncResult<()> {
    let position = log.exchange.position().await?;
    if position == shared.own.position {
        return Ok(());
    }
    let mut after = shared.own.seq.min(position.last_seq);
    let mut is_own = false;
    while !is_own {
        let read = log.exchange.messages(after).await?;
        is_own = read.messages.iter().any(|message| !message.is_received);
        if read.read_to >= read.last_seq || read.read_to <= after {
            break;
        }
        after = read.read_to;
    }
    if is_own {
        let reason = "this member may only read it: what was said here stays on this device";
        note_problem(report, shared, reason);
    }
    shared.own.position = position;
    Ok(())
}

impl Repeated for Teams {
    async fn sync(&self, _is_full: bool) -> SyncResult<SyncReport> {
        // A store that is in no team is not written to.
        match self.state().await?.teams.is_empty() {
            true => Err(SyncError::NoTeam),
            false => Self::sync(self, |_| {}).await,
        }
    }

    async fn positions(&self) -> SyncResult<BTreeMap<Scope, Position>> {
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

    async fn is_unpublished(&self) -> SyncResult<bool> {
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

impl fmt::Debug for Teams {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Teams").field("conversations", &self.conversations).finish_non_exhaustive()
    }
}
