//! Groups messages as they are read, because handing over each one costs more than reading it.

use std::io::Read;

use sottovoce::{ChatMessage, Clock};

use crate::cmd::memory::append::lines::Lines;
use crate::cmd::memory::append::row;
use crate::exit::Failure;

/// The most bytes of lines in one group, plus at most one line.
const MOST_BYTES: u64 = 1 << 20;

/// Messages that were read together, each with its line number.
#[derive(Default)]
pub(super) struct Rows {
    pub(super) messages: Vec<(usize, ChatMessage)>,
    /// The total length of their lines.
    pub(super) bytes: u64,
}

impl Rows {
    /// Puts messages without a thread into this one.
    pub(super) fn in_thread(mut self, thread: Option<&str>) -> Self {
        for (_, message) in &mut self.messages {
            if message.thread_id.is_none() {
                message.thread_id = thread.map(str::to_owned);
            }
        }
        self
    }
}

/// Reads all messages and passes them on in groups of at most `most`; a group is smaller if the next line is not
/// available yet. Stops at an invalid line, and when the receiver is gone.
pub(super) fn read(
    input: impl Read,
    most: usize,
    clock: &dyn Clock,
    mut give: impl FnMut(Result<Rows, Failure>) -> bool,
) {
    let mut lines = Lines::new(input);
    let mut rows = Rows::default();
    while let Some(line) = lines.next() {
        let parsed = line.and_then(|line| {
            rows.bytes += line.text.len() as u64;
            let message = row::parse(&line.text, line.number, &clock.now())?;
            Ok(message.map(|message| (line.number, message)))
        });
        match parsed {
            Ok(message) => rows.messages.extend(message),
            Err(refused) => {
                let _ = give(Ok(rows)) && give(Err(refused));
                return;
            }
        }
        let full = rows.messages.len() >= most || rows.bytes >= MOST_BYTES;
        if (full || !lines.is_next_here()) && !give(Ok(std::mem::take(&mut rows))) {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sottovoce::SystemClock;

    /// The sizes of the groups that were passed on, and the number of refusals.
    fn given(input: impl Read, most: usize) -> (Vec<usize>, usize) {
        let (mut counts, mut refusals) = (Vec::new(), 0);
        read(input, most, &SystemClock, |rows| {
            match rows {
                Ok(rows) => counts.push(rows.messages.len()),
                Err(_) => refusals += 1,
            }
            true
        });
        (counts, refusals)
    }

    const LINE: &str = "{\"role\":\"user\",\"content\":\"x\"}\n";

    #[test]
    fn what_comes_together_is_given_away_together_and_nothing_waits_for_what_is_not_here() {
        assert_eq!(given(LINE.repeat(5).as_bytes(), 2), (vec![2, 2, 1], 0));
        let slowly = LINE.repeat(2);
        let (first, second) = slowly.split_at(LINE.len() + 3);
        assert_eq!(given(first.as_bytes().chain(second.as_bytes()), 9), (vec![1, 1], 0));
    }

    #[test]
    fn what_was_read_before_a_refused_line_is_given_away_first() {
        let input = format!("{LINE}\n{LINE}nonsense\n{LINE}");
        assert_eq!(given(input.as_bytes(), 9), (vec![2], 1));
    }
}
