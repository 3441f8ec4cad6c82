//! The tool `artifact-read`: reads texts stored beside a conversation.

use rmcp::model::{JsonObject, Tool};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sottovoce::store::{ArtifactLines, ArtifactStore, find_artifact};

use super::{Effect, arguments, define, json};
use crate::fault::Fault;
use crate::hub::Hub;
use crate::shape::ArtifactShape;

pub(super) const NAME: &str = "artifact-read";
/// The default number of lines, and the most bytes of one answer.
const USUAL: u64 = 200;
const MOST: usize = 64 << 10;

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Arguments {
    /// The context, by id or name.
    context_id: String,
    /// The artifact: its id, the beginning of its id, or the whole reference. Without it, all artifacts are listed.
    artifact_id: Option<String>,
    /// The first line to read; 1 unless given.
    #[schemars(range(min = 1))]
    from: Option<u32>,
    /// The number of lines; 200 unless given. One answer holds at most 64 KiB.
    #[schemars(range(min = 1))]
    lines: Option<u32>,
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(deny_unknown_fields)]
struct Output {
    /// Whether the call succeeded.
    success: bool,
    /// The result in words.
    message: String,
    /// The artifact that was read, or all artifacts.
    artifacts: Vec<ArtifactShape>,
    /// The lines.
    text: Option<String>,
    /// The number of the first line.
    first: Option<u64>,
    /// The number of the last line.
    last: Option<u64>,
    /// Whether more lines follow.
    has_more: bool,
}

pub(super) fn tool() -> Tool {
    define::<Arguments, Output>(
        NAME,
        "Read an artifact",
        "Reads lines of a text that is kept beside a context's messages, which refer to it as artifact://ID; without an id, \
lists what there is.",
        Effect::Reads,
    )
}

pub(super) async fn run(hub: &Hub, given: Option<JsonObject>) -> Result<Value, Fault> {
    let given: Arguments = arguments(given)?;
    if given.from == Some(0) || given.lines == Some(0) {
        return Err(Fault::new("from and lines must be at least 1"));
    }
    let target = hub.target(&given.context_id).await?;
    let store = hub.store(&target).await?;
    let Some(id) = given.artifact_id else {
        let (artifacts, _) = store.artifacts().await?;
        return json(&Output {
            success: true,
            message: format!("there are {} artifacts", artifacts.len()),
            artifacts: artifacts.iter().map(ArtifactShape::from).collect(),
            text: None,
            first: None,
            last: None,
            has_more: false,
        });
    };
    let id = find_artifact(&store, &id).await?;
    let contents = store.open_artifact(&id).await?;
    let contents = contents.ok_or_else(|| Fault::new("the artifact has just been deleted"))?;
    let artifact = ArtifactShape::from(contents.artifact());
    if !contents.artifact().is_text() {
        return Err(Fault::new("the artifact is not text"));
    }
    let (from, lines) = (given.from.unwrap_or(1).into(), given.lines.map_or(USUAL, u64::from));
    let read = tokio::task::spawn_blocking(move || contents.lines(from, lines, MOST)).await;
    let Ok(Ok(ArtifactLines { text, first, last, has_more, .. })) = read else {
        return Err(Fault::new("the artifact cannot be read"));
    };
    if text.is_empty() && from > 1 {
        return Err(Fault::new(format!("the artifact has no line {from}")));
    }
    json(&Output {
        success: true,
        message: format!("lines {first} to {last}"),
        artifacts: vec![artifact],
        text: Some(text.to_string()),
        first: Some(first),
        last: Some(last),
        has_more,
    })
}
