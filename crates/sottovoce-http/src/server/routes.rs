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
    let mut methods = Vec::new();
    for (allowed, pattern, operation) in &ROUTES {
        let Some(ids) = fit(pattern, path) else { continue };
        if method.as_str() == *allowed {
            return Found::Route(*operation, ids);
        }
        methods.push(*allowed);
    }
    if methods.is_empty() { Found::Nothing } else { Found::Methods(methods.join(", ")) }
}

fn fit(pattern: &str, path: &str) -> Option<Ids> {
    let mut ids = Ids::default();
    let (mut patterns, mut parts) = (pattern.split('/'), path.split('/'));
    loop {
        match (patterns.next(), parts.next()) {
            (None, None) => return Some(ids),
            (Some(pattern), Some(part)) if pattern.starts_with('{') => {
                let id = part.parse().ok();
                match pattern {
                    "{org}" => ids.org = id,
                    "{conversation}" => ids.conversation = id,
                    _ => ids.other = id,
                }
            }
            (Some(pattern), Some(part)) if pattern == part => {}
            _ => return None,
        }
    }
}
