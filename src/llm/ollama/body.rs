//! Bodies of requests that no prompt renderer writes.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Value, json};

use crate::render::ModelOptions;

/// Loads a model. What decides how it is loaded is as in the requests that follow.
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

/// Sets or removes fields of a request without touching, or copying more than once, what its messages say.
pub(super) struct Edit<'a>(BTreeMap<&'a str, Field<'a>>);

#[derive(Serialize)]
#[serde(untagged)]
enum Field<'a> {
    Given(&'a RawValue),
    Set(Box<RawValue>),
}

impl<'a> Edit<'a> {
    /// `None` for what is no JSON object.
    pub(super) fn of(body: &'a str) -> Option<Self> {
        let fields: BTreeMap<&str, &RawValue> = serde_json::from_str(body).ok()?;
        Some(Self(fields.into_iter().map(|(name, value)| (name, Field::Given(value))).collect()))
    }

    pub(super) fn has(&self, name: &str) -> bool {
        self.0.contains_key(name)
    }

    pub(super) fn set(&mut self, name: &'a str, value: &impl Serialize) {
        if let Ok(value) = to_raw_value(value) {
            self.0.insert(name, Field::Set(value));
        }
    }

    pub(super) fn set_option(&mut self, name: &str, value: Value) {
        let mut options: BTreeMap<String, Value> = match self.0.get("options") {
            Some(Field::Given(options)) => serde_json::from_str(options.get()).unwrap_or_default(),
            _ => BTreeMap::new(),
        };
        options.insert(name.to_owned(), value);
        self.set("options", &options);
    }

    pub(super) fn remove(&mut self, name: &str) {
        self.0.remove(name);
    }

    pub(super) fn written(&self) -> Option<String> {
        serde_json::to_string(&self.0).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_edited_request_keeps_every_byte_of_its_messages() {
        let body = r#"{"model":"m","messages":[{"b":1,"a":"\u00e9 1.0e2","n":1.0e2}],"options":{"num_ctx":9}}"#;
        let mut edit = Edit::of(body).unwrap();
        edit.set("think", &false);
        edit.set_option("num_predict", json!(1));
        let edited = edit.written().unwrap();
        assert!(
            edited.contains(r#""messages":[{"b":1,"a":"\u00e9 1.0e2","n":1.0e2}]"#),
            "{edited}"
        );
        assert!(edited.contains(r#""options":{"num_ctx":9,"num_predict":1}"#), "{edited}");
        assert!(edited.contains(r#""think":false"#), "{edited}");
    }

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
