//! Reads standard input line by line, with a limit on their length.

use std::io::{BufRead, BufReader, Read};

use zeroize::Zeroizing;

use crate::cmd::memory::append::row::refused;
use crate::exit::Failure;

/// The longest line in bytes. No message that a store accepts needs more.
const LONGEST: u64 = 16 << 20;

/// The bytes of one read.
const CHUNK: usize = 1 << 18;

/// A line with its number, from 1.
pub(super) struct Line {
    pub(super) number: usize,
    pub(super) text: Zeroizing<String>,
}

pub(super) struct Lines<R> {
    input: BufReader<R>,
    number: usize,
}

impl<R: Read> Lines<R> {
    pub(super) fn new(input: R) -> Self {
        Self { input: BufReader::with_capacity(CHUNK, input), number: 0 }
    }

    /// Whether the next line is available without waiting.
    pub(super) fn is_next_here(&self) -> bool {
        self.input.buffer().contains(&b'\n')
    }
}

impl<R: Read> Iterator for Lines<R> {
    type Item = Result<Line, Failure>;

    fn next(&mut self) -> Option<Self::Item> {
        self.number += 1;
        let number = self.number;
        let mut bytes = Zeroizing::new(Vec::new());
        match self.input.by_ref().take(LONGEST + 1).read_until(b'\n', &mut bytes) {
            Err(error) => return Some(Err(error.into())),
            Ok(0) => return None,
            Ok(_) => {}
        }
        if bytes.len() as u64 > LONGEST && !bytes.ends_with(b"\n") {
            return Some(Err(refused(number, "longer than 16 MiB")));
        }
        Some(match String::from_utf8(std::mem::take(&mut *bytes)) {
            Ok(text) => Ok(Line { number, text: Zeroizing::new(text) }),
            Err(error) => {
                let column = error.utf8_error().valid_up_to() + 1;
                drop(Zeroizing::new(error.into_bytes()));
                Err(refused(number, &format!("not UTF-8 (at byte {column})")))
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn what(item: Option<Result<Line, Failure>>) -> String {
        match item {
            Some(Err(Failure::Input { what, .. })) => what,
            _ => panic!("not refused"),
        }
    }

    #[test]
    fn lines_are_numbered_and_the_last_needs_no_end() {
        let lines: Vec<_> = Lines::new(&b"a\n\nb"[..])
            .map(|line| line.map(|line| (line.number, line.text.to_string())).ok().unwrap())
            .collect();
        assert_eq!(lines, [(1, "a\n".to_owned()), (2, "\n".to_owned()), (3, "b".to_owned())]);
    }

    #[test]
    fn what_is_no_text_is_named() {
        let mut lines = Lines::new(&b"a\nb\xffc\n"[..]);
        assert!(lines.next().unwrap().is_ok());
        assert_eq!(what(lines.next()), "line 2: not UTF-8 (at byte 2)");
    }

    #[test]
    fn a_line_without_end_is_given_up() {
        assert_eq!(what(Lines::new(std::io::repeat(b'a')).next()), "line 1: longer than 16 MiB");
    }
}
