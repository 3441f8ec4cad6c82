//! Keeps function calls and their results together, where messages of another device came between them.

use std::collections::VecDeque;

use crate::message::{ChatMessage, ChatRole};

/// Moves each result behind its call, and leaves everything else in its order. A result without an id belongs to the first
/// call without one that has no result yet. Those for which `message` returns `None` are none of the history.
pub(super) fn join<T>(offers: &mut Vec<T>, message: impl Fn(&T) -> Option<&ChatMessage>) {
    let mut open: VecDeque<(usize, String)> = VecDeque::new();
    let mut belongs = Vec::with_capacity(offers.len());
    for (at, offer) in offers.iter().enumerate() {
        let Some(message) = message(offer) else {
            belongs.push(at);
            continue;
        };
        open.extend(message.tool_calls.iter().map(|call| (at, call.id.clone())));
        let id = message.tool_call_id.as_deref().unwrap_or_default();
        let call = match message.role {
            ChatRole::Tool => open.iter().position(|(_, call)| call == id),
            _ => None,
        };
        let call = call.and_then(|call| open.remove(call));
        belongs.push(call.map_or(at, |(at, _)| at));
    }
    if belongs.is_sorted() {
        return;
    }
    let mut numbered: Vec<(usize, T)> = belongs.into_iter().zip(offers.drain(..)).collect();
    numbered.sort_by_key(|(at, _)| *at);
    offers.extend(numbered.into_iter().map(|(_, offer)| offer));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::ToolCall;
    use jiff::Timestamp;

    fn said(role: ChatRole, text: &str) -> ChatMessage {
        ChatMessage::at(role, text, Timestamp::UNIX_EPOCH)
    }

    fn call(ids: &[&str]) -> ChatMessage {
        let mut message = said(ChatRole::Assistant, "call");
        message.tool_calls = ids
            .iter()
            .map(|id| ToolCall {
                id: (*id).to_owned(),
                name: "light".to_owned(),
                arguments: serde_json::Value::Null,
            })
            .collect();
        message
    }

    fn result(id: &str, text: &str) -> ChatMessage {
        let mut message = said(ChatRole::Tool, text);
        message.tool_call_id = Some(id.to_owned()).filter(|id| !id.is_empty());
        message
    }

    fn joined(mut messages: Vec<ChatMessage>) -> Vec<String> {
        join(&mut messages, |message| Some(message));
        messages.iter().map(|message| message.content.clone()).collect()
    }

    #[test]
    fn a_result_stands_behind_its_call_whatever_was_said_elsewhere_in_between() {
        let user = |text| said(ChatRole::User, text);
        let order = joined(vec![
            user("a"),
            call(&["1", "2"]),
            user("b"),
            result("1", "r1"),
            user("c"),
            result("2", "r2"),
        ]);
        assert_eq!(order, ["a", "call", "r1", "r2", "b", "c"]);
        let order = joined(vec![call(&[""]), call(&[""]), result("", "r1"), result("", "r2")]);
        assert_eq!(order, ["call", "r1", "call", "r2"]);
    }

    #[test]
    fn what_needs_no_joining_stays_as_it_is() {
        let user = |text| said(ChatRole::User, text);
        let order = joined(vec![
            result("9", "orphan"),
            call(&["1"]),
            result("1", "r1"),
            user("a"),
            result("1", "again"),
        ]);
        assert_eq!(order, ["orphan", "call", "r1", "a", "again"]);
    }
}
