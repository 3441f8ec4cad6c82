//! A message in JSON: one shape for every command.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::Serialize;
use sottovoce::{ChatMessage, StoredMessage, ToolCall};

/// The record's fields and its number. `append` accepts such lines.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct MessageRow<'a> {
    seq: u64,
    role: &'static str,
    content: &'a str,
    timestamp_utc: Timestamp,
    metadata: Option<&'a BTreeMap<String, String>>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    tool_calls: &'a [ToolCall],
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_call_id: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    thread_id: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    offset_minutes: Option<i16>,
}

impl<'a> MessageRow<'a> {
    pub(crate) fn of(stored: &'a StoredMessage) -> Self {
        Self::new(stored.seq, &stored.message)
    }

    pub(crate) fn new(seq: u64, message: &'a ChatMessage) -> Self {
        Self {
            seq,
            role: message.role.as_str(),
            content: &message.content,
            timestamp_utc: message.timestamp,
            metadata: Some(&message.metadata).filter(|metadata| !metadata.is_empty()),
            tool_calls: &message.tool_calls,
            tool_call_id: message.tool_call_id.as_deref(),
            thread_id: message.thread_id.as_deref(),
            offset_minutes: message.offset_minutes,
        }
    }
}
