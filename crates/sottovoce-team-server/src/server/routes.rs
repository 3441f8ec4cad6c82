//! The routes: one table, by which requests are served and with which the description of the interface is compared

use std::sync::LazyLock;

use http::Method;

use crate::api::Id;
use crate::error::{Error, Result};

/// What a route does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Operation {
    Health,
    Metrics,
    Description,
    CreateOrganisation,
    Accept,
    Organisation,
    Members,
    ChangeMember,
    RemoveMember,
    Invite,
    Invitations,
    Withdraw,
    IssueToken,
    Tokens,
    RevokeToken,
    Audit,
    Export,
    CreateConversation,
    Conversations,
    Read,
    DeleteConversation,
    Append,
    Changes,
    Grants,
    Grant,
    RevokeGrant,
    Artifacts,
    PutArtifact,
    Artifact,
    DeleteArtifact,
}

/// What the paths of an organisation, and of a conversation, begin with.
const ORG: &str = "/api/v1/orgs/{org}";
const CONVERSATION: &str = "/api/v1/orgs/{org}/context/conversations/{conversation}";

const TABLE: [(&str, &str, &str, Operation); 30] = [
    ("GET", "", "/health", Operation::Health),
    ("GET", "", "/metrics", Operation::Metrics),
    ("GET", "", "/openapi.json", Operation::Description),
    ("POST", "", "/api/v1/orgs", Operation::CreateOrganisation),
    ("POST", "", "/api/v1/invitations/accept", Operation::Accept),
    ("GET", ORG, "", Operation::Organisation),
    ("GET", ORG, "/members", Operation::Members),
    ("PATCH", ORG, "/members/{member}", Operation::ChangeMember),
    ("DELETE", ORG, "/members/{member}", Operation::RemoveMember),
    ("POST", ORG, "/invitations", Operation::Invite),
    ("GET", ORG, "/invitations", Operation::Invitations),
    ("DELETE", ORG, "/invitations/{invitation}", Operation::Withdraw),
    ("POST", ORG, "/tokens", Operation::IssueToken),
    ("GET", ORG, "/tokens", Operation::Tokens),
    ("DELETE", ORG, "/tokens/{token}", Operation::RevokeToken),
    ("GET", ORG, "/audit", Operation::Audit),
    ("GET", ORG, "/export", Operation::Export),
    ("POST", ORG, "/context/conversations", Operation::CreateConversation),
    ("GET", ORG, "/context/conversations", Operation::Conversations),
    ("GET", CONVERSATION, "", Operation::Read),
    ("DELETE", CONVERSATION, "", Operation::DeleteConversation),
    ("POST", CONVERSATION, "/messages", Operation::Append),
    ("GET", CONVERSATION, "/changes", Operation::Changes),
    ("GET", CONVERSATION, "/grants", Operation::Grants),
    ("PUT", CONVERSATION, "/grants/{member}", Operation::Grant),
    ("DELETE", CONVERSATION, "/grants/{member}", Operation::RevokeGrant),
    ("GET", CONVERSATION, "/artifacts", Operation::Artifacts),
    ("PUT", CONVERSATION, "/artifacts/{artifact}", Operation::PutArtifact),
    ("GET", CONVERSATION, "/artifacts/{artifact}", Operation::Artifact),
    ("DELETE", CONVERSATION, "/artifacts/{artifact}", Operation::DeleteArtifact),
];

/// The table with whole paths.
static ROUTES: LazyLock<Vec<(&str, String, Operation)>> = LazyLock::new(|| {
    TABLE.map(|(method, base, rest, does)| (method, format!("{base}{rest}"), does)).into()
});

/// The method and the path of every route, in the form of OpenAPI.
pub fn routes() -> impl Iterator<Item = (&'static str, &'static str)> {
    ROUTES.iter().map(|(method, path, _)| (*method, path.as_str()))
}

/// What a request asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Found {
    Route(Operation, Ids),
    /// The path has other methods.
    Methods(String),
    Nothing,
}

/// The identifiers in a path.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Ids {
    pub(super) org: Option<Id>,
    pub(super) conversation: Option<Id>,
    /// The last part of a longer path: a member, a token, an invitation or an artifact.
    pub(super) other: Option<Id>,
}

impl Ids {
    pub(super) fn other(&self, what: &'static str) -> Result<Id> {
        self.other.ok_or(Error::NotFound { what })
    }
}

/// Finds the route of a request. What should be an identifier and is none has a route, and names nothing.
pub(super) fn find(method: &Method, path: &str) -> Found {
    let fitting = ROUTES.iter().filter_map(|(allowed, pattern, operation)| {
        Some((*allowed, *operation, ids(pattern, path)?))
    });
    let fitting: Vec<_> = fitting.collect();
    match fitting.iter().find(|(allowed, ..)| method.as_str() == *allowed) {
        Some((_, operation, ids)) => Found::Route(*operation, *ids),
        None if fitting.is_empty() => Found::Nothing,
        None => {
            let methods: Vec<&str> = fitting.iter().map(|(allowed, ..)| *allowed).collect();
            Found::Methods(methods.join(", "))
        }
    }
}

/// The identifiers of a path, if it fits the pattern.
fn ids(pattern: &str, path: &str) -> Option<Ids> {
    let (mut ids, mut parts) = (Ids::default(), path.split('/'));
    for name in pattern.split('/') {
        let part = parts.next()?;
        match name {
            "{org}" => ids.org = part.parse().ok(),
            "{conversation}" => ids.conversation = part.parse().ok(),
            _ if name.starts_with('{') => ids.other = part.parse().ok(),
            _ if name != part => return None,
            _ => {}
        }
    }
    parts.next().is_none().then_some(ids)
}
