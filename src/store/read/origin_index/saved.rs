//! The saved index of origins: packs with their stamps, and the origins of all messages in them, sorted.

use std::fmt;

use zeroize::Zeroizing;

use crate::directory::FileStamp;
use crate::store::record::import_digest::Origin;
use crate::store::record::name::pack_name::PackName;

/// The version of the format.
const VERSION: u8 = 1;
/// Bytes of an origin.
const ORIGIN: usize = 16;
/// Bytes of an entry: an origin, the pack's index in 2 bytes and the number in 6.
const ENTRY: usize = 24;
/// The highest number that fits an entry.
const HIGHEST: u64 = (1 << 48) - 1;

/// Origins and numbers of the messages in packs. `Debug` shows counts alone.
#[derive(Default)]
pub(crate) struct SavedOrigins {
    /// The packs, each with the stamp that it had.
    pub(crate) packs: Vec<(PackName, FileStamp)>,
    text: Zeroizing<Vec<u8>>,
    /// Where the entries begin in the text.
    start: usize,
}

impl SavedOrigins {
    /// An index of these packs and origins, each with the pack's place in the list and the number. `None` if there are too
    /// many packs or too high numbers.
    pub(crate) fn of(
        packs: Vec<(PackName, FileStamp)>,
        mut origins: Vec<(Origin, usize, u64)>,
    ) -> Option<Self> {
        origins.sort_unstable();
        origins.dedup();
        let mut text =
            Zeroizing::new(Vec::with_capacity(packs.len() * 200 + origins.len() * ENTRY));
        text.push(VERSION);
        text.extend(u16::try_from(packs.len()).ok()?.to_be_bytes());
        for (name, stamp) in &packs {
            let name = name.to_string();
            text.push(u8::try_from(name.len()).ok()?);
            text.extend(name.as_bytes());
            text.extend(stamp.iter().flat_map(|part| part.to_be_bytes()));
        }
        let start = text.len();
        for (origin, pack, seq) in origins {
            let pack = u64::try_from(pack).ok()?;
            text.extend(origin.to_bytes());
            text.extend((pack << 48 | (seq <= HIGHEST).then_some(seq)?).to_be_bytes());
        }
        Some(Self { packs, text, start })
    }

    /// Reads what [`bytes`](Self::bytes) gave. `None` for anything else.
    pub(crate) fn parse(text: Zeroizing<Vec<u8>>) -> Option<Self> {
        let (version, mut rest) = text.split_first()?;
        let (count, mut after) = rest.split_first_chunk::<2>()?;
        let mut packs = Vec::with_capacity(usize::from(u16::from_be_bytes(*count)));
        for _ in 0..u16::from_be_bytes(*count) {
            (_, rest) = after.split_first()?;
            let (name, behind) = rest.split_at_checked(usize::from(*after.first()?))?;
            let (stamp, behind) = behind.split_first_chunk::<{ 3 * 8 }>()?;
            let (parts, _) = stamp.as_chunks::<8>();
            let mut stamp = FileStamp::default();
            stamp
                .iter_mut()
                .zip(parts)
                .for_each(|(part, bytes)| *part = u64::from_be_bytes(*bytes));
            packs.push((str::from_utf8(name).ok()?.parse().ok()?, stamp));
            after = behind;
        }
        let start = text.len() - after.len();
        let (entries, odd) = after.as_chunks::<ENTRY>();
        let is_valid = *version == VERSION
            && odd.is_empty()
            && entries.is_sorted_by(|a, b| a < b)
            && entries.iter().all(|entry| place(entry).0 < packs.len());
        is_valid.then_some(Self { packs, text, start })
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.text
    }

    /// How many origins there are.
    pub(crate) fn len(&self) -> usize {
        self.entries().len()
    }

    fn entries(&self) -> &[[u8; ENTRY]] {
        self.text.get(self.start..).unwrap_or_default().as_chunks().0
    }

    /// The packs, by their place in the list, and numbers of an origin.
    pub(crate) fn find(&self, origin: Origin) -> impl Iterator<Item = (usize, u64)> + '_ {
        let (entries, bytes) = (self.entries(), origin.to_bytes());
        let first = entries.partition_point(|entry| entry.first_chunk::<ORIGIN>() < Some(&bytes));
        let found = entries.get(first..).unwrap_or_default().iter();
        found.take_while(move |entry| entry.starts_with(&bytes)).map(place)
    }

    /// All origins with their packs' places and numbers.
    pub(crate) fn all(&self) -> impl Iterator<Item = (Origin, usize, u64)> + '_ {
        self.entries().iter().filter_map(|entry| {
            let (pack, seq) = place(entry);
            Some((Origin::from_bytes(*entry.first_chunk()?), pack, seq))
        })
    }
}

/// An entry's pack and number.
fn place(entry: &[u8; ENTRY]) -> (usize, u64) {
    let place = u64::from_be_bytes(entry.last_chunk().copied().unwrap_or_default());
    (usize::try_from(place >> 48).unwrap_or(usize::MAX), place & HIGHEST)
}

impl fmt::Debug for SavedOrigins {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SavedOrigins")
            .field("packs", &self.packs.len())
            .field("origins", &self.len())
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn origin(n: u8) -> Origin {
        Origin::from_bytes([n; 16])
    }

    fn index() -> SavedOrigins {
        let stem = "20250824T163625123Z_0001_user";
        let name = format!("{stem}.{stem}.1-1.1.pack").parse().unwrap();
        let origins = vec![(origin(3), 1, 7), (origin(1), 0, HIGHEST), (origin(3), 0, 2)];
        SavedOrigins::of(vec![(name, [1, 2, 3]), (name, [4, 5, u64::MAX])], origins).unwrap()
    }

    #[test]
    fn what_was_saved_is_found_and_nothing_else_is() {
        let index = SavedOrigins::parse(Zeroizing::new(index().bytes().to_vec())).unwrap();
        assert_eq!(index.find(origin(3)).collect::<Vec<_>>(), [(0, 2), (1, 7)]);
        assert_eq!(index.find(origin(1)).collect::<Vec<_>>(), [(0, HIGHEST)]);
        for absent in [0, 2, 4] {
            assert_eq!(index.find(origin(absent)).count(), 0);
        }
        assert_eq!((index.len(), index.packs[1].1), (3, [4, 5, u64::MAX]));
    }

    #[test]
    fn what_is_cut_off_out_of_order_or_of_another_version_is_no_index() {
        let whole = index().bytes().to_vec();
        let parse = |bytes: &[u8]| SavedOrigins::parse(Zeroizing::new(bytes.to_vec()));
        let entries = whole.len() - 3 * ENTRY;
        for length in (0..whole.len())
            .filter(|length| *length < entries || !(length - entries).is_multiple_of(ENTRY))
        {
            assert!(parse(&whole[..length]).is_none(), "{length}");
        }
        let mut other = whole.clone();
        other[0] = 2;
        assert!(parse(&other).is_none());
        let mut turned = whole.clone();
        turned[entries..entries + 2 * ENTRY].rotate_left(ENTRY);
        assert!(parse(&turned).is_none());
        let mut beyond = whole;
        let last = beyond.len() - 7;
        beyond[last] = 9;
        assert!(parse(&beyond).is_none());
        assert!(SavedOrigins::of(Vec::new(), vec![(origin(1), 0, HIGHEST + 1)]).is_none());
    }
}
