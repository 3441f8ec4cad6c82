//! Keeps a prompt within its budget: drops the least useful messages, a block at a time.

use super::long::{Candidate, yield_long};
use super::receipt::{EntryOutcome, ReceiptEntry};
use crate::context::blocks::HIGH_WATER;
use crate::context::{ContextMessage, Placement, blocks};

/// A message that leaves a placement first takes more than this many times what all others there take.
const LONG: usize = 2;

/// Drops the oldest history, then stable memory (last first), until the rest takes at most `room` tokens. History is
/// dropped in whole blocks, and about `n` messages of it stay if they fit.
/// No single long message makes others go: it goes itself.
///
/// `usual` is the room beside an utterance of usual length. It decides what is too long, so that this does not change
/// with each utterance.
pub(crate) fn fit(
    candidates: &mut [Candidate<'_>],
    (room, usual): (usize, usize),
    n: usize,
    price: impl Fn(&ContextMessage) -> usize,
) {
    let stable = tokens(candidates, |at| at == Placement::Stable);
    let rooms = (room.saturating_sub(stable), usual.saturating_sub(stable));
    yield_long_history(candidates, rooms, &price);
    drop_oldest_history(candidates, excess(candidates, room), n);
    drop_last_first(candidates, Placement::Stable, room);
}

/// Drops what was found for the utterance, last first, until the rest takes at most `room` tokens.
pub(crate) fn fit_found(candidates: &mut [Candidate<'_>], room: usize) {
    drop_last_first(candidates, Placement::NewestTurn, room);
}

/// Drops the oldest history in the same way, until it takes at most `room` tokens by itself.
pub(crate) fn fit_history(
    candidates: &mut [Candidate<'_>],
    room: usize,
    n: usize,
    price: impl Fn(&ContextMessage) -> usize,
) {
    yield_long_history(candidates, (room, room), &price);
    let tokens = tokens(candidates, |at| at == Placement::History);
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

/// The tokens of the messages that are still in, at some placements.
fn tokens(candidates: &[Candidate<'_>], at: impl Fn(Placement) -> bool) -> usize {
    let entries = candidates.iter().map(|candidate| &*candidate.entry);
    entries
        .filter(|entry| entry.outcome == EntryOutcome::Included && at(entry.placement))
        .map(|entry| entry.tokens)
        .sum()
}

fn excess(candidates: &[Candidate<'_>], room: usize) -> usize {
    tokens(candidates, |_| true).saturating_sub(room)
}

fn drop_last_first(candidates: &mut [Candidate<'_>], placement: Placement, room: usize) {
    while excess(candidates, room) > 0 {
        let all = tokens(candidates, |at| at == placement);
        let is_long = |tokens: usize| tokens > (all - tokens).saturating_mul(LONG);
        let mut entries: Vec<&mut ReceiptEntry> = candidates
            .iter_mut()
            .filter(|candidate| is_in(candidate, placement))
            .map(|candidate| &mut *candidate.entry)
            .collect();
        let long = entries.iter().position(|entry| is_long(entry.tokens));
        let others = entries.len().saturating_sub(1);
        let Some(entry) = entries.get_mut(long.unwrap_or(others)) else { return };
        entry.outcome = match long {
            Some(_) if others > 0 => EntryOutcome::TooLong,
            _ => EntryOutcome::OverBudget,
        };
    }
}

fn yield_long_history(
    candidates: &mut [Candidate<'_>],
    rooms: (usize, usize),
    price: &impl Fn(&ContextMessage) -> usize,
) {
    let mut history: Vec<_> = candidates
        .iter_mut()
        .filter(|candidate| is_in(candidate, Placement::History))
        .map(|Candidate { entry, message }| Candidate { entry, message })
        .collect();
    yield_long(&mut history, rooms, price);
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
    let kept =
        blocks::whole_from(history.iter().map(|candidate| candidate.message.message()), start);
    for candidate in history.iter_mut().take(kept) {
        candidate.entry.outcome = EntryOutcome::OverBudget;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::{ChatMessage, ChatRole};
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
            fitted(&mut entries, room, n);
            let all: usize = tokens.iter().sum();
            let kept: Vec<_> = entries.iter().filter(|e| e.outcome == EntryOutcome::Included).collect();
            let passed_over = entries.iter().any(|e| e.outcome == EntryOutcome::TooLong);
            prop_assert!(kept.iter().map(|e| e.tokens).sum::<usize>() <= room);
            if all <= room {
                prop_assert_eq!(kept.len(), tokens.len());
            } else if let (Some(first), false) = (kept.first(), passed_over) {
                prop_assert_eq!(first.seq.unwrap() % 2, 1);
                prop_assert_eq!(kept.len(), entries.len() - entries.iter().position(|e| e == *first).unwrap());
            }
        }

        #[test]
        fn what_is_passed_over_once_stays_so_as_a_conversation_grows(
            tokens in prop::collection::vec(prop_oneof![9 => 1usize..30, 1 => 30usize..600], 2..80),
            room in 50usize..500,
            n in 1usize..9,
        ) {
            let mut gone = std::collections::HashSet::new();
            for length in (2..=tokens.len()).step_by(2) {
                let grown = tokens.iter().take(length).zip(1..);
                let mut entries: Vec<_> =
                    grown.map(|(&tokens, seq)| entry(seq, tokens, Placement::History)).collect();
                fitted(&mut entries, room, n);
                let is_back = |e: &ReceiptEntry| gone.contains(&e.seq) && e.outcome == EntryOutcome::Included;
                prop_assert!(!entries.iter().any(is_back));
                let long = entries.iter().filter(|e| e.outcome == EntryOutcome::TooLong);
                gone.extend(long.map(|e| e.seq));
            }
        }
    }

    /// Fits entries. Those with odd numbers start an exchange.
    fn fitted(entries: &mut [ReceiptEntry], room: usize, n: usize) {
        with_candidates(entries, |candidates| fit(candidates, (room, room), n, |_| 1));
    }

    fn with_candidates(entries: &mut [ReceiptEntry], fit: impl Fn(&mut [Candidate<'_>])) {
        let mut messages: Vec<ContextMessage> = entries
            .iter()
            .map(|entry| match entry.seq.unwrap() % 2 {
                1 => ChatRole::User,
                _ => ChatRole::Assistant,
            })
            .map(|role| ChatMessage::at(role, "x", jiff::Timestamp::UNIX_EPOCH).into())
            .collect();
        let offers = entries.iter_mut().zip(&mut messages);
        let mut candidates: Vec<_> =
            offers.map(|(entry, message)| Candidate { entry, message }).collect();
        fit(&mut candidates);
    }

    fn entry(seq: u64, tokens: usize, placement: Placement) -> ReceiptEntry {
        ReceiptEntry {
            seq: Some(seq),
            role: ChatRole::User,
            source: crate::message::Source::Unknown,
            placement,
            tokens,
            why: String::new(),
            quoting: None,
            outcome: EntryOutcome::Included,
        }
    }

    #[test]
    fn history_goes_before_stable() {
        let places = [Placement::Stable, Placement::History, Placement::History];
        let left = |room| {
            let mut entries: Vec<_> =
                places.iter().zip(1..).map(|(&at, seq)| entry(seq, 10, at)).collect();
            fitted(&mut entries, room, 1);
            entries
                .iter()
                .filter(|e| e.outcome == EntryOutcome::Included)
                .map(|e| e.seq.unwrap())
                .collect::<Vec<_>>()
        };
        assert_eq!(left(30), [1, 2, 3]);
        assert_eq!(left(29), [1, 3]);
        assert_eq!(left(19), [1]);
        assert_eq!(left(9), [0u64; 0]);
    }

    #[test]
    fn one_long_recalled_message_goes_itself_and_the_others_stay() {
        let mut entries: Vec<_> = [10, 100, 10, 10]
            .into_iter()
            .zip(1..)
            .map(|(tokens, seq)| entry(seq, tokens, Placement::NewestTurn))
            .collect();
        with_candidates(&mut entries, |candidates| fit_found(candidates, 100));
        let outcomes = entries.iter().map(|e| e.outcome).collect::<Vec<_>>();
        use EntryOutcome::{Included, TooLong};
        assert_eq!(outcomes, [Included, TooLong, Included, Included]);
    }
}
