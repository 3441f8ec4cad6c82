//! The tools, in alphabetical order.

mod artifact_read;
pub(crate) mod context_chat;
mod context_manage;
mod context_remember;
mod context_search;
mod conversation_manage;
mod forget;
mod personality_preset_manage;
mod recall;
mod remember;

use std::sync::LazyLock;

use rmcp::ErrorData;
use rmcp::model::{CallToolResult, ContentBlock, JsonObject, Tool, ToolAnnotations};
use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::fault::Fault;
use crate::hub::Hub;
use crate::schema;

/// All tools.
pub(crate) static ALL: LazyLock<Vec<Tool>> = LazyLock::new(|| {
    vec![
        artifact_read::tool(),
        context_chat::tool(),
        context_manage::tool(),
        context_remember::tool(),
        context_search::tool(),
        conversation_manage::tool(),
        forget::tool(),
        personality_preset_manage::tool(),
        recall::tool(),
        remember::tool(),
    ]
});

/// What a call does.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Effect {
    Reads,
    /// It stores something; a second call stores it once more.
    Adds,
    /// As `Adds`, and a model is asked.
    Asks,
    /// It may replace or delete something, and a second call may do more.
    Changes,
    /// It deletes something, and a second call finds it gone.
    Deletes,
}

/// Defines a tool with the schemas of its input and output.
pub(crate) fn define<I: JsonSchema, O: JsonSchema>(
    name: &'static str,
    title: &'static str,
    description: &'static str,
    effect: Effect,
) -> Tool {
    let annotations = ToolAnnotations::new()
        .read_only(effect == Effect::Reads)
        .destructive(matches!(effect, Effect::Changes | Effect::Deletes))
        .idempotent(matches!(effect, Effect::Reads | Effect::Deletes))
        .open_world(effect == Effect::Asks);
    Tool::new(name, description, schema::input::<I>())
        .with_title(title)
        .with_raw_output_schema(schema::output::<O>())
        .with_annotations(annotations)
}

/// Runs any tool except `context-chat`.
pub(crate) async fn run(
    hub: &Hub,
    name: &str,
    arguments: Option<JsonObject>,
) -> Result<CallToolResult, ErrorData> {
    let outcome = match name {
        artifact_read::NAME => artifact_read::run(hub, arguments).await,
        context_manage::NAME => context_manage::run(hub, arguments).await,
        context_remember::NAME => context_remember::run(hub, arguments).await,
        context_search::NAME => context_search::run(hub, arguments).await,
        conversation_manage::NAME => conversation_manage::run(hub, arguments).await,
        forget::NAME => forget::run(hub, arguments).await,
        personality_preset_manage::NAME => personality_preset_manage::run(hub, arguments).await,
        recall::NAME => recall::run(hub, arguments).await,
        remember::NAME => remember::run(hub, arguments).await,
        _ => {
            let known: Vec<_> = ALL.iter().map(|tool| tool.name.as_ref()).collect();
            let reason = format!("there is no such tool; there are {}", known.join(", "));
            return Err(ErrorData::invalid_params(reason, None));
        }
    };
    Ok(outcome.map_or_else(CallToolResult::from, |output| answer(&output)))
}

/// Parses a tool's arguments. Errors go back to the model, so that it can correct the call.
pub(crate) fn arguments<T: DeserializeOwned + JsonSchema>(
    arguments: Option<JsonObject>,
) -> Result<T, Fault> {
    let mut given = Value::Object(arguments.unwrap_or_default());
    T::deserialize(&given)
        .or_else(|error| {
            fit(&mut given, &Value::Object((*schema::input::<T>()).clone()));
            serde_json::from_value(given).map_err(|_| error)
        })
        .map_err(|error| Fault::new(format!("the arguments do not fit the tool: {error}")))
}

/// Replaces numbers such as `10.0` by `10`, which JSON Schema counts as an integer too, and a text by the number or the
/// truth value that it says, where the schema has one. Some clients write so.
fn fit(value: &mut Value, schema: &Value) {
    let of = |name: &str| schema.get(name).unwrap_or(&Value::Null);
    match value {
        Value::Object(fields) => {
            let known = of("properties");
            for (name, field) in fields {
                fit(field, known.get(name).unwrap_or(&Value::Null));
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| fit(item, of("items"))),
        Value::String(said) => {
            let is_plain = ["integer", "number", "boolean"].iter().any(|kind| of("type") == kind);
            if is_plain && let Ok(meant @ (Value::Number(_) | Value::Bool(_))) = said.trim().parse()
            {
                *value = meant;
                fit(value, schema);
            }
        }
        Value::Number(number) => {
            let whole = number.as_f64().filter(|number| number.fract() == 0.0);
            // A larger number is out of range for every tool.
            if let Some(whole) = whole.and_then(|whole| format!("{whole}").parse::<u32>().ok()) {
                *number = whole.into();
            }
        }
        _ => {}
    }
}

/// Builds a tool's answer: structured content, and the same as text for clients that do not read structured content.
pub(crate) fn answer(output: &Value) -> CallToolResult {
    let text = format!("{output:#}");
    let mut result = CallToolResult::structured(output.clone());
    result.content = vec![ContentBlock::text(text)];
    result
}

/// The JSON of an answer, without the fields that have no value.
pub(crate) fn json(output: &impl Serialize) -> Result<Value, Fault> {
    // Structs of texts, numbers and lists always have a JSON form.
    let mut answer = serde_json::to_value(output)
        .map_err(|_| Fault::new("the answer cannot be written as JSON"))?;
    if let Value::Object(fields) = &mut answer {
        fields.retain(|_, value| !value.is_null());
    }
    Ok(answer)
}

/// Requires an argument for an action.
pub(crate) fn needed<T>(argument: Option<T>, name: &str, action: &str) -> Result<T, Fault> {
    argument.ok_or_else(|| Fault::new(format!("{name} is required for {action} action")))
}

#[cfg(test)]
mod tests {
    use std::fmt::Write;

    use super::*;
    use crate::{prompts, server};

    #[test]
    fn every_text_for_a_model_is_as_a_person_has_read_it() {
        let mut all = String::from(
            "Every text that the MCP server gives to a model. Read what has changed aloud before you accept it:\n\
             SOTTOVOCE_BLESS=1 cargo test -p sottovoce-mcp --lib every_text\n",
        );
        let _ = write!(all, "\n== instructions\n{}\n", server::INSTRUCTIONS);
        for tool in ALL.iter() {
            let (title, about) = (tool.title.as_deref(), tool.description.as_deref());
            let hints = tool.annotations.as_ref().unwrap();
            let reads = if hints.read_only_hint.unwrap() { ", only reads" } else { "" };
            let _ = write!(
                all,
                "\n== tool {}: {}{reads}\n{}\n",
                tool.name,
                title.unwrap_or_default(),
                about.unwrap_or_default()
            );
            for (name, schema) in
                [("input", Some(&tool.input_schema)), ("output", tool.output_schema.as_ref())]
            {
                let Some(schema) = schema else { continue };
                descriptions(&mut all, name, &Value::Object((**schema).clone()));
            }
        }
        for prompt in prompts::list() {
            let _ = write!(all, "\n== prompt {}\n", prompt.name);
            let given = prompt.arguments.unwrap_or_default();
            let given: JsonObject = given
                .into_iter()
                .map(|argument| (argument.name.clone(), format!("[{}]", argument.name).into()))
                .collect();
            let result = prompts::get(&prompt.name, Some(&given)).unwrap();
            for message in result.messages {
                let text = serde_json::to_value(&message.content).unwrap();
                let _ = writeln!(all, "{}", text["text"].as_str().unwrap());
            }
        }
        let file = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/texts-for-models.txt");
        if std::env::var_os("SOTTOVOCE_BLESS").is_some() {
            std::fs::write(file, &all).unwrap();
        }
        assert_eq!(all, std::fs::read_to_string(file).unwrap());
    }

    #[test]
    fn numbers_as_texts_count_where_the_tool_wants_numbers() {
        #[derive(serde::Deserialize, JsonSchema, Debug, PartialEq)]
        struct Given {
            text: String,
            limit: Option<u32>,
            only: Option<bool>,
            seqs: Vec<u64>,
        }
        let given = serde_json::json!({ "text": "5", "limit": " 5.0 ", "only": "true", "seqs": ["7", 8.0] });
        let Value::Object(fields) = given else { panic!() };
        let expected =
            Given { text: "5".into(), limit: Some(5), only: Some(true), seqs: vec![7, 8] };
        assert_eq!(arguments::<Given>(Some(fields)).unwrap(), expected);
        let Value::Object(fields) = serde_json::json!({ "text": "", "seqs": ["x"] }) else {
            panic!()
        };
        assert!(arguments::<Given>(Some(fields)).is_err());
    }

    #[test]
    fn the_page_about_mcp_has_each_tool() {
        let page = include_str!("../../../docs/mcp.md");
        for tool in ALL.iter() {
            assert!(page.contains(&format!("| `{}` |", tool.name)), "it lacks {}", tool.name);
        }
    }

    /// The descriptions in a schema, each behind its path.
    fn descriptions(all: &mut String, path: &str, schema: &Value) {
        match schema {
            Value::Object(fields) => {
                if let Some(Value::String(about)) = fields.get("description") {
                    let _ = writeln!(all, "{path}: {about}");
                }
                for (name, field) in fields {
                    let skipped = ["properties", "items", "$defs", "anyOf", "oneOf"];
                    let path = match skipped.contains(&name.as_str()) {
                        true => path.to_owned(),
                        false => format!("{path}.{name}"),
                    };
                    descriptions(all, &path, field);
                }
            }
            Value::Array(parts) => parts.iter().for_each(|part| descriptions(all, path, part)),
            _ => {}
        }
    }
}
