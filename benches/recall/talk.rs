//! An invented conversation: words of a Zipf distribution, as many different ones as real chats of that length have,
//! 8 to 40 in a message, sessions of 24 messages.

use std::collections::BTreeSet;

use jiff::Timestamp;
use sottovoce::{ChatMessage, ChatRole};
use sottovoce_recall::{DIMENSIONS, Role, Turn, Vector};

const STOP_WORDS: &str = include_str!("../../crates/sottovoce-recall/data/stop/en.txt");
const CARRIED: &str =
    include_str!("../../crates/sottovoce-recall/tests/corpus/conversations.jsonl");
const DAY: i64 = 86_400_000;

/// The texts of a conversation, and questions about it.
pub(crate) struct Talk {
    pub(crate) texts: Vec<String>,
    pub(crate) questions: Vec<String>,
}

impl Talk {
    /// The same for the same numbers.
    pub(crate) fn new(messages: usize, questions: usize) -> Self {
        let mut numbers = Numbers(0x9e37_79b9_7f4a_7c15);
        // Heaps' law: chats of 3,000 messages have 4,000 different words.
        let different = 4000. * (messages as f64 / 3000.).powf(0.59);
        let vocabulary = vocabulary(&mut numbers, different as usize);
        let texts = (0..messages).map(|_| text(&mut numbers, &vocabulary)).collect();
        let ask = |_| {
            let words: Vec<&str> =
                (0..6).map(|_| &*vocabulary[numbers.rank(vocabulary.len())]).collect();
            format!("What did I say about {}?", words.join(" "))
        };
        Self { texts, questions: (0..questions).map(ask).collect() }
    }

    pub(crate) fn turn(&self, number: usize) -> Turn<'_> {
        let at = time(number);
        let role = if number.is_multiple_of(2) { Role::User } else { Role::Assistant };
        Turn::new(number as u64, at, (at / DAY) as i32, role, &self.texts[number])
    }

    pub(crate) fn messages(&self) -> Vec<ChatMessage> {
        let message = |(number, text): (usize, &String)| {
            let role = if number.is_multiple_of(2) { ChatRole::User } else { ChatRole::Assistant };
            ChatMessage::at(role, text.clone(), Timestamp::from_millisecond(time(number)).unwrap())
        };
        self.texts.iter().enumerate().map(message).collect()
    }
}

/// Two sessions a day, ten hours apart, a message every twenty seconds. The last of 100,000 is of 2025.
fn time(number: usize) -> i64 {
    let day = number / 48 + 18_000;
    day as i64 * DAY + (number % 48 / 24) as i64 * 36_000_000 + (number % 24) as i64 * 20_000
}

/// A direction like those of the encoder, the same for the same number.
pub(crate) fn vector(number: usize) -> Vector {
    let mut numbers = Numbers(number as u64 + 1);
    let mut vector = [0.; DIMENSIONS].map(|_: f32| numbers.below(2001) as f32 / 1000. - 1.);
    let length = vector.iter().map(|number| number * number).sum::<f32>().sqrt();
    vector.iter_mut().for_each(|number| *number /= length);
    vector
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
    let mut words: Vec<String> = STOP_WORDS.split_whitespace().map(str::to_owned).collect();
    let lines = CARRIED.split("\"x\": \"").skip(1);
    let texts = lines.filter_map(|line| line.split('"').next()).map(str::to_lowercase);
    let mut known: BTreeSet<String> = words.iter().cloned().collect();
    for text in texts {
        for word in text.split(|c: char| !c.is_alphabetic()).filter(|word| word.len() > 1) {
            if known.insert(word.to_owned()) {
                words.push(word.to_owned());
            }
        }
    }
    // Rare words, names and mishearings.
    let syllables = [
        "ka", "ber", "lin", "to", "mar", "ven", "ish", "sol", "pre", "tic", "an", "dor", "ing",
        "mel",
    ];
    while words.len() < count {
        let parts = 0..2 + numbers.below(3);
        words.push(parts.map(|_| syllables[numbers.below(syllables.len())]).collect());
    }
    words.truncate(count);
    words
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
