//! The protocol's requests to users and models of clients.

use serde_json::{Map, Value, json};

/// A form for a user.
pub(super) fn wanted(message: &str, schema: Value) -> Value {
    let params = json!({ "mode": "form", "message": message, "requestedSchema": schema });
    json!({ "method": "elicitation/create", "params": params })
}

/// A question to a model.
pub(super) fn question(words: &str, most: u32) -> Value {
    let message = json!({ "role": "user", "content": { "type": "text", "text": words } });
    let params = json!({ "messages": [message], "maxTokens": most });
    json!({ "method": "sampling/createMessage", "params": params })
}

/// The folders that a client works in.
pub(super) fn folders() -> Value {
    json!({ "method": "roots/list" })
}

/// A form of required texts.
pub(super) fn words(names: &[&str]) -> Value {
    let properties: Map<_, _> =
        names.iter().map(|name| ((*name).to_owned(), json!({ "type": "string" }))).collect();
    json!({ "type": "object", "properties": properties, "required": names })
}

/// A form with one check box.
pub(super) fn tick(name: &str) -> Value {
    json!({ "type": "object", "properties": { name: { "type": "boolean" } }, "required": [name] })
}

/// A form with default values everywhere.
pub(super) fn filled_in() -> Value {
    let properties = json!({
        "name": { "type": "string", "default": "John Doe" },
        "age": { "type": "integer", "default": 30 },
        "score": { "type": "number", "default": 95.5 },
        "status": {
            "type": "string", "enum": ["active", "inactive", "pending"], "default": "active",
        },
        "verified": { "type": "boolean", "default": true },
    });
    json!({ "type": "object", "properties": properties, "required": [] })
}

/// A form with every kind of choice.
pub(super) fn choices() -> Value {
    let options = ["option1", "option2", "option3"];
    let titled = [
        json!({ "const": "value1", "title": "First Option" }),
        json!({ "const": "value2", "title": "Second Option" }),
        json!({ "const": "value3", "title": "Third Option" }),
    ];
    let properties = json!({
        "untitledSingle": { "type": "string", "enum": options },
        "titledSingle": { "type": "string", "oneOf": titled },
        "legacyEnum": {
            "type": "string",
            "enum": ["opt1", "opt2", "opt3"],
            "enumNames": ["Option One", "Option Two", "Option Three"],
        },
        "untitledMulti": { "type": "array", "items": { "type": "string", "enum": options } },
        "titledMulti": { "type": "array", "items": { "anyOf": titled } },
    });
    json!({ "type": "object", "properties": properties, "required": [] })
}
