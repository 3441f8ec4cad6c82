//! Block borders: decides where a window of history starts, so that the start seldom moves.

use crate::message::{ChatMessage, ChatRole};

/// A window grows to this many times n before its oldest block is dropped.
pub(crate) const HIGH_WATER: u64 = 4;

/// The block length for windows of at least `n` messages. A whole block is dropped at once.
pub(crate) fn length(n: usize) -> u64 {
    (n as u64).saturating_mul(HIGH_WATER - 1).max(1)
}

/// Returns the number up to which a history is dropped: at least `low`, at most `high`. The result is a block border
/// if one lies between them, else a border of half a block, and so on.
///
/// Both bounds rise as a conversation grows. The result stays the same for many turns, then moves far, and never
/// moves back. It depends on nothing but its arguments.
pub(crate) fn border(low: u64, high: u64, block: u64) -> u64 {
    let mut step = block;
    while step > 1 {
        let border = low.div_ceil(step).saturating_mul(step);
        if border <= high {
            return border;
        }
        step /= 2;
    }
    low
}

/// Lowers numbers so that they rise in the order of time. An imported message has a higher number than older local
/// ones although it comes before them; it gets the number of the later message.
pub(crate) fn rising(mut seqs: Vec<u64>) -> Vec<u64> {
    let mut next = u64::MAX;
    for seq in seqs.iter_mut().rev() {
        *seq = next.min(*seq);
        next = *seq;
    }
    seqs
}

/// The first index at or after `start` at which a history may begin: the start of an exchange. If no exchange has a
/// start, as when an assistant speaks alone, any message except a tool result will do.
pub(crate) fn whole_from<'a>(
    messages: impl Iterator<Item = &'a ChatMessage> + Clone,
    start: usize,
) -> usize {
    let begins = begins(messages.clone());
    let first = messages.clone().enumerate().skip(start).find(|(_, message)| begins(message));
    first.map_or_else(|| messages.count(), |(index, _)| index)
}

/// Tells at which of these messages a history may begin.
pub(crate) fn begins<'a>(
    mut messages: impl Iterator<Item = &'a ChatMessage>,
) -> impl Fn(&ChatMessage) -> bool {
    let exchanges = messages.any(ChatMessage::starts_exchange);
    move |message| match exchanges {
        true => message.starts_exchange(),
        false => message.role != ChatRole::Tool,
    }
}

/// How many of the first messages may be removed without leaving tool results behind whose calls are gone. All of
/// them if they are the whole (`of`), else up to the end of the last complete exchange or answer.
pub(crate) fn whole_to<'a>(
    mut taken: impl DoubleEndedIterator<Item = &'a ChatMessage> + ExactSizeIterator + Clone,
    of: usize,
) -> usize {
    let length = taken.len();
    if length == of {
        return length;
    }
    let starts = taken.clone().rposition(|message| message.starts_exchange());
    // One exchange may be longer than all the messages to remove.
    match starts {
        Some(start) if start > 0 => start,
        _ => match taken.rposition(|message| message.role != ChatRole::Tool) {
            Some(last) if last > 0 => last,
            _ => length,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_border_lies_between_its_bounds_and_never_moves_back(
            steps in prop::collection::vec((0u64..5, 0u64..5), 1..200),
            block in 1u64..40,
        ) {
            let (mut low, mut high, mut last) = (0, 0, 0);
            for (up, further) in steps {
                low += up;
                high = (high + further).max(low);
                let border = border(low, high, block);
                prop_assert!((low..=high).contains(&border));
                prop_assert!(border >= last);
                last = border;
            }
        }
    }

    #[test]
    fn numbers_rise_whatever_was_imported() {
        assert_eq!(rising(vec![1, 2, 5]), [1, 2, 5]);
        assert_eq!(rising(vec![7, 8, 2, 3, 9, 4, 10]), [2, 2, 2, 3, 4, 4, 10]);
        assert!(rising(Vec::new()).is_empty());
    }

    #[test]
    fn a_window_of_six_grows_to_twenty_four_and_drops_eighteen() {
        let starts: Vec<u64> = (0u64..100)
            .map(|last| border(last.saturating_sub(24), last.saturating_sub(6), 18))
            .collect();
        assert!(starts.iter().zip(0u64..).all(|(start, last)| last - start <= 24));
        let moves = starts.windows(2).filter(|pair| pair[0] != pair[1]).count();
        assert_eq!(moves, 5);
    }
}
