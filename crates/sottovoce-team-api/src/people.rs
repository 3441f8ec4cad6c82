//! Organisations, members, invitations, grants, tokens, and the audit of what they did

use jiff::Timestamp;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};

use crate::hex::Id;
use crate::sealed::Sealed;
use crate::secret::Secret;

/// What a member may do in an organisation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// Creates conversations, and uses those that were granted.
    Member,
    /// Also invites and removes members and administrators, and grants conversations.
    Admin,
    /// Also invites and removes owners.
    Owner,
}

/// What a member may do with a conversation. Each level includes those before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    /// Reads records and artifacts.
    Read,
    /// Appends records and artifacts, and forgets.
    Write,
    /// Grants the conversation to other members, and deletes it.
    Manage,
}

/// Creates an organisation, with its first owner.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CreateOrganisation {
    /// The owner's profile, sealed by the client: a name that members see and the server does not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub profile: Option<Sealed>,
}

/// An organisation as its members see it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Organisation {
    /// Its identifier.
    pub id: Id,
    /// When it was created.
    pub created: Timestamp,
    /// The caller.
    pub member: Id,
    /// The caller's role.
    pub role: Role,
    /// The device of the caller's token.
    pub device: Id,
    /// The identifier of the caller's token.
    pub token: Id,
    /// When the caller's token expires.
    pub expires: Timestamp,
    /// The bytes of the organisation's records and artifacts.
    pub bytes: u64,
    /// The most bytes that it may store.
    pub quota: u64,
}

/// A member that has joined, and its first token. Nothing shows the token again.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct NewMember {
    /// The organisation.
    pub org: Id,
    /// The member.
    pub member: Id,
    /// The member's role.
    pub role: Role,
    /// The member's token.
    pub token: NewToken,
}

/// A member.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Member {
    /// The member's identifier.
    pub id: Id,
    /// The member's role.
    pub role: Role,
    /// When the member joined.
    pub joined: Timestamp,
    /// The member's profile, sealed by the client.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub profile: Option<Sealed>,
    /// The devices of the member's tokens.
    pub devices: Vec<Id>,
}

/// The members of an organisation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemberList {
    /// The members.
    pub members: Vec<Member>,
}

/// Changes a member. What is absent stays.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ChangeMember {
    /// Another role.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub role: Option<Role>,
    /// Another profile. Members change their own alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub profile: Option<Sealed>,
}

/// Invites somebody.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CreateInvitation {
    /// The role of the new member.
    pub role: Role,
    /// The conversations that are granted to the new member.
    #[serde(default)]
    pub grants: Vec<InvitedGrant>,
    /// After how many seconds the invitation expires: a day unless given, and at most 30.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "seconds")]
    pub seconds: Option<u64>,
}

/// A conversation that an invitation grants.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct InvitedGrant {
    /// The conversation.
    pub conversation: Id,
    /// What the new member may do with it.
    pub level: Level,
}

/// An invitation, with the secret by which it is accepted once. Nothing shows the secret again.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct NewInvitation {
    /// Its identifier.
    pub id: Id,
    /// The secret.
    pub invitation: Secret,
    /// When it expires.
    pub expires: Timestamp,
}

/// An invitation that nobody has accepted yet.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Invitation {
    /// Its identifier.
    pub id: Id,
    /// The role of the new member.
    pub role: Role,
    /// Who invited.
    pub by: Id,
    /// When it expires.
    pub expires: Timestamp,
}

/// The open invitations of an organisation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct InvitationList {
    /// The invitations.
    pub invitations: Vec<Invitation>,
}

/// Accepts an invitation.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AcceptInvitation {
    /// The secret of the invitation.
    pub invitation: Secret,
    /// The new member's profile, sealed by the client.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub profile: Option<Sealed>,
}

/// Issues a token for the calling member.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CreateToken {
    /// Whether the new token is for the caller's device, instead of a new device.
    #[serde(default)]
    pub same_device: bool,
    /// After how many seconds the token expires: 90 days unless given, and at most 366.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "seconds")]
    pub seconds: Option<u64>,
}

/// A token that was issued. Nothing shows it again.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct NewToken {
    /// Its identifier, by which it can be revoked.
    pub id: Id,
    /// The token.
    pub token: Secret,
    /// The device whose records it appends.
    pub device: Id,
    /// When it expires.
    pub expires: Timestamp,
}

/// A token of the caller, without its secret.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Token {
    /// Its identifier.
    pub id: Id,
    /// The device whose records it appends.
    pub device: Id,
    /// When it was issued.
    pub issued: Timestamp,
    /// When it expires.
    pub expires: Timestamp,
}

/// The tokens of the caller.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TokenList {
    /// The tokens.
    pub tokens: Vec<Token>,
}

/// What a member may do with a conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Grant {
    /// The member.
    pub member: Id,
    /// What the member may do.
    pub level: Level,
}

/// The grants of a conversation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GrantList {
    /// The grants.
    pub grants: Vec<Grant>,
}

/// Grants a conversation to a member.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SetGrant {
    /// What the member may do.
    pub level: Level,
}

/// What somebody did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Action {
    /// The organisation was created.
    CreateOrganisation,
    /// An invitation was made.
    Invite,
    /// An invitation was accepted.
    Accept,
    /// An invitation was withdrawn.
    Withdraw,
    /// A member's role was changed.
    ChangeRole,
    /// A member was removed, or left.
    Remove,
    /// A token was issued.
    IssueToken,
    /// A token was revoked.
    RevokeToken,
    /// A conversation was created.
    CreateConversation,
    /// A conversation was deleted.
    DeleteConversation,
    /// A conversation was granted; the target is the conversation.
    Grant,
    /// A grant was taken back; the target is the conversation.
    RevokeGrant,
    /// Records were forgotten; the target is the conversation.
    Forget,
    /// A piece of an artifact was deleted; the target is the piece.
    DeleteArtifact,
    /// The caller's conversations were exported.
    Export,
}

/// One line of the audit: who did what to which identifier, and when.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AuditEntry {
    /// Its number, from 1, without holes.
    pub n: u64,
    /// When, by the server's clock.
    pub at: Timestamp,
    /// Who.
    pub member: Id,
    /// What.
    pub action: Action,
    /// To what.
    pub target: Id,
    /// The member that it was done to, if that is not the target.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subject: Option<Id>,
}

/// Entries of the audit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AuditPage {
    /// The entries, in order.
    pub entries: Vec<AuditEntry>,
}

/// For JSON, `60.0` is the same integer as `60`.
fn seconds<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u64>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Number {
        Integer(u64),
        Real(f64),
    }
    Ok(Some(match Number::deserialize(deserializer)? {
        Number::Integer(seconds) => seconds,
        Number::Real(seconds) if seconds.fract() == 0.0 && (0.0..1e15).contains(&seconds) => {
            seconds as u64
        }
        Number::Real(_) => return Err(D::Error::custom("not a number of seconds")),
    }))
}
