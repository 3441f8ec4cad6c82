//! Text shared by the chat renderers: each message reads the same in every prompt.

use std::borrow::Cow;

use serde::Serialize;

use super::time::{self, Log};
use crate::context::{ContextMessage, Placement};
use crate::message::hidden::is_hidden;
use crate::message::quote::{harmless, indented, quoted};
use crate::message::texts::{self, RELEVANT};
use crate::message::{ChatMessage, ChatRole, Source, TOOL, ToolCall};
use crate::prompt::Prompt;

/// A message of a chat request. Providers write tool calls differently.
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

/// The whole chat: the system message if there is one, the context, the utterance.
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
    let said = &prompt.user_input;
    let newest = stamped(said, &log.moment(&time::of_turn(prompt)), &words(said));
    let newest = found(prompt) + &newest;
    lines.push(line(&prompt.user_input, newest));
    for message in prompt.since.iter().map(ContextMessage::message) {
        lines.push(line(message, content(message, &mut log)));
    }
    lines
}

/// The system prompt, and the host's part of stable memory.
fn system(prompt: &Prompt) -> String {
    let notes = prompt
        .placed(Placement::Stable)
        .filter(|message| message.role == ChatRole::System)
        .map(|message| message.content.as_str());
    let mut paragraphs: Vec<&str> = Some(prompt.system.as_str()).into_iter().chain(notes).collect();
    paragraphs.retain(|paragraph| !paragraph.is_empty());
    paragraphs.join("\n\n")
}

/// Templates would move a system message from the middle of a conversation to the head and so change the head.
fn role(message: &ChatMessage) -> ChatRole {
    match message.role {
        ChatRole::System => ChatRole::User,
        role => role,
    }
}

fn content(message: &ChatMessage, log: &mut Log) -> String {
    match message.role {
        ChatRole::User | ChatRole::System => {
            stamped(message, &log.moment(&time::of_message(message)), &words(message))
        }
        ChatRole::Assistant | ChatRole::Tool => message.content.clone(),
    }
}

/// The words of a message on lines of their own. Notes hold names and texts of artifacts, which may be anybody's.
pub(super) fn words(message: &ChatMessage) -> Cow<'_, str> {
    match message.role {
        ChatRole::System => Cow::Owned(indented(&harmless(&message.content)).into_owned()),
        _ => indented(&message.content),
    }
}

/// Words of a message with its time and speaker. Their first line starts with a bracket; no later line can.
pub(super) fn stamped(message: &ChatMessage, said: &str, words: &str) -> String {
    let from = match message.role {
        ChatRole::User => speaker(message),
        ChatRole::System => Some(texts::NOTE.to_owned()),
        ChatRole::Assistant | ChatRole::Tool => Some(message.role.as_str().to_owned()),
    };
    match from {
        Some(from) => format!("[{said}, {from}] {words}"),
        None => format!("[{said}] {words}"),
    }
}

/// The messages retrieved for the newest turn, each part under its heading: snippets with their lines, stored messages on
/// one line with their time and speaker. Empty if there are none.
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
        ChatRole::System => format!("- {}\n", words(message)),
        _ => quotation(message, &time::in_full(&time::of_message(message))),
    }
}

/// A line that quotes a message.
pub(super) fn quotation(message: &ChatMessage, said: &str) -> String {
    format!("- {}\n", stamped(message, said, &quoted(&message.content)))
}

/// A provider's heading on one line, without the bracket that starts a stamp.
fn heading(message: &ContextMessage) -> Option<String> {
    Some(name(message.heading()?, &[]).trim_end_matches(':').to_owned())
}

/// What stands between the parts of a stamp.
const APART: [char; 4] = ['(', ')', ',', ':'];

/// The speaker's name on one line without brackets, if the host set it, or the document from which the words come. It
/// depends on the message alone, so that it is the same in every prompt.
pub(super) fn speaker(message: &ChatMessage) -> Option<String> {
    let name = match message.source() {
        (Source::Document, document) => name(&format!("from the document {document}"), &APART),
        _ => name(message.speaker()?, &APART),
    };
    Some(name).filter(|name| !name.is_empty() && message.role == ChatRole::User)
}

/// Words on one line, without brackets and these characters.
fn name(text: &str, without: &[char]) -> String {
    let plain = |c: char| is_hidden(c) || "[]<>".contains(c) || without.contains(&c);
    text.replace(plain, " ").split_whitespace().collect::<Vec<_>>().join(" ")
}
