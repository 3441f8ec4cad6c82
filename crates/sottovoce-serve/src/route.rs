//! Routes: the conversation and the endpoint that a path names.

use http::Method;
use percent_encoding::percent_decode_str;
use sottovoce::Scope;

use crate::request::Form;

/// Where a request goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Endpoint {
    /// A request for an answer.
    Converse(Form),
    /// The model server's own business: models, versions, embeddings.
    PassThrough,
    /// The account of what memory added: the newest, or the one with this id.
    Receipt(Option<u64>),
    /// Known, but not with this method.
    WrongMethod,
    Unknown,
}

/// The scope that a path begins with, if any, and the rest of the path.
///
/// # Errors
/// Fails if the path names no valid scope.
pub(crate) fn split(path: &str) -> Result<(Option<Scope>, String), sottovoce::Error> {
    let (kind, rest) = match (path.strip_prefix("/s/"), path.strip_prefix("/u/")) {
        (Some(rest), _) => ('s', rest),
        (_, Some(rest)) => ('u', rest),
        _ => return Ok((None, path.to_owned())),
    };
    let (name, rest) = rest.split_once('/').unwrap_or((rest, ""));
    let wrong = || sottovoce::Error::InvalidScope { reason: "the path names no scope" };
    let id = percent_decode_str(name).decode_utf8().map_err(|_| wrong())?.into_owned();
    let scope = if kind == 's' { Scope::Named { id } } else { Scope::Dm { user: id } };
    scope.folder()?;
    Ok((Some(scope), format!("/{rest}")))
}

/// The endpoint of a path without its scope.
pub(crate) fn endpoint(method: &Method, path: &str) -> Endpoint {
    let (read, post) = (matches!(*method, Method::GET | Method::HEAD), *method == Method::POST);
    let (allowed, endpoint) = match path {
        "/api/chat" => (post, Endpoint::Converse(Form::OllamaChat)),
        "/api/generate" => (post, Endpoint::Converse(Form::OllamaGenerate)),
        "/v1/chat/completions" => (post, Endpoint::Converse(Form::OpenAiChat)),
        "/v1/responses" => (post, Endpoint::Converse(Form::OpenAiResponses)),
        "/" | "/api/tags" | "/api/ps" | "/api/version" | "/v1/models" => {
            (read, Endpoint::PassThrough)
        }
        "/api/show" | "/api/embed" | "/api/embeddings" | "/v1/embeddings" => {
            (post, Endpoint::PassThrough)
        }
        "/receipt" => (read, Endpoint::Receipt(None)),
        _ if path.starts_with("/v1/models/") => (read, Endpoint::PassThrough),
        _ => match path.strip_prefix("/receipt/").and_then(|id| id.parse().ok()) {
            Some(id) => (read, Endpoint::Receipt(Some(id))),
            None => return Endpoint::Unknown,
        },
    };
    if allowed { endpoint } else { Endpoint::WrongMethod }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_names_its_scope_and_nothing_else_does() {
        let of = |path: &str| split(path).unwrap();
        assert_eq!(of("/api/chat"), (None, "/api/chat".into()));
        let kitchen = Some(Scope::Named { id: "kitchen".into() });
        assert_eq!(of("/s/kitchen/api/chat"), (kitchen.clone(), "/api/chat".into()));
        assert_eq!(of("/s/kitchen"), (kitchen, "/".into()));
        let ann = Scope::Dm { user: "ann b/c".into() };
        assert_eq!(of("/u/ann%20b%2fc/v1/models"), (Some(ann), "/v1/models".into()));
        for wrong in ["/s//api/chat", "/u/%00/api/chat", "/s/%ff/api/chat"] {
            assert!(split(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn the_model_server_cannot_be_changed_through_this_one() {
        for path in ["/api/delete", "/api/create", "/api/pull", "/api/chat/x", "/v1/files", "//"] {
            for method in [Method::GET, Method::POST, Method::DELETE] {
                assert_eq!(endpoint(&method, path), Endpoint::Unknown, "{path}");
            }
        }
        assert_eq!(endpoint(&Method::GET, "/api/chat"), Endpoint::WrongMethod);
        assert_eq!(endpoint(&Method::HEAD, "/"), Endpoint::PassThrough);
        assert_eq!(endpoint(&Method::GET, "/receipt/7"), Endpoint::Receipt(Some(7)));
    }
}
