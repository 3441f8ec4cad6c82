//! Which conversations are shared, and with whom

use reqwest::Method;
use serde_json::json;
use sottovoce::Scope;
use sottovoce::exchange::Exchange;
use sottovoce_sync::Failure;
use sottovoce_team_api::{
    CreateInvitation, Grant, GrantList, Id, InvitedGrant, Level, NewConversation, NewInvitation,
    Role, Secret, SetGrant,
};

use crate::error::{TeamError, TeamResult};
use crate::link::{Given, GivenConversation, Link};
use crate::log::contents::{new_id, new_key};
use crate::server::{Server, conversation_path, team_path};
use crate::state::{Membership, Shared, State};
use crate::teams::Teams;

impl Teams {
    /// Shares a named conversation of this store with a team. Nothing is sent before the next exchange, and nobody but this
    /// member can read it before others are invited.
    ///
    /// # Errors
    /// [`TeamError::NotNamed`]. [`TeamError::NoSuch`] for a conversation that has nothing in it. Those of the server.
    pub async fn share(&self, team: Option<&str>, scope: &Scope) -> TeamResult<()> {
        let (root, mut state, _lock) = self.locked().await?;
        let id = state.team(team)?;
        if state.team_of(scope).is_some() {
            return Ok(());
        }
        if !matches!(scope, Scope::Named { .. }) {
            return Err(TeamError::NotNamed { scope: scope.to_string() });
        }
        if !self.scopes().await?.contains(scope) {
            return Err(TeamError::NoSuch { what: "conversation", name: scope.to_string() });
        }
        let removed = Exchange::new(root.clone()).removed_at(scope).await?;
        let server = self.server_of(state.membership(id)?)?;
        let path = format!("{}/context/conversations", team_path(id));
        let new: NewConversation = server.create(&path, &json!({})).await?;
        let mut shared = Shared::new(scope, vec![new_key()?], new_id()?, removed);
        shared.level = Some(Level::Manage);
        if let Some(team) = state.teams.get_mut(&id) {
            team.conversations.insert(new.id, shared);
        }
        Ok(state.write(&root).await?)
    }

    /// Makes a link that lets one new member into a team and these conversations.
    ///
    /// # Errors
    /// [`TeamError::NoSuch`] for a conversation that is not shared. Those of the server: only owners and administrators invite.
    pub async fn invite(
        &self,
        team: Option<&str>,
        scopes: &[Scope],
        (role, level): (Role, Level),
        seconds: Option<u64>,
    ) -> TeamResult<Link> {
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
        let new: NewInvitation =
            self.server_of(state.membership(id)?)?.create(&path, &request).await?;
        link(&state, id, Some(new.invitation), conversations)
    }

    /// What each member may do with a conversation, by the members' names.
    ///
    /// # Errors
    /// [`TeamError::NoSuch`] for a conversation that is not shared. Those of the server.
    pub async fn grants(&self, scope: &Scope) -> TeamResult<Vec<(String, Level)>> {
        let state = self.state().await?;
        let (id, conversation, _) = state.shared_as(scope)?;
        let path = format!("{}/grants", conversation_path(id, conversation));
        let list: GrantList = self.server_of(state.membership(id)?)?.get(&path).await?;
        let names = self.named_members(id, state.membership(id)?).await?;
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
    /// [`TeamError::NoSuch`] for a conversation that is not shared or a member that is none. Those of the server.
    pub async fn grant(&self, member: &str, scope: &Scope, level: Level) -> TeamResult<Link> {
        let state = self.state().await?;
        let (id, conversation, _) = state.shared_as(scope)?;
        let member = self.find_member(id, state.membership(id)?, member).await?;
        let path = format!("{}/grants/{member}", conversation_path(id, conversation));
        self.server_of(state.membership(id)?)?
            .change(Method::PUT, &path, &SetGrant { level })
            .await?;
        link(&state, id, None, given(&state, id, std::slice::from_ref(scope))?)
    }

    /// Shuts a member out of a conversation, or out of its team and all of this member's conversations. These get new keys: what
    /// is said from now on is sealed with them. Returns the link with which the others go on, unless nobody else is there.
    ///
    /// # Errors
    /// [`TeamError::NoSuch`] for a member that is none. Those of the server.
    pub async fn revoke(
        &self,
        team: Option<&str>,
        member: &str,
        scope: Option<&Scope>,
    ) -> TeamResult<Option<Link>> {
        let (root, mut state, _lock) = self.locked().await?;
        let id = match scope {
            Some(scope) => state.shared_as(scope)?.0,
            None => state.team(team)?,
        };
        let server = self.server_of(state.membership(id)?)?;
        let out = self.find_member(id, state.membership(id)?, member).await?;
        let team = state.membership(id)?;
        let candidates: Vec<Id> = match scope {
            Some(scope) => team.conversation(scope).map(|(id, _)| id).into_iter().collect(),
            None => {
                let readable =
                    team.conversations.iter().filter(|(_, shared)| shared.may(Level::Read));
                readable.map(|(id, _)| *id).collect()
            }
        };
        let (concerned, is_anyone_left) =
            granted(&server, id, &candidates, [out, team.member]).await?;
        // The keys come first: whatever interrupts this, nothing more is sealed with keys that the member has.
        let before = state.clone();
        let scopes = state.renew_keys(id, &concerned)?;
        if scope.is_none()
            && let Some(team) = state.teams.get_mut(&id)
        {
            team.removed.insert(out);
        }
        state.write(&root).await?;
        let path = match (scope, concerned.first()) {
            (None, _) => Some(format!("{}/members/{out}", team_path(id))),
            (Some(_), Some(conversation)) => {
                Some(format!("{}/grants/{out}", conversation_path(id, *conversation)))
            }
            (Some(_), None) => None,
        };
        if let Some(path) = path {
            let removed = server.delete(&path).await;
            // An answer that says no. Without one, the member may be out.
            if matches!(&removed, Err(error) if error.of_remote().is_some() && !error.is_transient())
            {
                before.write(&root).await?;
            }
            removed?;
        }
        match is_anyone_left {
            true => link(&state, id, None, given(&state, id, &scopes)?).map(Some),
            false => Ok(None),
        }
    }

    /// Ends the sharing of a conversation for this member, or, if `for_all`, for all members: the server deletes it then. What is in it
    /// stays in this store, and in those of the others.
    ///
    /// # Errors
    /// [`TeamError::NoSuch`] for a conversation that is not shared. Those of the server: only who may manage it can end it for all.
    pub async fn unshare(&self, scope: &Scope, for_all: bool) -> TeamResult<()> {
        let (root, mut state, _lock) = self.locked().await?;
        let (id, conversation, _) = state.shared_as(scope)?;
        let team = state.membership(id)?;
        let path = conversation_path(id, conversation);
        let path = if for_all { path } else { format!("{path}/grants/{}", team.member) };
        match self.server_of(team)?.delete(&path).await {
            // The member was shut out of everything already.
            Err(TeamError::NotAMember { .. }) if !for_all => {}
            ended => ended?,
        }
        if let Some(team) = state.teams.get_mut(&id) {
            team.conversations.remove(&conversation);
        }
        Ok(state.write(&root).await?)
    }

    /// The member with that name or identifier.
    async fn find_member(&self, id: Id, team: &Membership, asked: &str) -> TeamResult<Id> {
        let none = || TeamError::NoSuch { what: "member", name: asked.to_owned() };
        let members = self.named_members(id, team).await?;
        let mut found = members.iter().filter(|(member, name)| {
            name.as_deref() == Some(asked) || member.id.to_string() == asked
        });
        match (found.next(), found.next()) {
            (Some((member, _)), None) => Ok(member.id),
            (Some(_), Some(_)) => Err(TeamError::SeveralMembers { name: asked.to_owned() }),
            (None, _) => Err(none()),
        }
    }
}

/// Which of these conversations the first of two members has, and whether anyone beside the two has one of them.
async fn granted(
    server: &Server,
    id: Id,
    candidates: &[Id],
    members: [Id; 2],
) -> TeamResult<(Vec<Id>, bool)> {
    let [out, _] = members;
    let (mut granted, mut has_others) = (Vec::new(), false);
    for conversation in candidates {
        let path = format!("{}/grants", conversation_path(id, *conversation));
        let list: GrantList = server.get(&path).await?;
        if list.grants.iter().any(|grant| grant.member == out) {
            granted.push(*conversation);
            has_others |= list.grants.iter().any(|grant| !members.contains(&grant.member));
        }
    }
    Ok((granted, has_others))
}

/// Conversations with their keys, for a link.
fn given(state: &State, id: Id, scopes: &[Scope]) -> TeamResult<Vec<GivenConversation>> {
    let given = |scope: &Scope| {
        let none = || TeamError::NoSuch { what: "shared conversation", name: scope.to_string() };
        let (team, conversation, shared) = state.shared_as(scope)?;
        let Scope::Named { id: name } = scope else { return Err(none()) };
        match team == id {
            true => {
                let (name, keys) = (name.clone(), shared.keys.clone());
                Ok(GivenConversation { id: conversation, name, keys })
            }
            false => Err(none()),
        }
    };
    scopes.iter().map(given).collect()
}

fn link(
    state: &State,
    id: Id,
    invitation: Option<Secret>,
    conversations: Vec<GivenConversation>,
) -> TeamResult<Link> {
    let team = state.membership(id)?;
    let given = Given::new((id, team.name.clone()), team.key.clone(), invitation, conversations);
    Ok(Link::given(team.address.clone(), given))
}
