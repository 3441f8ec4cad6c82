//! Writing tasks for the model: a summary or a title of messages.

use std::collections::{BTreeMap, HashSet};

use unicode_segmentation::UnicodeSegmentation;
use zeroize::Zeroizing;

use crate::conversation::Conversation;
use crate::error::{ModelFailure, Result};
use crate::message::texts::TaskText;
use crate::message::{ChatMessage, ChatRole};
use crate::model::render::StampFilter;
use crate::model::{ReplyPart, ThinkingFilter};
use crate::prompt::Prompt;

/// The assumed window, in tokens, of a model whose window is not known.
const WINDOW: u32 = 2048;

/// A writing task.
pub(crate) struct WritingTask {
    pub(crate) text: TaskText,
    /// The most sentences to use from the answer.
    pub(crate) sentences: usize,
    /// The most characters to use from an answer without a sentence end.
    pub(crate) longest: usize,
}

impl Conversation {
    /// The tokens of messages that fit one request: half the model's window.
    pub(crate) async fn room(&self) -> Result<usize> {
        Ok(self.binding()?.model.limits().await?.window.unwrap_or(WINDOW) as usize / 2)
    }

    /// The model's text about messages. Asks with the usual options.
    ///
    /// # Errors
    /// Those of the model; an empty answer is one.
    pub(crate) async fn write_text(
        &self,
        task: &WritingTask,
        lines: &str,
    ) -> Result<Zeroizing<String>> {
        let binding = self.binding()?;
        let asked = format!("{lines}\n\n{}", task.text.asked);
        let prompt = Prompt {
            system: task.text.system.to_owned(),
            context: Vec::new(),
            user_input: ChatMessage::new(ChatRole::User, asked, &self.clock.now()),
            since: Vec::new(),
            tools: Vec::new(),
            now: self.clock.now(),
            temperature: None,
            max_tokens: None,
            hints: BTreeMap::new(),
        };
        let mut reply = binding.ask(&prompt).await?;
        let (mut words, mut thoughts) = (Zeroizing::new(String::new()), ThinkingFilter::default());
        let mut stamps = StampFilter::of(&prompt);
        while words.len() < task.longest * 4 {
            match reply.next().await? {
                ReplyPart::Text(text) => {
                    let said = thoughts.remove(&text);
                    if thoughts.was_thought() {
                        words.clear();
                        stamps = StampFilter::of(&prompt);
                    }
                    words.push_str(&stamps.remove(&said));
                }
                ReplyPart::Done(_) => break,
                ReplyPart::Thinking | ReplyPart::ToolCalls(_) => {}
            }
        }
        words.push_str(&stamps.remove(&thoughts.rest()));
        words.push_str(&stamps.rest());
        // A small model repeats itself when it has nothing more to say.
        let mut said = HashSet::new();
        let sentences = words.trim().split_sentence_bounds();
        let sentences = sentences.filter(|sentence| said.insert(sentence.trim()));
        let sentences = Zeroizing::new(sentences.take(task.sentences).collect::<String>());
        let short: String = sentences.chars().take(task.longest).collect();
        let short = Zeroizing::new(short.trim().to_owned());
        if short.is_empty() { Err(binding.failed(ModelFailure::Empty)) } else { Ok(short) }
    }

    /// The newest messages that fit this many tokens, one line each.
    pub(crate) fn newest_lines<'a>(
        &self,
        said: impl DoubleEndedIterator<Item = &'a ChatMessage>,
        room: usize,
    ) -> Zeroizing<String> {
        let mut lines = Vec::new();
        let mut left = room;
        for message in said.rev() {
            let (line, cost) = self.line(message, room);
            if cost > left && !lines.is_empty() {
                break;
            }
            left = left.saturating_sub(cost);
            lines.push(line);
        }
        lines.reverse();
        Zeroizing::new(lines.iter().map(|line| line.as_str()).collect::<Vec<_>>().join("\n"))
    }

    /// One line for a message, cut if it exceeds `room` alone, and the tokens of that line.
    pub(crate) fn line(&self, message: &ChatMessage, room: usize) -> (Zeroizing<String>, usize) {
        let rates = &self.parts.prompts.limits.rates;
        let mut line = Zeroizing::new(format!("{}: {}", message.role, message.content));
        let mut cost = rates.estimate(&line) + 1;
        while cost > room && !line.is_empty() {
            let chars = line.chars().count();
            line = Zeroizing::new(line.chars().take(chars * room / cost.max(1)).collect());
            cost = rates.estimate(&line) + 1;
        }
        (line, cost)
    }
}
