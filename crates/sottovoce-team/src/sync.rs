//! Exchanges what is new with the servers

use std::collections::BTreeSet;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use jiff::SignedDuration;
use sottovoce::FileConversationStore;
use sottovoce::exchange::{Exchange, Position};
use sottovoce_sync::{Problem, SyncError, SyncProgress, SyncReport};
use sottovoce_team_api::{Conversation, ConversationList, CreateToken, Id, Level, NewToken};

use crate::error::{TeamError, TeamResult};
use crate::log::contents::Keys;
use crate::log::pull::OLDER;
use crate::log::{Log, note_problem};
use crate::server::{Server, is_absent, is_refused, list_path, team_path};
use crate::state::{Membership, Shared, State};
use crate::teams::Teams;

/// A token is renewed once it has less time left.
const RENEW: SignedDuration = SignedDuration::from_hours(30 * 24);

impl Teams {
    /// Stores what members have shared since the last time, and appends what is new here, in each shared conversation of each
    /// team. An interrupted exchange loses nothing.
    ///
    /// # Errors
    /// [`TeamError::NoTeam`], [`SyncError::Busy`](sottovoce_sync::SyncError::Busy) if another process is at it, and those of the store. Those of a server after
    /// all other teams were asked.
    pub async fn sync(
        &self,
        progress: impl Fn(SyncProgress) + Send + Sync,
    ) -> TeamResult<SyncReport> {
        let (root, mut state, _lock) = self.locked().await?;
        if state.teams.is_empty() {
            return Err(TeamError::NoTeam);
        }
        let mut report = SyncReport::default();
        let mut failed = None;
        let ids: Vec<Id> = state.teams.keys().copied().collect();
        for id in ids {
            // In a box, so that this crate compiles what it does, and not each program that exchanges.
            let synced: BoxFuture<'_, TeamResult<()>> =
                self.sync_team(&root, &mut state, id, &mut report, &progress).boxed();
            let synced = synced.await;
            match synced {
                Ok(()) => {}
                Err(
                    error @ (TeamError::Sync(SyncError::Remote(_)) | TeamError::NotAMember { .. }),
                ) => {
                    failed = failed.or(Some(error));
                }
                Err(error) => return Err(error),
            }
        }
        failed.map_or(Ok(report), Err)
    }

    /// Has the next exchange read everything again that the servers have, and append what they lack. What is here stays.
    ///
    /// # Errors
    /// Those of the store.
    pub async fn begin_again(&self) -> TeamResult<()> {
        let (root, mut state, _lock) = self.locked().await?;
        for team in state.teams.values_mut() {
            team.conversations.values_mut().for_each(Shared::begin_again);
        }
        Ok(state.write(&root).await?)
    }

    async fn sync_team(
        &self,
        root: &FileConversationStore,
        state: &mut State,
        id: Id,
        report: &mut SyncReport,
        progress: &(dyn Fn(SyncProgress) + Send + Sync),
    ) -> TeamResult<()> {
        self.renew(root, state, id).await?;
        let Some(mut team) = state.teams.get(&id).cloned() else { return Ok(()) };
        let server = self.server_of(&team)?;
        let list: ConversationList = server.get(&list_path(id)).await?;
        note_levels(&mut team, &list, report);
        state.teams.insert(id, team);
        for listed in &list.conversations {
            self.sync_conversation(root, state, (&server, id), listed, report, progress).await?;
        }
        if let Some(team) = state.teams.get_mut(&id) {
            if team.is_older {
                for out in &team.removed {
                    let deleted = server.delete(&format!("{}/members/{out}", team_path(id))).await;
                    if !matches!(&deleted, Err(error) if is_refused(error)) {
                        deleted?;
                    }
                }
                team.is_older = false;
            }
            team.synced_at = Some(self.now());
        }
        state.write(root).await?;
        self.lock_seen().insert(id, list.seen);
        Ok(())
    }

    /// Exchanges what is new in one conversation. Writes the state in between, and leaves the last step of it to the caller.
    async fn sync_conversation(
        &self,
        root: &FileConversationStore,
        state: &mut State,
        (server, team_id): (&Server, Id),
        listed: &Conversation,
        report: &mut SyncReport,
        progress: &(dyn Fn(SyncProgress) + Send + Sync),
    ) -> TeamResult<()> {
        let Some(team) = state.teams.get(&team_id) else { return Ok(()) };
        let Some(mut shared) = team.conversations.get(&listed.id).cloned() else { return Ok(()) };
        if shared.level.is_none() {
            return Ok(());
        }
        let (device, called) = (team.device, team.called.clone());
        let exchange = Exchange::new(self.open(&shared.scope()?).await?);
        if shared.is_exchanged(device, listed, exchange.position().await?) {
            return Ok(());
        }
        let keys = Keys::new(listed.id, &shared.keys)?;
        let (team, id, keys, exchange) = (team_id, listed.id, &keys, &exchange);
        let log = Log { server, team, id, device, keys, exchange };
        let mut has_pushed = false;
        let known = report.problems.len();
        log.ask_again(&mut shared).await;
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
            let is_older = report.problems.iter().skip(known).any(is_older);
            if let Some(team) = state.teams.get_mut(&team_id) {
                team.is_older |= is_older;
            }
            let is_first = !is_more && !has_pushed;
            if is_first && shared.may(Level::Write) {
                match push(root, &log, &called, &mut shared, report, progress).await {
                    Err(error) if is_absent(&error) || is_refused(&error) => shared.level = None,
                    pushed => pushed?,
                }
            }
            has_pushed |= is_first;
            // What was appended is read back: the server has it, in its place.
            let is_to_read = is_more || is_first && shared.read < shared.last;
            if !is_to_read || shared.level.is_none() {
                break;
            }
            state.set(team, id, shared.clone());
            state.write(root).await?;
        }
        if !shared.may(Level::Write) {
            shared.own.heard.clear();
            note_kept_back(&log, &mut shared, report).await?;
        }
        state.set(team, id, shared);
        Ok(())
    }

    /// Renews a token that expires soon.
    async fn renew(
        &self,
        root: &FileConversationStore,
        state: &mut State,
        id: Id,
    ) -> TeamResult<()> {
        let Some(team) = state.teams.get_mut(&id) else { return Ok(()) };
        if team.expires.duration_since(self.now()) > RENEW {
            return Ok(());
        }
        let tokens = format!("{}/tokens", team_path(id));
        let request = CreateToken { same_device: true, seconds: None };
        let new: NewToken = self.server_of(team)?.create(&tokens, &request).await?;
        (team.token, team.expires) = (new.token, new.expires);
        let old = std::mem::replace(&mut team.token_id, new.id);
        let server = self.server_of(team)?;
        // The new token is kept before the old one ends.
        state.write(root).await?;
        server.delete(&format!("{tokens}/{old}")).await
    }
}

/// Whether it tells that a server was put back to an older state.
fn is_older(problem: &Problem) -> bool {
    matches!(problem, Problem::Unusable { reason: OLDER, .. })
}

/// Appends what is new here, and first that the conversation was forgotten completely, if it was.
async fn push(
    root: &FileConversationStore,
    log: &Log<'_>,
    called: &str,
    shared: &mut Shared,
    report: &mut SyncReport,
    progress: &(dyn Fn(SyncProgress) + Send + Sync),
) -> TeamResult<()> {
    let root = Exchange::new(root.clone());
    let removed = root.removed_at(&shared.scope()?).await?;
    if removed > shared.own.removed {
        let listed = root.forgotten_with(&shared.scope()?).await?;
        log.push_removal(called, shared, &listed, report).await?;
        shared.own.removed = removed;
        (shared.own.seq, shared.own.origin) = (0, None);
        shared.own.position = Position::default();
    }
    log.push(called, shared, report, progress).await
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
    let without_key: BTreeSet<Id> =
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
) -> TeamResult<()> {
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
