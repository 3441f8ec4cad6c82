//! The resources: contexts, presets and artifacts, each under a URI.

use rmcp::ErrorData;
use rmcp::model::{ReadResourceResult, Resource, ResourceContents, ResourceTemplate};
use serde_json::{Value, json};
use sottovoce::ConversationStore;
use sottovoce::store::{ArtifactStore, find_artifact};

use crate::fault::Fault;
use crate::hub::{Change, Hub};
use crate::shape::{ArtifactShape, ContextShape, MessageShape, PresetShape, SettingsShape};

pub(crate) const CONTEXTS: &str = "mcp-llm-generator://contexts";
pub(crate) const CONTEXT: &str = "mcp-llm-generator://context/{contextId}";
/// The URI template of an artifact's text. For a conversation that is not a context, `contextId` is the path of its
/// scope.
pub(crate) const ARTIFACT: &str = "mcp-llm-generator://artifact/{+contextId}/{artifactId}";
pub(crate) const TEMPLATES: &str = "mcp-llm-generator://personality-templates";
pub(crate) const PRESETS: &str = "mcp-llm-generator://personality-presets";
pub(crate) const PRESET: &str = "mcp-llm-generator://preset/{presetId}";

const JSON: &str = "application/json";
/// How many of its newest messages a context's resource shows.
const RECENT: usize = 10;

/// The URI of a context.
pub(crate) fn context_uri(id: &str) -> String {
    CONTEXT.replace("{contextId}", id)
}

/// The largest artifact that one read returns, in bytes. `artifact-read` returns larger ones in parts.
const LONGEST: usize = 1 << 20;

/// Publishes that a context and with it their list changed.
pub(crate) fn publish_context(hub: &Hub, id: &str) {
    hub.publish(Change::Updated(CONTEXTS.to_owned()));
    hub.publish(Change::Updated(context_uri(id)));
}

/// The URI of a preset.
pub(crate) fn preset_uri(id: &str) -> String {
    PRESET.replace("{presetId}", id)
}

/// All resources: the lists, then each context and each preset in the order of its list.
pub(crate) async fn list(hub: &Hub) -> Result<Vec<Resource>, Fault> {
    if !hub.access.contexts {
        return Ok(Vec::new());
    }
    let of = |uri: &str, name: &str, title: &str, about: &str| {
        Resource::new(uri, name).with_title(title).with_description(about).with_mime_type(JSON)
    };
    let mut resources = vec![
        of(CONTEXTS, "context-list", "Contexts", "All active contexts with their personalities"),
        of(
            TEMPLATES,
            "personality-templates",
            "Personality templates",
            "The built-in personalities, in short",
        ),
        of(PRESETS, "personality-presets", "Personality presets", "All presets for new contexts"),
    ];
    for context in hub.registry.list().await?.contexts {
        if context.is_open() {
            let uri = context_uri(&context.id);
            resources.push(of(
                &uri,
                &context.id,
                &context.name,
                "A context and its newest messages",
            ));
        }
    }
    for preset in hub.registry.presets().await? {
        if preset.is_active {
            let uri = preset_uri(&preset.id);
            resources.push(of(&uri, &preset.id, &preset.name, "A personality preset"));
        }
    }
    Ok(resources)
}

pub(crate) fn templates() -> Vec<ResourceTemplate> {
    vec![
        ResourceTemplate::new(CONTEXT, "context-detail")
            .with_title("Context")
            .with_description("A context, its personality and its newest messages")
            .with_mime_type(JSON),
        ResourceTemplate::new(ARTIFACT, "artifact").with_title("Artifact").with_description(
            "A text stored beside a context's messages, which refer to it as artifact://ID",
        ),
        ResourceTemplate::new(PRESET, "preset-detail")
            .with_title("Preset")
            .with_description("A personality preset with its settings")
            .with_mime_type(JSON),
    ]
}

pub(crate) async fn read(hub: &Hub, uri: &str) -> Result<ReadResourceResult, ErrorData> {
    let told = |reason: &str| {
        ErrorData::resource_not_found(reason.to_owned(), Some(json!({ "uri": uri })))
    };
    let none = || told("there is no such resource");
    if let Some(path) = uri.strip_prefix(ARTIFACT.split_once('{').map_or("", |(before, _)| before))
        && let Some((context, id)) = path.rsplit_once('/')
    {
        let read = artifact(hub, context, id, uri).await;
        return read.map_err(|fault| told(fault.reason()));
    }
    if !hub.access.contexts {
        return Err(none());
    }
    let found = match uri {
        CONTEXTS => contexts(hub).await,
        TEMPLATES => personality_templates(hub).await,
        PRESETS => presets(hub).await,
        _ => {
            let behind = |template: &str| {
                let (before, _) = template.split_once('{')?;
                uri.strip_prefix(before).filter(|id| !id.is_empty())
            };
            match (behind(CONTEXT), behind(PRESET)) {
                (Some(id), _) => context(hub, id).await,
                (_, Some(id)) => preset(hub, id).await,
                _ => return Err(none()),
            }
        }
    };
    let value = found.map_err(|fault| told(fault.reason()))?;
    let contents = ResourceContents::text(format!("{value:#}"), uri).with_mime_type(JSON);
    Ok(ReadResourceResult::new(vec![contents]))
}

/// Reads an artifact's text.
async fn artifact(
    hub: &Hub,
    context: &str,
    id: &str,
    uri: &str,
) -> Result<ReadResourceResult, Fault> {
    let target = hub.target(context).await?;
    let store = hub.store(&target).await?;
    let id = find_artifact(&store, id).await?;
    let contents = store.open_artifact(&id).await?;
    let contents = contents.ok_or_else(|| Fault::new("the artifact has just been deleted"))?;
    let mime_type = contents.artifact().mime_type.clone();
    if !contents.artifact().is_text() || contents.artifact().size > LONGEST as u64 {
        return Err(Fault::new(
            "the artifact is not text, or too large for one read; artifact-read reads parts",
        ));
    }
    let read = tokio::task::spawn_blocking(move || contents.lines(1, u64::MAX, LONGEST)).await;
    let Ok(Ok(lines)) = read else { return Err(Fault::new("the artifact cannot be read")) };
    let contents = ResourceContents::text(lines.text.to_string(), uri).with_mime_type(mime_type);
    Ok(ReadResourceResult::new(vec![contents]))
}

async fn contexts(hub: &Hub) -> Result<Value, Fault> {
    let listed = hub.registry.list().await?.contexts;
    let open = listed.into_iter().filter(|context| context.is_open());
    let contexts: Vec<_> = open.map(ContextShape::from).collect();
    Ok(json!({ "totalCount": contexts.len(), "contexts": contexts }))
}

async fn context(hub: &Hub, id: &str) -> Result<Value, Fault> {
    let context = hub.registry.get(id).await?;
    let store = hub.registry.store(&context.id).await?;
    let recent = store.read_tail(RECENT).await?.messages;
    let recent: Vec<_> =
        recent.iter().map(|stored| MessageShape::new(&context.id, stored)).collect();
    let (artifacts, _) = store.artifacts().await?;
    let artifacts: Vec<_> = artifacts.iter().map(ArtifactShape::from).collect();
    Ok(json!({
        "context": ContextShape::from(context),
        "recentConversations": recent,
        "artifacts": artifacts,
    }))
}

async fn personality_templates(hub: &Hub) -> Result<Value, Fault> {
    let presets = hub.registry.presets().await?;
    let built_in = presets.into_iter().filter(|preset| preset.is_built_in() && preset.is_active);
    let templates: Vec<_> = built_in
        .map(|preset| {
            json!({
                "id": preset.id,
                "name": preset.name,
                "description": preset.description,
                "defaultPersonality": preset.persona.personality,
                "defaultSettings": SettingsShape::from(&preset.persona),
            })
        })
        .collect();
    Ok(json!({ "totalCount": templates.len(), "templates": templates }))
}

async fn presets(hub: &Hub) -> Result<Value, Fault> {
    let presets = hub.registry.presets().await?.into_iter().filter(|preset| preset.is_active);
    let presets: Vec<_> = presets.map(PresetShape::from).collect();
    Ok(json!({ "totalCount": presets.len(), "presets": presets }))
}

async fn preset(hub: &Hub, id: &str) -> Result<Value, Fault> {
    Ok(json!({ "preset": PresetShape::from(hub.registry.preset(id).await?) }))
}
