//! The vectors of texts, made once and kept in a file.

use std::{collections::HashMap, error::Error, fs, path::Path};

use sottovoce_recall::{DIMENSIONS, Index, Meaning, Vector};

use super::corpus::Conversation;

/// Characters of the turn before that stand before a passage when it is encoded a second time.
const BEFORE: usize = 300;

/// What is known of texts.
pub(crate) struct Vectors {
    known: HashMap<u64, Vector>,
    pub(crate) missing: Vec<String>,
}

pub(crate) fn hash(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3)
    })
}

impl Vectors {
    /// Reads pairs of a text's hash (8 bytes) and its vector (32 bits a number).
    pub(crate) fn read(path: &Path) -> Result<Self, Box<dyn Error>> {
        let bytes = fs::read(path).unwrap_or_default();
        let mut known = HashMap::new();
        for row in bytes.chunks_exact(8 + 4 * DIMENSIONS) {
            let (key, values) = row.split_at(8);
            let mut vector = [0f32; DIMENSIONS];
            for (value, bytes) in vector.iter_mut().zip(values.chunks_exact(4)) {
                *value = f32::from_le_bytes(bytes.try_into()?);
            }
            known.insert(u64::from_le_bytes(key.try_into()?), vector);
        }
        Ok(Self { known, missing: Vec::new() })
    }

    pub(crate) fn of(&mut self, text: &str) -> Option<Vector> {
        let found = self.known.get(&hash(text)).copied();
        if found.is_none() {
            self.missing.push(text.replace('\n', " "));
        }
        found
    }

    /// Gives every turn of a conversation its meanings, from texts as the store makes them.
    pub(crate) fn understand(&mut self, conversation: &Conversation, index: &mut Index) {
        index.refresh();
        let mut meanings = HashMap::new();
        for (seq, passages) in index.without_meaning(usize::MAX) {
            let line = conversation.line(seq);
            let before = seq.checked_sub(1).map(|before| conversation.line(before));
            let before = before.map(|line| line.named(end_of(line.text()))).unwrap_or_default();
            let vectors = passages.iter().map(|range| {
                let text = line.named(line.text().get(range.clone()).unwrap_or_default());
                let both = format!("{before} {text}");
                let [own, both] = [&text, &both].map(|text| self.of(&text.replace('\n', " ")));
                Some(Meaning::new(&own?, Some(&both?)).of_text(&text))
            });
            let vectors: Vec<Option<Meaning>> = vectors.collect();
            if let Some(vectors) = vectors.into_iter().collect() {
                meanings.insert(seq, vectors);
            }
        }
        index.set_meanings(&meanings);
    }
}

/// The last characters of a text.
fn end_of(text: &str) -> &str {
    let start = text.char_indices().rev().nth(BEFORE - 1).map_or(0, |(at, _)| at);
    text.get(start..).unwrap_or_default()
}
