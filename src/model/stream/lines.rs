//! Parses one object of Ollama's answers.

use std::time::Duration;

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::counts;
use super::protocol::{Protocol, RawCall, ReplyItem, Said};
use super::words::Words;
use crate::model::Usage;
use crate::model::http::words;

/// The format of Ollama's answers: an object for each piece, or one for a whole answer.
pub(super) struct Lines;

impl Protocol for Lines {
    fn read(&mut self, json: &[u8], said: &mut Said) -> Result<(), &'static str> {
        let chunk = serde_json::from_slice::<Chunk>(json);
        chunk.map_err(|_| "one of its lines is not Ollama's JSON")?.add_to(said);
        Ok(())
    }

    fn end(&mut self, is_marked: bool, said: &mut Said) {
        if is_marked {
            said.add(ReplyItem::Done(Usage::default()));
        }
    }
}

/// A line of `/api/chat` or `/api/generate`. Every field is optional, because the last line and errors leave out most
/// of them.
#[derive(Deserialize, Default)]
#[serde(default)]
struct Chunk {
    error: Option<Value>,
    message: Option<Message>,
    response: Option<Words>,
    thinking: Option<Words>,
    remote_host: Option<String>,
    remote_model: Option<String>,
    done: Option<bool>,
    done_reason: Option<String>,
    #[serde(deserialize_with = "counts::whole")]
    prompt_eval_count: Option<u64>,
    #[serde(deserialize_with = "counts::whole")]
    prompt_cached_count: Option<u64>,
    #[serde(deserialize_with = "counts::whole")]
    eval_count: Option<u64>,
    #[serde(deserialize_with = "counts::whole")]
    load_duration: Option<u64>,
    #[serde(deserialize_with = "counts::whole")]
    prompt_eval_duration: Option<u64>,
    #[serde(deserialize_with = "counts::whole")]
    eval_duration: Option<u64>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Message {
    content: Option<Words>,
    thinking: Option<Words>,
    tool_calls: Option<Vec<Call>>,
}

#[derive(Deserialize)]
struct Call {
    id: Option<String>,
    function: Function,
}

#[derive(Deserialize)]
struct Function {
    name: String,
    arguments: Option<Box<RawValue>>,
}

impl From<Call> for RawCall {
    fn from(call: Call) -> Self {
        let Function { name, arguments } = call.function;
        let arguments = arguments.map_or_else(|| "null".into(), Box::<str>::from);
        Self { id: call.id.unwrap_or_default(), name, arguments: arguments.into() }
    }
}

impl Chunk {
    /// Adds the line's items in order.
    fn add_to(self, said: &mut Said) {
        if let Some(error) = &self.error {
            return said.add(ReplyItem::Complaint(words(error).unwrap_or_default()));
        }
        if self.is_remote() {
            said.add(ReplyItem::Remote);
        }
        let done = self.done.unwrap_or_default().then(|| ReplyItem::Done(self.usage()));
        let message = self.message.unwrap_or_default();
        let thoughts = [self.thinking, message.thinking].iter().flatten().map(Words::len).sum();
        if thoughts > 0 {
            said.add(ReplyItem::Thought(thoughts));
        }
        [self.response, message.content].iter().flatten().for_each(|words| said.words(words));
        let calls = message.tool_calls.unwrap_or_default();
        let calls: Vec<_> = calls.into_iter().map(RawCall::from).collect();
        if !calls.is_empty() {
            calls.iter().for_each(|call| said.add(ReplyItem::Call(call.bytes())));
            said.add(ReplyItem::Calls(calls));
        }
        done.into_iter().for_each(|done| said.add(done));
    }

    /// Whether another machine wrote the answer.
    fn is_remote(&self) -> bool {
        let named = |name: &Option<String>| name.as_ref().is_some_and(|name| !name.is_empty());
        named(&self.remote_host) || named(&self.remote_model)
    }

    fn usage(&self) -> Usage {
        Usage {
            prompt_tokens: self.prompt_eval_count,
            cached_tokens: self.prompt_cached_count,
            answer_tokens: self.eval_count,
            load_time: self.load_duration.map(Duration::from_nanos),
            prompt_time: self.prompt_eval_duration.map(Duration::from_nanos),
            answer_time: self.eval_duration.map(Duration::from_nanos),
            cut: self.done_reason.as_deref() == Some("length"),
            cut_at: None,
        }
    }
}
