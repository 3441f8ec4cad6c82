//! The tool `personality-preset-manage`: lists, creates, changes and deletes presets.

use std::collections::BTreeMap;

use rmcp::model::{JsonObject, Tool};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sottovoce::persona::{Persona, PersonaChange, Preset, PresetChange};

use super::{Effect, arguments, define, json, needed};
use crate::fault::Fault;
use crate::hub::{Change, Hub};
use crate::page::Page;
use crate::resources;
use crate::shape::PresetShape;

pub(super) const NAME: &str = "personality-preset-manage";
const USUAL_PAGE: usize = 10;

#[derive(Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Action {
    Create,
    List,
    Get,
    Update,
    Delete,
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Arguments {
    /// The action. Deleting a changed built-in preset undoes the changes.
    action: Action,
    /// The preset, by id or name: for get, update and delete.
    preset_id: Option<String>,
    /// The name.
    #[schemars(length(min = 1, max = 200))]
    name: Option<String>,
    /// The purpose of the preset.
    #[schemars(length(max = 2000))]
    description: Option<String>,
    /// The system prompt.
    system_prompt: Option<String>,
    /// The model's behaviour.
    default_personality: Option<String>,
    /// The numeric settings that it gives a context.
    default_settings: Option<Settings>,
    /// Whether the preset is offered for new contexts: for update.
    is_active: Option<bool>,
    /// Key-value pairs that replace all previous ones.
    metadata: Option<BTreeMap<String, Value>>,
    /// The page of the list; 1 unless given.
    #[schemars(range(min = 1))]
    page: Option<u32>,
    /// Presets per page; 10 unless given.
    #[schemars(range(min = 1, max = 100))]
    page_size: Option<u32>,
    /// Whether the list includes presets that are not offered.
    include_inactive: Option<bool>,
}

#[derive(Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Settings {
    /// The sampling temperature; 0.7 unless given.
    #[schemars(range(min = 0, max = 1))]
    temperature: Option<f64>,
    /// The most tokens of an answer; 1000 unless given.
    #[schemars(range(min = 1, max = 1_048_576))]
    max_tokens: Option<u32>,
    /// The most tokens of history in a prompt; 15000 unless given.
    #[schemars(range(min = 1000, max = 16_777_216))]
    max_history_tokens: Option<u32>,
    /// After how many days without an interaction a context expires; 7 unless given.
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
    /// The preset.
    preset: Option<PresetShape>,
    /// A page of presets: the built-in ones first, then the others, newest first.
    presets: Option<Vec<PresetShape>>,
    /// The number of presets in the whole list.
    total_count: Option<usize>,
    /// The number of this page.
    page: Option<usize>,
    /// Presets per page.
    page_size: Option<usize>,
    /// The preset that was deleted.
    deleted: Option<Deleted>,
}

#[derive(Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
struct Deleted {
    /// Its id.
    id: String,
    /// `deleted`, or `reset` for a built-in preset whose changes were undone.
    status: &'static str,
}

pub(super) fn tool() -> Tool {
    define::<Arguments, Output>(
        NAME,
        "Manage personality presets",
        "Makes, lists, shows, changes and deletes presets: templates of a personality that contexts are made from. Six \
are built in.",
        Effect::Changes,
    )
}

pub(super) async fn run(hub: &Hub, given: Option<JsonObject>) -> Result<Value, Fault> {
    let given: Arguments = arguments(given)?;
    hub.check_contexts()?;
    let id = given.preset_id.clone();
    let output = match given.action {
        Action::Create => create(hub, given).await?,
        Action::List => list(hub, &given).await?,
        Action::Get => {
            let preset = hub.registry.preset(&needed(id, "presetId", "get")?).await?;
            of(preset.into(), "this is the preset")
        }
        Action::Update => {
            let id = needed(id, "presetId", "update")?;
            let change = change(given);
            if change == PresetChange::default() {
                return Err(Fault::new("update action needs at least one value to change"));
            }
            let preset = hub.registry.update_preset(&id, change).await?;
            publish_change(hub, &preset.id);
            of(PresetShape::from(preset).with_status("updated"), "the preset was changed")
        }
        Action::Delete => {
            let deleted = hub.registry.delete_preset(&needed(id, "presetId", "delete")?).await?;
            publish_change(hub, &deleted.id);
            let (status, message) = match deleted.is_built_in() {
                true => ("reset", "the built-in preset was restored"),
                false => ("deleted", "the preset was deleted; contexts created from it stay"),
            };
            Output { deleted: Some(Deleted { id: deleted.id, status }), ..done(message) }
        }
    };
    json(&output)
}

async fn create(hub: &Hub, given: Arguments) -> Result<Output, Fault> {
    let (Some(name), Some(system_prompt)) = (given.name.clone(), given.system_prompt.clone())
    else {
        return Err(Fault::new("name and systemPrompt are required for create action"));
    };
    let mut preset = Preset::new(name, Persona::new(system_prompt));
    change(given).apply(&mut preset);
    let preset = hub.registry.create_preset(preset).await?;
    publish_change(hub, &preset.id);
    Ok(of(PresetShape::from(preset).with_status("created"), "the preset was created"))
}

fn change(given: Arguments) -> PresetChange {
    let settings = given.default_settings.unwrap_or_default();
    PresetChange {
        name: given.name,
        description: given.description,
        persona: PersonaChange {
            system_prompt: given.system_prompt,
            personality: given.default_personality,
            temperature: settings.temperature,
            max_tokens: settings.max_tokens,
            max_history_tokens: settings.max_history_tokens,
            expiry_days: settings.expiry_days,
        },
        is_active: given.is_active,
        metadata: given.metadata,
    }
}

async fn list(hub: &Hub, given: &Arguments) -> Result<Output, Fault> {
    let page = Page::new(given.page, given.page_size, USUAL_PAGE)?;
    let all = given.include_inactive == Some(true);
    let mut presets = hub.registry.presets().await?;
    presets.retain(|preset| all || preset.is_active);
    Ok(Output {
        total_count: Some(presets.len()),
        page: Some(page.number),
        page_size: Some(page.size),
        ..Output {
            message: format!("there are {} presets", presets.len()),
            presets: Some(page.of(presets.into_iter().map(PresetShape::from))),
            ..done("")
        }
    })
}

fn done(message: &str) -> Output {
    Output { success: true, message: message.to_owned(), ..Output::default() }
}

fn of(preset: PresetShape, message: &str) -> Output {
    Output { preset: Some(preset), ..done(message) }
}

/// Publishes a preset's change.
fn publish_change(hub: &Hub, id: &str) {
    hub.publish(Change::Resources);
    hub.publish(Change::Updated(resources::PRESETS.to_owned()));
    hub.publish(Change::Updated(resources::TEMPLATES.to_owned()));
    hub.publish(Change::Updated(resources::preset_uri(id)));
}
