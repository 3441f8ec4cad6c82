//! Request bodies that no prompt renderer writes.

use serde_json::{Value, json};

use crate::model::render::ModelOptions;

/// The request that loads a model. Its options equal those of later requests, because they decide how the model is
/// loaded.
pub(super) fn load(options: &ModelOptions) -> String {
    let mut body = json!({ "model": options.model, "messages": [], "stream": false });
    let mut set = |name: &str, value: Value| {
        if let Some(fields) = body.as_object_mut() {
            fields.insert(name.to_owned(), value);
        }
    };
    if let Some(keep_alive) = &options.keep_alive {
        set("keep_alive", json!(keep_alive));
    }
    if options.strict {
        set("truncate", json!(false));
        set("shift", json!(false));
    }
    if let Some(num_ctx) = options.num_ctx {
        set("options", json!({ "num_ctx": num_ctx }));
    }
    body.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_model_is_loaded_as_the_requests_will_want_it() {
        let mut options = ModelOptions::new("m");
        assert_eq!(load(&options), r#"{"messages":[],"model":"m","stream":false}"#);
        options.num_ctx = Some(4096);
        options.strict = true;
        options.keep_alive = Some("-1".into());
        let body: Value = serde_json::from_str(&load(&options)).unwrap();
        let whole = json!({
            "model": "m", "messages": [], "stream": false, "keep_alive": -1,
            "truncate": false, "shift": false, "options": { "num_ctx": 4096 },
        });
        assert_eq!(body, whole);
    }
}
