//! Answers of this server's own

use http::header::{CONTENT_TYPE, HeaderValue};
use http::{Response, StatusCode};
use sottovoce_net::Body;

/// An answer as JSON.
pub(crate) fn json(status: StatusCode, value: &impl serde::Serialize) -> Response<Body> {
    let text = serde_json::to_string(value).unwrap_or_default();
    let mut response = Response::new(Body::from(text));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

/// An error of this server's own, in the form that clients of either protocol expect. It holds no words.
pub(crate) fn error(is_openai: bool, status: StatusCode, reason: &str) -> Response<Body> {
    let error = match is_openai {
        true => serde_json::json!({ "error": {
            "message": reason, "type": "sottovoce", "param": null, "code": status.as_u16(),
        } }),
        false => serde_json::json!({ "error": reason }),
    };
    json(status, &error)
}
