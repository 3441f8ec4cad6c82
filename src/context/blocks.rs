//! Where a window starts, so that it seldom moves: whoever cuts a history from the front asks here.

use crate::message::{ChatMessage, ChatRole};

/// How many times n a window grows to before its oldest block is dropped.
pub(crate) const HIGH_WATER: u64 = 4;

/// The length of a block for windows of at least `n`: what is dropped at once.
pub(crate) fn length(n: usize) -> u64 {
    (n as u64).saturating_mul(HIGH_WATER - 1).max(1)
}

/// The number up to which a history is dropped: at least `low`, at most `high`, on a block's border if one lies
/// between them, else on half a block's, and so on.
///
/// As a conversation goes on, both bounds rise, and the answer stays for many turns and then moves far; it never
/// moves back. It needs no memory of earlier prompts.
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

/// The numbers of messages in the order of time, none above that of a later message: what was imported has a higher
/// number than what was here before, and yet is older.
pub(crate) fn rising(mut seqs: Vec<u64>) -> Vec<u64> {
    let mut next = u64::MAX;
    for seq in seqs.iter_mut().rev() {
        *seq = next.min(*seq);
        next = *seq;
    }
    seqs
}

/// The first index from `start` on at which a history may begin: where an exchange starts. Where no exchange has a
/// start at all, as when an assistant speaks alone, any message but a tool's result will do.
pub(crate) fn whole_from<'a>(
    messages: impl Iterator<Item = &'a ChatMessage> + Clone,
    start: usize,
) -> usize {
    let exchanges = messages.clone().any(ChatMessage::starts_exchange);
    let begins = |message: &ChatMessage| match exchanges {
        true => message.starts_exchange(),
        false => message.role != ChatRole::Tool,
    };
    let first = messages.clone().enumerate().skip(start).find(|(_, message)| begins(message));
    first.map_or_else(|| messages.count(), |(index, _)| index)
}

/// How many of the first messages may be taken away without leaving results of tools behind whose calls go: all of them
/// where these are all `of` so many, else up to where the last exchange or answer is whole.
pub(crate) fn whole_to<'a>(
    mut taken: impl DoubleEndedIterator<Item = &'a ChatMessage> + ExactSizeIterator + Clone,
    of: usize,
) -> usize {
    let length = taken.len();
    if length == of {
        return length;
    }
    let starts = taken.clone().rposition(|message| message.starts_exchange());
    // One exchange may be longer than all that is taken.
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
