//! A buffer for received bytes, which wipes them after use.

use zeroize::{Zeroize, Zeroizing};

/// Received bytes, taken out line by line.
#[derive(Default)]
pub(super) struct Buffer {
    bytes: Zeroizing<Vec<u8>>,
    /// The start of the lines that were not taken yet.
    start: usize,
    /// The bytes up to here hold no line end. A long line in small pieces is thus searched once.
    searched: usize,
}

impl Buffer {
    pub(super) fn push(&mut self, more: &[u8]) {
        if self.start > 0 {
            self.bytes.copy_within(self.start.., 0);
            let left = self.len();
            // `truncate` alone would leave the removed bytes in memory.
            self.bytes.iter_mut().skip(left).for_each(Zeroize::zeroize);
            self.bytes.truncate(left);
            self.searched -= self.start;
            self.start = 0;
        }
        let needed = self.bytes.len() + more.len();
        if needed > self.bytes.capacity() {
            // Growing in place may leave a copy behind.
            let mut larger = Zeroizing::new(Vec::with_capacity((needed * 2).max(4096)));
            larger.extend_from_slice(&self.bytes);
            self.bytes = larger;
        }
        self.bytes.extend_from_slice(more);
    }

    /// Takes the next complete line, without its end.
    pub(super) fn line(&mut self) -> Option<&[u8]> {
        let unread = self.bytes.get(self.searched..)?;
        let Some(length) = unread.iter().position(|&byte| byte == b'\n') else {
            self.searched = self.bytes.len();
            return None;
        };
        let (start, end) = (self.start, self.searched + length);
        self.start = end + 1;
        self.searched = self.start;
        self.bytes.get(start..end)
    }

    /// Takes the bytes after the last line end.
    pub(super) fn rest(&mut self) -> &[u8] {
        let start = self.start;
        self.start = self.bytes.len();
        self.searched = self.start;
        self.bytes.get(start..).unwrap_or_default()
    }

    /// The number of bytes that were not taken yet.
    pub(super) fn len(&self) -> usize {
        self.bytes.len() - self.start
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn lines_are_the_same_however_the_bytes_are_cut(
            text in "[abc\né€]{0,60}",
            cuts in prop::collection::vec(1usize..7, 0..40),
        ) {
            let mut buffer = Buffer::default();
            let mut lines = Vec::new();
            let mut bytes = text.as_bytes();
            for cut in cuts {
                let (piece, rest) = bytes.split_at(cut.min(bytes.len()));
                bytes = rest;
                buffer.push(piece);
                while let Some(line) = buffer.line() {
                    lines.push(line.to_vec());
                }
            }
            buffer.push(bytes);
            while let Some(line) = buffer.line() {
                lines.push(line.to_vec());
            }
            lines.push(buffer.rest().to_vec());
            let whole: Vec<Vec<u8>> = text.split('\n').map(|line| line.as_bytes().to_vec()).collect();
            prop_assert_eq!(lines, whole);
            prop_assert_eq!(buffer.len(), 0);
        }
    }
}
