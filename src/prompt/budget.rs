//! Keeps a prompt within its budget: drops the least useful messages, a block at a time.

use super::receipt::{EntryOutcome, ReceiptEntry};
use crate::context::blocks::HIGH_WATER;
use crate::context::{Placement, blocks};
use crate::message::ChatMessage;

/// An offered message, with what the budget needs to know.
pub(crate) struct Candidate<'a> {
    pub(crate) entry: &'a mut ReceiptEntry,
    pub(crate) message: &'a ChatMessage,
}

/// Drops retrieved messages (last first), then the oldest history, then stable memory (last first), until the rest
/// takes at most `room` tokens. History is dropped in whole blocks, and about `n` messages of it stay if they fit.
pub(crate) fn fit(candidates: &mut [Candidate<'_>], room: usize, n: usize) {
    drop_last_first(candidates, Placement::NewestTurn, room);
    drop_oldest_history(candidates, excess(candidates, room), n);
    drop_last_first(candidates, Placement::Stable, room);
}

/// Drops the oldest history in the same way, until it takes at most `room` tokens by itself.
pub(crate) fn fit_history(candidates: &mut [Candidate<'_>], room: usize, n: usize) {
    let history = candidates.iter().filter(|candidate| is_in(candidate, Placement::History));
    let tokens: usize = history.map(|candidate| candidate.entry.tokens).sum();
    drop_oldest_history(candidates, tokens.saturating_sub(room), n);
}

/// About how many messages stay when a block of a history with this many tokens is dropped. The number is so low that
/// a block is a quarter of the history, if messages have the usual length.
pub(crate) fn low_water(tokens: usize) -> usize {
    const MESSAGE: usize = 32;
    let messages = tokens / MESSAGE;
    (messages / (4 * (HIGH_WATER as usize - 1))).max(1)
}

fn is_in(candidate: &Candidate<'_>, placement: Placement) -> bool {
    candidate.entry.outcome == EntryOutcome::Included && candidate.entry.placement == placement
}

fn excess(candidates: &[Candidate<'_>], room: usize) -> usize {
    candidates
        .iter()
        .filter(|candidate| candidate.entry.outcome == EntryOutcome::Included)
        .map(|candidate| candidate.entry.tokens)
        .sum::<usize>()
        .saturating_sub(room)
}

fn drop_last_first(candidates: &mut [Candidate<'_>], placement: Placement, room: usize) {
    let mut excess = excess(candidates, room);
    for candidate in candidates.iter_mut().rev() {
        if excess > 0 && is_in(candidate, placement) {
            candidate.entry.outcome = EntryOutcome::OverBudget;
            excess = excess.saturating_sub(candidate.entry.tokens);
        }
    }
}

fn drop_oldest_history(candidates: &mut [Candidate<'_>], mut excess: usize, n: usize) {
    if excess == 0 {
        return;
    }
    let mut history: Vec<&mut Candidate<'_>> =
        candidates.iter_mut().filter(|candidate| is_in(candidate, Placement::History)).collect();
    // A message without a number takes that of the message before it.
    let mut before = 0;
    let seqs: Vec<u64> = history
        .iter()
        .map(|candidate| {
            before = candidate.entry.seq.unwrap_or(before);
            before
        })
        .collect();
    let seqs = blocks::rising(seqs);
    let mut must_go = 0;
    for (candidate, &seq) in history.iter().zip(&seqs) {
        if excess > 0 {
            excess = excess.saturating_sub(candidate.entry.tokens);
            must_go = seq;
        }
    }
    let newest = seqs.last().copied().unwrap_or(0);
    let few_left = newest.saturating_sub(n as u64).max(must_go);
    let border = blocks::border(must_go, few_left, blocks::length(n));
    let start = seqs.partition_point(|&seq| seq <= border);
    let kept = blocks::whole_from(history.iter().map(|candidate| candidate.message), start);
    for candidate in history.iter_mut().take(kept) {
        candidate.entry.outcome = EntryOutcome::OverBudget;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::ChatRole;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn what_is_left_fits_or_is_nothing_and_starts_with_an_exchange(
            tokens in prop::collection::vec(1usize..60, 0..60),
            first in 1u64..1000,
            imported in 0usize..60,
            room in 0usize..1500,
            n in 1usize..9,
        ) {
            let mut entries: Vec<_> = tokens
                .iter()
                .zip(first..)
                .map(|(&tokens, seq)| entry(seq, tokens, Placement::History))
                .collect();
            // Messages that were imported late have the highest numbers and stand first.
            entries.rotate_right(imported.min(tokens.len()));
            let mut candidates: Vec<_> = entries
                .iter_mut()
                .map(|entry| Candidate { message: said(entry.seq.unwrap() % 2 == 1), entry })
                .collect();
            fit(&mut candidates, room, n);
            let all: usize = tokens.iter().sum();
            let kept: Vec<_> = entries.iter().filter(|e| e.outcome == EntryOutcome::Included).collect();
            prop_assert!(kept.iter().map(|e| e.tokens).sum::<usize>() <= room);
            if all <= room {
                prop_assert_eq!(kept.len(), tokens.len());
            } else if let Some(first) = kept.first() {
                prop_assert_eq!(first.seq.unwrap() % 2, 1);
                prop_assert_eq!(kept.len(), entries.len() - entries.iter().position(|e| e == *first).unwrap());
            }
        }
    }

    /// A message that starts an exchange, or one that does not.
    fn said(starts: bool) -> &'static ChatMessage {
        static MESSAGES: std::sync::OnceLock<[ChatMessage; 2]> = std::sync::OnceLock::new();
        let messages = MESSAGES.get_or_init(|| {
            [ChatRole::Assistant, ChatRole::User]
                .map(|role| ChatMessage::at(role, "x", jiff::Timestamp::UNIX_EPOCH))
        });
        &messages[usize::from(starts)]
    }

    fn entry(seq: u64, tokens: usize, placement: Placement) -> ReceiptEntry {
        ReceiptEntry {
            seq: Some(seq),
            role: ChatRole::User,
            placement,
            tokens,
            why: String::new(),
            outcome: EntryOutcome::Included,
        }
    }

    #[test]
    fn retrieved_goes_before_history_and_history_before_stable() {
        let places =
            [Placement::Stable, Placement::History, Placement::History, Placement::NewestTurn];
        let left = |room| {
            let mut entries: Vec<_> =
                places.iter().zip(1..).map(|(&at, seq)| entry(seq, 10, at)).collect();
            let mut candidates: Vec<_> =
                entries.iter_mut().map(|entry| Candidate { message: said(true), entry }).collect();
            fit(&mut candidates, room, 1);
            entries
                .iter()
                .filter(|e| e.outcome == EntryOutcome::Included)
                .map(|e| e.seq.unwrap())
                .collect::<Vec<_>>()
        };
        assert_eq!(left(40), [1, 2, 3, 4]);
        assert_eq!(left(39), [1, 2, 3]);
        assert_eq!(left(29), [1, 3]);
        assert_eq!(left(19), [1]);
        assert_eq!(left(9), [0u64; 0]);
    }
}
