//! The tool `context-manage`: creates, finds and changes contexts.

use rmcp::model::{JsonObject, Tool};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sottovoce::persona::{
    NewPersonaConversation, Persona, PersonaChange, PersonaConversation, PersonaConversationChange,
};

use super::{Effect, arguments, define, json, needed};
use crate::fault::Fault;
use crate::hub::{Change, Hub};
use crate::page::Page;
use crate::resources::publish_context;
use crate::shape::ContextShape;

pub(super) const NAME: &str = "context-manage";
const USUAL_PAGE: usize = 10;

#[derive(Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Action {
    Create,
    CreateFromPreset,
    List,
    Get,
    Update,
    Extend,
    Delete,
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Arguments {
    /// The action. A deleted context is kept for some days; update it with isActive true to restore it.
    action: Action,
    /// The context, by id or name: for get, update, extend and delete.
    context_id: Option<String>,
    /// The name: for create and update. For create_from_preset it is optional and replaces the preset's name.
    #[schemars(length(min = 1, max = 200))]
    name: Option<String>,
    /// The system prompt: for create and update.
    system_prompt: Option<String>,
    /// The model's behaviour.
    personality: Option<String>,
    /// The sampling temperature; 0.7 unless given.
    #[schemars(range(min = 0, max = 1))]
    temperature: Option<f64>,
    /// The most tokens of an answer; 1000 unless given.
    #[schemars(range(min = 1, max = 1_048_576))]
    max_tokens: Option<u32>,
    /// The most tokens of history in a prompt; 15000 unless given, which suits a window of 16384.
    #[schemars(range(min = 1000, max = 16_777_216))]
    max_history_tokens: Option<u32>,
    /// After how many days without an interaction the context expires; 7 unless given.
    #[schemars(range(min = 1, max = 36_500))]
    expiry_days: Option<u32>,
    /// The preset, by id or name: for create_from_preset.
    preset_id: Option<String>,
    /// Values that replace those of the preset.
    preset_overrides: Option<Overrides>,
    /// False deletes the context, true restores it: for update.
    is_active: Option<bool>,
    /// By how many days to postpone the expiry: for extend; the context's own number unless given.
    #[schemars(range(min = 1, max = 36_500))]
    days: Option<u32>,
    /// The page of the list; 1 unless given.
    #[schemars(range(min = 1))]
    page: Option<u32>,
    /// Contexts per page; 10 unless given.
    #[schemars(range(min = 1, max = 100))]
    page_size: Option<u32>,
    /// Whether the list includes expired contexts.
    include_expired: Option<bool>,
    /// Whether the list includes deleted contexts.
    include_inactive: Option<bool>,
}

#[derive(Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Overrides {
    /// The name.
    #[schemars(length(min = 1, max = 200))]
    name: Option<String>,
    /// The model's behaviour.
    personality: Option<String>,
    /// The sampling temperature.
    #[schemars(range(min = 0, max = 1))]
    temperature: Option<f64>,
    /// The most tokens of an answer.
    #[schemars(range(min = 1, max = 1_048_576))]
    max_tokens: Option<u32>,
    /// The most tokens of history in a prompt.
    #[schemars(range(min = 1000, max = 16_777_216))]
    max_history_tokens: Option<u32>,
    /// After how many days without an interaction the context expires.
    #[schemars(range(min = 1, max = 36_500))]
    expiry_days: Option<u32>,
}

#[derive(Default, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(deny_unknown_fields)]
struct Output {
    /// Whether the call succeeded.
    success: bool,
    /// The result in words.
    message: String,
    /// The id of the created context.
    context_id: Option<String>,
    /// The name of the created context.
    name: Option<String>,
    /// The context.
    context: Option<ContextShape>,
    /// A page of contexts, the newest first.
    contexts: Option<Vec<ContextShape>>,
    /// The number of contexts in the whole list.
    total_count: Option<usize>,
    /// The number of this page.
    page: Option<usize>,
    /// Contexts per page.
    page_size: Option<usize>,
    /// The deleted context.
    deleted: Option<Deleted>,
}

#[derive(Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
struct Deleted {
    /// Its id.
    id: String,
    /// Always `deleted`.
    status: &'static str,
}

pub(super) fn tool() -> Tool {
    define::<Arguments, Output>(
        NAME,
        "Manage contexts",
        "Makes, lists, shows, changes, extends and deletes contexts: conversations in which the model keeps one \
personality, each with a history of its own that is stored encrypted on this machine. A context expires some days after \
its last interaction.",
        Effect::Changes,
    )
}

impl Arguments {
    fn change(&mut self) -> PersonaChange {
        PersonaChange {
            system_prompt: self.system_prompt.take(),
            personality: self.personality.take(),
            temperature: self.temperature,
            max_tokens: self.max_tokens,
            max_history_tokens: self.max_history_tokens,
            expiry_days: self.expiry_days,
        }
    }
}

pub(super) async fn run(hub: &Hub, given: Option<JsonObject>) -> Result<Value, Fault> {
    let given: Arguments = arguments(given)?;
    hub.check_contexts()?;
    let output = match given.action {
        Action::Create => create(hub, given).await?,
        Action::CreateFromPreset => create_from_preset(hub, given).await?,
        Action::List => list(hub, &given).await?,
        Action::Get => {
            let context = meant(hub, given.context_id.as_deref(), "get").await?;
            of(context.into(), "this is the context")
        }
        Action::Update => update(hub, given).await?,
        Action::Extend => {
            let context = meant(hub, given.context_id.as_deref(), "extend").await?;
            let extended = hub.registry.extend(&context.id, given.days).await?;
            publish_change(hub, &context.id, false);
            let message = format!("the context now expires at {}", extended.expires_at);
            of(ContextShape::from(extended).with_status("extended"), message)
        }
        Action::Delete => {
            let context = meant(hub, given.context_id.as_deref(), "delete").await?;
            let deleted = hub.registry.delete(&context.id).await?;
            publish_change(hub, &context.id, true);
            Output {
                deleted: Some(Deleted { id: deleted.id, status: "deleted" }),
                ..done("the context was deleted; update it with isActive true to restore it")
            }
        }
    };
    json(&output)
}

async fn meant(hub: &Hub, id: Option<&str>, action: &str) -> Result<PersonaConversation, Fault> {
    hub.context(needed(id, "contextId", action)?).await
}

async fn create(hub: &Hub, mut given: Arguments) -> Result<Output, Fault> {
    let (Some(name), Some(system_prompt)) = (given.name.take(), given.system_prompt.take()) else {
        return Err(Fault::new("name and systemPrompt are required for create action"));
    };
    let mut persona = Persona::new(system_prompt);
    given.change().apply(&mut persona);
    made(hub, NewPersonaConversation::new(name, persona)).await
}

async fn create_from_preset(hub: &Hub, mut given: Arguments) -> Result<Output, Fault> {
    let id = needed(given.preset_id.take(), "presetId", "create_from_preset")?;
    let preset = hub.registry.preset(&id).await?;
    let overrides = given.preset_overrides.take().unwrap_or_default();
    let name = overrides.name.or_else(|| given.name.take());
    let own = given.change();
    let change = PersonaChange {
        system_prompt: own.system_prompt,
        personality: overrides.personality.or(own.personality),
        temperature: overrides.temperature.or(own.temperature),
        max_tokens: overrides.max_tokens.or(own.max_tokens),
        max_history_tokens: overrides.max_history_tokens.or(own.max_history_tokens),
        expiry_days: overrides.expiry_days.or(own.expiry_days),
    };
    made(hub, NewPersonaConversation::from_preset(&preset, name, change)).await
}

async fn made(hub: &Hub, new: NewPersonaConversation) -> Result<Output, Fault> {
    let context = hub.registry.create(new).await?;
    publish_change(hub, &context.id, true);
    let (context_id, name) = (Some(context.id.clone()), Some(context.name.clone()));
    let context = ContextShape::from(context).with_status("created");
    Ok(Output { context_id, name, ..of(context, "the context was created") })
}

async fn list(hub: &Hub, given: &Arguments) -> Result<Output, Fault> {
    let page = Page::new(given.page, given.page_size, USUAL_PAGE)?;
    let (expired, inactive) = (given.include_expired, given.include_inactive);
    let is_wanted = |context: &PersonaConversation| {
        (expired == Some(true) || !context.is_expired)
            && (inactive == Some(true) || context.is_active())
    };
    let listed = hub.registry.list().await?;
    let wanted: Vec<_> = listed.contexts.into_iter().filter(is_wanted).collect();
    let mut message = format!("there are {} contexts", wanted.len());
    if !listed.unreadable.is_empty() {
        message = format!(
            "{message}; the settings of these cannot be read: {}",
            listed.unreadable.join(", ")
        );
    }
    Ok(Output {
        total_count: Some(wanted.len()),
        contexts: Some(page.of(wanted.into_iter().map(ContextShape::from))),
        page: Some(page.number),
        page_size: Some(page.size),
        ..done(message)
    })
}

async fn update(hub: &Hub, mut given: Arguments) -> Result<Output, Fault> {
    let context = meant(hub, given.context_id.as_deref(), "update").await?;
    let (name, is_active) = (given.name.take(), given.is_active);
    let change = PersonaConversationChange { name, persona: given.change(), is_active };
    if change == PersonaConversationChange::default() {
        return Err(Fault::new("update action needs at least one value to change"));
    }
    let context = hub.registry.update(&context.id, change).await?;
    publish_change(hub, &context.id, true);
    Ok(of(ContextShape::from(context).with_status("updated"), "the context was changed"))
}

fn done(message: impl Into<String>) -> Output {
    Output { success: true, message: message.into(), ..Output::default() }
}

fn of(context: ContextShape, message: impl Into<String>) -> Output {
    Output { context: Some(context), ..done(message) }
}

/// Publishes a context's change.
fn publish_change(hub: &Hub, id: &str, are_others: bool) {
    if are_others {
        hub.publish(Change::Resources);
    }
    publish_context(hub, id);
}
