//! One line of an answer.

use std::time::Duration;

use serde::Deserialize;
use serde_json::Value;
use zeroize::Zeroize;

use crate::llm::{ReplyPart, Usage};
use crate::message::ToolCall;

/// A line of `/api/chat` or `/api/generate`. Everything may be missing, as the last line of the one or an error
/// leaves out most of it.
#[derive(Deserialize, Default)]
#[serde(default)]
pub(super) struct Chunk {
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
    #[serde(default)]
    arguments: Value,
}

impl From<Call> for ToolCall {
    fn from(call: Call) -> Self {
        Self {
            id: call.id.unwrap_or_default(),
            name: call.function.name,
            arguments: call.function.arguments,
        }
    }
}

impl Chunk {
    /// The server's complaint, where the line is one.
    pub(super) fn complaint(&self) -> Option<&str> {
        self.error.as_ref().map(|error| error.as_str().unwrap_or_default())
    }

    /// Whether another machine wrote it.
    pub(super) fn is_remote(&self) -> bool {
        let named = |name: &Option<String>| name.as_ref().is_some_and(|name| !name.is_empty());
        named(&self.remote_host) || named(&self.remote_model)
    }

    /// What it says, in order; [`ReplyPart::Thinking`] for any thought.
    pub(super) fn into_parts(self) -> impl Iterator<Item = ReplyPart> {
        let done = self.done.unwrap_or_default().then(|| ReplyPart::Done(self.usage()));
        let message = self.message.unwrap_or_default();
        let thoughts = [self.thinking, message.thinking].into_iter().flatten().map(thought);
        let thinks =
            thoughts.fold(false, |any, thought| any | thought).then_some(ReplyPart::Thinking);
        let texts = [self.response, message.content].into_iter().flatten();
        let texts = texts.filter(|text| !text.is_empty()).map(ReplyPart::Text);
        let calls: Vec<ToolCall> =
            message.tool_calls.unwrap_or_default().into_iter().map(ToolCall::from).collect();
        let calls = (!calls.is_empty()).then_some(ReplyPart::ToolCalls(calls));
        thinks.into_iter().chain(texts).chain(calls).chain(done)
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
        }
    }
}

/// Whether there is a thought; its words go no further.
fn thought(mut words: String) -> bool {
    let any = !words.is_empty();
    words.zeroize();
    any
}
