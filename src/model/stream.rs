//! Reads the body of a model server's answer as it arrives.

mod buffer;
mod calls;
mod counts;
mod events;
mod lines;
mod protocol;
mod responses;
mod words;

use buffer::Buffer;
use events::Events;
use lines::Lines;
use protocol::{Protocol, Said};
pub use protocol::{RawCall, ReplyItem};
use responses::Responses;

/// What an answer is written in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum AnswerForm {
    /// As Ollama answers `/api/chat` and `/api/generate`.
    Ollama,
    /// As OpenAI answers `/v1/chat/completions`.
    ChatCompletions,
    /// As OpenAI answers `/v1/responses`.
    Responses,
}

/// Reads one answer: lines of JSON, events, or one document, whatever the server says that it sends.
///
/// [`push`](Self::push) takes the bytes as they come, [`next`](Self::next) gives what they say, and
/// [`finish`](Self::finish) tells that no more come. Of what is not complete yet, [`held`](Self::held) bytes are kept; the
/// caller sets their limit. The time is linear in the length of the answer. `Debug` shows no words.
pub struct AnswerReader {
    buffer: Buffer,
    protocol: Box<dyn Protocol>,
    said: Said,
}

impl AnswerReader {
    /// A reader of one answer.
    pub fn new(form: AnswerForm) -> Self {
        let protocol: Box<dyn Protocol> = match form {
            AnswerForm::Ollama => Box::new(Lines),
            AnswerForm::ChatCompletions => Box::new(Events::default()),
            AnswerForm::Responses => Box::new(Responses::default()),
        };
        Self { buffer: Buffer::default(), protocol, said: Said::default() }
    }

    /// Takes bytes.
    pub fn push(&mut self, bytes: &[u8]) {
        self.buffer.push(bytes);
    }

    /// The next item; `None` until more bytes come.
    ///
    /// # Errors
    /// What is wrong with a part of the answer, without its words. The parts after it can be read all the same.
    #[allow(clippy::should_implement_trait, reason = "more may come after None")]
    pub fn next(&mut self) -> Option<Result<ReplyItem, &'static str>> {
        loop {
            if let Some(item) = self.said.items.pop_front() {
                return Some(item);
            }
            let part = self.buffer.part()?;
            read(&mut *self.protocol, part, &mut self.said);
        }
    }

    /// Reads the bytes after the last complete part, since no more come. [`next`](Self::next) gives what is left. Without
    /// a [`ReplyItem::Done`] by then the answer is not whole.
    pub fn finish(&mut self) {
        while let Some(part) = self.buffer.part() {
            read(&mut *self.protocol, part, &mut self.said);
        }
        read(&mut *self.protocol, self.buffer.rest(), &mut self.said);
        self.protocol.end(false, &mut self.said);
    }

    /// The bytes of a part that is not complete yet.
    pub fn held(&self) -> usize {
        self.buffer.len()
    }
}

/// Reads a part: an object, or a line of an event.
fn read(protocol: &mut dyn Protocol, part: &[u8], said: &mut Said) {
    let outcome = match part.trim_ascii() {
        [] | [b':', ..] => Ok(()),
        object @ [b'{', ..] => protocol.read(object, said),
        line => match field(line) {
            Some(("data" | "error", b"[DONE]")) => {
                protocol.end(true, said);
                Ok(())
            }
            Some(("data" | "error", object @ [b'{', ..])) => protocol.read(object, said),
            Some(("data" | "error", [])) => Ok(()),
            Some(("data" | "error", _)) => Err("one of its events is not a JSON object"),
            Some(_) => Ok(()),
            None => Err("one of its lines is neither a JSON object nor an event"),
        },
    };
    if let Err(reason) = outcome {
        said.items.push_back(Err(reason));
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

debug_shows!(AnswerReader as it: held = it.held());

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Usage;

    /// The words of an answer, and its usage if it is whole.
    fn read_in(form: AnswerForm, body: &[u8], every: usize) -> (String, Option<Usage>, bool) {
        let mut reader = AnswerReader::new(form);
        let (mut text, mut usage, mut is_odd) = (String::new(), None, false);
        let mut take = |reader: &mut AnswerReader| {
            while let Some(item) = reader.next() {
                match item {
                    Ok(ReplyItem::Text(words)) => text += &words,
                    Ok(ReplyItem::Done(end)) => usage = Some(end),
                    Ok(_) => {}
                    Err(_) => is_odd = true,
                }
            }
        };
        for piece in body.chunks(every) {
            reader.push(piece);
            take(&mut reader);
        }
        reader.finish();
        take(&mut reader);
        (text, usage, is_odd)
    }

    /// Reads it in pieces of each of these lengths, which makes no difference.
    fn read(form: AnswerForm, body: &[u8]) -> (String, Option<Usage>, bool) {
        let whole = read_in(form, body, 100_000);
        for every in [1, 2, 3, 7, 40] {
            assert_eq!(read_in(form, body, every), whole, "{every}");
        }
        whole
    }

    fn event(fields: &str) -> String {
        format!("data: {{\"choices\":[{{\"index\":0,{fields}}}]}}\n\n")
    }

    fn says(words: &str) -> String {
        event(&format!("\"delta\":{{\"content\":\"{words}\"}}"))
    }

    const DONE: &str = "data: [DONE]\n\n";

    #[test]
    fn an_answer_is_read_whole_however_a_server_writes_it() {
        use AnswerForm::{ChatCompletions, Ollama, Responses};
        let line =
            |words: &str| format!("{{\"message\":{{\"content\":\"{words}\"}},\"done\":false}}");
        let end = "{\"message\":{\"content\":\"\"},\"done\":true,\"done_reason\":\"stop\"}";
        let lines = format!("{}\n{}\n{end}\n", line("It is "), line("é."));
        let reasons = |reason: &str| {
            let piece = |words: &str| {
                event(&format!("\"delta\":{{\"content\":\"{words}\"}},\"finish_reason\":{reason}"))
            };
            piece("It ") + &piece("is ") + &piece("é.")
        };
        let stop = event("\"delta\":{},\"finish_reason\":\"stop\"");
        let delta = "{\"type\":\"response.output_text.delta\",\"delta\":\"It is é.\"}";
        let completed = |output: &str| {
            format!(
                "{{\"type\":\"response.completed\",\"response\":{{\"id\":\"r\",\"status\":\"completed\",\"output\":{output}}}}}"
            )
        };
        let output = "[{\"type\":\"reasoning\",\"content\":[{\"type\":\"reasoning_text\",\"text\":\"Hm.\"}]},{\"type\":\"message\",\"content\":[{\"type\":\"output_text\",\"text\":\"It is é.\"}]}]";
        for (what, form, body) in [
            ("lines", Ollama, lines.clone()),
            ("lines with CRLF", Ollama, lines.replace('\n', "\r\n")),
            ("no end of the last line", Ollama, lines.trim_end().to_owned()),
            ("objects in one line", Ollama, lines.replace('\n', "")),
            ("a byte order mark", Ollama, format!("\u{feff}{lines}")),
            ("lines as events", Ollama, format!("data: {}\n\ndata: {end}\n\n", line("It is é."))),
            ("events that end with a mark", Ollama, format!("data: {}\n\n{DONE}", line("It is é."))),
            ("a generated text", Ollama, "{\"response\":\"It is é.\",\"done\":true}".into()),
            ("a document over lines", Ollama, "\n{\n \"message\": {\n  \"content\": \"It is é.\"\n },\n \"done\": true\n}\n".into()),
            ("events", ChatCompletions, format!(": here\n\nevent: x\n{}{stop}{DONE}", says("It is é."))),
            ("events with CRLF", ChatCompletions, format!("{}{stop}{DONE}", says("It is é.")).replace('\n', "\r\n")),
            ("no space behind data", ChatCompletions, format!("{}{stop}{DONE}", says("It is é.")).replace("data: ", "data:")),
            ("an empty reason in each event", ChatCompletions, reasons("\"\"") + &stop + DONE),
            ("the word null in each event", ChatCompletions, reasons("\"null\"") + &stop + DONE),
            ("stop in each event", ChatCompletions, reasons("\"stop\"") + DONE),
            ("words after the reason", ChatCompletions, format!("{}{stop}{}{DONE}", says("It "), says("is é."))),
            ("no reason, but the mark", ChatCompletions, says("It is é.") + DONE),
            ("a reason, but no mark", ChatCompletions, says("It is é.") + &stop),
            ("a list of choices that is null", ChatCompletions, format!("{}data: {{\"choices\":null}}\n\n{stop}{DONE}", says("It is é."))),
            ("the text as parts", ChatCompletions, event("\"delta\":{\"content\":[{\"type\":\"thinking\"},{\"type\":\"text\",\"text\":\"It is é.\"}]}") + DONE),
            ("all words beside the new ones", ChatCompletions, event("\"delta\":{\"content\":\"It is \"},\"message\":{\"content\":\"It is \"}") + &event("\"delta\":{\"content\":\"é.\"},\"message\":{\"content\":\"It is é.\"}") + DONE),
            ("another choice", ChatCompletions, format!("{}{}{DONE}", says("It is é."), says("No").replace("\"index\":0", "\"index\":1"))),
            ("a document", ChatCompletions, "{\n \"choices\": [{\"message\": {\"content\": \"It is é.\"},\n \"finish_reason\": \"stop\"}]}".into()),
            ("a document without a reason", ChatCompletions, "{\"choices\":[{\"message\":{\"content\":\"It is é.\"}}]}".into()),
            ("an emoji in two events", ChatCompletions, says("\\ud83c").replace("\\ud83c", "It is \\u00e9") + &says(".") + DONE),
            ("events of a response", Responses, format!("event: a\ndata: {delta}\n\nevent: b\ndata: {}\n\n", completed("[]"))),
            ("words that come again at the end", Responses, format!("data: {delta}\n\ndata: {}\n\n", completed(output))),
            ("words at the end only", Responses, format!("data: {}\n\n", completed(output))),
            ("a response as a document", Responses, format!("{{\"id\":\"r\",\"error\":null,\"status\":\"completed\",\"output\":{output}}}")),
        ] {
            let (text, usage, is_odd) = read(form, body.as_bytes());
            assert_eq!(text, "It is é.", "{what}");
            assert!(usage.is_some_and(|usage| !usage.cut) && !is_odd, "{what}");
        }
    }

    #[test]
    fn a_character_that_is_cut_in_two_is_joined() {
        for (first, second, whole) in [
            ("Rain \\ud83c", "\\udf27 now", "Rain 🌧 now"),
            ("Rain \\ud83c", "now", "Rain \u{fffd}now"),
            ("Rain \\udf27", "\\ud83c", "Rain \u{fffd}\u{fffd}"),
            ("\\ud83c\\udf27", "\\ud83c\\ud83c\\udf27", "🌧\u{fffd}🌧"),
        ] {
            let body = says(first) + &says("") + &says(second) + DONE;
            assert_eq!(read(AnswerForm::ChatCompletions, body.as_bytes()).0, whole);
            let line = |words: &str, end| format!("{{\"response\":\"{words}\",\"done\":{end}}}\n");
            let body = line(first, false) + &line(second, true);
            assert_eq!(read(AnswerForm::Ollama, body.as_bytes()).0, whole);
        }
        // Some servers cut a character's own bytes.
        let mut body = says("Rain X").into_bytes();
        let at = body.iter().position(|byte| *byte == b'X').unwrap();
        body.splice(at..=at, *b"\xf0\x9f");
        let mut rest = says("X now").into_bytes();
        let at = rest.iter().position(|byte| *byte == b'X').unwrap();
        rest.splice(at..=at, *b"\x8c\xa7");
        body.extend(rest);
        body.extend(DONE.as_bytes());
        assert_eq!(read(AnswerForm::ChatCompletions, &body).0, "Rain 🌧 now");
    }

    #[test]
    fn what_is_not_understood_is_said_and_the_rest_is_read() {
        let says = |words: &str| format!("{{\"response\":\"{words}\"}}\n");
        for odd in [
            "garbage\n",
            "{\"response\":\"no end\n",
            "{\"response\":{\n",
            "{oops}\n",
            "[1]\n",
            "data: 1\n",
        ] {
            let body = format!("{}{odd}{}{{\"done\":true}}\n", says("It "), says("rains."));
            let (text, usage, is_odd) = read(AnswerForm::Ollama, body.as_bytes());
            assert_eq!(
                (text.as_str(), usage.is_some(), is_odd),
                ("It rains.", true, true),
                "{odd}"
            );
        }
        for (form, cut) in [
            (AnswerForm::Ollama, "{\"response\":\"It\"}\n"),
            (AnswerForm::Ollama, "{\"response\":\"It\"}\n{\"done\":tr"),
            (
                AnswerForm::ChatCompletions,
                "data: {\"choices\":[{\"delta\":{\"content\":\"It\"}}]}\n\n",
            ),
        ] {
            assert!(read(form, cut.as_bytes()).1.is_none(), "{cut}");
        }
    }

    /// A bracket, a quote or an end of a line is looked at once, however small the pieces are.
    #[test]
    fn no_byte_is_searched_twice() {
        let mut buffer = Buffer::default();
        for _ in 0..1000 {
            buffer.push(b"{\"a\":\"bcdefghijk\"");
            assert!(buffer.part().is_none());
            assert_eq!(buffer.searched(), buffer.len());
            buffer.push(b",\"d\":");
        }
    }
}
