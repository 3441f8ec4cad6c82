//! Routes: the conversation and the endpoint that a path names.

use http::Method;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};
use sottovoce::Scope;

use crate::request::Form;

/// Where a request goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Endpoint {
    /// A request for an answer.
    Converse(Form),
    /// The model server's own business: lists of models, versions.
    PassThrough,
    /// A request that names a model, and why its words are not recorded, if it has any.
    Named(Option<&'static str>),
    /// The account of what memory added: the newest, or the one with this id.
    Receipt(Option<u64>),
    /// Known, but not with this method.
    WrongMethod,
    Unknown,
}

/// A path by its parts.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Route {
    /// The scope that it names, if any.
    pub(crate) scope: Option<Scope>,
    /// As it was written before the endpoint's path, such as `/s/kitchen`.
    pub(crate) prefix: String,
    /// The endpoint's path. No server finds another one in it.
    pub(crate) path: String,
}

/// What stands in a path as it is.
const PLAIN: &AsciiSet =
    &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~').remove(b':');

/// The parts of a path.
///
/// # Errors
/// Fails if the path names no valid scope, or has a segment by which a server would get at another path.
pub(crate) fn split(path: &str) -> Result<Route, sottovoce::Error> {
    let (kind, rest) = match (path.strip_prefix("/s/"), path.strip_prefix("/u/")) {
        (Some(rest), _) => ('s', rest),
        (_, Some(rest)) => ('u', rest),
        _ => {
            let path = endpoint_path(path)?;
            return Ok(Route { scope: None, prefix: String::new(), path });
        }
    };
    let (name, rest) = rest.split_once('/').unwrap_or((rest, ""));
    let wrong = || sottovoce::Error::InvalidScope { reason: "the path names no scope" };
    let id = percent_decode_str(name).decode_utf8().map_err(|_| wrong())?.into_owned();
    let scope = if kind == 's' { Scope::Named { id } } else { Scope::Dm { user: id } };
    scope.folder()?;
    let path = endpoint_path(&format!("/{rest}"))?;
    Ok(Route { scope: Some(scope), prefix: format!("/{kind}/{name}"), path })
}

/// The path with its segments encoded anew. The name of a model may hold `/`, also as `%2F`, but nothing in it may be a dot
/// segment, to any server.
fn endpoint_path(path: &str) -> Result<String, sottovoce::Error> {
    let segment = |segment: &str| {
        let segment = percent_decode_str(segment).decode_utf8().ok()?;
        let is_odd = |c: char| matches!(c, '\\' | '%') || c.is_control();
        let is_dots = segment.split('/').any(|part| matches!(part.trim(), "." | ".."));
        let is_plain = !is_dots && !segment.contains(is_odd);
        is_plain.then(|| utf8_percent_encode(&segment, PLAIN).to_string())
    };
    let segments: Option<Vec<String>> = path.split('/').map(segment).collect();
    let reason = "the path has dot segments or characters that are not served";
    segments.map(|segments| segments.join("/")).ok_or(sottovoce::Error::InvalidScope { reason })
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
        "/api/show" => (post, Endpoint::Named(None)),
        "/api/embed" | "/api/embeddings" | "/v1/embeddings" => {
            (post, Endpoint::Named(Some("embeddings are no conversation")))
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
        let of = |path: &str| {
            let Route { scope, prefix, path } = split(path).unwrap();
            (scope, prefix, path)
        };
        assert_eq!(of("/api/chat"), (None, String::new(), "/api/chat".into()));
        let kitchen = Some(Scope::Named { id: "kitchen".into() });
        let kitchen = |path: &str| (kitchen.clone(), "/s/kitchen".into(), path.into());
        assert_eq!(of("/s/kitchen/api/chat"), kitchen("/api/chat"));
        assert_eq!(of("/s/kitchen"), kitchen("/"));
        let ann = Scope::Dm { user: "ann b/c".into() };
        let prefix = "/u/ann%20b%2fc".into();
        assert_eq!(of("/u/ann%20b%2fc/v1/models"), (Some(ann), prefix, "/v1/models".into()));
        for wrong in ["/s//api/chat", "/u/%00/api/chat", "/s/%ff/api/chat"] {
            assert!(split(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn no_path_leads_out_of_the_endpoints_of_the_model_server() {
        for path in [
            "/v1/models/../../slots",
            "/v1/models/%2e%2e/%2E%2E/slots",
            "/v1/models/.%2e/slots",
            "/v1/models/..%2f..%2fslots",
            "/v1/models/..\\..\\slots",
            "/v1/models/..%5c..%5cslots",
            "/v1/models/%252e%252e/slots",
            "/v1/models/./x",
            "/v1/models/x/..",
            "/v1/models/%20..%20/x",
            "/v1/models/%09../x",
            "/v1/models/%00",
            "/v1/models/%ff",
            "/api/../api/tags",
            "/receipt/../api/tags",
        ] {
            for prefix in ["", "/s/kitchen", "/u/ann"] {
                assert!(split(&format!("{prefix}{path}")).is_err(), "{path}");
            }
        }
        for (path, plain) in [
            ("/v1/models/org/model:7b", "/v1/models/org/model:7b"),
            ("/v1/models/org%2Fmodel-2.5_x", "/v1/models/org%2Fmodel-2.5_x"),
            ("/v1/models/a%3Fb%23c", "/v1/models/a%3Fb%23c"),
            ("/v1/models/...", "/v1/models/..."),
        ] {
            let path = split(path).unwrap().path;
            assert_eq!(path, plain);
            assert_eq!(endpoint(&Method::GET, &path), Endpoint::PassThrough);
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
