//! Reads a file line by line, with a limit for the length of a line.

use std::io::{self, BufRead, BufReader, Read};

use sottovoce::import::RefusalReason::{self, Corrupt};
use zeroize::Zeroizing;

/// The longest line in bytes. No message that a store accepts is longer.
const LONGEST: u64 = 16 << 20;
/// The bytes that are read at once.
const CHUNK: usize = 1 << 18;

/// A line that is not blank.
pub(crate) struct Line {
    /// Its number in the file, from 1.
    pub(crate) number: usize,
    /// Its bytes, or the reason to refuse it.
    pub(crate) bytes: Result<Zeroizing<Vec<u8>>, RefusalReason>,
}

/// Lines that end with `\n` only: other line separators may occur inside a JSON string.
pub(crate) struct Lines<R> {
    input: BufReader<R>,
    number: usize,
    /// The bytes that were read so far.
    pub(crate) read: usize,
}

impl<R: Read> Lines<R> {
    pub(crate) fn new(input: R) -> Self {
        Self { input: BufReader::with_capacity(CHUNK, input), number: 0, read: 0 }
    }

    /// The next line that is not blank; `None` at the end of the file.
    pub(crate) fn read_line(&mut self) -> io::Result<Option<Line>> {
        loop {
            self.number += 1;
            let mut bytes = Zeroizing::new(Vec::new());
            let read = self.input.by_ref().take(LONGEST + 1).read_until(b'\n', &mut bytes)?;
            self.read += read;
            if read == 0 {
                return Ok(None);
            }
            let number = self.number;
            if read as u64 > LONGEST && !bytes.ends_with(b"\n") {
                self.skip()?;
                let reason = Corrupt("the line is longer than 16 MiB");
                return Ok(Some(Line { number, bytes: Err(reason) }));
            }
            if !bytes.trim_ascii().is_empty() {
                return Ok(Some(Line { number, bytes: Ok(bytes) }));
            }
        }
    }

    /// Skips the rest of a line.
    fn skip(&mut self) -> io::Result<()> {
        self.read += self.input.skip_until(b'\n')?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(input: impl Read) -> Vec<(usize, Option<String>)> {
        let mut lines = Lines::new(input);
        let text = |line: Line| {
            let bytes = line.bytes.ok().map(|bytes| String::from_utf8(bytes.to_vec()).unwrap());
            (line.number, bytes)
        };
        std::iter::from_fn(|| lines.read_line().unwrap().map(text)).collect()
    }

    #[test]
    fn lines_are_numbered_blank_ones_counted_and_the_last_needs_no_end() {
        let text = |text: &str| Some(text.to_owned());
        assert_eq!(
            all(&b"a\r\n\n \t\nb\xe2\x80\xa8c"[..]),
            [(1, text("a\r\n")), (4, text("b\u{2028}c"))]
        );
        assert_eq!(all(&b""[..]), []);
    }

    #[test]
    fn a_line_without_end_is_given_up_and_those_behind_it_are_not() {
        let long = io::repeat(b'a').take(LONGEST + 100);
        let read = all(long.chain(&b"\nb"[..]));
        assert_eq!(read, [(1, None), (2, Some("b".to_owned()))]);
        let just = io::repeat(b'a').take(LONGEST);
        assert!(all(just).iter().all(|(_, bytes)| bytes.is_some()));
    }
}
