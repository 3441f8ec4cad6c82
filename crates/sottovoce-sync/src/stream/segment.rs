//! Segments: the changes of some publishes, in lines

use std::borrow::Cow;
use std::io::Write;

use serde::{Deserialize, Serialize};
use zeroize::Zeroizing;

use crate::stream::change::Batch;
use crate::stream::head::{Point, SegmentRef, VERSION, unreadable};

/// The most bytes of a segment's text. One batch may be longer.
pub(crate) const LARGEST: usize = 8 << 20;

/// A segment.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Segment {
    /// The publish before its first.
    pub(crate) before: Point,
    pub(crate) publishes: Vec<Point>,
    pub(crate) batches: Vec<Batch>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Line<'a> {
    v: u64,
    before: Point,
    publishes: Cow<'a, [Point]>,
}

impl Segment {
    /// The last publish that it has.
    pub(crate) fn last(&self) -> Point {
        self.publishes.last().copied().unwrap_or(self.before)
    }

    /// Whether this publish belongs to the same line of publishes.
    pub(crate) fn has(&self, point: Point) -> bool {
        self.before == point || self.publishes.contains(&point)
    }

    /// Adds the publishes that follow.
    pub(crate) fn append(&mut self, mut next: Self) {
        self.publishes.append(&mut next.publishes);
        self.batches.append(&mut next.batches);
    }

    /// The text: a line about the publishes, then a line for each batch, padded with spaces by at most a 32nd.
    pub(crate) fn to_text(&self) -> serde_json::Result<Zeroizing<Vec<u8>>> {
        let mut text = Zeroizing::new(Vec::with_capacity(self.batches.len() * 512));
        let publishes = self.publishes.as_slice().into();
        serde_json::to_writer(&mut *text, &Line { v: VERSION, before: self.before, publishes })?;
        for batch in &self.batches {
            // Writing to a vector cannot fail.
            let _ = text.write_all(b"\n");
            serde_json::to_writer(&mut *text, batch)?;
        }
        let length = padded(text.len());
        text.resize(length, b' ');
        Ok(text)
    }

    /// Parses the text of a segment that a head lists.
    pub(crate) fn parse(text: &[u8], listed: &SegmentRef) -> Result<Self, &'static str> {
        let mut lines = text.trim_ascii_end().split(|byte| *byte == b'\n');
        let first = lines.next().unwrap_or_default();
        let line: Line<'_> = serde_json::from_slice(first).map_err(|_| unreadable(text))?;
        if line.v != VERSION {
            return Err(unreadable(text));
        }
        let (before, publishes) = (line.before, line.publishes.into_owned());
        let mut numbers = (before.0 + 1..).zip(&publishes);
        let fits = numbers.all(|(k, point)| point.0 == k)
            && before.0 + 1 == listed.first()
            && publishes.last().is_some_and(|last| last.0 == listed.last());
        if !fits {
            return Err("its publishes are others than the head says");
        }
        let batches = lines.map(serde_json::from_slice).collect::<Result<Vec<Batch>, _>>();
        let batches = batches.map_err(|_| "it has another form")?;
        let inside = |batch: &Batch| (listed.first()..=listed.last()).contains(&batch.k);
        match batches.iter().all(inside) {
            true => Ok(Self { before, publishes, batches }),
            false => Err("it has changes of other publishes"),
        }
    }
}

/// A length that tells little about the text: at least 1 KiB, and only its six highest bits differ from zero.
fn padded(length: usize) -> usize {
    let step = 1 << length.ilog2().saturating_sub(5).max(5);
    length.next_multiple_of(step).max(1024)
}

#[cfg(test)]
mod tests {
    use super::padded;

    #[test]
    fn padding_costs_at_most_a_thirtysecond_beyond_a_kibibyte() {
        for length in [1, 1000, 1024, 1025, 65_537, 1_000_003, 8 << 20, (8 << 20) + 1] {
            let padded = padded(length);
            assert!(padded >= length.max(1024) && padded <= 1024.max(length + length / 32 + 1));
        }
    }
}
