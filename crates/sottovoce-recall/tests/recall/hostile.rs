//! Texts that somebody made to be expensive: what they cost is bounded.

use std::time::{Duration, Instant};

use jiff::{Timestamp, tz::TimeZone};
use sottovoce_recall::{Asked, BuildOptions, Index, Question, Role, SearchQuery, Segment, Turn};

/// Bytes that one message may add to a segment.
const MOST_BYTES: usize = 600_000;

/// No measure, but a text whose cost grows with its square takes longer.
const HANG: Duration = Duration::from_secs(120);

fn texts() -> Vec<(&'static str, String)> {
    let distinct =
        |separator: &str| (0..100_000).map(|n| format!("w{n:x}{separator}")).collect::<String>();
    vec![
        ("a word of a megabyte", "x".repeat(1 << 20)),
        ("a hundred thousand words", distinct(" ")),
        ("without spaces", distinct(",")),
        ("a sentence each", distinct(".")),
        ("one letter each", "a b ".repeat(250_000)),
        ("right to left", "\u{202e}\u{2066}שלום עולם\u{2069} ".repeat(20_000)),
        ("only emoji", "🤖👩‍👩‍👧".repeat(40_000)),
        ("only marks", "\u{301}\u{300}".repeat(200_000)),
        ("marks on a letter", format!("e{}", "\u{301}".repeat(500_000))),
        ("characters that grow", "\u{fdfa}".repeat(100_000)),
        ("Japanese", "日本語犬猫鳥魚".repeat(20_000)),
        ("quotes", "\"".repeat(1 << 20)),
        ("line ends", "\n".repeat(1 << 20)),
        ("zeros", "\0".repeat(1 << 20)),
        ("capitals", "a B".repeat(300_000)),
        ("apostrophes", "l'".repeat(400_000)),
        ("a wish without end", "i ".repeat(400_000)),
    ]
}

#[test]
fn a_message_costs_no_more_than_its_cap() {
    for (name, text) in texts() {
        let start = Instant::now();
        let turn = Turn { caption: Some(&text), ..Turn::new(1, 0, 0, Role::User, &text) };
        let segment = Segment::build([turn], &BuildOptions::default());
        let bytes = segment.to_bytes();
        assert!(bytes.len() < MOST_BYTES, "{name}: {} bytes", bytes.len());
        assert_eq!(Segment::from_bytes(&bytes).unwrap(), segment, "{name}");
        assert!(start.elapsed() < HANG, "{name}");
    }
}

#[test]
fn a_question_costs_no_more_than_its_cap() {
    let mut index = Index::default();
    for (seq, (_, text)) in (0..).zip(texts()) {
        index.push(&Turn::new(seq, 0, 0, Role::User, text.get(..9999).unwrap_or_default()));
    }
    let asked = Asked::new(Timestamp::UNIX_EPOCH.to_zoned(TimeZone::UTC), index.years().unwrap());
    for (name, text) in texts() {
        let start = Instant::now();
        let hits = index.rank(&Question::new(&text, &asked), |_| true, 5);
        assert!(hits.iter().all(|hit| hit.score.is_finite()), "{name}");
        let query = SearchQuery::of_words(&text);
        index.search(&query);
        query.matches("some text");
        assert!(start.elapsed() < HANG, "{name}");
    }
}

#[test]
fn names_and_numbers_may_be_anything() {
    let name = "n".repeat(1 << 20);
    let mut index = Index::default();
    for (seq, at) in [(u64::MAX, i64::MIN), (0, i64::MAX), (7, 0)] {
        index.push(&Turn {
            speaker: Some(&name),
            thread: Some(&name),
            session: Some(u32::MAX),
            ..Turn::new(seq, at, if at == 0 { i32::MAX } else { i32::MIN }, Role::Tool, "words")
        });
    }
    let years = index.years().unwrap_or(1970..=1970);
    let asked = Asked::new(Timestamp::UNIX_EPOCH.to_zoned(TimeZone::UTC), years);
    assert_eq!(index.rank(&Question::new("words in May", &asked), |_| true, 9).len(), 3);
    assert!(index.rank(&Question::new("", &asked), |_| true, 0).is_empty());
    assert!(Index::default().rank(&Question::new("words", &asked), |_| true, 3).is_empty());
}
