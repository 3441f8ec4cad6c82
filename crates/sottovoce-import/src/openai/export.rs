//! A conversation of ChatGPT's data export: a tree of messages. Only the branch that ChatGPT shows is read.

use std::collections::{HashMap, HashSet};

use jiff::Timestamp;
use serde::Deserialize;
use serde_json::value::RawValue;
use sottovoce::import::RefusalReason::{self, Corrupt};
use sottovoce::import::metadata::TOOL;
use sottovoce::import::{ImportedConversation, ImportedMessage, ImportedMessages};
use sottovoce::{ChatMessage, ChatRole};

use super::item::Item;
use super::words;
use crate::fields::{json, time};
use crate::source::named;
use crate::system::OPENAI;

/// The name of this format in reports.
const FORM: &str = "export";
/// The recipient of messages for people.
const ALL: &str = "all";

#[derive(Deserialize)]
struct Conversation<'a> {
    id: Option<String>,
    conversation_id: Option<String>,
    title: Option<String>,
    create_time: Option<f64>,
    current_node: Option<String>,
    #[serde(borrow)]
    mapping: HashMap<String, Node<'a>>,
}

#[derive(Deserialize)]
struct Node<'a> {
    parent: Option<String>,
    #[serde(borrow)]
    message: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Message<'a> {
    id: Option<String>,
    author: Author,
    create_time: Option<f64>,
    #[serde(borrow)]
    content: Content<'a>,
    metadata: Option<Metadata>,
    recipient: Option<String>,
}

#[derive(Deserialize)]
struct Author {
    role: String,
    name: Option<String>,
}

#[derive(Deserialize)]
struct Content<'a> {
    #[serde(borrow)]
    parts: Option<Vec<&'a RawValue>>,
    text: Option<String>,
}

#[derive(Deserialize)]
struct Metadata {
    #[serde(rename = "is_visually_hidden_from_conversation")]
    is_hidden: Option<bool>,
    model_slug: Option<String>,
}

/// The parts of a message that can be imported.
struct Read {
    /// `None` if it has no text or is hidden.
    message: Option<ImportedMessage>,
    /// The number of its parts that are not text.
    others: usize,
}

/// Reads the conversation. Skips other branches and parts that are not text.
pub(super) fn read(item: &Item<'_>) -> Result<ImportedConversation, RefusalReason> {
    let fields: Conversation<'_> =
        json::object(item.json, "its fields are not those of a conversation")?;
    let id = fields.conversation_id.as_ref().or(fields.id.as_ref());
    let id = id.ok_or(Corrupt("it has no id"))?;
    let scope = named(id)?;
    let created_at = fields.create_time.and_then(time::seconds);
    let path = path(&fields)?;
    let mut conversation = ImportedConversation::new(scope, OPENAI);
    let messages = &mut conversation.messages;
    messages.is_ordered = true;
    let all = fields.mapping.values().filter(|node| node.message.is_some()).count();
    messages.passed_over.add("messages of other branches", all.saturating_sub(path.len()));
    let mut before = created_at;
    for (node, json) in path {
        take(id, node, json, &format!("{}/{node}", item.place), &mut before, messages);
    }
    // A conversation without messages is not stored.
    if !messages.messages.is_empty() {
        let facts = &mut conversation.facts;
        facts.title = fields.title.filter(|title| !title.is_empty());
        facts.created_at = created_at;
        facts.file.clone_from(&item.place);
    }
    Ok(conversation)
}

/// The messages of the shown branch, from first to last.
fn path<'a>(fields: &'a Conversation<'_>) -> Result<Vec<(&'a str, &'a str)>, RefusalReason> {
    if fields.mapping.is_empty() {
        return Ok(Vec::new());
    }
    let last = fields.current_node.as_ref().filter(|node| fields.mapping.contains_key(*node));
    let mut next = Some(last.ok_or(Corrupt("its current_node is not one of its messages"))?);
    let (mut path, mut seen) = (Vec::new(), HashSet::new());
    while let Some((id, node)) = next.and_then(|id| fields.mapping.get_key_value(id)) {
        if !seen.insert(id) {
            return Err(Corrupt("its messages form a circle"));
        }
        if let Some(message) = node.message {
            path.push((id.as_str(), message.get()));
        }
        next = node.parent.as_ref();
    }
    path.reverse();
    Ok(path)
}

/// Reads a message. If it has no time, it gets that of the message `before` it.
fn take(
    conversation: &str,
    node: &str,
    json: &str,
    place: &str,
    before: &mut Option<Timestamp>,
    messages: &mut ImportedMessages,
) {
    match message(conversation, node, json, before) {
        Ok(Read { message: Some(message), others }) => {
            messages.passed_over.add("parts that are no text", others);
            messages.push(place, Ok(message));
        }
        Ok(Read { message: None, .. }) => messages.passed_over.add("messages without words", 1),
        Err(reason) => messages.push(place, Err(reason)),
    }
}

/// Reads a message. Its id, role and text identify it; the next export may change the rest.
fn message(
    conversation: &str,
    node: &str,
    json: &str,
    before: &mut Option<Timestamp>,
) -> Result<Read, RefusalReason> {
    let fields: Message<'_> = json::object(json, "its fields are not those of a message")?;
    let (words, others) = match fields.content {
        Content { parts: Some(parts), .. } => words::joined(&parts),
        Content { text, .. } => (text.unwrap_or_default(), 0),
    };
    let metadata = fields.metadata.as_ref();
    let is_hidden = metadata.is_some_and(|metadata| metadata.is_hidden == Some(true));
    let at = fields.create_time.and_then(time::seconds).or(*before);
    *before = at;
    if words.is_empty() || is_hidden {
        return Ok(Read { message: None, others });
    }
    let role: ChatRole = fields
        .author
        .role
        .parse()
        .map_err(|_| Corrupt("its role is not user, assistant, system or tool"))?;
    let at = at.ok_or(Corrupt("neither it nor a message before it has a create_time"))?;
    let name = format!("{conversation}/{}", fields.id.as_deref().unwrap_or(node));
    let message = ChatMessage::at(role, words, Timestamp::UNIX_EPOCH);
    let mut message = ImportedMessage::new(OPENAI, &name, FORM, message)?;
    message.message.timestamp = at;
    let name_of = if role == ChatRole::Tool { TOOL } else { "speaker" };
    let message = message
        .with_metadata(name_of, fields.author.name)
        .with_metadata("recipient", fields.recipient.filter(|recipient| recipient != ALL))
        .with_metadata("model", fields.metadata.and_then(|metadata| metadata.model_slug));
    Ok(Read { message: Some(message), others })
}
