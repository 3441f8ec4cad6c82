//! Tool calls, in the formats in which models write them.

use serde_json::Value;
use sottovoce::import::RefusalReason::{self, Corrupt};
use sottovoce::{ChatRole, ToolCall};

/// Reads a list of calls, or a single one: `{"id","name","arguments"}`. Also accepts `input` for the arguments, and
/// name and arguments inside `function`, with the arguments as JSON in a text. Only an assistant may call tools.
pub(crate) fn read(value: Value, role: ChatRole) -> Result<Vec<ToolCall>, RefusalReason> {
    let calls = match value {
        Value::Null => Some(Vec::new()),
        Value::Array(calls) => calls.into_iter().map(call).collect(),
        single => call(single).map(|call| vec![call]),
    };
    let calls: Vec<ToolCall> = calls.ok_or(Corrupt("its tool_calls are not tool calls"))?;
    if role != ChatRole::Assistant && !calls.is_empty() {
        return Err(Corrupt("it calls tools, but is not the assistant's"));
    }
    Ok(calls)
}

fn call(mut value: Value) -> Option<ToolCall> {
    let text = |value: Option<Value>| match value {
        None | Some(Value::Null) => Some(String::new()),
        Some(Value::String(text)) => Some(text),
        Some(_) => None,
    };
    let id = text(value.get_mut("id").map(Value::take))?;
    let mut inner = value.get_mut("function").map_or(Value::Null, Value::take);
    let mut function = if inner.is_object() { inner.take() } else { value };
    let name = text(function.get_mut("name").map(Value::take))?;
    let arguments = ["arguments", "input"]
        .into_iter()
        .find_map(|key| function.get_mut(key).map(Value::take))
        .unwrap_or_else(|| Value::Object(serde_json::Map::new()));
    let arguments = match arguments {
        Value::String(text) => serde_json::from_str(&text).unwrap_or(Value::String(text)),
        other => other,
    };
    (!name.is_empty()).then_some(ToolCall { id, name, arguments })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn calls_are_read_in_every_form_that_models_give_them() {
        let plain = ToolCall { id: "c".into(), name: "f".into(), arguments: json!({"a": 1}) };
        for value in [
            json!([{"id": "c", "name": "f", "arguments": {"a": 1}}]),
            json!({"id": "c", "name": "f", "arguments": {"a": 1}}),
            json!([{"type": "tool_use", "id": "c", "name": "f", "input": {"a": 1}}]),
            json!([{"id": "c", "type": "function", "function": {"name": "f", "arguments": "{\"a\": 1}"}}]),
        ] {
            assert_eq!(read(value, ChatRole::Assistant).unwrap(), std::slice::from_ref(&plain));
        }
        assert_eq!(read(Value::Null, ChatRole::User).unwrap(), []);
        let bare = &read(json!([{"name": "f"}]), ChatRole::Assistant).unwrap()[0];
        assert_eq!((bare.id.as_str(), &bare.arguments), ("", &json!({})));
        for wrong in
            [json!("x"), json!(1), json!([1]), json!([{}]), json!([{"name": 1}]), json!([[]])]
        {
            assert!(read(wrong.clone(), ChatRole::Assistant).is_err(), "{wrong}");
        }
    }
}
