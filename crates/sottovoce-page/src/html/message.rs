//! A message in its place.

use jiff::tz::TimeZone;
use maud::{Markup, html};
use sottovoce::context::recall::Passage;
use sottovoce::store::Profile;
use sottovoce::{ChatRole, Scope, StoredMessage};

use crate::english as en;
use crate::html::format::{clock_time, counted, one_line, size};
use crate::html::words::{beginning, brief, marked};
use crate::link;

/// The most bytes of one message in a list. Its own page has all of it.
const SHOWN: usize = 1000;
/// The most tool calls of a message in a list, and the most bytes of one.
const CALLS: usize = 3;
const CALL: usize = 160;

/// What is told of a message besides its words.
#[derive(Default)]
pub(crate) struct Marks<'a> {
    pub(crate) profile: Option<&'a Profile>,
    /// Whether it can be selected.
    pub(crate) selectable: bool,
    /// Whether it stands out, as the one that was asked for.
    pub(crate) is_target: bool,
    /// What a search shows of it instead of its beginning.
    pub(crate) passage: Option<&'a Passage>,
}

pub(crate) fn who(stored: &StoredMessage) -> String {
    match (stored.message.speaker().map(one_line), stored.message.role) {
        (Some(speaker), _) if !speaker.is_empty() => speaker,
        (_, ChatRole::Tool) => {
            let tool = stored.message.metadata.get("tool").map(|tool| one_line(tool));
            tool.unwrap_or_else(|| en::role(ChatRole::Tool).to_owned())
        }
        (_, role) => en::role(role).to_owned(),
    }
}

/// A message with its speaker, its time, and what happened to it.
pub(crate) fn article(stored: &StoredMessage, zone: &TimeZone, marks: &Marks<'_>) -> Markup {
    let (scope, seq, message) = (&*stored.scope, stored.seq, &stored.message);
    let class =
        format!("said {}{}", message.role.as_str(), if marks.is_target { " target" } else { "" });
    html! {
        article class=(class) id={ "m" (seq) } data-seq=(seq) {
            @if marks.selectable {
                label.select {
                    input.pick type="checkbox" name="seq" value=(seq) form="pick" aria-label=(en::select(seq));
                    (en::SELECT)
                }
            }
            p.who { bdi { (who(stored)) } }
            a.when href=(link::with("message", scope, &[("n", &seq.to_string())])) data-panel="" {
                (clock_time(message.said_at(), zone))
                span.hidden { ", " (en::MESSAGE) " " (seq) }
            }
            (said(scope, stored, marks.passage))
            @if let Some(reason) = message.cut_off() { p.mark.warn { (en::cut_off(reason)) } }
            @for mark in marks_of(stored, marks.profile) { p.mark { (mark) } }
        }
    }
}

fn said(scope: &Scope, stored: &StoredMessage, passage: Option<&Passage>) -> Markup {
    let message = &stored.message;
    let whole = link::with("message", scope, &[("n", &stored.seq.to_string())]);
    let text = beginning(scope, &message.content, SHOWN, Some(&whole));
    html! {
        @if let Some(passage) = passage {
            div.words dir="auto" { (marked(&passage.text, &passage.marks)) }
            @let left = message.content.len().saturating_sub(passage.text.len());
            @if left > 0 { p.more { a href=(whole) { (en::ALL_OF_IT) " (" (en::more(&size(left as u64))) ")" } } }
        } @else if message.role == ChatRole::Tool {
            details.calls { summary { (en::TOOL_RESULT) } (text) }
        } @else if !message.content.is_empty() {
            (text)
        }
        @if !message.tool_calls.is_empty() {
            details.calls {
                summary { (counted(message.tool_calls.len() as u64, en::TOOL_CALLS)) }
                @for call in message.tool_calls.iter().take(CALLS) {
                    pre tabindex="0" dir="ltr" { (one_line(&call.name)) " " (brief(&call.arguments.to_string(), CALL)) }
                }
                p.more { a href=(whole) { (en::ALL_OF_IT) } }
            }
        }
        @if let Some(id) = message.moved_to() {
            p.more { a href=(link::with("artifact", scope, &[("id", id)])) { (en::MOVED_TO_ARTIFACT) } }
        }
    }
}

fn marks_of(stored: &StoredMessage, profile: Option<&Profile>) -> Vec<&'static str> {
    let message = &stored.message;
    let is_pruned = profile.is_some_and(|profile| profile.is_pruned(stored.seq));
    [
        message.restored_from().is_some().then_some(en::RESTORED),
        message.metadata.contains_key("importedFrom").then_some(en::IMPORTED),
        is_pruned.then_some(en::PRUNED),
        message.aside().and(Some(en::ASIDE)),
    ]
    .into_iter()
    .flatten()
    .collect()
}
