//! One conversation of ChatGPT's data export: a tree of messages, of which the branch that is shown is taken.

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

/// How reports name the form.
const FORM: &str = "export";
/// To whom what is meant for people is addressed.
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

/// What becomes of a message.
struct Read {
    /// None, where it has no words or nobody sees them.
    message: Option<ImportedMessage>,
    /// How many parts of it are no words.
    others: usize,
}

/// The conversation. Messages of other branches are passed over, and what is no text.
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
    // What was never said makes no conversation here.
    if !messages.messages.is_empty() {
        let facts = &mut conversation.facts;
        facts.title = fields.title.filter(|title| !title.is_empty());
        facts.created_at = created_at;
        facts.file.clone_from(&item.place);
    }
    Ok(conversation)
}

/// The messages that are shown, from the first to the last.
fn path<'a>(fields: &'a Conversation<'_>) -> Result<Vec<(&'a str, &'a str)>, RefusalReason> {
    if fields.mapping.is_empty() {
        return Ok(Vec::new());
    }
    let last = fields.current_node.as_ref().filter(|node| fields.mapping.contains_key(*node));
    let mut next = Some(last.ok_or(Corrupt("its current_node is none of its messages"))?);
    let (mut path, mut seen) = (Vec::new(), HashSet::new());
    while let Some((id, node)) = next.and_then(|id| fields.mapping.get_key_value(id)) {
        if !seen.insert(id) {
            return Err(Corrupt("its messages go round in a circle"));
        }
        if let Some(message) = node.message {
            path.push((id.as_str(), message.get()));
        }
        next = node.parent.as_ref();
    }
    path.reverse();
    Ok(path)
}

/// Takes one message. Where it does not say when it was said, that was as the one `before` it.
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

/// The message. Its id tells which one it is, its role and its words: what else is said of it, the next export may say
/// otherwise.
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
    let at = at.ok_or(Corrupt("it has no create_time, nor has any before it"))?;
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
