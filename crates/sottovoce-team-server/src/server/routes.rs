//! The routes: one table, by which requests are served and with which the description of the interface is compared

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

const ROUTES: [(&str, &str, Operation); 30] = [
    ("GET", "/health", Operation::Health),
    ("GET", "/metrics", Operation::Metrics),
    ("GET", "/openapi.json", Operation::Description),
    ("POST", "/api/v1/orgs", Operation::CreateOrganisation),
    ("POST", "/api/v1/invitations/accept", Operation::Accept),
    ("GET", "/api/v1/orgs/{org}", Operation::Organisation),
    ("GET", "/api/v1/orgs/{org}/members", Operation::Members),
    ("PATCH", "/api/v1/orgs/{org}/members/{member}", Operation::ChangeMember),
    ("DELETE", "/api/v1/orgs/{org}/members/{member}", Operation::RemoveMember),
    ("POST", "/api/v1/orgs/{org}/invitations", Operation::Invite),
    ("GET", "/api/v1/orgs/{org}/invitations", Operation::Invitations),
    ("DELETE", "/api/v1/orgs/{org}/invitations/{invitation}", Operation::Withdraw),
    ("POST", "/api/v1/orgs/{org}/tokens", Operation::IssueToken),
    ("GET", "/api/v1/orgs/{org}/tokens", Operation::Tokens),
    ("DELETE", "/api/v1/orgs/{org}/tokens/{token}", Operation::RevokeToken),
    ("GET", "/api/v1/orgs/{org}/audit", Operation::Audit),
    ("GET", "/api/v1/orgs/{org}/export", Operation::Export),
    ("POST", "/api/v1/orgs/{org}/context/conversations", Operation::CreateConversation),
    ("GET", "/api/v1/orgs/{org}/context/conversations", Operation::Conversations),
    ("GET", "/api/v1/orgs/{org}/context/conversations/{conversation}", Operation::Read),
    (
        "DELETE",
        "/api/v1/orgs/{org}/context/conversations/{conversation}",
        Operation::DeleteConversation,
    ),
    ("POST", "/api/v1/orgs/{org}/context/conversations/{conversation}/messages", Operation::Append),
    ("GET", "/api/v1/orgs/{org}/context/conversations/{conversation}/changes", Operation::Changes),
    ("GET", "/api/v1/orgs/{org}/context/conversations/{conversation}/grants", Operation::Grants),
    (
        "PUT",
        "/api/v1/orgs/{org}/context/conversations/{conversation}/grants/{member}",
        Operation::Grant,
    ),
    (
        "DELETE",
        "/api/v1/orgs/{org}/context/conversations/{conversation}/grants/{member}",
        Operation::RevokeGrant,
    ),
    (
        "GET",
        "/api/v1/orgs/{org}/context/conversations/{conversation}/artifacts",
        Operation::Artifacts,
    ),
    (
        "PUT",
        "/api/v1/orgs/{org}/context/conversations/{conversation}/artifacts/{artifact}",
        Operation::PutArtifact,
    ),
    (
        "GET",
        "/api/v1/orgs/{org}/context/conversations/{conversation}/artifacts/{artifact}",
        Operation::Artifact,
    ),
    (
        "DELETE",
        "/api/v1/orgs/{org}/context/conversations/{conversation}/artifacts/{artifact}",
        Operation::DeleteArtifact,
    ),
];

/// The method and the path of every route, in the form of OpenAPI.
pub fn routes() -> impl Iterator<Item = (&'static str, &'static str)> {
    ROUTES.iter().map(|(method, path, _)| (*method, *path))
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
    let found = ROUTES
        .iter()
        .find(|(allowed, pattern, _)| method.as_str() == *allowed && fits(pattern, path));
    if let Some((_, pattern, operation)) = found {
        return Found::Route(*operation, ids(pattern, path));
    }
    let fitting = ROUTES.iter().filter(|(_, pattern, _)| fits(pattern, path));
    let methods: Vec<&str> = fitting.map(|(allowed, ..)| *allowed).collect();
    if methods.is_empty() { Found::Nothing } else { Found::Methods(methods.join(", ")) }
}

fn fits(pattern: &str, path: &str) -> bool {
    let mut parts = path.split('/');
    pattern
        .split('/')
        .all(|name| parts.next().is_some_and(|part| name.starts_with('{') || name == part))
        && parts.next().is_none()
}

fn ids(pattern: &str, path: &str) -> Ids {
    let mut ids = Ids::default();
    for (name, part) in pattern.split('/').zip(path.split('/')) {
        match name {
            "{org}" => ids.org = part.parse().ok(),
            "{conversation}" => ids.conversation = part.parse().ok(),
            _ if name.starts_with('{') => ids.other = part.parse().ok(),
            _ => {}
        }
    }
    ids
}
