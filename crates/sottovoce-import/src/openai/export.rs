//! A conversation of ChatGPT's data export: a tree of messages. Only the branch that ChatGPT shows is read.

use std::collections::{HashMap, HashSet};

use jiff::Timestamp;
use serde::Deserialize;
use serde_json::value::RawValue;
use sottovoce::ChatRole;
use sottovoce::import::RefusalReason::{self, Corrupt};
use sottovoce::import::metadata::TOOL;
use sottovoce::import::{ImportedConversation, ImportedMessage, ImportedMessages};

use crate::export::{Item, Told, Tree, branch};
use crate::fields::{json, time, words};
use crate::source::named;
use crate::system::OPENAI;

/// The recipient of messages for people.
const ALL: &str = "all";

#[derive(Deserialize)]
struct Conversation<'a> {
    id: Option<String>,
    conversation_id: Option<String>,
    title: Option<String>,
    #[serde(borrow)]
    create_time: Option<&'a RawValue>,
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
    #[serde(borrow)]
    create_time: Option<&'a RawValue>,
    #[serde(borrow)]
    content: Option<Content<'a>>,
    metadata: Option<Metadata>,
    recipient: Option<String>,
}

/// When a message was said.
#[derive(Deserialize)]
struct Said<'a> {
    #[serde(borrow)]
    create_time: Option<&'a RawValue>,
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
    let created_at = at(fields.create_time);
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
    item.name(&mut conversation, fields.title, created_at);
    Ok(conversation)
}

/// The messages of the shown branch, from first to last.
fn path<'a>(fields: &'a Conversation<'_>) -> Result<Vec<(&'a str, &'a str)>, RefusalReason> {
    let current = fields.current_node.as_ref().filter(|node| fields.mapping.contains_key(*node));
    let Some(last) = current.or_else(|| newest_leaf(&fields.mapping)) else {
        let is_circle = !fields.mapping.is_empty();
        return if is_circle { Err(Corrupt("its messages form a circle")) } else { Ok(Vec::new()) };
    };
    let node = |(id, node): (&'a String, &'a Node<'_>)| {
        (id.as_str(), (node.parent.as_deref(), node.message.map(RawValue::get)))
    };
    let tree: Tree<'_, _> = fields.mapping.iter().map(node).collect();
    let path = branch(&tree, last)?;
    Ok(path.into_iter().filter_map(|(id, message)| Some((id, (*message)?))).collect())
}

/// The message that nothing follows, of several the newest.
fn newest_leaf<'a>(mapping: &'a HashMap<String, Node<'_>>) -> Option<&'a String> {
    let followed: HashSet<_> = mapping.values().filter_map(|node| node.parent.as_ref()).collect();
    let said = |node: &Node<'_>| {
        let said: Said<'_> = serde_json::from_str(node.message?.get()).ok()?;
        at(said.create_time)
    };
    let leaves = mapping.iter().filter(|(id, _)| !followed.contains(id));
    leaves.max_by_key(|(id, node)| (said(node), *id)).map(|(id, _)| id)
}

/// Seconds since 1970, or RFC 3339 as some programs write it.
fn at(time: Option<&RawValue>) -> Option<Timestamp> {
    time::of_json(time?.get()).map(|(at, _)| at)
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

/// Reads a message.
fn message(
    conversation: &str,
    node: &str,
    json: &str,
    before: &mut Option<Timestamp>,
) -> Result<Read, RefusalReason> {
    let fields: Message<'_> = json::object(json, "its fields are not those of a message")?;
    let (words, others) = match fields.content {
        Some(Content { parts: Some(parts), .. }) => words::joined(&parts),
        Some(Content { text, .. }) => (text.unwrap_or_default(), 0),
        None => (String::new(), 0),
    };
    let metadata = fields.metadata.as_ref();
    let is_hidden = metadata.is_some_and(|metadata| metadata.is_hidden == Some(true));
    let at = at(fields.create_time).or(*before);
    *before = at;
    if words.is_empty() || is_hidden {
        return Ok(Read { message: None, others });
    }
    let role: ChatRole = fields
        .author
        .role
        .parse()
        .map_err(|_| Corrupt("its role is not user, assistant, system or tool"))?;
    let id = fields.id.as_deref().unwrap_or(node);
    let message = Told { system: OPENAI, conversation, id, role, words }.at(at)?;
    let name_of = if role == ChatRole::Tool { TOOL } else { "speaker" };
    let message = message
        .with_metadata(name_of, fields.author.name)
        .with_metadata("recipient", fields.recipient.filter(|recipient| recipient != ALL))
        .with_metadata("model", fields.metadata.and_then(|metadata| metadata.model_slug));
    Ok(Read { message: Some(message), others })
}
