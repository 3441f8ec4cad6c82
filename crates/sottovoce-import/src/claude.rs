//! A conversation of Claude's data export: messages with the one that each answers. The branch of the last one is read.

use serde::Deserialize;
use serde_json::value::RawValue;
use sottovoce::ChatRole;
use sottovoce::import::ImportedConversation;
use sottovoce::import::RefusalReason::{self, Corrupt};

use crate::export::{Item, Told, Tree, branch};
use crate::fields::{json, time, words};
use crate::source::named;
use crate::system::CLAUDE;

#[derive(Deserialize)]
struct Conversation<'a> {
    uuid: String,
    name: Option<String>,
    created_at: Option<String>,
    #[serde(borrow)]
    chat_messages: Vec<Message<'a>>,
}

#[derive(Deserialize)]
struct Message<'a> {
    uuid: String,
    parent_message_uuid: Option<String>,
    sender: String,
    text: Option<String>,
    #[serde(borrow)]
    content: Option<Vec<&'a RawValue>>,
    created_at: Option<String>,
    #[serde(borrow, default)]
    attachments: Vec<&'a RawValue>,
    #[serde(borrow, default)]
    files: Vec<&'a RawValue>,
}

/// Reads the conversation. Skips other branches and parts that are not text.
pub(crate) fn read(item: &Item<'_>) -> Result<ImportedConversation, RefusalReason> {
    let fields: Conversation<'_> =
        json::object(item.json, "its fields are not those of a conversation of Claude")?;
    let mut conversation = ImportedConversation::new(named(&fields.uuid)?, CLAUDE);
    let said = &fields.chat_messages;
    let Some(last) = said.last() else { return Ok(conversation) };
    // Older exports name no parents: there each message follows the one above it.
    let above = std::iter::once(None).chain(said.iter().map(|message| Some(&*message.uuid)));
    let names_parents = said.iter().any(|message| message.parent_message_uuid.is_some());
    let nodes = said.iter().zip(above).map(|(message, above)| {
        let above = above.filter(|_| !names_parents);
        (&*message.uuid, (message.parent_message_uuid.as_deref().or(above), message))
    });
    let tree: Tree<'_, &Message<'_>> = nodes.collect();
    let path = branch(&tree, &last.uuid)?;
    let at = |time: &Option<String>| time::parse(time.as_deref()?).map(|(at, _)| at);
    let created_at = at(&fields.created_at);
    let messages = &mut conversation.messages;
    messages.is_ordered = true;
    messages.passed_over.add("messages of other branches", said.len().saturating_sub(path.len()));
    let mut before = created_at;
    for (id, message) in path {
        let (words, others) = message.content.as_deref().map(words::joined).unwrap_or_default();
        let words = Some(words).filter(|words| !words.is_empty()).or_else(|| message.text.clone());
        let attached = message.attachments.len() + message.files.len();
        messages.passed_over.add("parts that are no text", others);
        messages.passed_over.add("attachments", attached);
        before = at(&message.created_at).or(before);
        let Some(words) = words.filter(|words| !words.is_empty()) else {
            messages.passed_over.add("messages without words", 1);
            continue;
        };
        let role = match message.sender.as_str() {
            "human" => Ok(ChatRole::User),
            "assistant" => Ok(ChatRole::Assistant),
            _ => Err(Corrupt("its sender is neither human nor assistant")),
        };
        let told = |role| Told { system: CLAUDE, conversation: &fields.uuid, id, role, words };
        messages.push(format!("{}/{id}", item.place), role.and_then(|role| told(role).at(before)));
    }
    item.name(&mut conversation, fields.name, created_at);
    Ok(conversation)
}
