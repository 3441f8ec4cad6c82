//! The contract of conversation stores, as a suite for a store's own tests.
//!
//! ```no_run
//! # use std::sync::Arc;
//! # use sottovoce::testing::{StoreSetup, conversation_store_contract};
//! # use sottovoce::{ConversationStore, Result};
//! # async fn open_my_store(setup: StoreSetup) -> Result<Arc<dyn ConversationStore>> { unimplemented!() }
//! # async fn test() {
//! // Opens the store with that name: the same data whenever the name is the same.
//! conversation_store_contract(async |setup| open_my_store(setup).await).await.unwrap();
//! # }
//! ```

mod answers;
mod appending;
mod artifacts;
mod backend;
mod deleting;
mod documents;
mod limits;

use std::fmt;
use std::ops::RangeInclusive;
use std::sync::Arc;

use jiff::Timestamp;

use crate::clock::{Clock, ManualClock};
use crate::error::{Error, Result};
use crate::message::{ChatMessage, ChatRole};
use crate::scope::Scope;
use crate::store::record::read_result::ReadResult;
use crate::store::{ConversationStore, StorePolicy};

/// The start time of the suite's clock.
const START: &str = "2025-08-24T16:36:25.123Z";

/// The store that the suite asks for, and its parameters.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct StoreSetup {
    /// A short name. Stores that are opened with the same name hold the same data; with another name, other data.
    pub name: String,
    /// The scope of the conversation to open.
    pub scope: Scope,
    /// The clock that the store must use.
    pub clock: Arc<dyn Clock>,
    /// What the store must accept, and how much it must retain.
    pub policy: StorePolicy,
}

/// Rules that a store violates. `Display` names each rule and what was found.
#[derive(Clone, PartialEq, Eq)]
pub struct ContractViolation {
    rules: Vec<(&'static str, String)>,
}

impl ContractViolation {
    /// The names of the violated rules.
    pub fn rules(&self) -> impl Iterator<Item = &'static str> {
        self.rules.iter().map(|(rule, _)| *rule)
    }
}

impl fmt::Display for ContractViolation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, (rule, found)) in self.rules.iter().enumerate() {
            let separator = if at == 0 { "" } else { "\n" };
            write!(f, "{separator}{rule}: {found}")?;
        }
        Ok(())
    }
}

impl fmt::Debug for ContractViolation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl std::error::Error for ContractViolation {}

/// What a rule found instead of its expectation.
#[derive(Debug)]
pub(crate) struct BrokenRule(String);

impl From<std::io::Error> for BrokenRule {
    fn from(error: std::io::Error) -> Self {
        Self(format!("an error: {error}"))
    }
}

impl From<&str> for BrokenRule {
    fn from(what: &str) -> Self {
        Self(what.to_owned())
    }
}

impl From<Error> for BrokenRule {
    fn from(error: Error) -> Self {
        Self(format!("an error: {error}"))
    }
}

pub(crate) type Rule = std::result::Result<(), BrokenRule>;

/// Fails the rule unless a condition holds.
macro_rules! holds {
    ($condition:expr) => {
        if !$condition {
            let place = concat!("not so: `", stringify!($condition), "` (line ", line!(), ")");
            return Err($crate::testing::BrokenRule::new(place.to_owned()));
        }
    };
}
/// Fails the rule unless two values are equal.
macro_rules! same {
    ($found:expr, $expected:expr) => {{
        let (found, expected) = (&$found, &$expected);
        if found != expected {
            let what = concat!("`", stringify!($found), "` (line ", line!(), ")");
            return Err($crate::testing::BrokenRule::new(format!(
                "{what} is {found:?}, and not {expected:?}"
            )));
        }
    }};
}
/// Fails the rule unless an error of that kind is returned.
macro_rules! refused {
    ($outcome:expr, $pattern:pat) => {{
        let outcome = $outcome;
        if !matches!(&outcome, Err($pattern)) {
            let what = concat!("`", stringify!($outcome), "` (line ", line!(), ")");
            let what = format!("{what} gave {:?}", outcome.map(drop));
            return Err($crate::testing::BrokenRule::new(what));
        }
    }};
}
use {holds, refused, same};

impl BrokenRule {
    pub(crate) fn new(what: String) -> Self {
        Self(what)
    }
}

/// The place of one rule, where stores can be opened repeatedly.
struct Fixture<'a, F> {
    open: &'a F,
    setup: StoreSetup,
    clock: Arc<ManualClock>,
}

impl<F: AsyncFn(StoreSetup) -> Result<Arc<dyn ConversationStore>>> Fixture<'_, F> {
    async fn open(&self) -> Result<Arc<dyn ConversationStore>> {
        (self.open)(self.setup.clone()).await
    }

    /// Opens the same data with another policy.
    async fn open_with(&self, policy: StorePolicy) -> Result<Arc<dyn ConversationStore>> {
        (self.open)(StoreSetup { policy, ..self.setup.clone() }).await
    }

    fn set_clock(&self, to: &str) {
        self.clock.set(time(to).to_zoned(jiff::tz::TimeZone::UTC));
    }
}

/// Checks everything that a [`ConversationStore`] must do, on stores that `open` opens. Each rule has its own store
/// name and opens it several times. The rules of an [`ArtifactStore`](crate::store::ArtifactStore) are checked where the
/// store has one.
///
/// # Errors
/// [`ContractViolation`] names every violated rule.
pub async fn conversation_store_contract(
    open: impl AsyncFn(StoreSetup) -> Result<Arc<dyn ConversationStore>>,
) -> std::result::Result<(), ContractViolation> {
    let mut rules = Vec::new();
    macro_rules! check {
        ($($module:ident: $($rule:ident)*;)*) => {$($({
            let clock = Arc::new(ManualClock::at_utc(time(START)));
            let setup = StoreSetup {
                name: stringify!($rule).to_owned(),
                scope: Scope::Default,
                clock: clock.clone(),
                policy: StorePolicy::default(),
            };
            if let Err(BrokenRule(what)) = $module::$rule(Fixture { open: &open, setup, clock }).await {
                rules.push((stringify!($rule), what));
            }
        })*)*};
    }
    check! {
        backend: the_medium_keeps_what_was_committed a_stale_revision_is_a_conflict
            the_medium_reads_by_tail_number_and_time;
        appending: an_empty_store_reads_as_empty messages_come_back_in_order_under_contiguous_numbers
            a_long_tail_is_whole a_batch_is_kept_in_its_order a_refused_message_refuses_its_batch
            ranges_give_what_lies_in_them a_message_at_the_size_limit_is_kept
            a_message_far_ahead_of_the_clock_is_refused a_wrong_clock_keeps_the_order
            a_time_before_the_year_0_is_refused difficult_text_comes_back_exactly
            two_stores_see_each_others_changes scopes_share_nothing concurrent_appends_are_all_kept;
        answers: an_answer_needs_its_utterance an_answer_to_another_message_of_that_number_is_refused
            an_answer_to_what_was_cleared_is_no_context an_answer_to_an_expired_utterance_is_refused;
        deleting: what_is_forgotten_stays_gone forgetting_again_changes_nothing
            the_last_message_can_be_forgotten_again_and_again a_plan_is_carried_out_and_nothing_else
            forgetting_reaches_snapshots_copies_and_summaries forgetting_everything_leaves_nothing;
        documents: a_document_is_what_was_last_written a_document_has_a_size_limit
            settings_are_kept_and_no_change_is_lost clearing_hides_and_deletes_nothing
            a_snapshot_comes_back_as_it_was_saved
            a_segment_of_the_search_index_goes_with_its_messages a_summary_needs_the_one_before;
        artifacts: an_artifact_comes_back_as_it_was_added the_same_bytes_are_added_once
            contents_that_cannot_be_read_add_nothing an_artifact_goes_with_the_message_that_it_holds;
        limits: a_limit_hides_whole_exchanges_and_cleanup_deletes_them
            an_expired_conversation_is_hidden_and_begins_anew wider_limits_ask_first
            a_clock_behind_deletes_nothing many_messages_over_the_limit_are_trimmed
            a_limit_far_back_shows_whole_exchanges
            a_long_conversation_that_expired_stays_hidden_until_it_is_deleted;
    }
    if rules.is_empty() { Ok(()) } else { Err(ContractViolation { rules }) }
}

fn time(text: &str) -> Timestamp {
    text.parse().unwrap_or_default()
}

fn said(text: impl ToString) -> ChatMessage {
    said_at(text, START)
}

fn said_at(text: impl ToString, at: &str) -> ChatMessage {
    ChatMessage::at(ChatRole::User, text.to_string(), time(at))
}

fn answer(text: &str) -> Vec<ChatMessage> {
    vec![ChatMessage::at(ChatRole::Assistant, text, time(START))]
}

fn numbered(range: RangeInclusive<u64>) -> Vec<ChatMessage> {
    range.map(said).collect()
}

/// The texts of a result without findings.
fn texts(result: Result<ReadResult>) -> std::result::Result<Vec<String>, BrokenRule> {
    let result = complete(result?)?;
    Ok(result.messages.iter().map(|stored| stored.message.content.clone()).collect())
}

/// The numbers of a result without findings.
fn seqs(result: Result<ReadResult>) -> std::result::Result<Vec<u64>, BrokenRule> {
    let result = complete(result?)?;
    Ok(result.messages.iter().map(|stored| stored.seq).collect())
}

fn complete(result: ReadResult) -> std::result::Result<ReadResult, BrokenRule> {
    match result.skipped.as_slice() {
        [] => Ok(result),
        skipped => Err(BrokenRule(format!("a read left something out: {skipped:?}"))),
    }
}
