//! Answers of this server's own

use http::{Response, StatusCode};
use sottovoce_net::{Body, json};

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
