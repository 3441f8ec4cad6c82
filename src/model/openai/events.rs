//! Parses OpenAI's answers: events or one document.

use std::time::Duration;

use serde::Deserialize;
use serde_json::Value;
use zeroize::Zeroize;

use super::calls::{CallFragment, Calls};
use crate::model::Usage;
use crate::model::http::{Protocol, ReplyItem, words};

/// The format of OpenAI's answers: events with one line `data: {…}` each, or one JSON document.
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
    choices: Vec<Choice>,
    usage: Option<Counts>,
    timings: Option<Timings>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Choice {
    index: u64,
    delta: Option<Message>,
    message: Option<Message>,
    finish_reason: Option<String>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Message {
    content: Option<String>,
    refusal: Option<String>,
    /// The field of llama.cpp, LM Studio and vLLM.
    reasoning_content: Option<String>,
    /// The field of newer vLLM.
    reasoning: Option<String>,
    tool_calls: Option<Vec<CallFragment>>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Counts {
    prompt_tokens: Option<u64>,
    completion_tokens: Option<u64>,
    prompt_tokens_details: Option<Details>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Details {
    cached_tokens: Option<u64>,
}

/// llama.cpp's timings.
#[derive(Deserialize, Default)]
#[serde(default)]
struct Timings {
    cache_n: Option<u64>,
    prompt_ms: Option<f64>,
    predicted_ms: Option<f64>,
}

impl Protocol for Events {
    fn read(&mut self, line: &[u8], said: &mut Vec<ReplyItem>) -> Result<(), &'static str> {
        let data = match line.trim_ascii() {
            // A whole answer.
            whole @ [b'{', ..] => whole,
            [] | [b':', ..] => return Ok(()),
            line => match field(line).ok_or("one of its lines is not an event")? {
                ("data" | "error", data) => data,
                _ => return Ok(()),
            },
        };
        if data == b"[DONE]" {
            self.finish(said);
            return Ok(());
        }
        let chunk: Chunk = match data {
            // serde would read a list as the fields in order.
            [b'{', ..] => serde_json::from_slice(data).ok(),
            _ => None,
        }
        .ok_or("one of its events is not chat-completions JSON")?;
        self.add(chunk, said)
    }

    fn end(&mut self, said: &mut Vec<ReplyItem>) -> Result<(), &'static str> {
        if self.stopped.is_some() {
            self.finish(said);
        }
        Ok(())
    }
}

impl Events {
    fn add(&mut self, chunk: Chunk, said: &mut Vec<ReplyItem>) -> Result<(), &'static str> {
        if let Some(error) = chunk.error.filter(|error| !error.is_null()) {
            said.push(ReplyItem::Complaint(words(&error).unwrap_or_default()));
            return Ok(());
        }
        self.count(chunk.usage, chunk.timings);
        for choice in chunk.choices.into_iter().filter(|choice| choice.index == 0) {
            let message = choice.message.or(choice.delta).unwrap_or_default();
            for mut thought in [message.reasoning_content, message.reasoning].into_iter().flatten()
            {
                if !thought.is_empty() {
                    said.push(ReplyItem::Thought(thought.len()));
                }
                thought.zeroize();
            }
            let texts = [message.content, message.refusal].into_iter().flatten();
            said.extend(texts.filter(|text| !text.is_empty()).map(ReplyItem::Text));
            for piece in message.tool_calls.unwrap_or_default() {
                self.calls.add(piece, said)?;
            }
            self.stopped = choice.finish_reason.or(self.stopped.take());
        }
        Ok(())
    }

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

    fn finish(&mut self, said: &mut Vec<ReplyItem>) {
        if std::mem::replace(&mut self.over, true) {
            return;
        }
        let calls = self.calls.take();
        if !calls.is_empty() {
            said.push(ReplyItem::Calls(calls));
        }
        let cut = self.stopped.as_deref() == Some("length");
        said.push(ReplyItem::Done(Usage { cut, ..std::mem::take(&mut self.usage) }));
    }
}

/// An event's field: its name, and its value without the space before it.
fn field(line: &[u8]) -> Option<(&str, &[u8])> {
    let colon = line.iter().position(|byte| *byte == b':')?;
    let (name, value) = line.split_at_checked(colon)?;
    let name =
        str::from_utf8(name).ok().filter(|name| name.bytes().all(|b| b.is_ascii_lowercase()))?;
    Some((name, value.get(1..)?.trim_ascii_start()))
}
