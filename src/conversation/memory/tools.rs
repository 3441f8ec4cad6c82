//! The functions by which a model reads what its prompt does not hold. The conversation runs them itself, within its
//! own scope and thread.

use serde_json::{Value, json};

use super::tool_limits::READ_ARTIFACT;
#[cfg(feature = "recall")]
use super::tool_limits::SEARCH_MEMORY;
use crate::conversation::Conversation;
use crate::error::{Error, Result};
use crate::message::ToolCall;
use crate::message::texts::{self, LinesLeft};
use crate::prompt::Prompt;
use crate::store::{ArtifactLines, blocking, find_artifact};

/// The shortest abbreviation of an id with which a person may name an artifact to the model.
const SHORTEST_ID: usize = 6;

/// The definitions of the functions. They are the same in every request.
pub(crate) fn definitions() -> Vec<Value> {
    let function = |name: &str, about: &str, needed: &str, arguments: Value| {
        json!({ "type": "function", "function": {
            "name": name,
            "description": about,
            "parameters": { "type": "object", "properties": arguments, "required": [needed] },
        }})
    };
    vec![
        function(
            READ_ARTIFACT,
            texts::READ_ARTIFACT,
            "id",
            json!({
                "id": { "type": "string", "description": texts::READ_ARTIFACT_ID },
                "from": { "type": "integer", "description": texts::READ_ARTIFACT_FROM },
                "lines": { "type": "integer", "description": texts::READ_ARTIFACT_LINES },
            }),
        ),
        #[cfg(feature = "recall")]
        function(
            SEARCH_MEMORY,
            texts::SEARCH,
            "words",
            json!({ "words": { "type": "string", "description": texts::SEARCH_WORDS } }),
        ),
    ]
}

/// The result of a call.
pub(crate) struct ToolOutput {
    /// The text for the model.
    pub(crate) told: String,
    /// The text to store. It repeats no conversation text, so that forgetting a message leaves no copy here.
    pub(crate) kept: String,
}

impl From<String> for ToolOutput {
    fn from(words: String) -> Self {
        Self { kept: words.clone(), told: words }
    }
}

/// What a call may read.
pub(crate) struct ToolScope<'a> {
    /// The number of the utterance being answered, if it is stored.
    #[cfg_attr(not(feature = "recall"), expect(dead_code, reason = "only a search asks for it"))]
    pub(crate) utterance: Option<u64>,
    /// The prompt that the model read. The model may open the artifacts that the prompt mentions.
    pub(crate) prompt: &'a Prompt,
    /// The most bytes to return.
    pub(crate) most: usize,
}

impl Conversation {
    /// Runs a function that the model called. If the call is invalid, the result tells the model why.
    pub(crate) async fn look_up(&self, call: &ToolCall, sight: &ToolScope<'_>) -> ToolOutput {
        let arguments = Arguments::of(&call.arguments);
        let looked = match call.name.as_str() {
            #[cfg(feature = "recall")]
            SEARCH_MEMORY => self.search_memory(&arguments, sight).await,
            _ => self.read_artifact(&arguments, sight).await,
        };
        looked.unwrap_or_else(|error| {
            tracing::warn!(%error, "a function of the conversation failed");
            texts::CALL_FAILED.to_owned().into()
        })
    }

    async fn read_artifact(
        &self,
        arguments: &Arguments,
        sight: &ToolScope<'_>,
    ) -> Result<ToolOutput> {
        let given = arguments.text("id");
        let (Some(given), Ok(from), Ok(lines)) =
            (given, arguments.number("from"), arguments.number("lines"))
        else {
            return Ok(texts::READ_ARTIFACT_USAGE.to_owned().into());
        };
        let given = given.trim().trim_start_matches("artifact://");
        let none = || ToolOutput::from(texts::NO_ARTIFACT.to_owned());
        let id = match find_artifact(&*self.store, given).await {
            Ok(id) => id,
            Err(Error::NoSuchArtifact { .. }) => return Ok(none()),
            Err(error) => return Err(error),
        };
        let is_named = given.chars().count() >= SHORTEST_ID && sight.prompt.mentions(given);
        if !is_named && !sight.prompt.mentions(&id) {
            return Ok(none());
        }
        let Some(store) = self.store.artifact_store() else { return Ok(none()) };
        let Some(contents) = store.open_artifact(&id).await? else { return Ok(none()) };
        let about =
            contents.artifact().description().split_whitespace().collect::<Vec<_>>().join(" ");
        if !contents.artifact().is_text() {
            return Ok(texts::not_text(&about).into());
        }
        let reference = contents.artifact().reference();
        let (from, lines) = (from.unwrap_or(1), lines.unwrap_or(u64::MAX));
        let most = sight.most.saturating_sub(about.len() + 128);
        let place = reference.clone();
        let found = blocking(move || {
            contents.lines(from, lines, most).map_err(|e| Error::io("read it", place, e))
        });
        let ArtifactLines { text, first, last, is_cut, has_more, .. } = found.await?;
        if text.is_empty() {
            return Ok(texts::no_line(&about, first).into());
        }
        let rest = match (is_cut, has_more) {
            (true, _) => LinesLeft::Cut,
            (_, true) => LinesLeft::More,
            _ => LinesLeft::None,
        };
        Ok(ToolOutput {
            told: texts::lines_read(&about, (first, last), &text, rest),
            kept: texts::lines_were_read((first, last), &about, &reference),
        })
    }
}

/// The arguments of a call. Some models pass numbers as strings, and some pass everything as one string.
pub(super) struct Arguments(Value);

impl Arguments {
    fn of(given: &Value) -> Self {
        let parsed = given.as_str().and_then(|text| serde_json::from_str(text).ok());
        Self(parsed.unwrap_or_else(|| given.clone()))
    }

    pub(super) fn text(&self, name: &str) -> Option<String> {
        match self.0.get(name)? {
            Value::String(text) => Some(text.clone()),
            Value::Number(number) => Some(number.to_string()),
            Value::Array(words) => {
                let words: Option<Vec<_>> = words.iter().map(Value::as_str).collect();
                words.map(|words| words.join(" "))
            }
            _ => None,
        }
    }

    /// A number of at least 1, if one is given.
    fn number(&self, name: &str) -> std::result::Result<Option<u64>, ()> {
        let number = match self.0.get(name) {
            None | Some(Value::Null) => return Ok(None),
            Some(Value::String(text)) => text.trim().parse().ok(),
            Some(Value::Number(number)) => {
                let whole = number.as_f64().filter(|number| number.fract() == 0.0);
                number.as_u64().or_else(|| whole.and_then(|whole| format!("{whole}").parse().ok()))
            }
            Some(_) => None,
        };
        number.filter(|number| *number > 0).map(Some).ok_or(())
    }
}
