//! Runs the conversation's own functions for the model.

use super::{TurnEvents, TurnTask};
use crate::context::ContextMessage;
use crate::conversation::MemoryTools;
use crate::conversation::memory::tools::{ToolOutput, ToolScope};
use crate::conversation::turn::answer::{AnswerEvent, TurnEvent};
use crate::error::Result;
use crate::message::{ChatRole, TOOL, texts};
use crate::model::ModelLimits;
use crate::prompt::Utterance;

impl TurnTask {
    /// The called functions, if all of them are the conversation's own.
    pub(super) fn memory_called(&mut self, limits: &ModelLimits) -> Option<MemoryTools> {
        let memory = self.conversation.parts.memory.filter(|_| limits.tools)?;
        let all = !self.calls.is_empty() && self.calls.iter().all(|call| memory.has(call));
        if all && self.is_refused {
            // The model was told to answer, and calls again.
            self.calls.clear();
        }
        (all && !self.is_refused).then_some(memory)
    }

    /// Runs the functions, and stores calls and results for the model to continue with.
    pub(super) async fn look_up(
        &mut self,
        memory: MemoryTools,
        limits: &ModelLimits,
        events: &TurnEvents,
    ) -> Result<()> {
        let mut calls = std::mem::take(&mut self.calls);
        let left = memory.calls.saturating_sub(self.report.lookups as usize);
        self.is_refused = left == 0;
        // Calls beyond the limit are dropped. One is left, whose result says so.
        calls.truncate(left.max(1));
        let Some(prompt) = self.prompt.take() else { return Ok(()) };
        let utterance = match &self.turn {
            Utterance::Stored(stored) => Some(stored.seq),
            Utterance::Unstored(_) | Utterance::OffRecord(_) => None,
        };
        let mut called = self.conversation.message(ChatRole::Assistant, "");
        called.tool_calls.clone_from(&calls);
        let (mut brought, mut told) = (vec![called], Vec::new());
        for call in &calls {
            let most = memory.room(limits.window, self.given);
            let looked = if self.is_refused || most == 0 {
                texts::CALL_LIMIT.to_owned().into()
            } else {
                self.report.lookups += 1;
                let sight = ToolScope { utterance, prompt: &prompt, most };
                self.conversation.look_up(call, &sight).await
            };
            let ToolOutput { told: words, kept } = looked;
            self.given += words.len();
            let mut result = self.conversation.message(ChatRole::Tool, kept);
            result.tool_call_id = Some(call.id.clone()).filter(|id| !id.is_empty());
            brought.push(result.with_metadata(TOOL, &call.name));
            told.push(words);
            let _ = events.send(TurnEvent::Answer(AnswerEvent::LookedUp(call.clone())));
        }
        let kept: Vec<ContextMessage> = match &self.turn {
            Utterance::Stored(_) => self.conversation.keep_calls(&mut self.state, brought).await?,
            _ => {
                let masked = |said| self.conversation.parts.prompts.masked(said).into();
                brought.into_iter().map(masked).collect()
            }
        };
        // A retry starts from the stored messages, because what the functions read may be forgotten by then.
        if let Some(pending) = &mut self.state.pending {
            pending.since.extend(kept.iter().cloned());
        }
        let (called, results) = kept.split_at(kept.len().min(1));
        self.since.extend(called.iter().cloned());
        let results = results.iter().zip(&told);
        self.since.extend(results.map(|(kept, words)| kept.with_words(words)));
        if self.text.ends_with(|c: char| !c.is_whitespace()) {
            self.hand_over("\n".to_owned(), events);
        }
        Ok(())
    }
}
