//! A buffer for received bytes, which wipes them after use.

use zeroize::{Zeroize, Zeroizing};

/// Received bytes, taken out part by part: an object of JSON, however many lines it has, or else a line.
#[derive(Default)]
pub(super) struct Buffer {
    bytes: Zeroizing<Vec<u8>>,
    /// The start of the parts that were not taken yet.
    start: usize,
    /// The bytes up to here do not end a part. A long one in small pieces is thus searched once.
    searched: usize,
    /// How far the object goes, as far as it was searched.
    object: Object,
}

/// How many brackets of an object are open, and whether a text in it is.
#[derive(Default)]
struct Object {
    depth: usize,
    is_text: bool,
    is_escape: bool,
    /// The last byte outside of texts that is no white space.
    last: u8,
}

/// What a byte does to an object.
enum Next {
    Goes,
    Ends,
    /// No object goes on with this byte: another begins, or a line ends in a text.
    Breaks,
}

impl Object {
    fn take(&mut self, byte: u8) -> Next {
        if self.is_text {
            match byte {
                _ if self.is_escape => self.is_escape = false,
                b'\\' => self.is_escape = true,
                b'"' => self.is_text = false,
                b'\n' => return Next::Breaks,
                _ => {}
            }
            return Next::Goes;
        }
        match byte {
            b'"' => self.is_text = true,
            b'{' if self.depth > 0 && !b":,[".contains(&self.last) => return Next::Breaks,
            b'{' | b'[' => self.depth += 1,
            b'}' | b']' => self.depth = self.depth.saturating_sub(1),
            _ => {}
        }
        if !byte.is_ascii_whitespace() {
            self.last = byte;
        }
        if self.depth == 0 { Next::Ends } else { Next::Goes }
    }
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

    /// Takes the next complete part.
    pub(super) fn part(&mut self) -> Option<&[u8]> {
        if self.searched == self.start {
            let blank = |byte: &u8| byte.is_ascii_whitespace() || b"\xEF\xBB\xBF".contains(byte);
            let unread = self.bytes.get(self.start..)?;
            self.start += unread.iter().take_while(|byte| blank(byte)).count();
            self.searched = self.start;
        }
        let is_object = self.bytes.get(self.start) == Some(&b'{');
        for (at, byte) in self.bytes.iter().enumerate().skip(self.searched) {
            let next = match (is_object, byte) {
                (true, byte) => self.object.take(*byte),
                (false, b'\n') => Next::Ends,
                (false, _) => Next::Goes,
            };
            let end = match next {
                Next::Goes => continue,
                Next::Ends => at + 1,
                Next::Breaks => at,
            };
            let start = std::mem::replace(&mut self.start, end);
            self.searched = end;
            self.object = Object::default();
            return self.bytes.get(start..end);
        }
        self.searched = self.bytes.len();
        None
    }

    /// Takes the bytes after the last complete part.
    pub(super) fn rest(&mut self) -> &[u8] {
        let start = self.start;
        self.start = self.bytes.len();
        self.searched = self.start;
        self.object = Object::default();
        self.bytes.get(start..).unwrap_or_default()
    }

    /// The number of bytes that were not taken yet.
    pub(super) fn len(&self) -> usize {
        self.bytes.len() - self.start
    }

    #[cfg(test)]
    pub(super) fn searched(&self) -> usize {
        self.searched - self.start
    }
}
