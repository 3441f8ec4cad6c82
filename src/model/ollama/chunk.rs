//! Parses one line of Ollama's answers.

use std::time::Duration;

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;
use zeroize::Zeroize;

use crate::model::Usage;
use crate::model::http::{Protocol, RawCall, ReplyItem, words};

/// The format of Ollama's answers: lines of JSON, or one line for a whole answer.
pub(super) struct Lines;

impl Protocol for Lines {
    fn read(&mut self, line: &[u8], said: &mut Vec<ReplyItem>) -> Result<(), &'static str> {
        let chunk = match line.trim_ascii() {
            [] => return Ok(()),
            // serde would read a list as the fields in order.
            line @ [b'{', ..] => serde_json::from_slice::<Chunk>(line).ok(),
            _ => None,
        };
        chunk.ok_or("one of its lines is not Ollama's JSON")?.add_to(said);
        Ok(())
    }
}

/// A line of `/api/chat` or `/api/generate`. Every field is optional, because the last line and errors leave out most
/// of them.
#[derive(Deserialize, Default)]
#[serde(default)]
struct Chunk {
    error: Option<Value>,
    message: Option<Message>,
    response: Option<String>,
    thinking: Option<String>,
    remote_host: Option<String>,
    remote_model: Option<String>,
    done: Option<bool>,
    done_reason: Option<String>,
    prompt_eval_count: Option<u64>,
    prompt_cached_count: Option<u64>,
    eval_count: Option<u64>,
    load_duration: Option<u64>,
    prompt_eval_duration: Option<u64>,
    eval_duration: Option<u64>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Message {
    content: Option<String>,
    thinking: Option<String>,
    tool_calls: Option<Vec<Call>>,
}

#[derive(Deserialize)]
struct Call {
    #[serde(default)]
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
    fn add_to(self, said: &mut Vec<ReplyItem>) {
        if let Some(error) = &self.error {
            return said.push(ReplyItem::Complaint(words(error).unwrap_or_default()));
        }
        if self.is_remote() {
            said.push(ReplyItem::Remote);
        }
        let done = self.done.unwrap_or_default().then(|| ReplyItem::Done(self.usage()));
        let message = self.message.unwrap_or_default();
        let thoughts = [self.thinking, message.thinking].into_iter().flatten();
        let thoughts: usize = thoughts.map(forgotten).sum();
        if thoughts > 0 {
            said.push(ReplyItem::Thought(thoughts));
        }
        let texts = [self.response, message.content].into_iter().flatten();
        said.extend(texts.filter(|text| !text.is_empty()).map(ReplyItem::Text));
        let calls = message.tool_calls.unwrap_or_default();
        let calls: Vec<_> = calls.into_iter().map(RawCall::from).collect();
        if !calls.is_empty() {
            said.extend(calls.iter().map(|call| ReplyItem::Call(call.bytes())));
            said.push(ReplyItem::Calls(calls));
        }
        said.extend(done);
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

/// The length of a thought, whose text is wiped.
fn forgotten(mut words: String) -> usize {
    let bytes = words.len();
    words.zeroize();
    bytes
}
