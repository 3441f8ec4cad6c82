//! Who is in a team: begins one, lets members in, and shuts them out

use reqwest::Method;
use serde_json::Value;
use sottovoce::Scope;
use sottovoce::exchange::{Exchange, ObjectKind};
use sottovoce_sync::SyncError;
use sottovoce_team_api::{
    AcceptInvitation, ChangeMember, CreateOrganisation, Id, Member, MemberList, NewMember, Role,
    Sealed, Secret,
};

use crate::error::{TeamError, TeamResult};
use crate::link::{Kind, Link};
use crate::log::contents::{Keys, new_id, new_key};
use crate::server::team_path;
use crate::state::{Membership, Shared, State};
use crate::teams::Teams;

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
    /// [`TeamError::InvalidLink`] for a link that lets into a team. Those of the server.
    pub async fn create(&self, link: &Link, team: &str, called: &str) -> TeamResult<()> {
        let Kind::Start(operator) = &link.kind else {
            return Err(TeamError::InvalidLink { reason: "it lets you into a team; join that" });
        };
        let (root, mut state, _lock) = self.locked().await?;
        let server = self.server(&link.address, Some(operator.clone()))?;
        let new = server.create("/api/v1/orgs", &CreateOrganisation::default()).await;
        let new: NewMember = new.map_err(|error| match error {
            TeamError::NotAMember { .. } => TeamError::InvalidLink {
                reason: "the server has another one now; it shows it when it starts",
            },
            error => error,
        })?;
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
    /// [`TeamError::InvalidLink`] for one that begins a team, and for one without an invitation unless the store is in that
    /// team. Those of the server: an invitation can be accepted once, and expires.
    pub async fn join(&self, link: &Link, called: &str) -> TeamResult<Joined> {
        let Kind::Team(given) = &link.kind else {
            let reason = "it begins a team instead of letting you into one";
            return Err(TeamError::InvalidLink { reason });
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
                let server = self.server(&link.address, None)?;
                let request = AcceptInvitation { invitation: invitation.clone(), profile: None };
                let new: NewMember = server.create("/api/v1/invitations/accept", &request).await?;
                let new = membership(&link.address, &given.name, called, given.key.clone(), new);
                match known {
                    // A member that was removed and is invited again goes on with what it had.
                    Some(Membership { mut conversations, .. }) => {
                        // It is another device, whose records count from 1.
                        for shared in conversations.values_mut() {
                            (shared.own.n, shared.own.void) = (0, 0);
                        }
                        Membership { conversations, ..new }
                    }
                    None => new,
                }
            }
            (_, _, None) => {
                let reason = "it is for members of the team, and this store is not one";
                return Err(TeamError::InvalidLink { reason });
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
            let removed = Exchange::new(root.clone()).removed_at(&scope).await?;
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

    /// The members of a team.
    ///
    /// # Errors
    /// Those of the server.
    pub async fn members(&self, team: Option<&str>) -> TeamResult<Vec<MemberStatus>> {
        let state = self.state().await?;
        let id = state.team(team)?;
        let team = state.membership(id)?;
        let listed = self.named_members(id, team).await?;
        let status = |(member, name): (Member, Option<String>)| MemberStatus {
            id: member.id.to_string(),
            name,
            role: member.role,
            is_own: member.id == team.member,
            devices: member.devices.len(),
        };
        Ok(listed.into_iter().map(status).collect())
    }

    /// Leaves a team. Everything stays on this device; the conversations are its own from now on. If `by_force`, also without the
    /// server's consent.
    ///
    /// # Errors
    /// Those of the server, such as that an owner must remain.
    pub async fn leave(&self, team: Option<&str>, by_force: bool) -> TeamResult<()> {
        let (root, mut state, _lock) = self.locked().await?;
        let id = state.team(team)?;
        let team = state.membership(id)?;
        let path = format!("{}/members/{}", team_path(id), team.member);
        match self.server_of(team)?.delete(&path).await {
            // It was removed already.
            Err(TeamError::NotAMember { .. }) => {}
            Err(_) if by_force => {}
            left => left?,
        }
        state.teams.remove(&id);
        Ok(state.write(&root).await?)
    }

    /// Seals the member's name for the others.
    async fn tell_name(&self, id: Id, state: &State) -> TeamResult<()> {
        let team = state.membership(id)?;
        let member = team.member.to_string();
        let keys = Keys::new(id, std::slice::from_ref(&team.key))?;
        let sealed = keys.seal_bytes(ObjectKind::Record, &member, team.called.as_bytes())?;
        let change = ChangeMember { role: None, profile: Some(Sealed::from(sealed)) };
        let path = format!("{}/members/{member}", team_path(id));
        self.server_of(team)?.change(Method::PATCH, &path, &change).await
    }

    /// Whether the server knows this store's member still.
    async fn is_member(&self, id: Id, team: &Membership) -> TeamResult<bool> {
        match self.server_of(team)?.get::<Value>(&team_path(id)).await {
            Ok(_) => Ok(true),
            Err(TeamError::NotAMember { .. }) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// The members with their names, as far as they open.
    pub(crate) async fn named_members(
        &self,
        id: Id,
        team: &Membership,
    ) -> TeamResult<Vec<(Member, Option<String>)>> {
        let keys = Keys::new(id, std::slice::from_ref(&team.key))?;
        let list: MemberList =
            self.server_of(team)?.get(&format!("{}/members", team_path(id))).await?;
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

    /// A named conversation for one of that name: a new one, so that it mixes with nothing that is here.
    async fn free_scope(&self, state: &State, name: &str, added: &[Scope]) -> TeamResult<Scope> {
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
        Err(SyncError::State { reason: "ten thousand conversations have that name" }.into())
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
        removed: Default::default(),
        is_older: false,
    }
}

/// A name on one line, not too long.
fn tidy(name: &str) -> String {
    let name: String = name.chars().filter(|c| !c.is_control()).take(LONGEST_NAME).collect();
    name.trim().to_owned()
}
