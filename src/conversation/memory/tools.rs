//! The functions by which a model reads what its prompt does not hold. The conversation runs them itself, within its
//! own scope and thread.

use std::fmt::Write;

use serde_json::{Value, json};
use zeroize::Zeroizing;

use super::tool_limits::{READ_ARTIFACT, SEARCH_MEMORY};
use crate::conversation::Conversation;
use crate::conversation::search::{SearchHit, SearchOptions, search_in};
use crate::error::{Error, Result};
use crate::message::{ChatMessage, ChatRole, ToolCall};
use crate::model::render::said_when;
use crate::prompt::Prompt;
use crate::store::{ArtifactLines, StoredMessage, blocking, find_artifact};

/// The most messages that a search returns.
const HITS: usize = 8;
/// One message of a search result gets at most this fraction of a call's bytes.
const PART: usize = 4;
/// The shortest abbreviation of an id with which a person may name an artifact to the model.
const SHORTEST_ID: usize = 6;

/// The result of a call that came together with calls of the host's functions.
pub(crate) const CALL_ALONE: &str =
    "This function was not run. Call it by itself, without other functions.";

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
            "Reads lines of a text that a message refers to as artifact://ID.",
            "id",
            json!({
                "id": { "type": "string", "description": "the ID behind artifact://" },
                "from": { "type": "integer", "description": "the first line; 1 unless given" },
                "lines": { "type": "integer", "description": "how many; as many as fit unless given" },
            }),
        ),
        function(
            SEARCH_MEMORY,
            "Finds what was said earlier in this conversation and is not shown here.",
            "words",
            json!({ "words": { "type": "string", "description": "a few words that were said" } }),
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
            READ_ARTIFACT => self.read_artifact(&arguments, sight).await,
            _ => self.search_memory(&arguments, sight).await,
        };
        looked.unwrap_or_else(|error| {
            tracing::warn!(%error, "a function of the conversation failed");
            "It cannot be read.".to_owned().into()
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
            let usage = "Give `id` as a text, and `from` and `lines` as whole numbers from 1.";
            return Ok(usage.to_owned().into());
        };
        let given = given.trim().trim_start_matches("artifact://");
        let none = || ToolOutput::from("No artifact of that id is referred to here.".to_owned());
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
            return Ok(format!("{about} is no text.").into());
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
            return Ok(format!("{about} has no line {first}, or there is no room for more.").into());
        }
        let told = match (is_cut, has_more) {
            (true, _) => format!("\n(Line {last} is longer than what fits, and cut here.)"),
            (_, true) => format!("\n(There is more from line {} on.)", last + 1),
            _ => String::new(),
        };
        Ok(ToolOutput {
            told: format!("{about}, lines {first} to {last}:\n{}{told}", text.as_str()),
            kept: format!("(Read lines {first} to {last} of {about}: {reference})"),
        })
    }

    async fn search_memory(
        &self,
        arguments: &Arguments,
        sight: &ToolScope<'_>,
    ) -> Result<ToolOutput> {
        let words = arguments.text("words").filter(|words| !words.trim().is_empty());
        let Some(words) = words else {
            return Ok("Give `words` as a text.".to_owned().into());
        };
        let hits = self.recall(&words, HITS, sight.utterance).await?;
        let mut told = Zeroizing::new(String::with_capacity(sight.most + 64));
        let mut numbers = Vec::new();
        for hit in &hits {
            let line = line(&hit.stored.message, sight.most / PART);
            if told.len() + line.len() > sight.most {
                break;
            }
            told.push_str(&line);
            numbers.push(hit.stored.seq.to_string());
        }
        if numbers.is_empty() {
            return Ok("Nothing that was said has any of these words.".to_owned().into());
        }
        Ok(ToolOutput {
            told: told.to_string(),
            kept: format!("(Found what was said in the messages {})", numbers.join(", ")),
        })
    }

    /// Searches for messages that contain any of the words, best first. Leaves out what no prompt would hold:
    /// messages that were cleared, pruned, expired or heard with low confidence, and those of other threads.
    async fn recall(
        &self,
        words: &str,
        most: usize,
        utterance: Option<u64>,
    ) -> Result<Vec<SearchHit>> {
        let profile = self.store.profile().await?;
        let now = self.clock.now().timestamp();
        let after = self.prompts.started_after();
        let least = self.prompts.min_confidence;
        let is_doubted = |message: &ChatMessage| {
            message.confidence().zip(least).is_some_and(|(confidence, least)| confidence < least)
        };
        let may_see = |stored: &StoredMessage| {
            let message = &stored.message;
            stored.seq > after
                && utterance.is_none_or(|utterance| stored.seq < utterance)
                && message.role != ChatRole::Tool
                && message.thread_id == self.prompts.thread
                && !message.has_expired(now)
                && !profile.hides(stored)
                && !profile.is_pruned(stored.seq)
        };
        // Whether an answer belongs to a doubtful utterance is known from the messages before it.
        let before = if least.is_some() { HITS } else { 0 };
        let options = SearchOptions::new(most * PART).any(true).around(before);
        let mut hits = search_in(&*self.store, words, &options, may_see).await?.hits;
        hits.retain(|hit| {
            let newest_first = hit.before.iter().rev().map(|stored| &stored.message);
            let asked = std::iter::once(&hit.stored.message).chain(newest_first);
            !asked.into_iter().find(|message| message.starts_exchange()).is_some_and(is_doubted)
        });
        hits.truncate(most);
        Ok(hits)
    }
}

/// One line for a message, with at most `most` bytes of its text.
fn line(message: &ChatMessage, most: usize) -> String {
    let from = match (message.role, message.speaker()) {
        (ChatRole::User, Some(speaker)) => speaker,
        (ChatRole::System, _) => "note",
        (role, _) => role.as_str(),
    };
    let mut words = message.content.split_whitespace().collect::<Vec<_>>().join(" ");
    if words.len() > most {
        let end = (0..=most).rev().find(|end| words.is_char_boundary(*end));
        words.truncate(end.unwrap_or(0));
        words.push('…');
    }
    let mut line = String::new();
    // Writing to a string cannot fail.
    let _ = writeln!(line, "- {}, {from}: {words}", said_when(message));
    line
}

/// The arguments of a call. Some models pass numbers as strings, and some pass everything as one string.
struct Arguments(Value);

impl Arguments {
    fn of(given: &Value) -> Self {
        let parsed = given.as_str().and_then(|text| serde_json::from_str(text).ok());
        Self(parsed.unwrap_or_else(|| given.clone()))
    }

    fn text(&self, name: &str) -> Option<String> {
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
