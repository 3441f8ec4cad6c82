//! Reads answers as they pass, in each of the forms: lines, events or one document.

use sottovoce::Error;
use zeroize::{Zeroize, Zeroizing};

use crate::request::{Form, Object};

/// The most bytes of a line, or of a document.
const LONGEST: usize = 32 << 20;

/// How the parts of an answer are told apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Framing {
    Lines,
    Events,
    Document,
}

/// How an answer ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    Whole,
    /// At its length limit.
    Length,
    /// With an error.
    Failed,
}

/// Reads one answer.
pub(crate) struct AnswerReader {
    form: Form,
    framing: Framing,
    held: Zeroizing<Vec<u8>>,
    /// The words so far.
    pub(crate) text: Zeroizing<String>,
    limit: usize,
    /// Whether the model calls functions.
    pub(crate) has_calls: bool,
    pub(crate) end: Option<End>,
    /// The id of the answer, if the server gives one that a request may continue.
    pub(crate) id: Option<String>,
    /// Tokens of the prompt, and those of them from the cache, as far as the server tells.
    pub(crate) prompt_tokens: u64,
    pub(crate) cached_tokens: u64,
}

impl AnswerReader {
    /// A reader of an answer. It keeps `limit` bytes of words.
    pub(crate) fn new(form: Form, limit: usize) -> Self {
        Self {
            form,
            framing: Framing::Document,
            held: Zeroizing::default(),
            text: Zeroizing::default(),
            limit,
            has_calls: false,
            end: None,
            id: None,
            prompt_tokens: 0,
            cached_tokens: 0,
        }
    }

    /// Sets how its parts are told apart, before the first piece.
    pub(crate) fn set_content_type(&mut self, kind: &str) {
        self.framing = match kind.split(';').next().unwrap_or_default().trim() {
            "text/event-stream" => Framing::Events,
            "application/x-ndjson" => Framing::Lines,
            _ => Framing::Document,
        };
    }

    /// Reads a piece.
    pub(crate) fn push(&mut self, piece: &[u8]) {
        if self.held.len() + piece.len() > LONGEST {
            // No answer of a model is that long, so nothing is recorded of it.
            self.held.zeroize();
            self.end = Some(End::Failed);
            return;
        }
        let mut held = std::mem::take(&mut self.held);
        held.extend_from_slice(piece);
        if self.framing != Framing::Document {
            let mut rest = &held[..];
            while let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
                let (line, after) = rest.split_at(end);
                self.line(line);
                rest = after.get(1..).unwrap_or_default();
            }
            let read = held.len() - rest.len();
            held.copy_within(read.., 0);
            let left = held.len() - read;
            held.truncate(left);
        }
        self.held = held;
    }

    /// Reads what is left after the last piece.
    pub(crate) fn finish(&mut self) {
        let held = std::mem::take(&mut self.held);
        self.line(&held);
    }

    /// Whether the whole answer is in one document.
    pub(crate) fn is_document(&self) -> bool {
        self.framing == Framing::Document
    }

    fn line(&mut self, line: &[u8]) {
        let Ok(line) = str::from_utf8(line) else { return };
        let json = match self.framing {
            Framing::Events => match line.strip_prefix("data:") {
                Some(data) => data.trim(),
                None => return,
            },
            Framing::Lines | Framing::Document => line.trim(),
        };
        let Some(fields) = Object::parse(json) else { return };
        if fields.raw("error").is_some() {
            self.end = Some(End::Failed);
            return;
        }
        match self.form {
            Form::OllamaChat | Form::OllamaGenerate => self.ollama(&fields),
            Form::OpenAiChat => self.completion(&fields),
            Form::OpenAiResponses => self.response(&fields),
        }
    }

    fn ollama(&mut self, fields: &Object<'_>) {
        if let Some(message) = fields.object("message") {
            self.say(message.text("content"));
            self.has_calls |= message.array("tool_calls").is_some_and(|calls| !calls.is_empty());
        }
        self.say(fields.text("response"));
        if fields.is_true("done") {
            self.prompt_tokens = count(fields, "prompt_eval_count");
            self.ends(fields.text("done_reason").as_deref() == Some("length"));
        }
    }

    fn completion(&mut self, fields: &Object<'_>) {
        self.usage(fields, "prompt_tokens");
        let choices = fields.array("choices").unwrap_or_default();
        let Some(choice) = choices.first().and_then(|raw| Object::parse(raw.get())) else { return };
        if choice.number("index").is_some_and(|index| index > 0.0) {
            return;
        }
        if let Some(message) = choice.object("delta").or_else(|| choice.object("message")) {
            self.say(message.text("content"));
            self.has_calls |= message.array("tool_calls").is_some_and(|calls| !calls.is_empty());
        }
        if let Some(reason) = choice.text("finish_reason") {
            self.ends(reason == "length");
        }
    }

    fn response(&mut self, fields: &Object<'_>) {
        match fields.text("type").as_deref() {
            Some("response.output_text.delta") => self.say(fields.text("delta")),
            Some("response.output_item.added" | "response.output_item.done") => {
                let kind = fields.object("item").and_then(|item| item.text("type"));
                self.has_calls |= kind.as_deref() == Some("function_call");
            }
            Some("response.completed" | "response.incomplete" | "response.failed") => {
                let Some(response) = fields.object("response") else { return };
                self.id = response.text("id");
                self.ended_response(&response);
            }
            Some(_) => {}
            None => {
                for item in fields.array("output").unwrap_or_default() {
                    let Some(item) = Object::parse(item.get()) else { continue };
                    self.has_calls |= item.text("type").as_deref() == Some("function_call");
                    for part in item.array("content").unwrap_or_default() {
                        self.say(Object::parse(part.get()).and_then(|part| part.text("text")));
                    }
                }
                self.id = fields.text("id");
                self.ended_response(fields);
            }
        }
    }

    /// Reads OpenAI's counts, if they are there. `prompt` is the name of the prompt's.
    fn usage(&mut self, fields: &Object<'_>, prompt: &str) {
        let Some(usage) = fields.object("usage") else { return };
        self.prompt_tokens = count(&usage, prompt);
        let details = usage.object(&format!("{prompt}_details"));
        self.cached_tokens = details.map_or(0, |details| count(&details, "cached_tokens"));
    }

    fn ended_response(&mut self, response: &Object<'_>) {
        self.usage(response, "input_tokens");
        match response.text("status").as_deref() {
            Some("failed" | "cancelled") => self.end = Some(End::Failed),
            Some("incomplete") => self.ends(true),
            _ => self.ends(false),
        }
    }

    fn say(&mut self, words: Option<String>) {
        let Some(words) = words.map(Zeroizing::new) else { return };
        let room = self.limit.saturating_sub(self.text.len());
        let end = (0..=room.min(words.len())).rev().find(|end| words.is_char_boundary(*end));
        self.text.push_str(words.get(..end.unwrap_or(0)).unwrap_or_default());
    }

    fn ends(&mut self, is_cut: bool) {
        let is_cut = is_cut || self.text.len() >= self.limit;
        self.end = self.end.or(Some(if is_cut { End::Length } else { End::Whole }));
    }
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a count is small")]
fn count(fields: &Object<'_>, name: &str) -> u64 {
    fields.number(name).map_or(0, |count| count as u64)
}

/// The words of an answer without the thoughts before them, if the server left them in.
pub(crate) fn spoken(text: &str) -> &str {
    let Some(thoughts) = text.trim_start().strip_prefix("<think>") else { return text };
    thoughts.split_once("</think>").map_or("", |(_, said)| said.trim_start())
}

/// The reason for an error of the store, with advice, in words for a client.
pub(crate) fn reason(error: &Error) -> String {
    error.for_clients(error.help())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(form: Form, kind: &str, body: &str, every: usize) -> AnswerReader {
        let mut reader = AnswerReader::new(form, 1000);
        reader.set_content_type(kind);
        for piece in body.as_bytes().chunks(every) {
            reader.push(piece);
        }
        reader.finish();
        reader
    }

    #[test]
    fn the_words_are_the_same_however_the_bytes_come() {
        let lines = "{\"message\":{\"content\":\"It is \"},\"done\":false}\n{\"message\":{\"content\":\"é.\"},\"done\":false}\n{\"message\":{\"content\":\"\"},\"done\":true}\n";
        let generated = "{\"response\":\"It is é.\",\"done\":true,\"done_reason\":\"stop\"}";
        let events = ": still here\n\ndata: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"It is é.\"}}]}\r\n\r\ndata: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: {\"choices\":[]}\n\ndata: [DONE]\n\n";
        let whole = "{\n \"choices\": [{\"message\": {\"content\": \"It is é.\"},\n \"finish_reason\": \"stop\"}]}";
        let response = "event: x\ndata: {\"type\":\"response.output_text.delta\",\"delta\":\"It is é.\"}\n\nevent: y\ndata: {\"type\":\"response.completed\",\"response\":{\"id\":\"r1\",\"status\":\"completed\",\"output\":[]}}\n\n";
        let document = "{\"id\":\"r1\",\"status\":\"completed\",\"output\":[{\"type\":\"message\",\"content\":[{\"type\":\"output_text\",\"text\":\"It is é.\"}]}]}";
        for (form, kind, body) in [
            (Form::OllamaChat, "application/x-ndjson", lines),
            (Form::OllamaGenerate, "application/json; charset=utf-8", generated),
            (Form::OpenAiChat, "text/event-stream; charset=utf-8", events),
            (Form::OpenAiChat, "application/json", whole),
            (Form::OpenAiResponses, "text/event-stream", response),
            (Form::OpenAiResponses, "application/json", document),
        ] {
            for every in [1, 3, 7, 10_000] {
                let reader = read(form, kind, body, every);
                assert_eq!(*reader.text, "It is é.", "{form:?} {every}");
                assert_eq!((reader.end, reader.has_calls), (Some(End::Whole), false));
                let is_named = form == Form::OpenAiResponses;
                assert_eq!(reader.id.as_deref(), is_named.then_some("r1"));
            }
        }
    }

    #[test]
    fn an_answer_that_was_cut_or_failed_is_not_whole() {
        let kind = "application/x-ndjson";
        let cut = "{\"message\":{\"content\":\"It\"},\"done\":true,\"done_reason\":\"length\"}\n";
        assert_eq!(read(Form::OllamaChat, kind, cut, 9).end, Some(End::Length));
        let failed = "{\"message\":{\"content\":\"It\"},\"done\":false}\n{\"error\":\"boom\"}\n";
        let failed = read(Form::OllamaChat, kind, failed, 9);
        assert_eq!((failed.end, failed.text.as_str()), (Some(End::Failed), "It"));
        assert_eq!(read(Form::OllamaChat, kind, "garbage\n\n\u{0}", 2).end, None);
        let mut short = AnswerReader::new(Form::OllamaChat, 4);
        short.set_content_type(kind);
        short.push("{\"message\":{\"content\":\"abcéf\"},\"done\":true}\n".as_bytes());
        assert_eq!((short.text.as_str(), short.end), ("abc", Some(End::Whole)));
    }

    #[test]
    fn thoughts_are_no_part_of_what_was_said() {
        assert_eq!(spoken("<think>\nhm\n</think>\n\nYes."), "Yes.");
        assert_eq!(spoken("\n<think>hm"), "");
        assert_eq!(spoken("I think so."), "I think so.");
    }
}
