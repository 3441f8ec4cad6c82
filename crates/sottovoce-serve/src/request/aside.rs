//! Requests that are no part of a conversation: tasks that programs set a model, and probes of programs that try a server.

use sottovoce::ChatRole;

use super::json::Object;
use super::line::ChatRequest;

/// An answer of so few tokens says nothing to anybody.
const PROBE_TOKENS: f64 = 3.0;
/// What programs ask to see whether a model answers.
const PROBE: &str = "What is the capital of France?";
const PROBE_TOOL: &str = "test_function";
/// How programs begin what they ask a model for themselves, in a user's message or in the system prompt.
const TASKS: [&str; 8] = [
    // Open WebUI: backend/open_webui/config.py
    "Your task is to reflect the speaker's likely facial expression",
    "You have been provided with a set of responses from various models",
    // Open WebUI's titles of old, and Page Assist's: src/services/title.ts
    "Here is the query:\n",
    // LibreChat: src/utils/title.ts of its agents, and title.js of its assistants
    "Provide a concise, 5-word-or-less title for the conversation",
    "Please generate a concise, 5-word-or-less title for the conversation",
    "Please generate a concise title (max 40 characters) for a conversation",
    "Analyze this conversation and provide:\n1. The detected language",
    // LobeChat: packages/prompts/src/chains/summaryTitle.ts
    "You are a professional conversation summarizer. Generate a concise title",
];
/// How Open WebUI begins its requests for titles, tags, follow-up questions and the like, and what stands in them all, but
/// in no sentence of a person.
const TASK: &str = "### Task:";
const TASK_PARTS: [&str; 3] = ["### Output:", "<chat_history>", "### Guidelines:"];
/// Home Assistant's system prompt for an AI task: homeassistant/components/ai_task/const.py. With `structure` the request asks
/// for a form too.
const AI_TASK: &str = "You are a Home Assistant expert and help users with their tasks.";
/// What stands in a sentence that asks for an answer, for one in JSON alone, and for the title of a conversation.
const ASKS: [&str; 8] =
    ["answer", "create", "generate", "give", "output", "reply", "respond", "return"];
/// What programs want made, of which a person would not say so.
const MAKES: [&str; 5] = ["create", "generate", "give", "output", "return"];
/// In these, JSON is not what is asked for.
const OTHER: [&str; 11] = [
    "avoid",
    "don",
    "following",
    "from",
    "never",
    "no",
    "not",
    "plain",
    "these",
    "this",
    "without",
];
const ALONE: [&str; 5] = ["just", "nothing", "only", "solely", "strictly"];
const TALKS: [&str; 4] = ["chat", "conversation", "dialogue", "discussion"];
/// Why a task is not recorded.
const A_TASK: &str = "it is a program's own task";
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
    let system = request.system.as_ref().map_or("", |system| &system.text);
    let is_alone = request.system.is_none() && request.lines.len() == 1;
    match request.lines.last() {
        _ if words.is_empty() => Some("it has no words of a user"),
        Some(last) if last.speaker == ChatRole::Assistant => {
            Some("its last message is the assistant's")
        }
        _ if is_task(system, words) => Some(A_TASK),
        _ => (is_alone && words == PROBE).then_some(A_PROBE),
    }
}

/// Why the request may be a program's own task, though a person may have asked so: nothing was said before it, and its system
/// prompt, or its only message, asks for something that programs read.
pub(super) fn doubt(request: &ChatRequest, fields: &Object<'_>) -> Option<&'static str> {
    let [line] = request.lines.as_slice() else { return None };
    let asking = request.system.as_ref().map_or(&*line.text, |system| &system.text);
    let is_first = request.previous.is_none() && !request.has_tokens && fields.count("tools") == 0;
    let is_task = asking.trim_start().starts_with(AI_TASK) || is_first && asks_for_form(asking);
    is_task.then_some("it may be a program's own task")
}

fn asks_for_form(text: &str) -> bool {
    text.to_lowercase().split(['.', ',', ';', ':', '!', '?', '\n']).any(|sentence| {
        let has = |any: &[&str]| {
            let mut words = sentence.split(|c: char| !c.is_alphanumeric());
            words.any(|word| any.contains(&word))
        };
        let is_form = has(&["json"]) && has(&ALONE) && has(&ASKS) && !has(&OTHER);
        is_form || has(&["title"]) && has(&TALKS) && has(&MAKES)
    })
}

/// Whether a program sets such a task, by its system prompt or by the user's message. Documents may stand in a system prompt,
/// too, and Open WebUI's selection of tools is told by what the user's message looks like then.
fn is_task(system: &str, words: &str) -> bool {
    let begins = |text: &str| TASKS.iter().any(|begin| text.trim_start().starts_with(begin));
    let selects = ["Query:", "History:"].iter().any(|begin| words.starts_with(begin));
    let is_template = words.starts_with(TASK) && TASK_PARTS.iter().any(|part| words.contains(part));
    let is_selection = system.starts_with("Available Tools:") && selects;
    is_selection || is_template || begins(system) || begins(words)
}

/// The person's words in a message that Open WebUI has put into its template for documents, web searches and knowledge: what
/// stands before or after it, or between the tags that earlier versions have for them.
pub(super) fn words_beside_documents(text: &str) -> Option<String> {
    let mut parts = text.match_indices(TASK).filter_map(|(at, _)| text.split_at_checked(at));
    let (before, template) =
        parts.find(|(before, _)| before.is_empty() || before.ends_with('\n'))?;
    if !TASK_PARTS.iter().any(|part| template.contains(part)) {
        return None;
    }
    let (_, after) = template.split_once("\n<context>\n")?.1.rsplit_once("\n</context>")?;
    let asked =
        after.split_once("<user_query>").and_then(|(_, rest)| rest.split_once("</user_query>"));
    let (quoted, after) = asked.map_or(("", after), |(quoted, rest)| (quoted.trim(), rest));
    let beside = format!("{} {}", before.trim(), after.trim());
    let words = if beside.trim().is_empty() { quoted } else { beside.trim() };
    (!words.is_empty()).then(|| words.to_owned())
}
