//! Builds prompts from the providers' messages.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use super::budget::{fit, fit_found, fit_history, low_water};
use super::long::Candidate;
use super::receipt::{EntryOutcome, Receipt, ReceiptEntry};
use super::{Prompt, Utterance, add, exchanges};
use crate::context::confidence::is_doubted;
use crate::context::tokens::{TokenCount, TokenRates};
use crate::context::{Context, ContextMessage, ContextProvider, ContextRequest, Placement};
use crate::error::{Error, Result};
use crate::message::quote::{harmless, indented};
use crate::message::redact::redact_message;
use crate::message::{ChatMessage, ChatRole, texts};
use crate::store::{ConversationStore, Finding, Profile, Summary};

/// The fraction of the room that an utterance of usual length takes at most.
const UTTERANCE: usize = 8;
/// The fraction of the room that stays free for what is found for the utterance, at most.
const RESERVED: usize = 4;

/// Builds prompts from a system prompt, a provider of the history, and an ordered list of other providers.
#[derive(Clone)]
pub(crate) struct PromptBuilder {
    pub(crate) store: Arc<dyn ConversationStore>,
    pub(crate) system: String,
    pub(crate) history: Arc<dyn ContextProvider>,
    pub(crate) providers: Vec<Arc<dyn ContextProvider>>,
    /// The thread whose history it is; `None` for messages outside all threads.
    pub(crate) thread: Option<String>,
    /// No message up to this number is in a prompt, whatever a provider returns.
    pub(crate) starts_after: Option<u64>,
    pub(crate) limits: PromptLimits,
    /// Exchanges whose utterance was heard with less confidence are left out of the history.
    pub(crate) min_confidence: Option<f64>,
    /// Notes for a renderer of the host.
    pub(crate) hints: BTreeMap<String, String>,
    /// Whether the persona's behaviour is in the prompt.
    pub(crate) personality: bool,
}

/// How much a prompt may hold, how tokens are estimated, and which functions and artifacts it includes.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct PromptLimits {
    /// The most tokens, if there is a limit.
    pub(crate) budget: Option<usize>,
    /// The model's window, if it is known: prompt and answer together.
    pub(crate) window: Option<usize>,
    /// The answer's share of the window; a quarter by default.
    pub(crate) answer: Option<usize>,
    pub(crate) rates: TokenRates,
    /// Functions that the model may call.
    pub(crate) tools: Vec<serde_json::Value>,
    /// The most bytes of an artifact that the prompt may hold beside the note that refers to it.
    pub(crate) inline: usize,
}

impl PromptLimits {
    /// The most tokens of a prompt whose answer may take `answer` tokens.
    pub(super) fn most(&self, answer: Option<u32>) -> Option<usize> {
        let left = self.window.map(|window| {
            let answer = answer.map(|answer| answer as usize).or(self.answer);
            window - answer.unwrap_or(window / 4).min(window / 2)
        });
        self.budget.into_iter().chain(left).min()
    }
}

impl PromptBuilder {
    /// A builder for the conversation in a store, without a system prompt or a limit.
    pub(crate) fn new(
        store: Arc<dyn ConversationStore>,
        history: Arc<dyn ContextProvider>,
    ) -> Self {
        Self {
            store,
            system: String::new(),
            history,
            providers: Vec::new(),
            thread: None,
            starts_after: None,
            limits: PromptLimits::default(),
            min_confidence: None,
            hints: BTreeMap::new(),
            personality: true,
        }
    }

    /// The number up to which no message may be in a prompt; 0 if there is none.
    pub(crate) fn started_after(&self) -> u64 {
        self.starts_after.unwrap_or(0)
    }

    /// Builds the prompt for one utterance within these limits, with about `n` messages of history, and its receipt.
    /// `since` holds the turn's tool calls and their results.
    pub(crate) async fn build(
        &self,
        utterance: &Utterance,
        since: &[ContextMessage],
        n: usize,
        limits: &PromptLimits,
    ) -> Result<(Prompt, Receipt)> {
        let (scope, now) = (self.store.scope(), self.store.clock().now());
        let (user_input, before) = match utterance {
            Utterance::Stored(stored) if *stored.scope != **scope => {
                return Err(Error::OtherScope);
            }
            Utterance::Stored(stored) => (stored.message.clone(), Some(stored.seq)),
            Utterance::Unstored(text) => {
                (self.masked(ChatMessage::new(ChatRole::User, text, &now)), None)
            }
            Utterance::OffRecord(message) => (self.masked((**message).clone()), None),
        };
        let profile = self.store.profile().await?;
        let request = ContextRequest {
            store: &self.store,
            current_prompt: &user_input.content,
            n,
            before,
            after: self.starts_after.unwrap_or(0),
            thread: self.thread.as_deref(),
            now: Some(now.timestamp()),
            profile: Some(&profile),
            offered: None,
        };
        let mut gathered = Gathered::default();
        let at_turn =
            |provider: &&Arc<dyn ContextProvider>| provider.placement() == Placement::NewestTurn;
        let all = || [&self.history].into_iter().chain(&self.providers);
        self.gather(all().filter(|provider| !at_turn(provider)), &request, limits, &mut gathered)
            .await?;
        // A prompt that starts clean holds nothing of what was said before.
        if let Some(summary) = profile.summary(request.thread)
            && self.starts_after.is_none()
        {
            let message = told(summary);
            let why = format!("a summary of {} messages", summary.messages());
            let entry = entry(&message, Placement::Stable, &why, &limits.rates);
            gathered.offers.push((entry, message));
        }
        sort(&mut gathered.offers);
        self.refuse(&mut gathered.offers, &HashSet::new(), before, &profile);
        self.refuse_doubted(&mut gathered.offers).await?;

        let persona =
            profile.assigned_persona.as_ref().map(|assigned_persona| &assigned_persona.persona);
        let system = match persona {
            Some(persona) => persona.told(self.personality),
            None => self.system.clone(),
        };
        let quotes = self.providers.iter().any(|provider| at_turn(&provider));
        let system = match quotes && !system.is_empty() {
            true => [&system, "\n\n", texts::QUOTATIONS].concat(),
            false => system,
        };
        let max_tokens = persona.map(|persona| persona.max_tokens);
        let history_limit = persona.map(|persona| persona.max_history_tokens as usize);
        let budget = limits.most(max_tokens);
        let tools = limits.tools.iter().map(|tool| limits.rates.estimate(&tool.to_string()));
        let tool_tokens = tools.sum::<usize>();
        let system_tokens = limits.rates.estimate(&system) + tool_tokens;
        let brought = since.iter().map(ContextMessage::message);
        let user_tokens = std::iter::once(&user_input)
            .chain(brought)
            .map(|message| limits.rates.estimate_message(message))
            .sum();
        let narrowest = history_limit.map(|limit| budget.map_or(limit, |budget| budget.min(limit)));
        let n = narrowest.map_or(n, low_water);
        let price = |message: &ContextMessage| limits.rates.estimate_message(message.message());
        let room = budget.map(|budget| budget.saturating_sub(system_tokens));
        // What is found for the utterance has its room whether something is found or not, so that the history does not
        // begin elsewhere with each utterance.
        let reserved = all().map(|provider| provider.reserved_tokens()).sum::<usize>();
        let left = room.map(|room| room - reserved.min(room / RESERVED));
        let mut offered = candidates(&mut gathered.offers);
        if let Some(limit) = history_limit {
            fit_history(&mut offered, limit, n, price);
        }
        if let Some(left) = left {
            let rooms = (left.saturating_sub(user_tokens), left - left / UTTERANCE);
            fit(&mut offered, rooms, n, price);
        }

        // What the history has no room for may be found again.
        let kept = gathered.included().filter_map(|(entry, _)| entry.seq).collect();
        let request = ContextRequest { offered: Some(&kept), ..request };
        let mut found = Gathered::default();
        self.gather(all().filter(at_turn), &request, limits, &mut found).await?;
        self.refuse(&mut found.offers, &kept, before, &profile);
        self.refuse_doubted(&mut found.offers).await?;
        if let Some(room) = room {
            let taken = gathered.included().map(|(entry, _)| entry.tokens).sum::<usize>();
            let left = room.saturating_sub(user_tokens + taken);
            fit_found(&mut candidates(&mut found.offers), left);
        }
        gathered.add(found);

        let Gathered { offers, skipped, failed } = gathered;
        let mut entries = Vec::with_capacity(offers.len());
        let mut context = Vec::with_capacity(offers.len());
        for (entry, message) in offers {
            if entry.outcome == EntryOutcome::Included {
                context.push((entry.placement, message));
            }
            entries.push(entry);
        }
        let included = entries.iter().filter(|e| e.outcome == EntryOutcome::Included);
        let stable = included.clone().filter(|e| e.placement == Placement::Stable);
        let others = user_tokens + stable.map(|e| e.tokens).sum::<usize>();
        let history_room = left.map(|left| left.saturating_sub(others));
        let receipt = Receipt {
            system_tokens,
            tool_tokens,
            user_tokens,
            used_tokens: system_tokens + user_tokens + included.map(|e| e.tokens).sum::<usize>(),
            budget_tokens: budget,
            history_limit,
            history_room: history_limit.into_iter().chain(history_room).min(),
            starts_after: self.starts_after,
            entries,
            skipped,
            failed,
        };
        tracing::debug!(
            messages = context.len(),
            offered = receipt.entries.len(),
            tokens = receipt.used_tokens,
            "built a prompt"
        );
        let prompt = Prompt {
            system,
            temperature: persona.map(|persona| persona.temperature),
            max_tokens,
            context,
            user_input,
            since: since.to_vec(),
            tools: limits.tools.clone(),
            now,
            hints: self.hints.clone(),
        };
        Ok((prompt, receipt))
    }

    /// Asks providers, one after another; each learns what those before it have offered.
    async fn gather<'a>(
        &self,
        providers: impl Iterator<Item = &'a Arc<dyn ContextProvider>>,
        request: &ContextRequest<'_>,
        limits: &PromptLimits,
        gathered: &mut Gathered,
    ) -> Result<()> {
        let mut offered = request.offered.cloned().unwrap_or_default();
        for provider in providers {
            let request = ContextRequest { offered: Some(&offered), ..*request };
            let context = match provider.get_context(&request).await {
                Ok(context) => context,
                Err(error) if provider.placement() == Placement::History => return Err(error),
                Err(error) => {
                    gathered.failed.push(error.to_string());
                    continue;
                }
            };
            Finding::add_new(&mut gathered.skipped, context.skipped);
            for message in context.left_out {
                let why = message.why().unwrap_or(&context.why).to_owned();
                let mut entry = entry(&message, provider.placement(), &why, &limits.rates);
                entry.outcome = EntryOutcome::LeftOut;
                gathered.offers.push((entry, message));
            }
            for mut message in context.messages {
                let mut why = match message.why() {
                    Some(why) => Cow::Owned(why.to_owned()),
                    None => Cow::Borrowed(context.why.as_str()),
                };
                if limits.inline > 0
                    && provider.placement() == Placement::History
                    && let Some(whole) = self.with_artifact(&message, limits).await
                {
                    message = whole;
                    why = format!("{why}, with the text of its artifact").into();
                }
                offered.extend(message.seq());
                let message = message.under(context.heading.as_ref());
                let entry = entry(&message, provider.placement(), &why, &limits.rates);
                gathered.offers.push((entry, message));
            }
        }
        Ok(())
    }

    /// Masks a message that is not stored as the store would.
    pub(crate) fn masked(&self, mut message: ChatMessage) -> ChatMessage {
        if let Some(redactor) = self.store.redactor() {
            redact_message(&*redactor, &mut message);
        }
        message
    }

    /// Marks messages that must not be in the prompt, whatever a provider returns. Those with the numbers `kept` are in it.
    fn refuse(
        &self,
        offers: &mut [Offer],
        kept: &HashSet<u64>,
        utterance: Option<u64>,
        profile: &Profile,
    ) {
        let mut seen = kept.clone();
        for (entry, message) in &mut *offers {
            if message.scope().is_some_and(|scope| *scope != **self.store.scope()) {
                entry.outcome = EntryOutcome::OtherScope;
            } else if entry.seq.is_some() && entry.seq <= self.starts_after {
                entry.outcome = EntryOutcome::BeforeStart;
            } else if message.stored().is_some_and(|stored| profile.hides(stored)) {
                entry.outcome = EntryOutcome::Cleared;
            } else if entry.seq.is_some_and(|seq| profile.is_pruned(seq)) {
                entry.outcome = EntryOutcome::Pruned;
            } else if entry.seq.is_some() && entry.seq == utterance {
                entry.outcome = EntryOutcome::TheUtterance;
            } else if entry.seq.is_some_and(|seq| !seen.insert(seq)) {
                entry.outcome = EntryOutcome::Duplicate;
            }
        }
    }

    /// Marks exchanges whose utterance was heard with too little confidence.
    async fn refuse_doubted(&self, offers: &mut [Offer]) -> Result<()> {
        let Some(least) = self.min_confidence else { return Ok(()) };
        let mut doubted = false;
        for (entry, message) in offers {
            if entry.outcome != EntryOutcome::Included {
                continue;
            }
            let is_doubted = match (entry.placement, message.stored()) {
                (Placement::History, _) => {
                    let message = message.message();
                    if message.starts_exchange() {
                        doubted = message.confidence().is_some_and(|confidence| confidence < least);
                    }
                    doubted
                }
                (_, Some(stored)) => is_doubted(&*self.store, stored, least).await?,
                (_, None) => false,
            };
            if is_doubted {
                entry.outcome = EntryOutcome::LowConfidence;
            }
        }
        Ok(())
    }
}

/// A message that a provider offered, with its entry in the receipt.
type Offer = (ReceiptEntry, ContextMessage);

/// What providers offered, and what they could not read.
#[derive(Default)]
struct Gathered {
    offers: Vec<Offer>,
    skipped: Vec<Finding>,
    failed: Vec<String>,
}

impl Gathered {
    fn included(&self) -> impl Iterator<Item = &Offer> {
        self.offers.iter().filter(|(entry, _)| entry.outcome == EntryOutcome::Included)
    }

    fn add(&mut self, other: Self) {
        self.offers.extend(other.offers);
        Finding::add_new(&mut self.skipped, other.skipped);
        self.failed.extend(other.failed);
    }
}

fn candidates(offers: &mut [Offer]) -> Vec<Candidate<'_>> {
    offers.iter_mut().map(|(entry, message)| Candidate { entry, message }).collect()
}

/// A history within so many tokens, as prompts keep it, and what became of each of its messages. `price` tells the
/// tokens of a message.
pub fn history_within(
    mut history: Context,
    tokens: usize,
    price: impl Fn(&ContextMessage) -> usize,
) -> (Context, Vec<ReceiptEntry>) {
    let mut messages = std::mem::take(&mut history.messages);
    let entry = |message: &ContextMessage| ReceiptEntry {
        seq: message.seq(),
        role: message.message().role,
        source: message.message().source().0,
        placement: Placement::History,
        tokens: price(message),
        why: message.why().unwrap_or(&history.why).to_owned(),
        quoting: None,
        outcome: EntryOutcome::Included,
    };
    let mut entries: Vec<ReceiptEntry> = messages.iter().map(entry).collect();
    let offers = entries.iter_mut().zip(&mut messages);
    let mut candidates: Vec<_> =
        offers.map(|(entry, message)| Candidate { entry, message }).collect();
    fit_history(&mut candidates, tokens, 1, &price);
    let kept = messages.into_iter().zip(&entries);
    let kept = kept.filter(|(_, entry)| entry.outcome == EntryOutcome::Included);
    history.messages = kept.map(|(message, entry)| message.because(&*entry.why)).collect();
    (history, entries)
}

fn entry(
    message: &ContextMessage,
    placement: Placement,
    why: &str,
    rates: &TokenRates,
) -> ReceiptEntry {
    let mut count = TokenCount::default();
    add(&mut count, message.message(), placement);
    ReceiptEntry {
        seq: message.seq(),
        role: message.message().role,
        source: message.message().source().0,
        placement,
        tokens: rates.tokens(&count),
        why: why.to_owned(),
        quoting: message.quotes(),
        outcome: EntryOutcome::Included,
    }
}

/// The text of a summary for the model. None of its lines can be mistaken for a line of the system prompt.
fn told(summary: &Summary) -> ContextMessage {
    let text = format!("{}\n  {}", texts::SUMMARY, indented(&harmless(&summary.text)));
    ChatMessage::at(ChatRole::System, text, summary.until).into()
}

/// Sorts offers in prompt order: by placement, and the history by time and number, with results of functions behind their
/// calls. Messages that a provider ranked or made keep its order.
fn sort(offers: &mut Vec<Offer>) {
    offers.sort_by_key(|(entry, message)| {
        let in_time =
            (entry.placement == Placement::History).then(|| (message.ordered_at(), entry.seq));
        (entry.placement, in_time)
    });
    exchanges::join(offers, |(entry, message)| {
        (entry.placement == Placement::History).then(|| message.message())
    });
}

debug_shows!(PromptBuilder as it:
    scope = it.store.scope(), providers = 1 + it.providers.len(), budget = it.limits.budget
);
