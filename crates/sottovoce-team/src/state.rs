//! What a store remembers about its teams. It is sealed in the store

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use sottovoce::exchange::{Origin, Position, Sharing};
use sottovoce::{FileConversationStore, Scope};
use sottovoce_sync::{SyncError, SyncResult, read_state, write_state};
use sottovoce_team_api::{Conversation, Id, Level, Rid, Secret};

use crate::error::{TeamError, TeamResult};
use crate::log::contents::{ArtifactPieces, new_key};
use crate::log::withheld::Seen;

/// The version of the state.
const VERSION: u64 = 1;

/// The teams of a store.
#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct State {
    v: u64,
    pub(crate) teams: BTreeMap<Id, Membership>,
}

/// This store in a team.
#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(crate) struct Membership {
    pub(crate) address: String,
    /// The team's name.
    pub(crate) name: String,
    pub(crate) member: Id,
    /// This store as the server knows it by its token.
    pub(crate) device: Id,
    /// The member's name, as others see it.
    pub(crate) called: String,
    /// The key of members' names.
    pub(crate) key: Secret,
    pub(crate) token: Secret,
    pub(crate) token_id: Id,
    pub(crate) expires: Timestamp,
    pub(crate) conversations: BTreeMap<Id, Shared>,
    /// When everything was last exchanged.
    pub(crate) synced_at: Option<Timestamp>,
    /// Conversations that were granted, and whose keys are not here.
    #[serde(default)]
    pub(crate) without_key: BTreeSet<Id>,
    /// The members that this store has shut out.
    #[serde(default)]
    pub(crate) removed: BTreeSet<Id>,
    /// Whether the server was put back to an older state, in which those members may be back.
    #[serde(default)]
    pub(crate) is_older: bool,
}

/// A shared conversation.
#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(crate) struct Shared {
    /// Its conversation in this store.
    pub(crate) scope: String,
    /// The oldest first. The newest seals, and the oldest names messages.
    pub(crate) keys: Vec<Secret>,
    /// What the member may do; `None` once it has no access any more.
    pub(crate) level: Option<Level>,
    /// The last position that was read, and the last one that the server told of.
    pub(crate) read: u64,
    pub(crate) last: u64,
    /// Which record is at the position that was read, and when the server stored it. If another one is there, the server was put
    /// back to an older state, and its positions were given anew.
    pub(crate) at: Option<(Rid, Timestamp)>,
    /// How many exchanges in a row have found that records are missing.
    #[serde(default)]
    pub(crate) lacking: u32,
    pub(crate) seen: Seen,
    /// Where a record was that no key opens, and what had been seen before it: it is read again once there is a new key.
    pub(crate) unopened: Option<(u64, Seen)>,
    pub(crate) own: Own,
    pub(crate) settings: BTreeMap<String, Known>,
    /// Artifacts whose contents were not fetched.
    #[serde(default)]
    pub(crate) artifacts: BTreeMap<String, ArtifactPieces>,
    /// Where the contents of each artifact are at the server, to delete them with it.
    #[serde(default)]
    pub(crate) pieces: BTreeMap<String, Vec<Id>>,
}

/// What this store has appended to a conversation.
#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Own {
    /// A random number that stands for this store, and how many records it has written under it.
    pub(crate) writer: Id,
    pub(crate) n: u64,
    /// How many numbers of this writer, and of the earlier ones, belong to no record of the log: the server had those records already, or
    /// never took them.
    pub(crate) void: u64,
    /// Records that must be found, by position: the last one of what was appended, and the last one that was read before everything was
    /// to be read again, with the time at which the server stored it. If one is not there, the server was put back meanwhile.
    pub(crate) expected: BTreeMap<u64, (Rid, Option<Timestamp>)>,
    /// Where the conversation was when everything of it was appended.
    pub(crate) position: Position,
    /// The last number that was looked at, and the identity of its message, if it had one.
    pub(crate) seq: u64,
    pub(crate) origin: Option<Origin>,
    /// Messages of the log that the store has after that number: they are not to be appended.
    #[serde(default)]
    pub(crate) heard: BTreeSet<Origin>,
    /// The forgotten messages that the others know of.
    pub(crate) forgotten: BTreeSet<Origin>,
    /// Those that they knew of before everything was read again. What the log does not say any more is told again.
    #[serde(default)]
    pub(crate) untold: BTreeSet<Origin>,
    /// The highest number of the conversation when it was last forgotten completely.
    pub(crate) removed: Option<u64>,
}

/// A setting, a snapshot or an artifact.
#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Known {
    /// The digest of the value that all members know.
    pub(crate) digest: String,
    /// The record that has the value.
    pub(crate) rid: Rid,
    /// How often there was a new value, as far as the member knew who set it.
    #[serde(default)]
    pub(crate) edition: u64,
    /// Whether the server has lost that record. The value is appended again, unless the log has a later edition.
    #[serde(default)]
    pub(crate) is_lost: bool,
}

impl Shared {
    /// A conversation of which nothing was read or appended yet.
    pub(crate) fn new(scope: &Scope, keys: Vec<Secret>, writer: Id, removed: Option<u64>) -> Self {
        Self {
            scope: scope.to_string(),
            keys,
            level: Some(Level::Read),
            read: 0,
            last: 0,
            at: None,
            lacking: 0,
            seen: Seen::default(),
            unopened: None,
            own: Own {
                writer,
                n: 0,
                void: 0,
                expected: BTreeMap::new(),
                position: Position::default(),
                seq: 0,
                origin: None,
                heard: BTreeSet::new(),
                forgotten: BTreeSet::new(),
                untold: BTreeSet::new(),
                removed,
            },
            settings: BTreeMap::new(),
            artifacts: BTreeMap::new(),
            pieces: BTreeMap::new(),
        }
    }

    pub(crate) fn scope(&self) -> SyncResult<Scope> {
        self.scope.parse().map_err(|_| SyncError::State { reason: "a scope in it is none" })
    }

    /// Whether nothing is new on either side and nothing is wrong: the server's last record and the conversation's position are
    /// those of before.
    pub(crate) fn is_exchanged(&self, device: Id, listed: &Conversation, now: Position) -> bool {
        let is_told = self.own.void <= self.seen.void(device) || !self.may(Level::Write);
        let is_whole = self.unopened.is_none() && self.seen.is_whole();
        let is_read = listed.last == self.read
            && (self.read == 0 || self.at.is_some_and(|(_, at)| at == listed.changed));
        let is_read = is_read && self.own.expected.is_empty();
        let has_told_all = self.own.untold.is_empty() || !self.may(Level::Write);
        is_read && now == self.own.position && is_told && is_whole && has_told_all
    }

    /// Has everything read again, and appended that the log then lacks.
    pub(crate) fn begin_again(&mut self) {
        self.read_again(0, Seen::default());
        self.unopened = None;
        let own = &mut self.own;
        (own.seq, own.origin, own.position) = (0, None, Position::default());
        own.heard.clear();
        own.untold.append(&mut own.forgotten);
    }

    /// Begins again with a log that has lost records: what is here is newer than what it has.
    pub(crate) fn begin_again_newer(&mut self) {
        self.begin_again();
        self.own.expected.clear();
        self.settings.values_mut().for_each(|known| known.is_lost = true);
    }

    /// Has a record read again, and all after it.
    pub(crate) fn read_again(&mut self, at: u64, seen: Seen) {
        self.own.expected.extend(self.at.map(|(rid, at)| (self.read, (rid, Some(at)))));
        (self.read, self.at, self.seen) = (at.saturating_sub(1), None, seen);
    }

    pub(crate) fn may(&self, level: Level) -> bool {
        self.level.is_some_and(|own| own >= level)
    }

    /// Adds keys that are not here yet. What they may open is read again.
    pub(crate) fn add_keys(&mut self, keys: Vec<Secret>) {
        for key in keys {
            if !self.keys.iter().any(|known| known.as_bytes() == key.as_bytes()) {
                self.keys.push(key);
                if let Some((at, seen)) = self.unopened.take() {
                    self.read_again(at, seen);
                }
            }
        }
    }
}

impl Membership {
    /// The shared conversation that is this one here.
    pub(crate) fn conversation(&self, scope: &Scope) -> Option<(Id, &Shared)> {
        let text = scope.to_string();
        let found = self.conversations.iter().find(|(_, shared)| shared.scope == text);
        found.map(|(id, shared)| (*id, shared))
    }
}

impl State {
    /// Reads the state from the default conversation. It is empty if the store is in no team.
    pub(crate) async fn read(root: &FileConversationStore) -> SyncResult<Self> {
        let state = read_state(root, Sharing::Teams, (VERSION, |state: &Self| state.v)).await?;
        Ok(state.unwrap_or_else(|| Self { v: VERSION, teams: BTreeMap::new() }))
    }

    pub(crate) async fn write(&self, root: &FileConversationStore) -> SyncResult<()> {
        write_state(root, Sharing::Teams, self).await
    }

    /// The team of that name or identifier, or the only one.
    pub(crate) fn team(&self, name: Option<&str>) -> TeamResult<Id> {
        let mut found = self.teams.iter().filter(|(id, team)| {
            name.is_none_or(|name| team.name == name || id.to_string() == name)
        });
        match (found.next(), found.next(), name) {
            (Some((id, _)), None, _) => Ok(*id),
            (None, _, None) => Err(TeamError::NoTeam),
            (None, _, Some(name)) => Err(TeamError::NoSuch { what: "team", name: name.to_owned() }),
            (Some(_), Some(_), _) => Err(TeamError::SeveralTeams),
        }
    }

    /// Replaces what is known of a shared conversation.
    pub(crate) fn set(&mut self, team: Id, conversation: Id, shared: Shared) {
        if let Some(team) = self.teams.get_mut(&team) {
            team.conversations.insert(conversation, shared);
        }
    }

    /// Gives new keys to these conversations of a team. Returns what they are called here.
    pub(crate) fn renew_keys(&mut self, team: Id, conversations: &[Id]) -> TeamResult<Vec<Scope>> {
        let mut scopes = Vec::new();
        let Some(team) = self.teams.get_mut(&team) else { return Ok(scopes) };
        for conversation in conversations {
            if let Some(shared) = team.conversations.get_mut(conversation) {
                shared.keys.push(new_key()?);
                scopes.push(shared.scope()?);
            }
        }
        Ok(scopes)
    }

    /// A team that this store is in.
    pub(crate) fn membership(&self, id: Id) -> TeamResult<&Membership> {
        self.teams.get(&id).ok_or(TeamError::NoTeam)
    }

    /// The team with which a conversation is shared.
    pub(crate) fn team_of(&self, scope: &Scope) -> Option<Id> {
        self.shared_as(scope).ok().map(|(team, ..)| team)
    }

    /// The team with which a conversation is shared, and what it is there.
    pub(crate) fn shared_as(&self, scope: &Scope) -> TeamResult<(Id, Id, &Shared)> {
        let mut teams = self.teams.iter();
        let found = teams.find_map(|(id, team)| {
            team.conversation(scope).map(|(conversation, shared)| (*id, conversation, shared))
        });
        let none = || TeamError::NoSuch { what: "shared conversation", name: scope.to_string() };
        found.ok_or_else(none)
    }
}

sottovoce::debug_shows!(State as it: teams = it.teams.len());
