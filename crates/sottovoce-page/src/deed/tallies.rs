//! Counts of conversations by day, hour and person. A conversation is counted once; later only what is new.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex};

use jiff::civil::Date;
use jiff::tz::{Offset, TimeZone};
use sottovoce::conversation::{CACHED_TOKENS, FIRST_WORD_MS, RECALLED};
use sottovoce::{ChatMessage, ChatRole, ConversationStore, FileConversationStore, Result, Scope};
use sottovoce_net::lock;

/// How many numbers one read covers.
const STEP: u64 = 2048;
/// How many people are told apart.
const PEOPLE: usize = 200;

/// The counts of one day.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Day {
    pub(crate) user: u64,
    pub(crate) assistant: u64,
    pub(crate) other: u64,
    pub(crate) prompt_tokens: u64,
    pub(crate) cached_tokens: u64,
    pub(crate) answer_tokens: u64,
    /// The sum of the times to the first word, and of how many answers.
    pub(crate) first_word_ms: u64,
    pub(crate) timed: u64,
    pub(crate) recalled: u64,
}

/// The counts of one conversation. Only counts and names of speakers stay in memory.
#[derive(Debug, Clone, Default)]
pub(crate) struct Tally {
    pub(crate) days: BTreeMap<Date, Day>,
    pub(crate) hours: [u64; 24],
    pub(crate) people: BTreeMap<String, u64>,
    /// How far it goes, and how far the conversation goes.
    pub(crate) counted: u64,
    pub(crate) last: u64,
    gone: u64,
    is_running: bool,
}

impl Tally {
    pub(crate) fn is_complete(&self) -> bool {
        self.counted >= self.last
    }

    fn count(&mut self, message: &ChatMessage, zone: &TimeZone) {
        let said = message.said_at();
        let local = match message.offset_minutes {
            Some(minutes) => Offset::from_seconds(i32::from(minutes) * 60)
                .unwrap_or(Offset::UTC)
                .to_datetime(said),
            None => zone.to_datetime(said),
        };
        let day = self.days.entry(local.date()).or_default();
        match message.role {
            ChatRole::User => day.user += 1,
            ChatRole::Assistant => day.assistant += 1,
            ChatRole::System | ChatRole::Tool => day.other += 1,
        }
        let figure = |name| message.metadata.get(name).and_then(|n: &String| n.parse::<u64>().ok());
        let add = |sum: &mut u64, more: Option<u64>| *sum = sum.saturating_add(more.unwrap_or(0));
        add(&mut day.prompt_tokens, figure("promptTokens"));
        add(&mut day.cached_tokens, figure(CACHED_TOKENS));
        add(&mut day.answer_tokens, figure("answerTokens"));
        add(&mut day.recalled, figure(RECALLED));
        if let Some(ms) = figure(FIRST_WORD_MS) {
            add(&mut day.first_word_ms, Some(ms));
            day.timed += 1;
        }
        if let Some(hour) = usize::try_from(local.hour()).ok().and_then(|h| self.hours.get_mut(h)) {
            *hour += 1;
        }
        if message.role == ChatRole::User {
            let who = message.speaker().unwrap_or_default();
            if self.people.len() < PEOPLE || self.people.contains_key(who) {
                *self.people.entry(who.to_owned()).or_default() += 1;
            }
        }
    }
}

type Shared = Arc<Mutex<Tally>>;

/// The counts of all conversations that were asked for.
#[derive(Default)]
pub(crate) struct Tallies(Mutex<HashMap<Scope, Shared>>);

impl Tallies {
    /// The counts so far. What is missing is counted: a little of it at once, the rest in the background.
    ///
    /// # Errors
    /// Those of reading the conversation.
    pub(crate) async fn of(&self, store: &FileConversationStore, zone: &TimeZone) -> Result<Tally> {
        let state = sottovoce::store::StoreBackend::state(store).await?;
        let gone: u64 = state.forgotten().map(|range| range.end() - range.start() + 1).sum();
        let shared = {
            let mut all = lock(&self.0);
            Arc::clone(all.entry((**store.scope()).clone()).or_default())
        };
        let begins = {
            let mut tally = lock(&shared);
            if !tally.is_running && (tally.gone != gone || tally.last > state.last_seq) {
                *tally = Tally { gone, ..Tally::default() };
            }
            tally.last = state.last_seq;
            let begins = !tally.is_running && !tally.is_complete();
            tally.is_running |= begins;
            begins
        };
        if begins {
            let is_more = count(&shared, store, zone).await.inspect_err(|_| {
                lock(&shared).is_running = false;
            })?;
            if is_more {
                let (shared, store, zone) = (Arc::clone(&shared), store.clone(), zone.clone());
                tokio::spawn(async move {
                    while let Ok(true) = count(&shared, &store, &zone).await {}
                    lock(&shared).is_running = false;
                });
            } else {
                lock(&shared).is_running = false;
            }
        }
        let tally = lock(&shared).clone();
        Ok(tally)
    }

    pub(crate) fn clear(&self) {
        lock(&self.0).clear();
    }
}

/// Counts one step. Returns whether there is more.
async fn count(shared: &Shared, store: &FileConversationStore, zone: &TimeZone) -> Result<bool> {
    let (first, last) = {
        let tally = lock(shared);
        (tally.counted + 1, tally.last)
    };
    let end = last.min(first.saturating_add(STEP - 1));
    let read = store.read_seqs(first..=end).await?;
    let mut tally = lock(shared);
    for stored in &read.messages {
        tally.count(&stored.message, zone);
    }
    tally.counted = end.max(first - 1);
    Ok(tally.counted < tally.last)
}
