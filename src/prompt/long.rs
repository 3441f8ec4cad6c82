//! Long exchanges: one that takes most of the room is shortened or passed over, so that the rest stays.

use std::ops::Range;

use super::receipt::{EntryOutcome, ReceiptEntry};
use crate::context::{ContextMessage, blocks};
use crate::message::texts;

/// An exchange is long if it takes more than this fraction of the room.
const PART: usize = 2;
/// How many characters of each message of a shortened exchange stay.
const LEFT: usize = 400;

/// An offered message, with its entry in the receipt.
pub(crate) struct Candidate<'a> {
    pub(crate) entry: &'a mut ReceiptEntry,
    pub(crate) message: &'a mut ContextMessage,
}

/// Shortens each long exchange that does not fit into `room` together with everything said since, and passes over those
/// that are long even then. Which are long is told by `usual`, the room beside an utterance of usual length.
///
/// As a conversation grows, more is said since, and an utterance takes the same room as soon as it is history. So a
/// shortened exchange stays shortened, and the beginning of the prompt stays as it was.
pub(super) fn yield_long(
    history: &mut [Candidate<'_>],
    (room, usual): (usize, usize),
    price: &impl Fn(&ContextMessage) -> usize,
) {
    let mut since = 0_usize;
    for exchange in exchanges(history).into_iter().rev() {
        let exchange = history.get_mut(exchange).unwrap_or_default();
        since = since.saturating_add(tokens(exchange));
        if since <= room.min(usual) || !is_long(exchange, usual) {
            continue;
        }
        for Candidate { entry, message } in &mut *exchange {
            if let Some(shorter) = shortened(message) {
                **message = shorter;
                entry.tokens = price(message);
                entry.why.push_str(
                    ", shortened, because the whole exchange would leave too little room",
                );
            }
        }
        if is_long(exchange, usual) {
            exchange.iter_mut().for_each(|c| c.entry.outcome = EntryOutcome::TooLong);
        }
    }
}

fn is_long(exchange: &[Candidate<'_>], room: usize) -> bool {
    tokens(exchange) > room / PART
}

fn tokens(exchange: &[Candidate<'_>]) -> usize {
    exchange.iter().map(|candidate| candidate.entry.tokens).sum()
}

/// The exchanges of a history, oldest first. What stands before the first one goes with it.
fn exchanges(history: &[Candidate<'_>]) -> Vec<Range<usize>> {
    let messages = || history.iter().map(|candidate| candidate.message.message());
    let begins = blocks::begins(messages());
    let starts = messages().enumerate().skip(1).filter(|(_, message)| begins(message));
    let starts: Vec<usize> = std::iter::once(0).chain(starts.map(|(at, _)| at)).collect();
    let ends = starts.iter().copied().skip(1).chain([history.len()]);
    starts.iter().copied().zip(ends).map(|(start, end)| start..end).collect()
}

/// The beginning of a message with a note of what is left out, or `None` if the message is short.
fn shortened(message: &ContextMessage) -> Option<ContextMessage> {
    let words = &message.message().content;
    let (end, _) = words.char_indices().nth(LEFT)?;
    let (begun, rest) = words.split_at_checked(end)?;
    let rest = rest.chars().count();
    Some(message.with_words(&format!("{begun} {}", texts::left_out(rest))))
}
