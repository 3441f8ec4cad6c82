//! Having the model write about what was said: in a few sentences, or a title.

use std::collections::{BTreeMap, HashSet};

use unicode_segmentation::UnicodeSegmentation;
use zeroize::Zeroizing;

use crate::conversation::Conversation;
use crate::error::{ModelFailure, Result};
use crate::message::{ChatMessage, ChatRole};
use crate::model::render::StampFilter;
use crate::model::{ReplyPart, ThinkingFilter};
use crate::prompt::Prompt;

/// How many tokens of a model whose window is not known may be filled with what it is to write about.
const WINDOW: u32 = 2048;

/// What the model is to write.
pub(crate) struct WritingTask {
    pub(crate) system: &'static str,
    /// What stands behind the conversation: small models go by what they read last.
    pub(crate) asked: &'static str,
    /// The most sentences that are taken.
    pub(crate) sentences: usize,
    /// Where a text without an end is cut, in characters.
    pub(crate) longest: usize,
}

impl Conversation {
    /// How many tokens of what was said fit a request: half the model's window.
    pub(crate) async fn room(&self) -> Result<usize> {
        Ok(self.binding()?.model.limits().await?.window.unwrap_or(WINDOW) as usize / 2)
    }

    /// The model's words about a conversation, asked with the same options as ever.
    ///
    /// # Errors
    /// Those of the model, and where it says nothing.
    pub(crate) async fn write_text(
        &self,
        task: &WritingTask,
        lines: &str,
    ) -> Result<Zeroizing<String>> {
        let binding = self.binding()?;
        let asked = format!("{lines}\n\n{}", task.asked);
        let prompt = Prompt {
            system: task.system.to_owned(),
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
                ReplyPart::Text(text) => words.push_str(&stamps.remove(&thoughts.remove(&text))),
                ReplyPart::Done(_) => break,
                ReplyPart::Thinking | ReplyPart::ToolCalls(_) => {}
            }
        }
        words.push_str(&stamps.remove(&thoughts.rest()));
        words.push_str(&stamps.rest());
        // A small model that has nothing more to say repeats itself.
        let mut said = HashSet::new();
        let sentences = words.trim().split_sentence_bounds();
        let sentences = sentences.filter(|sentence| said.insert(sentence.trim()));
        let sentences = Zeroizing::new(sentences.take(task.sentences).collect::<String>());
        let short: String = sentences.chars().take(task.longest).collect();
        let short = Zeroizing::new(short.trim().to_owned());
        if short.is_empty() { Err(binding.failed(ModelFailure::Empty)) } else { Ok(short) }
    }

    /// As much of what was said last as so many tokens hold, a line each.
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

    /// A message as a line, cut where it alone would be too long, and how many tokens that takes.
    pub(crate) fn line(&self, message: &ChatMessage, room: usize) -> (Zeroizing<String>, usize) {
        let rates = &self.prompts.limits.rates;
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
