//! Parses the answers of OpenAI's responses.

use serde::Deserialize;
use serde_json::Value;

use super::counts;
use super::protocol::{Protocol, ReplyItem, Said};
use super::words::Words;
use crate::model::Usage;
use crate::model::http::words;

/// The format of OpenAI's responses: an object for each event, or one for a whole answer.
#[derive(Default)]
pub(super) struct Responses {
    has_words: bool,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Event {
    error: Option<Value>,
    #[serde(rename = "type")]
    kind: Option<String>,
    delta: Option<Words>,
    item: Option<Item>,
    response: Option<Response>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Item {
    #[serde(rename = "type")]
    kind: Option<String>,
    content: Option<Words>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Response {
    id: Option<String>,
    status: Option<String>,
    error: Option<Value>,
    output: Option<Vec<Item>>,
    usage: Option<Counts>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Counts {
    #[serde(deserialize_with = "counts::whole")]
    input_tokens: Option<u64>,
    #[serde(deserialize_with = "counts::whole")]
    output_tokens: Option<u64>,
    input_tokens_details: Option<Details>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Details {
    #[serde(deserialize_with = "counts::whole")]
    cached_tokens: Option<u64>,
}

impl Protocol for Responses {
    fn read(&mut self, json: &[u8], said: &mut Said) -> Result<(), &'static str> {
        let odd = |_| "one of its events is not JSON of OpenAI's responses";
        let event: Event = serde_json::from_slice(json).map_err(odd)?;
        match event.kind.as_deref() {
            _ if event.error.as_ref().is_some_and(|error| !error.is_null()) => {
                let error = event.error.unwrap_or_default();
                said.add(ReplyItem::Complaint(words(&error).unwrap_or_default()));
            }
            Some("response.output_text.delta") => {
                let delta = event.delta.unwrap_or_default();
                self.has_words |= delta.len() > 0;
                said.words(&delta);
            }
            Some("response.output_item.added") => self.call(event.item.as_ref(), said),
            Some("response.completed" | "response.incomplete" | "response.failed") => {
                self.whole(&event.response.unwrap_or_default(), said);
            }
            Some("error") => said.add(ReplyItem::Complaint(String::new())),
            Some(_) => {}
            None => {
                let whole: Response = serde_json::from_slice(json).map_err(odd)?;
                whole.output.iter().flatten().for_each(|item| self.call(Some(item), said));
                self.whole(&whole, said);
            }
        }
        Ok(())
    }

    fn end(&mut self, _is_marked: bool, _said: &mut Said) {}
}

impl Responses {
    fn call(&self, item: Option<&Item>, said: &mut Said) {
        if item.is_some_and(|item| item.kind.as_deref() == Some("function_call")) {
            said.add(ReplyItem::Call(0));
        }
    }

    /// The end of an answer. Its words stand in it too, unless they came before.
    fn whole(&mut self, response: &Response, said: &mut Said) {
        if !self.has_words {
            let messages = response.output.iter().flatten();
            let messages = messages.filter(|item| item.kind.as_deref() == Some("message"));
            messages.filter_map(|item| item.content.as_ref()).for_each(|words| said.words(words));
        }
        said.add(ReplyItem::Id(response.id.clone().unwrap_or_default()));
        if let Some("failed" | "cancelled") = response.status.as_deref() {
            let error = response.error.as_ref().and_then(words);
            return said.add(ReplyItem::Complaint(error.unwrap_or_default()));
        }
        let mut usage =
            Usage { cut: response.status.as_deref() == Some("incomplete"), ..Usage::default() };
        if let Some(counts) = &response.usage {
            usage.prompt_tokens = counts.input_tokens;
            usage.answer_tokens = counts.output_tokens;
            let details = counts.input_tokens_details.as_ref();
            usage.cached_tokens = details.and_then(|details| details.cached_tokens);
        }
        said.add(ReplyItem::Done(usage));
    }
}
