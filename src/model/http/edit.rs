//! Changes to a rendered request.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::Value;
use serde_json::value::{RawValue, to_raw_value};

/// Sets or removes fields of a request without touching, or copying more than once, what its messages say.
pub(crate) struct Edit<'a>(BTreeMap<&'a str, Field<'a>>);

#[derive(Serialize)]
#[serde(untagged)]
enum Field<'a> {
    Given(&'a RawValue),
    Set(Box<RawValue>),
}

impl<'a> Edit<'a> {
    /// `None` for what is no JSON object.
    pub(crate) fn of(body: &'a str) -> Option<Self> {
        let fields: BTreeMap<&str, &RawValue> = serde_json::from_str(body).ok()?;
        Some(Self(fields.into_iter().map(|(name, value)| (name, Field::Given(value))).collect()))
    }

    pub(crate) fn has(&self, name: &str) -> bool {
        self.0.contains_key(name)
    }

    pub(crate) fn set(&mut self, name: &'a str, value: &impl Serialize) {
        if let Ok(value) = to_raw_value(value) {
            self.0.insert(name, Field::Set(value));
        }
    }

    pub(crate) fn set_option(&mut self, name: &str, value: Value) {
        let mut options: BTreeMap<String, Value> = match self.0.get("options") {
            Some(Field::Given(options)) => serde_json::from_str(options.get()).unwrap_or_default(),
            _ => BTreeMap::new(),
        };
        options.insert(name.to_owned(), value);
        self.set("options", &options);
    }

    pub(crate) fn remove(&mut self, name: &str) {
        self.0.remove(name);
    }

    pub(crate) fn written(&self) -> Option<String> {
        serde_json::to_string(&self.0).ok()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

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
}
