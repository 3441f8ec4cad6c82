//! Parses OpenAI's chat completions.

use std::time::Duration;

use serde::Deserialize;
use serde_json::Value;

use super::calls::{CallFragment, Calls};
use super::counts;
use super::protocol::{Protocol, ReplyItem, Said};
use super::words::Words;
use crate::model::Usage;
use crate::model::http::words;

/// The format of OpenAI's chat completions: an object for each event, or one for a whole answer.
#[derive(Default)]
pub(super) struct Events {
    calls: Calls,
    usage: Usage,
    /// Why the model has stopped, if it has.
    stopped: Option<String>,
    over: bool,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Chunk {
    error: Option<Value>,
    choices: Option<Vec<Choice>>,
    usage: Option<Counts>,
    timings: Option<Timings>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Choice {
    index: Option<u64>,
    delta: Option<Message>,
    message: Option<Message>,
    finish_reason: Option<String>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Message {
    content: Option<Words>,
    refusal: Option<Words>,
    /// The field of llama.cpp, LM Studio and vLLM.
    reasoning_content: Option<Words>,
    /// The field of newer vLLM.
    reasoning: Option<Words>,
    tool_calls: Option<Vec<CallFragment>>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Counts {
    #[serde(deserialize_with = "counts::whole")]
    prompt_tokens: Option<u64>,
    #[serde(deserialize_with = "counts::whole")]
    completion_tokens: Option<u64>,
    prompt_tokens_details: Option<Details>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Details {
    #[serde(deserialize_with = "counts::whole")]
    cached_tokens: Option<u64>,
}

/// llama.cpp's timings.
#[derive(Deserialize, Default)]
#[serde(default)]
struct Timings {
    #[serde(deserialize_with = "counts::whole")]
    cache_n: Option<u64>,
    #[serde(deserialize_with = "counts::number")]
    prompt_ms: Option<f64>,
    #[serde(deserialize_with = "counts::number")]
    predicted_ms: Option<f64>,
}

impl Protocol for Events {
    fn read(&mut self, json: &[u8], said: &mut Said) -> Result<(), &'static str> {
        let chunk: Chunk = serde_json::from_slice(json)
            .map_err(|_| "one of its events is not chat-completions JSON")?;
        if let Some(error) = chunk.error.filter(|error| !error.is_null()) {
            said.add(ReplyItem::Complaint(words(&error).unwrap_or_default()));
            return Ok(());
        }
        self.count(chunk.usage, chunk.timings);
        let choices = chunk.choices.unwrap_or_default().into_iter();
        for choice in choices.filter(|choice| choice.index.unwrap_or(0) == 0) {
            // Some servers send all words so far as `message` beside each `delta`.
            let is_whole = choice.delta.is_none() && choice.message.is_some();
            let message = choice.delta.or(choice.message).unwrap_or_default();
            for thought in [message.reasoning_content, message.reasoning].iter().flatten() {
                if thought.len() > 0 {
                    said.add(ReplyItem::Thought(thought.len()));
                }
            }
            [message.content, message.refusal].iter().flatten().for_each(|words| said.words(words));
            for piece in message.tool_calls.unwrap_or_default() {
                self.calls.add(piece, said)?;
            }
            // Some servers send an empty reason, or the word null, with every event.
            let reason = choice.finish_reason.filter(|reason| !["", "null"].contains(&&**reason));
            let is_over = is_whole && reason.is_some();
            let reason = reason.or_else(|| is_whole.then(|| "stop".to_owned()));
            self.stopped = reason.or(self.stopped.take());
            if is_over {
                self.end(true, said);
            }
        }
        Ok(())
    }

    /// Words may follow the reason to stop, so only the mark or the end of the bytes ends the answer.
    fn end(&mut self, is_marked: bool, said: &mut Said) {
        if !(is_marked || self.stopped.is_some()) || std::mem::replace(&mut self.over, true) {
            return;
        }
        let calls = self.calls.take();
        if !calls.is_empty() {
            said.add(ReplyItem::Calls(calls));
        }
        let cut = self.stopped.as_deref() == Some("length");
        said.add(ReplyItem::Done(Usage { cut, ..std::mem::take(&mut self.usage) }));
    }
}

impl Events {
    fn count(&mut self, counts: Option<Counts>, timings: Option<Timings>) {
        let (usage, time) = (&mut self.usage, |ms: f64| Duration::try_from_secs_f64(ms / 1e3).ok());
        if let Some(timings) = timings {
            usage.cached_tokens = timings.cache_n.or(usage.cached_tokens);
            usage.prompt_time = timings.prompt_ms.and_then(time);
            usage.answer_time = timings.predicted_ms.and_then(time);
        }
        if let Some(counts) = counts {
            usage.prompt_tokens = counts.prompt_tokens;
            usage.answer_tokens = counts.completion_tokens;
            let cached = counts.prompt_tokens_details.and_then(|details| details.cached_tokens);
            usage.cached_tokens = cached.or(usage.cached_tokens);
        }
    }
}
