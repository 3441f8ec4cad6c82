//! What the index costs: building, loading, memory, appending and asking, for 10,000 and 100,000 turns.
//!
//! `cargo bench -p sottovoce-recall [-- TURNS...]`. The turns are invented: words of a Zipf distribution, as many
//! different ones as real chats of that length have, 8 to 40 in a turn, sessions of 24 turns. Segments hold 10,000 turns. Times are the processor's, on one thread.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "this is a bench"
)]

use std::{collections::BTreeSet, hint::black_box, time::Duration};

use jiff::{Timestamp, tz::TimeZone};
use rustix::time::{ClockId, clock_gettime};
use sottovoce_recall::{Asked, BuildOptions, Index, Question, Role, Segment, Turn};

const PER_SEGMENT: usize = 10_000;
const ASKED: usize = 400;

/// A point in the time that this thread has computed.
struct Instant(Duration);

impl Instant {
    fn now() -> Self {
        let now = clock_gettime(ClockId::ThreadCPUTime);
        Self(Duration::new(now.tv_sec as u64, now.tv_nsec as u32))
    }

    fn elapsed(&self) -> Duration {
        Self::now().0 - self.0
    }
}

/// A small generator of numbers that are random enough.
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, end: usize) -> usize {
        (self.next() % end as u64) as usize
    }

    /// A rank of a Zipf distribution over so many words.
    fn rank(&mut self, words: usize) -> usize {
        let share = (self.next() >> 11) as f64 / (1u64 << 53) as f64;
        ((words as f64).powf(share) as usize).min(words - 1)
    }
}

/// Words: stop words first, as in any text, then the carried conversations', then invented ones.
fn vocabulary(numbers: &mut Numbers, count: usize) -> Vec<String> {
    let lists = include_str!("../data/en.txt");
    let stop =
        lists.split('[').find_map(|section| section.strip_prefix("stop]")).unwrap_or_default();
    let mut words: Vec<String> = stop.split_whitespace().map(str::to_owned).collect();
    let lines = include_str!("../tests/corpus/conversations.jsonl").split("\"x\": \"").skip(1);
    let texts = lines.filter_map(|line| line.split('"').next()).map(str::to_lowercase);
    let mut known: BTreeSet<String> = words.iter().cloned().collect();
    for text in texts {
        for word in text.split(|c: char| !c.is_alphabetic()).filter(|word| word.len() > 1) {
            if known.insert(word.to_owned()) {
                words.push(word.to_owned());
            }
        }
    }
    // Rare words are whole pieces of the vectors' file as often as names and mishearings that are none.
    let syllables = [
        "ka", "ber", "lin", "to", "mar", "ven", "ish", "sol", "pre", "tic", "an", "dor", "ing",
        "mel",
    ];
    let mut pieces = whole_pieces();
    while words.len() < count {
        if pieces.is_empty() || numbers.below(4) == 0 {
            words.push(
                (0..2 + numbers.below(3))
                    .map(|_| syllables[numbers.below(syllables.len())])
                    .collect(),
            );
        } else {
            words.push(pieces.swap_remove(numbers.below(pieces.len())));
        }
    }
    words.truncate(count);
    words
}

/// The words that the vectors' file has in one piece.
fn whole_pieces() -> Vec<String> {
    let file = include_bytes!("../data/vectors/potion-128.bin");
    let mut rest = &file[8..];
    let mut pieces = Vec::new();
    while let Some((length, after)) = rest.split_first() {
        let (letters, after) = after.split_at(usize::from(*length));
        rest = &after[4 + 128..];
        pieces.extend(std::str::from_utf8(letters).ok().map(str::to_owned));
    }
    pieces.retain(|piece| piece.len() > 3 && piece.chars().all(char::is_alphabetic));
    pieces
}

fn text(numbers: &mut Numbers, vocabulary: &[String]) -> String {
    let mut text = String::new();
    for at in 0..8 + numbers.below(33) {
        let end = if at % 11 == 10 { ". " } else { " " };
        text.push_str(&vocabulary[numbers.rank(vocabulary.len())]);
        text.push_str(end);
    }
    text
}

fn turn(number: usize, text: &str) -> Turn<'_> {
    let day = (number / 48) as i32 + 19_000;
    let at = i64::from(day) * 86_400_000
        + (number % 48 / 24) as i64 * 36_000_000
        + (number % 24) as i64 * 20_000;
    let role = if number.is_multiple_of(2) { Role::User } else { Role::Assistant };
    Turn::new(number as u64, at, day, role, text)
}

fn resident() -> f64 {
    let status = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages: f64 =
        status.split_whitespace().nth(1).and_then(|pages| pages.parse().ok()).unwrap_or_default();
    pages * 4096. / 1e6
}

fn millis(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

fn median_and_worst(mut times: Vec<Duration>) -> String {
    times.sort_unstable();
    let at = |share: f64| millis(times[((times.len() - 1) as f64 * share) as usize]);
    format!("p50 {:.3} ms, p99 {:.3} ms, best {:.3} ms", at(0.5), at(0.99), at(0.))
}

fn measure(count: usize) {
    let mut numbers = Numbers(0x9e37_79b9_7f4a_7c15);
    // Heaps' law: chats of 3,000 turns have 4,000 different words.
    let different = 4000. * (count as f64 / 3000.).powf(0.59);
    let vocabulary = vocabulary(&mut numbers, different as usize);
    let texts: Vec<String> = (0..count).map(|_| text(&mut numbers, &vocabulary)).collect();
    let segment_of = |part: usize| {
        let from = part * PER_SEGMENT;
        let turns = (from..).zip(&texts[from..texts.len().min(from + PER_SEGMENT)]);
        Segment::build(turns.map(|(number, text)| turn(number, text)), &BuildOptions::default())
    };
    let parts = count.div_ceil(PER_SEGMENT);
    println!("{count} turns");

    let start = Instant::now();
    let stored: Vec<_> = (0..parts).map(|part| segment_of(part).to_bytes()).collect();
    let bytes: usize = stored.iter().map(|bytes| bytes.len()).sum();
    println!(
        "  built in {:.0} ms on one core; {:.2} MB as bytes",
        millis(start.elapsed()),
        bytes as f64 / 1e6
    );

    let before = resident();
    let start = Instant::now();
    let mut index = Index::default();
    for (number, bytes) in (0..).zip(&stored) {
        index.insert(number, Segment::from_bytes(bytes).unwrap());
    }
    let read = start.elapsed();
    index.refresh();
    println!(
        "  loaded in {:.1} ms, of which reading {:.1} ms",
        millis(start.elapsed()),
        millis(read)
    );

    let years = index.years().unwrap();
    let asked = Asked::new(Timestamp::UNIX_EPOCH.to_zoned(TimeZone::UTC), years);
    let questions: Vec<String> = (0..ASKED)
        .map(|_| {
            let words: Vec<&str> =
                (0..6).map(|_| &*vocabulary[numbers.rank(vocabulary.len())]).collect();
            format!("What did I say about {}?", words.join(" "))
        })
        .collect();
    let start = Instant::now();
    black_box(index.rank(&Question::new(&questions[0], &asked), |_| true, 20));
    println!(
        "  first question {:.1} ms; {:.1} MB resident",
        millis(start.elapsed()),
        resident() - before
    );
    let ask = |index: &mut Index, text: &String| {
        let start = Instant::now();
        black_box(index.rank(&Question::new(text, &asked), |_| true, 20));
        start.elapsed()
    };
    let times = questions.iter().map(|text| ask(&mut index, text)).collect();
    println!("  a question {}", median_and_worst(times));

    let mut pushes = Vec::new();
    let mut times = Vec::new();
    for (number, text) in questions.iter().enumerate().take(200) {
        let start = Instant::now();
        index.push(&turn(count + number, text));
        pushes.push(start.elapsed());
        times.push(ask(&mut index, text));
    }
    println!("  a turn noted {}", median_and_worst(pushes));
    println!("  a question after it {}", median_and_worst(times));
}

fn main() {
    let counts: Vec<usize> =
        std::env::args().filter_map(|argument| argument.parse().ok()).collect();
    for count in if counts.is_empty() { vec![10_000, 100_000] } else { counts } {
        measure(count);
    }
}
