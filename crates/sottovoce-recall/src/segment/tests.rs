//! Segments: joined, divided, as bytes, and from bytes that nobody should believe.

use proptest::prelude::*;

use super::{BuildOptions, Segment};
use crate::{
    error::SegmentError,
    turn::{Role, Turn},
};

const TEXTS: [&str; 8] = [
    "Good morning! My dog Bruno kept me up all night, so I need a strong coffee.",
    "",
    "Ich ziehe im Mai nach Leipzig um, und meine Schwester hilft mir dabei.",
    "日本語のテキストは単語の間に空白がありません。犬はポチと言います。",
    "\u{202e}rtl 🤖🤖 e\u{301}t\u{e9}",
    "Always wake me at seven. Never on Sundays! I prefer tea; I'm allergic to nuts.\nOne. Two. Three four five.",
    "It costs 3.50 euros, doesn't it? \"The Glass Harbour\" is a novel by Ada. ... !!! ?",
    "The quick brown fox jumps over the lazy dog again and again, and while it jumps it counts to ten and back, then \
     it sleeps until the evening comes and the moon rises over the hill.",
];

fn turns(count: u64) -> Vec<Turn<'static>> {
    let turn = |seq: u64| Turn {
        speaker: seq.is_multiple_of(3).then_some(if seq.is_multiple_of(2) {
            "Anna"
        } else {
            "Tom"
        }),
        thread: (seq > 20).then_some("kitchen"),
        session: (seq.is_multiple_of(11)).then_some(4),
        caption: (seq % 5 == 1).then_some("a photo of a lake"),
        ..Turn::new(
            1000 + seq * 3,
            seq as i64 * 2_500_000,
            seq as i32 / 30 - 3,
            if seq.is_multiple_of(2) { Role::User } else { Role::Assistant },
            TEXTS[(seq * 7 % 8) as usize],
        )
    };
    (0..count).map(turn).collect()
}

fn build(turns: &[Turn<'_>]) -> Segment {
    Segment::build(turns.iter().copied(), &BuildOptions::default())
}

#[test]
fn bytes_keep_everything() {
    for count in [0, 1, 2, 40] {
        let segment = build(&turns(count));
        assert_eq!(Segment::from_bytes(&segment.to_bytes()).unwrap(), segment);
    }
}

#[test]
fn joined_segments_are_as_if_built_at_once() {
    let turns = turns(40);
    for cut in [0, 1, 5, 39, 40] {
        let (first, second) = turns.split_at(cut);
        let joined = Segment::join([&build(first), &build(second)]);
        assert_eq!(joined, build(&turns));
        assert_eq!(joined.to_bytes(), build(&turns).to_bytes());
    }
}

#[test]
fn a_segment_without_turns_is_as_if_they_never_were() {
    let turns = turns(40);
    let kept: Vec<_> = turns.iter().filter(|turn| turn.seq % 2 == 1).copied().collect();
    assert_eq!(build(&turns).retain(|seq| seq % 2 == 1), build(&kept));
}

/// Whoever changes what segments are built with raises `DATA` in `bytes.rs`, then this digest.
#[test]
fn the_data_has_its_version() {
    let files: [&[u8]; 5] = [
        include_bytes!("../../data/stop/en.txt"),
        include_bytes!("../../data/stop/de.txt"),
        include_bytes!("../../data/stop/fr.txt"),
        include_bytes!("../../data/stop/es.txt"),
        include_bytes!("../../data/fit.bin"),
    ];
    let fnv = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3);
    let digest = files.iter().fold(0xcbf2_9ce4_8422_2325, |hash, file| file.iter().fold(hash, fnv));
    assert_eq!((super::bytes::DATA, digest), (6, 0x6229_cc15_97c0_13c4));
}

#[test]
fn other_versions_are_named() {
    let bytes = build(&turns(3)).to_bytes();
    let with = |at: usize, byte: u8| {
        let mut bytes = bytes.to_vec();
        bytes[at] = byte;
        Segment::from_bytes(&bytes).unwrap_err()
    };
    assert_eq!(with(4, 0), SegmentError::Older);
    assert_eq!(with(5, 9), SegmentError::Newer);
    assert_eq!(with(6, 0), SegmentError::Older);
    assert_eq!(with(7, 1), SegmentError::Newer);
    assert_eq!(with(0, b'X'), SegmentError::Damaged);
}

#[test]
fn cut_bytes_are_damaged() {
    let bytes = build(&turns(12)).to_bytes();
    for length in 0..bytes.len() {
        assert!(Segment::from_bytes(&bytes[..length]).is_err());
    }
    let longer: Vec<u8> = bytes.iter().copied().chain([0]).collect();
    assert_eq!(Segment::from_bytes(&longer), Err(SegmentError::Damaged));
}

#[test]
fn debug_shows_no_words() {
    let shown = format!("{:?} {:?}", build(&turns(12)), turns(1)[0]);
    assert!(!shown.to_lowercase().contains("bruno") && !shown.contains("morning"));
}

/// Uses everything that a segment offers.
fn exercise(segment: Segment) {
    let joined = Segment::join([&segment, &segment]);
    assert_eq!(joined.len(), segment.len() * 2);
    segment.retain(|seq| seq % 2 == 0).to_bytes();
    let mut index = crate::Index::default();
    index.insert(0, segment);
    index.push(&turns(1)[0]);
    let now = jiff::Timestamp::UNIX_EPOCH.to_zoned(jiff::tz::TimeZone::UTC);
    let years = index.years().unwrap_or(1970..=1970);
    let question =
        crate::Question::new("What is Anna's dog called in May?", &crate::Asked::new(now, years));
    index.rank(&question, |_| true, 10);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn planted_bytes_never_panic(changes in prop::collection::vec((8usize..2000, any::<u8>()), 1..8)) {
        let mut bytes = build(&turns(12)).to_bytes().to_vec();
        for (at, byte) in changes {
            let at = 8 + at % (bytes.len() - 8);
            bytes[at] = byte;
        }
        if let Ok(segment) = Segment::from_bytes(&bytes) {
            exercise(segment);
        }
    }

    #[test]
    fn random_bytes_never_panic(tail in prop::collection::vec(any::<u8>(), 0..200)) {
        let mut bytes = build(&[]).to_bytes().to_vec();
        bytes.truncate(8);
        bytes.extend(tail);
        if let Ok(segment) = Segment::from_bytes(&bytes) {
            exercise(segment);
        }
    }
}
