//! The tools that the suite calls.

use std::sync::Arc;
use std::time::Duration;

use rmcp::ErrorData;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ClientCapabilities, ContentBlock,
    LoggingLevel, LoggingMessageNotificationParam, ProgressNotificationParam, ResourceContents,
    Tool,
};
use serde_json::{Value, json};

use super::rounds::{self, Asked, Brought, ask, capabilities, is_modern};
use super::{Change, Context, Shared, forms};

/// A picture of one pixel.
pub(super) const PICTURE: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8/5+hHgAHggJ/PchI7wAAAABJRU5ErkJggg==";
/// A sound of no length.
const SOUND: &str = "UklGRiQAAABXQVZFZm10IBAAAAABAAEARKwAAIhYAQACABAAZGF0YQAAAAA=";
/// The pause between two steps of a slow tool.
const PAUSE: Duration = Duration::from_millis(50);
/// Tools that take several rounds.
const ROUNDS: &str = "test_input_required_result_";

/// The tools without arguments, with what each does.
const PLAIN: [(&str, &str); 24] = [
    // The suite calls the first one with no arguments.
    ("test_simple_text", "Answers a text"),
    ("test_image_content", "Answers a picture"),
    ("test_audio_content", "Answers a sound"),
    ("test_embedded_resource", "Answers a resource"),
    ("test_multiple_content_types", "Answers a text, a picture and a resource"),
    ("test_tool_with_logging", "Writes to the client's log"),
    ("test_logging_tool", "Writes to the client's log where the client wants that"),
    ("test_error_handling", "Fails"),
    ("test_tool_with_progress", "Tells how far it is"),
    ("test_reconnection", "Answers a text after a while"),
    ("test_elicitation_sep1034_defaults", "Asks the user with a form that is filled in"),
    ("test_elicitation_sep1330_enums", "Asks the user to choose"),
    ("test_missing_capability", "Needs a client with a model"),
    ("test_streaming_elicitation", "Asks the user in a round"),
    ("test_trigger_tool_change", "Tells of a change of tools"),
    ("test_trigger_prompt_change", "Tells of a change of prompts"),
    ("test_input_required_result_elicitation", "Asks the user's name"),
    ("test_input_required_result_sampling", "Asks the model"),
    ("test_input_required_result_list_roots", "Asks for the client's folders"),
    ("test_input_required_result_request_state", "Remembers something between rounds"),
    ("test_input_required_result_tampered_state", "Notices when that was changed"),
    ("test_input_required_result_multiple_inputs", "Asks three things in a round"),
    ("test_input_required_result_multi_round", "Asks in two rounds"),
    ("test_input_required_result_capabilities", "Asks what the client can be asked"),
];

pub(super) fn list() -> Vec<Tool> {
    let of = |name: &'static str, about: &'static str, schema: Value| {
        let Value::Object(schema) = schema else { return Tool::default() };
        Tool::new(name, about, Arc::new(schema))
    };
    let nothing = || json!({ "type": "object", "properties": {} });
    let mut tools: Vec<_> = PLAIN.iter().map(|(name, about)| of(name, about, nothing())).collect();
    let region = json!({ "region": { "type": "string", "x-mcp-header": "Region" } });
    let region = json!({ "type": "object", "properties": region, "required": ["region"] });
    tools.extend([
        of("test_sampling", "Asks the client's model", forms::words(&["prompt"])),
        of("test_elicitation", "Asks the user", forms::words(&["message"])),
        of("json_schema_2020_12_tool", "Takes much of what schemas can say", schema_2020_12()),
        of("test_x_mcp_header", "Has an argument that a header repeats", region),
    ]);
    tools
}

fn schema_2020_12() -> Value {
    let text = json!({ "type": "string" });
    let address = json!({
        "$anchor": "addressDef",
        "type": "object",
        "properties": { "street": text, "city": text },
    });
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "$defs": { "address": address },
        "properties": {
            "name": text,
            "address": { "$ref": "#/$defs/address" },
            "contactMethod": { "type": "string", "enum": ["phone", "email"] },
            "phone": text,
            "email": text,
        },
        "allOf": [{ "anyOf": [{ "required": ["phone"] }, { "required": ["email"] }] }],
        "if": {
            "properties": { "contactMethod": { "const": "phone" } },
            "required": ["contactMethod"],
        },
        "then": { "required": ["phone"] },
        "else": { "required": ["email"] },
        "additionalProperties": false,
    })
}

fn said(text: impl Into<String>) -> CallToolResult {
    CallToolResult::success(vec![ContentBlock::text(text)])
}

pub(super) async fn call(
    shared: &Shared,
    request: CallToolRequestParams,
    context: &Context,
) -> Result<CallToolResponse, ErrorData> {
    let given = |name: &str| {
        let value = request.arguments.as_ref().and_then(|given| given.get(name));
        value.and_then(Value::as_str).unwrap_or_default()
    };
    let responses = request.input_responses.as_ref();
    let (key, wanted) = match request.name.as_ref() {
        "test_sampling" => ("answer", forms::question(given("prompt"), 100)),
        "test_input_required_result_sampling" => {
            ("capital_question", forms::question("What is the capital of France?", 100))
        }
        "test_input_required_result_list_roots" => ("client_roots", forms::folders()),
        "test_elicitation" => {
            ("form", forms::wanted(given("message"), forms::words(&["username", "email"])))
        }
        "test_elicitation_sep1034_defaults" => {
            ("form", forms::wanted("Is all of this right?", forms::filled_in()))
        }
        "test_elicitation_sep1330_enums" => {
            ("form", forms::wanted("What do you choose?", forms::choices()))
        }
        "test_input_required_result_elicitation" => {
            ("user_name", forms::wanted("What is your name?", forms::words(&["name"])))
        }
        "test_streaming_elicitation" => {
            ("form", forms::wanted("What is your name?", forms::words(&["name"])))
        }
        name => {
            return match name.strip_prefix(ROUNDS) {
                Some(name) => {
                    let brought = Brought { responses, state: request.request_state.as_deref() };
                    rounds::call(shared, name, &brought, context)
                }
                None => plain(shared, name, context).await.map(Into::into),
            };
        }
    };
    Ok(match ask(context, responses, key, wanted).await? {
        Asked::Round(round) => round.into(),
        Asked::Answered(answer) => said(in_words(&request.name, &answer)).into(),
    })
}

/// The result of asking the client.
fn in_words(tool: &str, answer: &Value) -> String {
    let text = answer["content"]["text"].as_str();
    match tool {
        "test_sampling" => format!("LLM response: {}", text.unwrap_or_default()),
        "test_input_required_result_sampling" => text.unwrap_or_default().to_owned(),
        "test_input_required_result_list_roots" => format!("Folders: {}", answer["roots"]),
        "test_input_required_result_elicitation" => {
            format!("Hello, {}!", answer["content"]["name"].as_str().unwrap_or_default())
        }
        _ => {
            let action = answer["action"].as_str().unwrap_or_default();
            format!("Elicitation completed: action={action}, content={}", answer["content"])
        }
    }
}

async fn plain(
    shared: &Shared,
    name: &str,
    context: &Context,
) -> Result<CallToolResult, ErrorData> {
    let picture = || ContentBlock::image(PICTURE, "image/png");
    Ok(match name {
        "test_simple_text" => said("This is a simple text response for testing."),
        "test_image_content" => CallToolResult::success(vec![picture()]),
        "test_audio_content" => {
            CallToolResult::success(vec![ContentBlock::audio(SOUND, "audio/wav")])
        }
        "test_embedded_resource" => {
            let words = "This is an embedded resource content.";
            let resource = ContentBlock::embedded_text("test://embedded-resource", words);
            CallToolResult::success(vec![resource])
        }
        "test_multiple_content_types" => {
            let data = json!({ "test": "data", "value": 123 }).to_string();
            let data = ResourceContents::text(data, "test://mixed-content-resource")
                .with_mime_type("application/json");
            let text = ContentBlock::text("Multiple content types test:");
            CallToolResult::success(vec![text, picture(), ContentBlock::resource(data)])
        }
        "test_tool_with_logging" | "test_logging_tool" => {
            log(context).await;
            said("It is in the log.")
        }
        "test_error_handling" => {
            let reason = "This tool intentionally returns an error for testing";
            CallToolResult::error(vec![ContentBlock::text(reason)])
        }
        "test_tool_with_progress" => {
            progress(context).await;
            said("It is done.")
        }
        "test_reconnection" => {
            tokio::time::sleep(2 * PAUSE).await;
            said("It took a while.")
        }
        "test_missing_capability" if capabilities(context).sampling.is_none() => {
            let needed = ClientCapabilities::builder().enable_sampling().build();
            return Err(ErrorData::missing_required_client_capability(needed));
        }
        "test_missing_capability" => said("The client has a model."),
        "test_trigger_tool_change" => told(shared, Change::Tools),
        "test_trigger_prompt_change" => told(shared, Change::Prompts),
        "json_schema_2020_12_tool" | "test_x_mcp_header" => said("These arguments will do."),
        _ => return Err(ErrorData::invalid_params("there is no such tool", None)),
    })
}

fn told(shared: &Shared, change: Change) -> CallToolResult {
    // Nobody may be subscribed.
    drop(shared.changes.send(change));
    said("Those who listen were told.")
}

/// Clients of the newest revision say with each request whether they want log messages.
async fn log(context: &Context) {
    if is_modern(context) && context.meta.log_level().is_none() {
        return;
    }
    for step in ["Tool execution started", "Tool processing data", "Tool execution completed"] {
        let line = LoggingMessageNotificationParam::new(LoggingLevel::Info, json!(step));
        drop(context.peer.notify_logging_message(line).await);
        tokio::time::sleep(PAUSE).await;
    }
}

async fn progress(context: &Context) {
    let Some(token) = context.meta.get_progress_token() else { return };
    for done in [0.0, 50.0, 100.0] {
        let step = ProgressNotificationParam::new(token.clone(), done).with_total(100.0);
        drop(context.peer.notify_progress(step).await);
        tokio::time::sleep(PAUSE).await;
    }
}
