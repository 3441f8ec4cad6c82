//! Iterates over the lines of a pack, forwards or backwards, with one line in memory.

use std::io::{self, BufRead, BufReader, Read};
use std::ops::Range;

use crate::error::{Error, Result};
use crate::store::folder::pack::{LONGEST, Line, Pack};
use crate::store::record::name::{NameTime, RecordName};

/// Bytes per read.
const CHUNK: usize = if cfg!(fuzzing) { 64 } else { 1 << 16 };
/// The binary search stops at a range of this many bytes, which is then scanned.
const STEP: u64 = if cfg!(fuzzing) { 64 } else { 1 << 13 };

/// The distance from the first message of a range at which its end is looked for first; most ranges are shorter.
const NEAR: u64 = if cfg!(fuzzing) { 64 } else { 1 << 16 };

/// The lines, forwards.
pub(crate) struct PackLines<'a> {
    pack: &'a Pack,
    reader: BufReader<From<'a>>,
    at: u64,
}

/// A pack's bytes from an offset.
struct From<'a> {
    pack: &'a Pack,
    at: u64,
}

impl Read for From<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let read = self.pack.source.read_at(self.at, into)?;
        self.at += read as u64;
        Ok(read)
    }
}

impl<'a> PackLines<'a> {
    pub(crate) fn new(pack: &'a Pack) -> Self {
        Self::starting_at(pack, 0)
    }

    fn starting_at(pack: &'a Pack, at: u64) -> Self {
        Self::with_chunk(pack, at, CHUNK)
    }

    fn with_chunk(pack: &'a Pack, at: u64, chunk: usize) -> Self {
        Self { pack, reader: BufReader::with_capacity(chunk, From { pack, at }), at }
    }

    /// The lines that start in a range of the pack, and those after it.
    pub(crate) fn from_within(pack: &'a Pack, part: Range<u64>) -> Result<Self> {
        // Start one byte earlier: if that byte ends a line, the next line starts at the range.
        let mut lines = Self::starting_at(pack, part.start.saturating_sub(1));
        if part.start > 0 {
            // Search no further than the range: a hostile line may be longer than many ranges.
            lines.skip_line_within(part.end - lines.at)?;
        }
        Ok(lines)
    }

    /// The offset of the next line.
    pub(crate) fn at(&self) -> u64 {
        self.at
    }

    /// The offset of the first line whose record is not `before` something, found by binary search. Lines must be
    /// sorted by that property; otherwise the result may be any line.
    pub(crate) fn first_after(pack: &'a Pack, before: impl Fn(RecordName) -> bool) -> Result<u64> {
        Self::first_within(pack, 0..pack.size(), before)
    }

    /// [`first_after`](Self::first_after) that looks near `start` first, the offset of a line.
    pub(crate) fn first_near(
        pack: &'a Pack,
        start: u64,
        before: impl Fn(RecordName) -> bool,
    ) -> Result<u64> {
        let (mut low, mut high) = (start, pack.size());
        let mut step = NEAR;
        while let Some(probe) = low.checked_add(step).filter(|probe| *probe < high) {
            match Self::is_before(pack, probe..high, &before)? {
                Some(line) => low = line,
                None => high = probe,
            }
            step = step.saturating_mul(8);
        }
        Self::first_within(pack, low..high, before)
    }

    /// [`first_after`](Self::first_after) within a part. Lines that start before the part are `before`. Lines that start
    /// at its end or later are not.
    fn first_within(
        pack: &'a Pack,
        part: Range<u64>,
        before: impl Fn(RecordName) -> bool,
    ) -> Result<u64> {
        let Range { start: mut low, end: mut high } = part;
        while high - low > STEP {
            let middle = low + (high - low) / 2;
            match Self::is_before(pack, middle..high, &before)? {
                Some(line) => low = line,
                None => high = middle,
            }
        }
        let mut lines = Self::with_chunk(pack, low, 1 << 14);
        let mut line = Line::default();
        while lines.next_into(&mut line)? {
            if !line.name.is_some_and(&before) {
                return Ok(line.span.start);
            }
        }
        Ok(pack.size())
    }

    /// The offset of the first line that starts within a part, if its record is `before`.
    fn is_before(
        pack: &'a Pack,
        part: Range<u64>,
        before: impl Fn(RecordName) -> bool,
    ) -> Result<Option<u64>> {
        let mut lines = Self::with_chunk(pack, part.start, 1 << 12);
        // Skip the rest of the line at the part's start. A hostile line may have no end.
        let is_over = !lines.skip_line_within(part.end - part.start)?;
        if is_over || lines.at() >= part.end {
            return Ok(None);
        }
        let line = lines.next()?;
        Ok(line.filter(|line| line.name.is_some_and(before)).map(|line| line.span.start))
    }

    /// The lines from a time on. Lines are sorted by time.
    pub(crate) fn since(pack: &'a Pack, time: NameTime) -> Result<Self> {
        Ok(Self::starting_at(pack, Self::first_after(pack, |name| name.time < time)?))
    }

    fn failed(&self, error: io::Error) -> Error {
        Error::io("read the pack", &self.pack.path, error)
    }

    /// Skips the rest of a line, at most `limit` bytes. Returns whether the line ended within them.
    fn skip_line_within(&mut self, limit: u64) -> Result<bool> {
        let skipped =
            (&mut self.reader).take(limit).skip_until(b'\n').map_err(|error| self.failed(error))?
                as u64;
        self.at += skipped;
        Ok(skipped < limit)
    }

    pub(crate) fn next(&mut self) -> Result<Option<Line>> {
        let mut line = Line::default();
        Ok(self.next_into(&mut line)?.then_some(line))
    }

    /// Reads the next line into `line` and reuses its buffer. `false` at the end.
    pub(crate) fn next_into(&mut self, line: &mut Line) -> Result<bool> {
        let (start, mut bytes) = (self.at, std::mem::take(&mut line.bytes));
        bytes.clear();
        (&mut self.reader)
            .take(LONGEST)
            .read_until(b'\n', &mut bytes)
            .map_err(|error| self.failed(error))?;
        self.at += bytes.len() as u64;
        if bytes.is_empty() {
            return Ok(false);
        }
        if bytes.len() as u64 == LONGEST && !bytes.ends_with(b"\n") {
            self.skip_line_within(u64::MAX)?;
            bytes.clear();
        }
        *line = Line::new(start, self.at - start, bytes);
        Ok(true)
    }
}

/// The lines, backwards.
#[derive(Debug)]
pub(crate) struct ReversePackLines {
    pack: Pack,
    /// Bytes from `start` on that were read but not yet returned.
    buffer: Vec<u8>,
    start: u64,
}

impl ReversePackLines {
    pub(crate) fn new(pack: Pack) -> Self {
        Self::ending_at(pack, None)
    }

    /// The lines before an offset at which a line starts.
    pub(crate) fn ending_at(pack: Pack, end: Option<u64>) -> Self {
        let start = end.unwrap_or(u64::MAX).min(pack.size());
        Self { pack, buffer: Vec::new(), start }
    }

    pub(crate) fn next(&mut self) -> Result<Option<Line>> {
        let end = self.start + self.buffer.len() as u64;
        // The last byte ends this line and starts none.
        let mut unsearched = self.buffer.len().saturating_sub(1);
        loop {
            let searched = self.buffer.get(..unsearched).unwrap_or_default();
            if let Some(before) = searched.iter().rposition(|byte| *byte == b'\n') {
                let bytes = self.buffer.split_off(before + 1);
                return Ok(Some(self.line(end, bytes)));
            }
            if self.start == 0 {
                let bytes = std::mem::take(&mut self.buffer);
                return Ok((end > 0).then(|| self.line(end, bytes)));
            }
            if self.buffer.len() as u64 > LONGEST {
                // Too long for a record: only its start matters.
                self.buffer.clear();
            }
            unsearched = self.read_more(end)?;
        }
    }

    /// Reads the bytes before the buffer. Returns how many of them may contain a line end.
    fn read_more(&mut self, end: u64) -> Result<usize> {
        // Double the size each time, so that long lines are rarely moved in memory.
        let wanted = (self.buffer.len().max(CHUNK) as u64).min(self.start);
        self.start -= wanted;
        let mut chunk = vec![0; usize::try_from(wanted).unwrap_or(CHUNK)];
        let read = self.pack.read_at(self.start, &mut chunk)?;
        let is_last = self.start + wanted == end;
        if read < chunk.len() {
            // The pack was truncated while it was read.
            self.start = 0;
            self.buffer.clear();
            return Ok(0);
        }
        chunk.append(&mut self.buffer);
        self.buffer = chunk;
        Ok(read - usize::from(is_last))
    }

    fn line(&self, end: u64, bytes: Vec<u8>) -> Line {
        let start = self.start + self.buffer.len() as u64;
        // Bytes that were discarded belonged to a line that is too long.
        let whole = end - start == bytes.len() as u64 && bytes.len() as u64 <= LONGEST;
        Line::new(start, end - start, if whole { bytes } else { Vec::new() })
    }
}

/// Finds a record's line in a pack; `None` if there is none.
pub(crate) fn find(pack: &Pack, name: RecordName) -> Result<Option<Line>> {
    let mut lines = PackLines::since(pack, name.time)?;
    while let Some(line) = lines.next()? {
        match line.name {
            Some(found) if found == name => return Ok(Some(line)),
            Some(found) if found > name => return Ok(None),
            _ => {}
        }
    }
    Ok(None)
}
