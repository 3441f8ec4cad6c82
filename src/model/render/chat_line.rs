//! What chat renderers share: the text of each message, the same in every prompt that it appears in.

use std::borrow::Cow;

use serde::Serialize;

use super::time::{self, Log};
use crate::context::{ContextMessage, Placement};
use crate::message::{ChatMessage, ChatRole, TOOL, ToolCall};
use crate::prompt::Prompt;

/// What stands above what was looked up, where its provider does not say.
const RELEVANT: &str = "Possibly relevant";

/// A message of a chat request; providers differ in how they write a tool call.
#[derive(Serialize)]
pub(super) struct ChatLine<'a, Call> {
    role: &'static str,
    content: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tool_calls: Vec<Call>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_call_id: Option<&'a str>,
    /// Ollama's own field.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) tool_name: Option<&'a str>,
}

/// The whole chat: the system message if there is one, what is remembered, the utterance.
pub(super) fn lines<'a, Call>(
    prompt: &'a Prompt,
    call: impl Fn(&'a ToolCall) -> Call,
) -> Vec<ChatLine<'a, Call>> {
    let remembered =
        prompt.placed(Placement::Stable).filter(|message| message.role != ChatRole::System);
    let line = |message: &'a ChatMessage, content| ChatLine {
        role: role(message).as_str(),
        content,
        tool_calls: message.tool_calls.iter().map(&call).collect(),
        tool_call_id: message.tool_call_id.as_deref(),
        tool_name: message.metadata.get(TOOL).map(String::as_str),
    };
    let system = Some(system(prompt)).filter(|text| !text.is_empty());
    let mut lines: Vec<_> = system
        .into_iter()
        .map(|content| ChatLine {
            role: ChatRole::System.as_str(),
            content,
            tool_calls: Vec::new(),
            tool_call_id: None,
            tool_name: None,
        })
        .collect();
    let mut log = Log::default();
    for message in remembered.chain(prompt.placed(Placement::History)) {
        lines.push(line(message, content(message, &mut log)));
    }
    let newest = stamped(&prompt.user_input, &log.moment(&time::of_turn(prompt)));
    let newest = found(prompt) + &newest;
    lines.push(line(&prompt.user_input, newest));
    for message in prompt.since.iter().map(ContextMessage::message) {
        lines.push(line(message, content(message, &mut log)));
    }
    lines
}

/// The system prompt and whatever of stable memory is the host's.
fn system(prompt: &Prompt) -> String {
    let notes = prompt
        .placed(Placement::Stable)
        .filter(|message| message.role == ChatRole::System)
        .map(|message| message.content.as_str());
    let mut paragraphs: Vec<&str> = Some(prompt.system.as_str()).into_iter().chain(notes).collect();
    paragraphs.retain(|paragraph| !paragraph.is_empty());
    paragraphs.join("\n\n")
}

/// In the middle of a conversation, templates would hoist a system message to the head and so change it.
fn role(message: &ChatMessage) -> ChatRole {
    match message.role {
        ChatRole::System => ChatRole::User,
        role => role,
    }
}

fn content(message: &ChatMessage, log: &mut Log) -> String {
    match message.role {
        ChatRole::User | ChatRole::System => {
            stamped(message, &log.moment(&time::of_message(message)))
        }
        ChatRole::Assistant | ChatRole::Tool => message.content.clone(),
    }
}

/// A message with its time and who it is from. The bracket that opens the first line is ours; no later line can open
/// with one.
fn stamped(message: &ChatMessage, said: &str) -> String {
    let words = indented(&message.content);
    let from = match message.role {
        ChatRole::User => speaker(message),
        ChatRole::System => Some("note".to_owned()),
        ChatRole::Assistant | ChatRole::Tool => Some(message.role.as_str().to_owned()),
    };
    match from {
        Some(from) => format!("[{said}, {from}] {words}"),
        None => format!("[{said}] {words}"),
    }
}

/// What was looked up for the newest turn, each part under its heading: snippets as they are, messages with their time and
/// who they are from. Empty if there is nothing.
pub(super) fn found(prompt: &Prompt) -> String {
    let newest = prompt.context.iter().filter(|(at, _)| *at == Placement::NewestTurn);
    let newest: Vec<&ContextMessage> = newest.map(|(_, message)| message).collect();
    let parts = newest.chunk_by(|one, next| one.heading() == next.heading());
    parts
        .map(|part| {
            let heading = part.first().and_then(|message| heading(message)).unwrap_or_default();
            let items: String = part.iter().map(|message| item(message.message())).collect();
            format!("{}:\n{items}\n", if heading.is_empty() { RELEVANT } else { &heading })
        })
        .collect()
}

fn item(message: &ChatMessage) -> String {
    match message.role {
        ChatRole::System => format!("- {}\n", indented(&message.content)),
        _ => format!("- {}\n", stamped(message, &time::in_full(&time::of_message(message)))),
    }
}

/// The heading that a provider gives, on one line and without the bracket that opens our stamps.
fn heading(message: &ContextMessage) -> Option<String> {
    let plain = |c: char| if c.is_control() || "[]".contains(c) { ' ' } else { c };
    let heading: String = message.heading()?.chars().map(plain).collect();
    let words = heading.split_whitespace().collect::<Vec<_>>().join(" ");
    Some(words.trim_end_matches(':').to_owned())
}

/// The speaker's name on one line, without brackets, if the host knows it. It depends on the message alone, so that it
/// stays the same in every prompt.
pub(super) fn speaker(message: &ChatMessage) -> Option<String> {
    let plain = |c: char| if c.is_control() || "[](),:".contains(c) { ' ' } else { c };
    let name: String = message.speaker()?.chars().map(plain).collect();
    let name = name.split_whitespace().collect::<Vec<_>>().join(" ");
    Some(name).filter(|name| !name.is_empty() && message.role == ChatRole::User)
}

/// The text with every line but the first set in, so that none of them can pass for a line of its own.
pub(super) fn indented(text: &str) -> Cow<'_, str> {
    const BREAKS: [char; 7] = ['\n', '\r', '\u{b}', '\u{c}', '\u{85}', '\u{2028}', '\u{2029}'];
    if !text.contains(BREAKS) {
        return Cow::Borrowed(text);
    }
    let lines = text.replace("\r\n", "\n");
    Cow::Owned(lines.split(BREAKS).collect::<Vec<_>>().join("\n  "))
}
