//! Keeping a prompt within its tokens by dropping what matters least, a block at a time.

use super::receipt::{Outcome, ReceiptEntry};
use crate::context::Placement;

/// An offered message, as far as dropping is concerned.
pub(crate) struct Candidate<'a> {
    pub(crate) entry: &'a mut ReceiptEntry,
    pub(crate) starts_exchange: bool,
}

/// Drops retrieved messages (the last first), then the oldest history, then stable memory (the last first), until
/// the rest takes at most `room` tokens.
pub(crate) fn fit(candidates: &mut [Candidate<'_>], room: usize) {
    drop_last_first(candidates, Placement::NewestTurn, room);
    drop_oldest_history(candidates, room);
    drop_last_first(candidates, Placement::Stable, room);
}

fn is_in(candidate: &Candidate<'_>, placement: Placement) -> bool {
    candidate.entry.outcome == Outcome::Included && candidate.entry.placement == placement
}

fn excess(candidates: &[Candidate<'_>], room: usize) -> usize {
    candidates
        .iter()
        .filter(|candidate| candidate.entry.outcome == Outcome::Included)
        .map(|candidate| candidate.entry.tokens)
        .sum::<usize>()
        .saturating_sub(room)
}

fn drop_last_first(candidates: &mut [Candidate<'_>], placement: Placement, room: usize) {
    let mut excess = excess(candidates, room);
    for candidate in candidates.iter_mut().rev() {
        if excess > 0 && is_in(candidate, placement) {
            candidate.entry.outcome = Outcome::OverBudget;
            excess = excess.saturating_sub(candidate.entry.tokens);
        }
    }
}

fn drop_oldest_history(candidates: &mut [Candidate<'_>], room: usize) {
    let mut excess = excess(candidates, room);
    if excess == 0 {
        return;
    }
    let mut history: Vec<&mut Candidate<'_>> =
        candidates.iter_mut().filter(|candidate| is_in(candidate, Placement::History)).collect();
    // Messages without a number take the one before theirs.
    let mut before = 0;
    let seqs: Vec<u64> = history
        .iter()
        .map(|candidate| {
            before = candidate.entry.seq.unwrap_or(before);
            before
        })
        .collect();
    let mut must_go = 0;
    for (candidate, &seq) in history.iter().zip(&seqs) {
        if excess > 0 {
            excess = excess.saturating_sub(candidate.entry.tokens);
            must_go = seq;
        }
    }
    let newest = seqs.last().copied().unwrap_or(0);
    let boundary = roundest(must_go, must_go.midpoint(newest));
    let mut kept = false;
    for (candidate, &seq) in history.iter_mut().zip(&seqs) {
        kept = kept || (seq > boundary && candidate.starts_exchange);
        if !kept {
            candidate.entry.outcome = Outcome::OverBudget;
        }
    }
}

/// The number from `low` to `high` that the highest power of two divides. As a conversation grows, it stays the same
/// for many turns and then moves far, so that the head of the prompt seldom changes; and it needs no memory of
/// earlier prompts.
fn roundest(low: u64, high: u64) -> u64 {
    let differing = u64::BITS - (low.saturating_sub(1) ^ high).leading_zeros();
    match differing.checked_sub(1) {
        Some(bit) if low > 0 => high >> bit << bit,
        _ => low,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::ChatRole;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_roundest_number_is_found(low in 1u64..500, span in 0u64..500) {
            let high = low + span;
            let expected = (low..=high).max_by_key(|n| n.trailing_zeros()).unwrap();
            prop_assert_eq!(roundest(low, high).trailing_zeros(), expected.trailing_zeros());
            prop_assert!((low..=high).contains(&roundest(low, high)));
        }

        #[test]
        fn what_is_left_fits_or_is_nothing_and_starts_with_an_exchange(
            tokens in prop::collection::vec(1usize..60, 0..60),
            first in 1u64..1000,
            room in 0usize..1500,
        ) {
            let mut entries: Vec<_> = tokens
                .iter()
                .zip(first..)
                .map(|(&tokens, seq)| entry(seq, tokens, Placement::History))
                .collect();
            let mut candidates: Vec<_> = entries
                .iter_mut()
                .map(|entry| Candidate { starts_exchange: entry.seq.unwrap() % 2 == 1, entry })
                .collect();
            fit(&mut candidates, room);
            let all: usize = tokens.iter().sum();
            let kept: Vec<_> = entries.iter().filter(|e| e.outcome == Outcome::Included).collect();
            prop_assert!(kept.iter().map(|e| e.tokens).sum::<usize>() <= room);
            if all <= room {
                prop_assert_eq!(kept.len(), tokens.len());
            } else if let Some(first) = kept.first() {
                prop_assert_eq!(first.seq.unwrap() % 2, 1);
                prop_assert_eq!(kept.len(), entries.len() - entries.iter().position(|e| e == *first).unwrap());
            }
        }
    }

    fn entry(seq: u64, tokens: usize, placement: Placement) -> ReceiptEntry {
        ReceiptEntry {
            seq: Some(seq),
            role: ChatRole::User,
            placement,
            tokens,
            why: String::new(),
            outcome: Outcome::Included,
        }
    }

    #[test]
    fn retrieved_goes_before_history_and_history_before_stable() {
        let places =
            [Placement::Stable, Placement::History, Placement::History, Placement::NewestTurn];
        let left = |room| {
            let mut entries: Vec<_> =
                places.iter().zip(1..).map(|(&at, seq)| entry(seq, 10, at)).collect();
            let mut candidates: Vec<_> = entries
                .iter_mut()
                .map(|entry| Candidate { starts_exchange: true, entry })
                .collect();
            fit(&mut candidates, room);
            entries
                .iter()
                .filter(|e| e.outcome == Outcome::Included)
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
