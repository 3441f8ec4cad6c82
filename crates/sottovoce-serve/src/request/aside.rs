//! Requests that are no part of a conversation: tasks that programs set a model, and probes of programs that try a server.

use super::json::Object;
use super::line::{ChatRequest, Speaker};

/// An answer of so few tokens says nothing to anybody.
const PROBE_TOKENS: f64 = 3.0;
/// What programs ask to see whether a model answers.
const PROBE: &str = "What is the capital of France?";
const PROBE_TOOL: &str = "test_function";
/// How Open WebUI begins its requests for titles, tags and follow-up questions.
const TASK: &str = "### Task:";
/// Why a probe is not recorded.
const A_PROBE: &str = "it only tries the server";

/// Why the request belongs to no conversation by its limits: it asks for an answer in a given form, as tasks do, or for
/// hardly any answer.
pub(super) fn bounded(fields: &Object<'_>) -> Option<&'static str> {
    let of_text = fields.object("text").and_then(|text| text.object("format"));
    let limits = ["max_tokens", "max_completion_tokens", "max_output_tokens"];
    let limits = limits.into_iter().filter_map(|name| fields.number(name));
    let options = fields.object("options").and_then(|options| options.number("num_predict"));
    let is_short = |limit: f64| limit > 0.0 && limit <= PROBE_TOKENS;
    // Some servers take the fields of both protocols.
    let is_formatted = fields.raw("format").is_some_and(|format| format != "\"\"")
        || of_text.is_some_and(is_given)
        || fields.object("response_format").is_some_and(is_given);
    let is_probe = limits.chain(options).any(is_short)
        || fields.array("tools").unwrap_or_default().iter().any(|tool| is_probe(tool.get()));
    let probe = is_probe.then_some(A_PROBE);
    is_formatted.then_some("it asks for an answer in a given form").or(probe)
}

fn is_given(format: Object<'_>) -> bool {
    format.text("type").is_none_or(|kind| kind != "text")
}

fn is_probe(tool: &str) -> bool {
    let Some(tool) = Object::parse(tool) else { return false };
    let named = tool.object("function").and_then(|function| function.text("name"));
    named.or_else(|| tool.text("name")).as_deref() == Some(PROBE_TOOL)
}

/// Why the request belongs to no conversation by its words.
pub(super) fn unsaid(request: &ChatRequest) -> Option<&'static str> {
    let words = request.utterance().trim();
    let is_alone = request.system.is_none() && request.lines.len() == 1;
    match request.lines.last() {
        _ if words.is_empty() => Some("it has no words of a user"),
        Some(last) if last.speaker == Speaker::Assistant => {
            Some("its last message is the assistant's")
        }
        _ if words.starts_with(TASK) => Some("it is a task of Open WebUI"),
        _ => (is_alone && words == PROBE).then_some(A_PROBE),
    }
}
