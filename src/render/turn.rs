//! What chat renderers share: the text of each message, the same in every prompt that it appears in.

use std::collections::HashSet;

use serde::Serialize;

use super::time;
use crate::context::Placement;
use crate::message::{ChatMessage, ChatRole, ToolCall};
use crate::prompt::Prompt;

/// A message of a chat request; providers differ in how they write a tool call.
#[derive(Serialize)]
pub(super) struct Line<'a, Call> {
    role: &'static str,
    content: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tool_calls: Vec<Call>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_call_id: Option<&'a str>,
}

/// The whole chat: the system message if there is one, what is remembered, the utterance.
pub(super) fn lines<'a, Call>(
    prompt: &'a Prompt,
    call: impl Fn(&'a ToolCall) -> Call,
) -> Vec<Line<'a, Call>> {
    let remembered =
        prompt.placed(Placement::Stable).filter(|message| message.role != ChatRole::System);
    let line = |message: &'a ChatMessage, content| Line {
        role: role(message).as_str(),
        content,
        tool_calls: message.tool_calls.iter().map(&call).collect(),
        tool_call_id: message.tool_call_id.as_deref(),
    };
    let system = Some(system(prompt)).filter(|text| !text.is_empty());
    let mut lines: Vec<_> = system
        .into_iter()
        .map(|content| Line {
            role: ChatRole::System.as_str(),
            content,
            tool_calls: Vec::new(),
            tool_call_id: None,
        })
        .collect();
    let mut speakers = Speakers::default();
    for message in remembered.chain(prompt.placed(Placement::History)) {
        lines.push(line(message, content(message, &mut speakers)));
    }
    let said = user_content(&prompt.user_input, &time::of_turn(prompt), &mut speakers);
    let found: Vec<String> = prompt
        .placed(Placement::NewestTurn)
        .map(|message| format!("- {}", indented(&message.content)))
        .collect();
    let newest = match found.is_empty() {
        true => said,
        false => format!("Possibly relevant:\n{}\n\n{said}", found.join("\n")),
    };
    lines.push(line(&prompt.user_input, newest));
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

fn content<'a>(message: &'a ChatMessage, speakers: &mut Speakers<'a>) -> String {
    match message.role {
        ChatRole::User => user_content(message, &time::of_message(message), speakers),
        ChatRole::System => {
            format!("[{}, note] {}", time::of_message(message), indented(&message.content))
        }
        ChatRole::Assistant | ChatRole::Tool => message.content.clone(),
    }
}

/// What a person said. The bracket that opens the first line is ours; no later line can open with one.
fn user_content<'a>(message: &'a ChatMessage, said: &str, speakers: &mut Speakers<'a>) -> String {
    let words = indented(&message.content);
    match speakers.label(message) {
        Some(speaker) => format!("[{said}, {speaker}] {words}"),
        None => format!("[{said}] {words}"),
    }
}

/// Who has spoken so far. A message's label depends only on what stands before it, so that it stays the same when
/// someone else speaks later.
#[derive(Default)]
pub(super) struct Speakers<'a>(HashSet<&'a str>);

impl<'a> Speakers<'a> {
    /// [`label`](Self::label) for people; an assistant has but one voice.
    pub(super) fn label_of_user(&mut self, message: &'a ChatMessage) -> Option<String> {
        (message.role == ChatRole::User).then(|| self.label(message)).flatten()
    }

    /// The speaker's name on one line, without brackets, once several have spoken.
    pub(super) fn label(&mut self, message: &'a ChatMessage) -> Option<String> {
        let speaker = message.speaker()?;
        self.0.insert(speaker);
        let plain = |c: char| if c.is_control() || "[](),:".contains(c) { ' ' } else { c };
        let name: String = speaker.chars().map(plain).collect();
        (self.0.len() > 1).then(|| name.split_whitespace().collect::<Vec<_>>().join(" "))
    }
}

/// The text with every line but the first set in, so that none of them can pass for a line of its own.
pub(super) fn indented(text: &str) -> String {
    let breaks = ['\n', '\r', '\u{b}', '\u{c}', '\u{85}', '\u{2028}', '\u{2029}'];
    text.replace("\r\n", "\n").split(breaks).collect::<Vec<_>>().join("\n  ")
}
