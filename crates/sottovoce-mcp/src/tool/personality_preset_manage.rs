//! `personality-preset-manage`: the templates that contexts are made from.

use std::collections::BTreeMap;

use rmcp::model::{JsonObject, Tool, ToolAnnotations};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sottovoce::persona::{Persona, PersonaChange, Preset, PresetChange};

use super::{arguments, define, json, needed};
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
    /// What to do. Deleting a built-in preset that was changed takes the changes back.
    action: Action,
    /// Which preset, by its id or its name: for get, update and delete.
    preset_id: Option<String>,
    /// What it is called.
    #[schemars(length(min = 1, max = 200))]
    name: Option<String>,
    /// What it is good for.
    #[schemars(length(max = 2000))]
    description: Option<String>,
    /// What the model is told first.
    system_prompt: Option<String>,
    /// How the model is to behave.
    default_personality: Option<String>,
    /// The figures that it gives a context.
    default_settings: Option<Settings>,
    /// Whether it is offered: for update.
    is_active: Option<bool>,
    /// Other notes, in place of those before.
    metadata: Option<BTreeMap<String, Value>>,
    /// Which page of the list; 1 unless given.
    #[schemars(range(min = 1))]
    page: Option<u32>,
    /// How many presets a page has; 10 unless given.
    #[schemars(range(min = 1, max = 100))]
    page_size: Option<u32>,
    /// Whether the list has those that are not offered too.
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
    /// Whether it was done.
    success: bool,
    /// What was done, in words.
    message: String,
    /// The preset.
    #[serde(skip_serializing_if = "Option::is_none")]
    preset: Option<PresetShape>,
    /// A page of presets: those that are built in, then the others, the newest first.
    #[serde(skip_serializing_if = "Option::is_none")]
    presets: Option<Vec<PresetShape>>,
    /// How many presets the whole list has.
    #[serde(skip_serializing_if = "Option::is_none")]
    total_count: Option<usize>,
    /// Which page this is.
    #[serde(skip_serializing_if = "Option::is_none")]
    page: Option<usize>,
    /// How many presets a page has.
    #[serde(skip_serializing_if = "Option::is_none")]
    page_size: Option<usize>,
    /// The preset that was deleted.
    #[serde(skip_serializing_if = "Option::is_none")]
    deleted: Option<Deleted>,
}

#[derive(Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
struct Deleted {
    /// Its id.
    id: String,
    /// `deleted`, or `reset` for one that is as it was built in again.
    status: &'static str,
}

pub(super) fn tool() -> Tool {
    define::<Arguments, Output>(
        NAME,
        "Manage personality presets",
        "Makes, lists, shows, changes and deletes presets: templates of a personality that contexts are made from. Six \
are built in.",
        ToolAnnotations::new()
            .read_only(false)
            .destructive(true)
            .idempotent(false)
            .open_world(false),
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
                return Err(Fault::new("update action needs something to change"));
            }
            let preset = hub.registry.update_preset(&id, change).await?;
            told(hub, &preset.id);
            of(PresetShape::from(preset).with_status("updated"), "the preset is changed")
        }
        Action::Delete => {
            let deleted = hub.registry.delete_preset(&needed(id, "presetId", "delete")?).await?;
            told(hub, &deleted.id);
            let (status, message) = match deleted.is_built_in() {
                true => ("reset", "the preset is as it was built in again"),
                false => ("deleted", "the preset is deleted; contexts made from it stay"),
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
    told(hub, &preset.id);
    Ok(of(PresetShape::from(preset).with_status("created"), "the preset is made"))
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

/// Has clients hear of a preset's change.
fn told(hub: &Hub, id: &str) {
    hub.tell(Change::Resources);
    hub.tell(Change::Updated(resources::PRESETS.to_owned()));
    hub.tell(Change::Updated(resources::TEMPLATES.to_owned()));
    hub.tell(Change::Updated(resources::preset_uri(id)));
}
