//! What a model answers, read as it passes.

use sottovoce::Error;
use sottovoce::model::{AnswerForm, AnswerReader, ReplyItem};
use zeroize::Zeroizing;

use crate::request::Form;

/// The most bytes of a line, or of a document. No answer of a model is that long.
const LONGEST: usize = 32 << 20;

/// How an answer ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    Whole,
    /// At its length limit.
    Length,
    /// With an error.
    Failed,
}

/// An answer so far.
pub(crate) struct PassedAnswer {
    reader: AnswerReader,
    /// The words so far.
    pub(crate) text: Zeroizing<String>,
    limit: usize,
    /// Whether a part could not be read, so that words may be missing.
    is_damaged: bool,
    /// Whether the model calls functions.
    pub(crate) has_calls: bool,
    pub(crate) end: Option<End>,
    /// The id of the answer, if the server gives one that a request may continue.
    pub(crate) id: Option<String>,
    /// Tokens of the prompt, and those of them from the cache, as far as the server tells.
    pub(crate) prompt_tokens: u64,
    pub(crate) cached_tokens: u64,
}

impl PassedAnswer {
    /// An answer of which nothing has come. It keeps `limit` bytes of words.
    pub(crate) fn new(form: Form, limit: usize) -> Self {
        let form = match form {
            Form::OllamaChat | Form::OllamaGenerate => AnswerForm::Ollama,
            Form::OpenAiChat => AnswerForm::ChatCompletions,
            Form::OpenAiResponses => AnswerForm::Responses,
        };
        Self {
            reader: AnswerReader::new(form),
            text: Zeroizing::default(),
            limit,
            is_damaged: false,
            has_calls: false,
            end: None,
            id: None,
            prompt_tokens: 0,
            cached_tokens: 0,
        }
    }

    /// Reads a piece. Returns `false` if a line or a document exceeds its limit.
    #[must_use]
    pub(crate) fn push(&mut self, piece: &[u8]) -> bool {
        if self.end.is_some() {
            return true;
        }
        self.reader.push(piece);
        self.take();
        self.reader.held() <= LONGEST
    }

    /// Reads what is left after the last piece.
    pub(crate) fn finish(&mut self) {
        if self.end.is_none() {
            self.reader.finish();
            self.take();
        }
    }

    fn take(&mut self) {
        while self.end.is_none()
            && let Some(item) = self.reader.next()
        {
            match item {
                Ok(ReplyItem::Text(words)) => self.say(words),
                Ok(ReplyItem::Call(_)) => self.has_calls = true,
                Ok(ReplyItem::Id(id)) => self.id = Some(id).filter(|id| !id.is_empty()),
                Ok(ReplyItem::Complaint(_)) => self.end = Some(End::Failed),
                Ok(ReplyItem::Done(usage)) => {
                    self.prompt_tokens = usage.prompt_tokens.unwrap_or(0);
                    self.cached_tokens = usage.cached_tokens.unwrap_or(0);
                    self.end = Some(match usage.cut || self.text.len() >= self.limit {
                        _ if self.is_damaged => End::Failed,
                        true => End::Length,
                        false => End::Whole,
                    });
                }
                Ok(_) => {}
                Err(reason) => {
                    tracing::warn!(reason, "a part of an answer is not understood");
                    self.is_damaged = true;
                }
            }
        }
    }

    fn say(&mut self, words: String) {
        let words = Zeroizing::new(words);
        let room = self.limit.saturating_sub(self.text.len());
        let end = (0..=room.min(words.len())).rev().find(|end| words.is_char_boundary(*end));
        self.text.push_str(words.get(..end.unwrap_or(0)).unwrap_or_default());
    }
}

/// The reason for an error of the store, with advice, in words for a client.
pub(crate) fn reason(error: &Error) -> String {
    error.for_clients(error.help())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(form: Form, body: &str, every: usize) -> PassedAnswer {
        let mut answer = PassedAnswer::new(form, 1000);
        for piece in body.as_bytes().chunks(every) {
            assert!(answer.push(piece));
        }
        answer.finish();
        answer
    }

    #[test]
    fn an_answer_that_was_cut_or_failed_is_not_whole() {
        let cut = "{\"message\":{\"content\":\"It\"},\"done\":true,\"done_reason\":\"length\"}\n";
        assert_eq!(read(Form::OllamaChat, cut, 9).end, Some(End::Length));
        let failed = "{\"message\":{\"content\":\"It\"},\"done\":false}\n{\"error\":\"boom\"}\n";
        let failed = read(Form::OllamaChat, failed, 9);
        assert_eq!((failed.end, failed.text.as_str()), (Some(End::Failed), "It"));
        assert_eq!(read(Form::OllamaChat, "garbage\n\n\u{0}", 2).end, None);
        let odd = "garbage\n{\"message\":{\"content\":\"It\"},\"done\":true}\n";
        assert_eq!(read(Form::OllamaChat, odd, 2).end, Some(End::Failed));
        let mut short = PassedAnswer::new(Form::OllamaChat, 4);
        let line = "{\"message\":{\"content\":\"abcéf\"},\"done\":true}\n";
        assert!(short.push(line.as_bytes()));
        assert_eq!((short.text.as_str(), short.end), ("abc", Some(End::Whole)));
    }

    #[test]
    fn an_answer_without_an_end_of_a_line_has_a_limit() {
        for begun in [&b"{\"message\":\""[..], b"data: "] {
            let mut answer = PassedAnswer::new(Form::OllamaChat, 1000);
            assert!(answer.push(begun));
            let piece = vec![b'x'; 1 << 20];
            let taken = (0..64).take_while(|_| answer.push(&piece)).count();
            assert_eq!(taken, 31);
        }
    }
}
