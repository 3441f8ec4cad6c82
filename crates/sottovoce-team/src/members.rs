//! Who is in a team: begins one, lets members in, and shuts them out

use reqwest::Method;
use serde_json::{Value, json};
use sottovoce::Scope;
use sottovoce::exchange::{Exchange, ObjectKind};
use sottovoce_sync::{SyncError, SyncResult};
use sottovoce_team_api::{
    AcceptInvitation, ChangeMember, CreateInvitation, CreateOrganisation, Grant, GrantList, Id,
    InvitedGrant, Level, Member, MemberList, NewConversation, NewInvitation, NewMember, Role,
    Sealed, Secret, SetGrant,
};

use crate::contents::{Keys, new_id, new_key};
use crate::link::{Given, GivenConversation, Kind, Link};
use crate::server::{Server, conversation_path, team_path};
use crate::state::{Membership, Shared, State};
use crate::teams::{Teams, removal};

/// The longest name of a team, a member or a conversation, in characters.
const LONGEST_NAME: usize = 60;

/// What a link has let this store into.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Joined {
    /// The team's name.
    pub team: String,
    /// Whether this made a new member.
    pub is_new: bool,
    /// The conversations that were added, as they are called here.
    pub conversations: Vec<Scope>,
}

/// A member as other members see it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct MemberStatus {
    /// Its identifier.
    pub id: String,
    /// Its name; `None` if it has none, or the server changed it.
    pub name: Option<String>,
    /// Its role.
    pub role: Role,
    /// Whether it is this store's.
    pub is_own: bool,
    /// How many devices it has.
    pub devices: usize,
}

impl Teams {
    /// Begins a team at a server, with the link of its operator.
    ///
    /// # Errors
    /// [`SyncError::InvalidLink`] for a link that lets into a team. Those of the server.
    pub async fn create(&self, link: &Link, team: &str, called: &str) -> SyncResult<()> {
        let Kind::Start(operator) = &link.kind else {
            return Err(SyncError::InvalidLink { reason: "it lets you into a team; join that" });
        };
        let (root, mut state, _lock) = self.locked().await?;
        let server = Server::new(&link.address, Some(operator.clone()))?;
        let new: NewMember = server.create("/api/v1/orgs", &CreateOrganisation::default()).await?;
        let org = new.org;
        let member = membership(&link.address, team, called, new_key()?, new);
        state.teams.insert(org, member);
        state.write(&root).await?;
        self.tell_name(org, &state).await
    }

    /// Accepts a link: becomes a member of its team, or gets more of its conversations. Each conversation becomes a named one of
    /// this store, or the one that it was already.
    ///
    /// # Errors
    /// [`SyncError::InvalidLink`] for one that begins a team, and for one without an invitation unless the store is in that
    /// team. Those of the server: an invitation can be accepted once, and expires.
    pub async fn join(&self, link: &Link, called: &str) -> SyncResult<Joined> {
        let Kind::Team(given) = &link.kind else {
            let reason = "it begins a team: `sottovoce team create LINK NAME`";
            return Err(SyncError::InvalidLink { reason });
        };
        let (root, mut state, _lock) = self.locked().await?;
        let known = state.teams.get(&given.team).cloned();
        let is_in = match &known {
            Some(team) => self.is_member(given.team, team).await?,
            None => false,
        };
        let is_new = !is_in;
        let mut team = match (known, is_in, &given.invitation) {
            (Some(team), true, _) => team,
            (known, _, Some(invitation)) => {
                let server = Server::new(&link.address, None)?;
                let request = AcceptInvitation { invitation: invitation.clone(), profile: None };
                let new: NewMember = server.create("/api/v1/invitations/accept", &request).await?;
                let new = membership(&link.address, &given.name, called, given.key.clone(), new);
                match known {
                    // A member that was removed and is invited again goes on with what it had.
                    Some(before) => Membership { conversations: before.conversations, ..new },
                    None => new,
                }
            }
            (_, _, None) => {
                let reason = "it is for members of the team, and this store is not one";
                return Err(SyncError::InvalidLink { reason });
            }
        };
        // The member exists now: its token must not be lost to what fails below.
        state.teams.insert(given.team, team.clone());
        state.write(&root).await?;
        let mut added = Vec::new();
        for conversation in &given.conversations {
            if let Some(shared) = team.conversations.get_mut(&conversation.id) {
                shared.add_keys(conversation.keys.clone());
                continue;
            }
            let scope = self.free_scope(&state, &conversation.name, &added).await?;
            let removed = removal(Exchange::new(root.clone()).removed_at(&scope).await?);
            let shared = Shared::new(&scope, conversation.keys.clone(), new_id()?, removed);
            team.conversations.insert(conversation.id, shared);
            added.push(scope);
        }
        state.teams.insert(given.team, team);
        state.write(&root).await?;
        if is_new {
            self.tell_name(given.team, &state).await?;
        }
        Ok(Joined { team: given.name.clone(), is_new, conversations: added })
    }

    /// Shares a named conversation of this store with a team. Nothing is sent before the next exchange, and nobody but this
    /// member can read it before others are invited.
    ///
    /// # Errors
    /// [`SyncError::NotNamed`]. [`SyncError::NoSuch`] for a conversation that has nothing in it. Those of the server.
    pub async fn share(&self, team: Option<&str>, scope: &Scope) -> SyncResult<()> {
        let (root, mut state, _lock) = self.locked().await?;
        let id = state.team(team)?;
        if state.team_of(scope).is_some() {
            return Ok(());
        }
        if !matches!(scope, Scope::Named { .. }) {
            return Err(SyncError::NotNamed { scope: scope.to_string() });
        }
        if !self.scopes().await?.contains(scope) {
            return Err(SyncError::NoSuch { what: "conversation", name: scope.to_string() });
        }
        let removed = removal(Exchange::new(root.clone()).removed_at(scope).await?);
        let server = server_of(&state, id)?;
        let path = format!("{}/context/conversations", team_path(id));
        let new: NewConversation = server.create(&path, &json!({})).await?;
        let mut shared = Shared::new(scope, vec![new_key()?], new_id()?, removed);
        shared.level = Some(Level::Manage);
        if let Some(team) = state.teams.get_mut(&id) {
            team.conversations.insert(new.id, shared);
        }
        state.write(&root).await
    }

    /// Makes a link that lets one new member into a team and these conversations.
    ///
    /// # Errors
    /// [`SyncError::NoSuch`] for a conversation that is not shared. Those of the server: only owners and administrators invite.
    pub async fn invite(
        &self,
        team: Option<&str>,
        scopes: &[Scope],
        (role, level): (Role, Level),
        seconds: Option<u64>,
    ) -> SyncResult<Link> {
        let state = self.state().await?;
        let id = match scopes.first().and_then(|scope| state.team_of(scope)) {
            Some(of_scope) if team.is_none() => of_scope,
            _ => state.team(team)?,
        };
        let conversations = given(&state, id, scopes)?;
        let grant = |conversation: &GivenConversation| InvitedGrant {
            conversation: conversation.id,
            level,
        };
        let grants = conversations.iter().map(grant).collect();
        let request = CreateInvitation { role, grants, seconds };
        let path = format!("{}/invitations", team_path(id));
        let new: NewInvitation = server_of(&state, id)?.create(&path, &request).await?;
        link(&state, id, Some(new.invitation), conversations)
    }

    /// The members of a team.
    ///
    /// # Errors
    /// Those of the server.
    pub async fn members(&self, team: Option<&str>) -> SyncResult<Vec<MemberStatus>> {
        let state = self.state().await?;
        let id = state.team(team)?;
        let listed = members(&state, id).await?;
        let own = state.teams.get(&id).map(|team| team.member);
        let status = |(member, name): (Member, Option<String>)| MemberStatus {
            id: member.id.to_string(),
            name,
            role: member.role,
            is_own: Some(member.id) == own,
            devices: member.devices.len(),
        };
        Ok(listed.into_iter().map(status).collect())
    }

    /// What each member may do with a conversation, by the members' names.
    ///
    /// # Errors
    /// [`SyncError::NoSuch`] for a conversation that is not shared. Those of the server.
    pub async fn grants(&self, scope: &Scope) -> SyncResult<Vec<(String, Level)>> {
        let state = self.state().await?;
        let (id, conversation) = shared_with(&state, scope)?;
        let path = format!("{}/grants", conversation_path(id, conversation));
        let list: GrantList = server_of(&state, id)?.get(&path).await?;
        let names = members(&state, id).await?;
        let name = |grant: &Grant| {
            let found = names.iter().find(|(member, _)| member.id == grant.member);
            let name = found.and_then(|(_, name)| name.clone());
            (name.unwrap_or_else(|| grant.member.to_string()), grant.level)
        };
        Ok(list.grants.iter().map(name).collect())
    }

    /// Grants a conversation to a member, and returns the link that this member needs for it.
    ///
    /// # Errors
    /// [`SyncError::NoSuch`] for a conversation that is not shared or a member that is none. Those of the server.
    pub async fn grant(&self, member: &str, scope: &Scope, level: Level) -> SyncResult<Link> {
        let state = self.state().await?;
        let (id, conversation) = shared_with(&state, scope)?;
        let member = find_member(&state, id, member).await?;
        let path = format!("{}/grants/{member}", conversation_path(id, conversation));
        server_of(&state, id)?.change(Method::PUT, &path, &SetGrant { level }).await?;
        link(&state, id, None, given(&state, id, std::slice::from_ref(scope))?)
    }

    /// Shuts a member out of a conversation, or out of its team and all of this member's conversations. These get new keys: what
    /// is said from now on is sealed with them. Returns the link with which the others go on, unless nobody else is there.
    ///
    /// # Errors
    /// [`SyncError::NoSuch`] for a member that is none. Those of the server.
    pub async fn revoke(
        &self,
        team: Option<&str>,
        member: &str,
        scope: Option<&Scope>,
    ) -> SyncResult<Option<Link>> {
        let (root, mut state, _lock) = self.locked().await?;
        let id = match scope {
            Some(scope) => shared_with(&state, scope)?.0,
            None => state.team(team)?,
        };
        let server = server_of(&state, id)?;
        let out = find_member(&state, id, member).await?;
        let Some(team) = state.teams.get(&id) else { return Err(SyncError::NoTeam) };
        let candidates: Vec<Id> = match scope {
            Some(scope) => team.conversation(scope).map(|(id, _)| id).into_iter().collect(),
            None => {
                let managed =
                    team.conversations.iter().filter(|(_, shared)| shared.may(Level::Read));
                managed.map(|(id, _)| *id).collect()
            }
        };
        let mut concerned = Vec::new();
        let mut is_anyone_left = false;
        for conversation in candidates {
            let path = format!("{}/grants", conversation_path(id, conversation));
            let list: GrantList = server.get(&path).await?;
            if list.grants.iter().any(|grant| grant.member == out) {
                concerned.push(conversation);
                let own = team.member;
                is_anyone_left |=
                    list.grants.iter().any(|grant| ![out, own].contains(&grant.member));
            }
        }
        match scope {
            Some(_) => {
                for conversation in &concerned {
                    let path = format!("{}/grants/{out}", conversation_path(id, *conversation));
                    server.delete(&path).await?;
                }
            }
            None => server.delete(&format!("{}/members/{out}", team_path(id))).await?,
        }
        let mut scopes = Vec::new();
        if let Some(team) = state.teams.get_mut(&id) {
            for conversation in concerned {
                if let Some(shared) = team.conversations.get_mut(&conversation) {
                    shared.keys.push(new_key()?);
                    scopes.push(shared.scope()?);
                }
            }
        }
        state.write(&root).await?;
        match is_anyone_left {
            true => link(&state, id, None, given(&state, id, &scopes)?).map(Some),
            false => Ok(None),
        }
    }

    /// Leaves a team. Everything stays on this device; the conversations are its own from now on. If `by_force`, also without the
    /// server's consent.
    ///
    /// # Errors
    /// Those of the server, such as that an owner must remain.
    pub async fn leave(&self, team: Option<&str>, by_force: bool) -> SyncResult<()> {
        let (root, mut state, _lock) = self.locked().await?;
        let id = state.team(team)?;
        if let Some(team) = state.teams.get(&id) {
            let path = format!("{}/members/{}", team_path(id), team.member);
            match server_of(&state, id)?.delete(&path).await {
                // It was removed already.
                Err(SyncError::NotAMember { .. }) => {}
                Err(_) if by_force => {}
                left => left?,
            }
        }
        state.teams.remove(&id);
        state.write(&root).await
    }

    /// Seals the member's name for the others.
    async fn tell_name(&self, id: Id, state: &State) -> SyncResult<()> {
        let Some(team) = state.teams.get(&id) else { return Ok(()) };
        let member = team.member.to_string();
        let keys = Keys::new(id, std::slice::from_ref(&team.key))?;
        let sealed = keys.seal_bytes(ObjectKind::Record, &member, team.called.as_bytes())?;
        let change = ChangeMember { role: None, profile: Some(Sealed::from(sealed)) };
        let path = format!("{}/members/{member}", team_path(id));
        server_of(state, id)?.change(Method::PATCH, &path, &change).await
    }

    /// Whether the server knows this store's member still.
    async fn is_member(&self, id: Id, team: &Membership) -> SyncResult<bool> {
        let server = Server::new(&team.address, Some(team.token.clone()))?;
        match server.get::<Value>(&team_path(id)).await {
            Ok(_) => Ok(true),
            Err(SyncError::NotAMember { .. }) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// A named conversation for one of that name: a new one, so that it mixes with nothing that is here.
    async fn free_scope(&self, state: &State, name: &str, added: &[Scope]) -> SyncResult<Scope> {
        let name = tidy(name);
        let taken = self.scopes().await?;
        for n in 1..10_000 {
            let id = if n == 1 { name.clone() } else { format!("{name}-{n}") };
            let scope = Scope::Named { id };
            let is_free = !taken.contains(&scope)
                && !added.contains(&scope)
                && state.team_of(&scope).is_none();
            if is_free && scope.to_string().parse::<Scope>().is_ok() {
                return Ok(scope);
            }
        }
        Err(SyncError::State { reason: "ten thousand conversations have that name" })
    }
}

fn membership(address: &str, name: &str, called: &str, key: Secret, new: NewMember) -> Membership {
    Membership {
        address: address.to_owned(),
        name: tidy(name),
        member: new.member,
        device: new.token.device,
        called: tidy(called),
        key,
        token: new.token.token,
        token_id: new.token.id,
        expires: new.token.expires,
        conversations: Default::default(),
        synced_at: None,
        without_key: Default::default(),
    }
}

/// A name on one line, not too long.
fn tidy(name: &str) -> String {
    let name: String = name.chars().filter(|c| !c.is_control()).take(LONGEST_NAME).collect();
    name.trim().to_owned()
}

pub(crate) fn server_of(state: &State, id: Id) -> SyncResult<Server> {
    let team = state.teams.get(&id).ok_or(SyncError::NoTeam)?;
    Server::new(&team.address, Some(team.token.clone()))
}

fn shared_with(state: &State, scope: &Scope) -> SyncResult<(Id, Id)> {
    let none = || SyncError::NoSuch { what: "shared conversation", name: scope.to_string() };
    let id = state.team_of(scope).ok_or_else(none)?;
    let found = state.teams.get(&id).and_then(|team| team.conversation(scope));
    Ok((id, found.ok_or_else(none)?.0))
}

/// Conversations with their keys, for a link.
fn given(state: &State, id: Id, scopes: &[Scope]) -> SyncResult<Vec<GivenConversation>> {
    let given = |scope: &Scope| {
        let none = || SyncError::NoSuch { what: "shared conversation", name: scope.to_string() };
        let found = state.teams.get(&id).and_then(|team| team.conversation(scope));
        let (id, shared) = found.ok_or_else(none)?;
        let Scope::Named { id: name } = scope else { return Err(none()) };
        Ok(GivenConversation { id, name: name.clone(), keys: shared.keys.clone() })
    };
    scopes.iter().map(given).collect()
}

fn link(
    state: &State,
    id: Id,
    invitation: Option<Secret>,
    conversations: Vec<GivenConversation>,
) -> SyncResult<Link> {
    let team = state.teams.get(&id).ok_or(SyncError::NoTeam)?;
    let given = Given::new((id, team.name.clone()), team.key.clone(), invitation, conversations);
    Ok(Link::given(team.address.clone(), given))
}

/// The members with their names, as far as they open.
pub(crate) async fn members(state: &State, id: Id) -> SyncResult<Vec<(Member, Option<String>)>> {
    let team = state.teams.get(&id).ok_or(SyncError::NoTeam)?;
    let keys = Keys::new(id, std::slice::from_ref(&team.key))?;
    let list: MemberList = server_of(state, id)?.get(&format!("{}/members", team_path(id))).await?;
    let named = list.members.into_iter().map(|member| {
        let sealed = member.profile.as_ref();
        let name = sealed.and_then(|sealed| {
            keys.open_bytes(ObjectKind::Record, &member.id.to_string(), sealed.as_bytes())
        });
        let name = name.and_then(|name| String::from_utf8(name.to_vec()).ok());
        (member, name.map(|name| tidy(&name)))
    });
    Ok(named.collect())
}

/// The member with that name or identifier.
async fn find_member(state: &State, id: Id, asked: &str) -> SyncResult<Id> {
    let none = || SyncError::NoSuch { what: "member", name: asked.to_owned() };
    let members = members(state, id).await?;
    let mut found = members
        .iter()
        .filter(|(member, name)| name.as_deref() == Some(asked) || member.id.to_string() == asked);
    match (found.next(), found.next()) {
        (Some((member, _)), None) => Ok(member.id),
        (Some(_), Some(_)) => Err(SyncError::SeveralMembers { name: asked.to_owned() }),
        (None, _) => Err(none()),
    }
}
