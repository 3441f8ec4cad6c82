//! Removes the renderers' time stamps from answers, because small models repeat them.

use std::ops::RangeInclusive;

use zeroize::Zeroizing;

use super::chat_line;
use crate::context::ContextMessage;
use crate::message::{ChatMessage, texts};
use crate::prompt::Prompt;

const WEEKDAYS: [&str; 7] =
    ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"];
const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];

/// The words beside speakers' names that a stamp may contain.
const ROLES: [&str; 5] = [texts::NOTE, "user", "assistant", "system", "tool"];

/// The most bytes of white space before a stamp.
const BLANK: usize = 32;

/// The longest time zone name in bytes.
const ZONE: usize = 64;

/// Removes stamps from the beginning of an answer as it arrives: `[Sunday 18:36] ` and its longer forms, also with a
/// pause and with a name from the prompt, and the line `Current time: …`. It holds text back only while that may
/// become a stamp.
#[derive(Debug)]
pub(crate) struct StampFilter {
    /// The names that may end a stamp, each with the closing bracket.
    names: Vec<String>,
    held: String,
    at: At,
}

#[derive(Debug, PartialEq)]
enum At {
    Beginning,
    /// Right after a stamp, where white space is dropped.
    Between,
    Speaking,
}

/// Why a text is not a stamp.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stop {
    /// The text ends inside a possible stamp.
    End,
    No,
}

/// The text after a part of a stamp.
type Rest<'a> = Result<&'a str, Stop>;

impl StampFilter {
    /// A filter for an answer to this prompt.
    pub(crate) fn of(prompt: &Prompt) -> Self {
        let context = prompt.context.iter().map(|(_, message)| message.message());
        let since = prompt.since.iter().map(ContextMessage::message);
        Self::naming(context.chain(since).chain([&prompt.user_input]))
    }

    /// A filter for stamps with the speakers of these messages, or without a name.
    pub(crate) fn naming<'a>(messages: impl Iterator<Item = &'a ChatMessage>) -> Self {
        let speakers = messages.filter_map(chat_line::speaker);
        let mut names: Vec<String> = speakers.chain(ROLES.map(str::to_owned)).collect();
        names.sort_unstable();
        names.dedup();
        names.iter_mut().for_each(|name| name.push(']'));
        Self { names, held: String::new(), at: At::Beginning }
    }

    /// The text of a piece that is to be spoken.
    pub(crate) fn remove(&mut self, piece: &str) -> String {
        if self.at == At::Speaking {
            return piece.to_owned();
        }
        self.held.push_str(piece);
        loop {
            let begun = self.held.trim_start();
            let is_between = self.at == At::Between;
            let found = if !is_between && self.held.len() - begun.len() > BLANK {
                Err(Stop::No)
            } else {
                self.stamp(begun)
            };
            match found {
                Ok(rest) => {
                    self.held = rest.to_owned();
                    self.at = At::Between;
                }
                Err(Stop::End) => return String::new(),
                Err(Stop::No) => {
                    let said = if is_between { begun } else { &self.held }.to_owned();
                    self.held.clear();
                    self.at = At::Speaking;
                    return said;
                }
            }
        }
    }

    /// The text held back when the answer ended: it did not become a stamp.
    pub(crate) fn rest(self) -> String {
        match self.at {
            At::Beginning => self.held,
            At::Between => self.held.trim_start().to_owned(),
            At::Speaking => String::new(),
        }
    }

    /// Removes stamps from the beginning of a whole text. A text of nothing but stamps stays unchanged.
    pub(crate) fn remove_from(mut self, text: &mut String) {
        let mut words = Zeroizing::new(self.remove(text));
        words.push_str(&self.rest());
        let stamps = text.len() - words.len();
        if !words.is_empty() {
            text.drain(..stamps);
        }
    }

    fn stamp<'a>(&self, text: &'a str) -> Rest<'a> {
        either([self.bracketed(text), current_time(text)])
    }

    /// Parses `[Sunday 24 August 2025 18:36 +02:00, 5 hours later, Anna]`. Everything between the day and the time,
    /// and everything after the time, is optional.
    fn bracketed<'a>(&self, text: &'a str) -> Rest<'a> {
        let behind = moment(literal(text, "[")?)?;
        let more = || {
            let behind = literal(behind, ", ")?;
            let paused = || {
                let behind = digits(behind, 1..=9)?;
                let behind = one_of(behind, &[" hours later", " days later"])?;
                either([
                    literal(behind, "]"),
                    literal(behind, ", ").and_then(|behind| one_of(behind, &self.names)),
                ])
            };
            either([one_of(behind, &self.names), paused()])
        };
        either([literal(behind, "]"), more()])
    }
}

/// Parses `Current time: Sunday 24 August 2025 18:36 +02:00 (Europe/Vienna)` on a line of its own. The zone is
/// optional.
fn current_time(text: &str) -> Rest<'_> {
    let behind = in_full(literal(text, "Current time: ")?)?;
    let zone = || {
        let name = literal(behind, " (")?;
        let is_name = |c: char| c.is_ascii_alphanumeric() || "_-+/".contains(c);
        let behind = name.trim_start_matches(is_name);
        match name.len() - behind.len() {
            0 if !name.is_empty() => Err(Stop::No),
            ZONE.. => Err(Stop::No),
            _ => literal(behind, ")\n"),
        }
    };
    either([literal(behind, "\n"), zone()])
}

/// Parses a time in any format that a log has.
fn moment(text: &str) -> Rest<'_> {
    let behind = day_of_week(text)?;
    let with_date = || {
        let behind = date(behind)?;
        either([time(behind), year_and_offset(behind)])
    };
    either([time(behind), with_date()])
}

fn in_full(text: &str) -> Rest<'_> {
    year_and_offset(date(day_of_week(text)?)?)
}

fn day_of_week(text: &str) -> Rest<'_> {
    literal(one_of(text, &WEEKDAYS)?, " ")
}

/// `24 August `
fn date(text: &str) -> Rest<'_> {
    let month = literal(digits(text, 1..=2)?, " ")?;
    literal(one_of(month, &MONTHS)?, " ")
}

/// `18:36`
fn time(text: &str) -> Rest<'_> {
    digits(literal(digits(text, 2..=2)?, ":")?, 2..=2)
}

/// `2025 18:36 +02:00`
fn year_and_offset(text: &str) -> Rest<'_> {
    let behind = time(literal(digits(text, 4..=4)?, " ")?)?;
    time(one_of(behind, &[" +", " -"])?)
}

/// The first complete match, or else one that may become a match.
fn either<const N: usize>(found: [Rest<'_>; N]) -> Rest<'_> {
    let mut stop = Stop::No;
    for found in found {
        match found {
            Err(Stop::End) => stop = Stop::End,
            Err(Stop::No) => {}
            Ok(behind) => return Ok(behind),
        }
    }
    Err(stop)
}

fn one_of<'a>(text: &'a str, options: &[impl AsRef<str>]) -> Rest<'a> {
    let mut stop = Stop::No;
    for option in options {
        match literal(text, option.as_ref()) {
            Err(Stop::End) => stop = Stop::End,
            Err(Stop::No) => {}
            Ok(behind) => return Ok(behind),
        }
    }
    Err(stop)
}

fn literal<'a>(text: &'a str, expected: &str) -> Rest<'a> {
    match text.strip_prefix(expected) {
        Some(behind) => Ok(behind),
        None if expected.starts_with(text) => Err(Stop::End),
        None => Err(Stop::No),
    }
}

fn digits(text: &str, count: RangeInclusive<usize>) -> Rest<'_> {
    let behind = text.trim_start_matches(|c: char| c.is_ascii_digit());
    let found = text.len() - behind.len();
    if count.contains(&found) {
        return Ok(behind);
    }
    if behind.is_empty() && found < *count.start() { Err(Stop::End) } else { Err(Stop::No) }
}

#[cfg(test)]
mod tests {
    use jiff::{SignedDuration, Timestamp, tz::Offset};
    use proptest::prelude::*;

    use super::super::time::{self, Log};
    use super::*;
    use crate::message::ChatRole;

    fn stamps() -> StampFilter {
        let said = |name: &str| {
            ChatMessage::at(ChatRole::User, "x", Timestamp::UNIX_EPOCH)
                .with_metadata("speaker", name)
        };
        StampFilter::naming([said("Ann"), said("Anna Maria")].iter())
    }

    fn spoken(pieces: &[&str]) -> String {
        let mut stamps = stamps();
        let mut said: String = pieces.iter().map(|piece| stamps.remove(piece)).collect();
        said += &stamps.rest();
        said
    }

    #[test]
    fn a_stamp_at_the_beginning_is_not_spoken_and_all_else_is() {
        for stamp in [
            "[Sunday 09:10] ",
            "[Sunday 09:10]",
            " \n[Sunday 09:10]\n",
            "[Monday 25 August 07:05] ",
            "[Sunday 24 August 2025 18:36 +02:00] ",
            "[Sunday 4 August 2025 18:36 -03:30] ",
            "[Sunday 23:30, 5 hours later] ",
            "[Sunday 24 August 2025 18:36 +02:00, 365 days later, Anna Maria] ",
            "[Sunday 18:36, Ann] ",
            "[Sunday 18:36, note] ",
            "[Sunday 18:36, assistant] ",
            "[Sunday 09:10] [Sunday 09:11] ",
            "[Sunday 09:10][Sunday 09:11, Ann] [Monday 25 August 07:05]",
            "Current time: Sunday 24 August 2025 18:36 +02:00\n",
            "Current time: Sunday 24 August 2025 18:36 +02:00 (Europe/Vienna)\n",
            "Current time: Sunday 24 August 2025 18:36 +02:00 (UTC)\n[Sunday 18:36] ",
        ] {
            assert_eq!(spoken(&[stamp, "I'm not sure."]), "I'm not sure.", "{stamp:?}");
            assert_eq!(spoken(&[stamp]), "", "{stamp:?}");
        }
        for words in [
            "I'm not sure. [Sunday 09:10] ",
            "[sighs] It rains.",
            "[Sunday] is free.",
            "[Sunday 09:10-10:00] Church.",
            "[Sunday 9:10] Church.",
            "[Sunday 09:10, dinner] Church.",
            "[Sunday 09:10, Annabel] Hello.",
            "[1] https://example.org",
            "[Link](https://example.org)",
            "[Sun 09:10] Church.",
            "[Sunday 09:10",
            "[",
            " [Sunday 24 Aug",
            "Current time: ten.",
            "Current time: Sunday 24 August 2025 18:36 +02:00",
            "Current time: Sunday 24 August 2025 18:36 +02:00. Go to bed.",
            "\n It rains.",
            "Sunday 09:10",
            "",
        ] {
            assert_eq!(spoken(&[words]), words);
        }
    }

    #[test]
    fn nothing_is_held_back_that_can_become_no_stamp() {
        for (piece, passes) in [
            ("I", true),
            ("[s", true),
            ("[S", false),
            ("[Sunday 09:10", false),
            ("[Sunday 09:1x", true),
            ("[Sunday 09:10, An", false),
            ("[Sunday 09:10, Ax", true),
            ("C", false),
            ("Ca", true),
        ] {
            assert_eq!(stamps().remove(piece) == piece, passes, "{piece:?}");
        }
        assert_eq!(stamps().remove(&" ".repeat(33)).len(), 33);
    }

    #[test]
    fn a_text_that_is_only_a_stamp_stays_whole() {
        let only = "[Sunday 09:10]";
        for (text, left) in [(only.to_owned(), only), (format!("{only} Yes."), "Yes.")] {
            let mut text = text;
            stamps().remove_from(&mut text);
            assert_eq!(text, left);
        }
    }

    proptest! {
        #[test]
        fn every_moment_that_a_log_writes_is_known(
            moments in prop::collection::vec((0i64..4_000_000_000, -14i32..15), 1..6),
        ) {
            let mut log = Log::default();
            for (second, hours) in moments {
                let offset = Offset::from_seconds(hours * 3600 + 1800 * (hours % 2)).unwrap();
                let moment = Timestamp::from_second(second).unwrap().to_zoned(offset.to_time_zone());
                for written in [log.moment(&moment), log.moment(&(&moment + SignedDuration::from_mins(1)))] {
                    for name in ["", ", Ann", ", note"] {
                        let stamp = format!("[{written}{name}] ");
                        prop_assert_eq!(spoken(&[&stamp, "Yes."]), "Yes.", "{}", stamp);
                    }
                }
                let now = format!("Current time: {}\n", time::of_now(&moment));
                prop_assert_eq!(spoken(&[&now, "Yes."]), "Yes.", "{}", now);
            }
        }

        #[test]
        fn it_does_not_matter_where_the_pieces_of_an_answer_are_cut(
            stamps in prop::collection::vec(
                prop::sample::select(vec![
                    "[Sunday 09:10] ", "[Sunday 09:10, Ann]", "[Sunday 23:30, 5 hours later] ", "  ",
                    "[Monday 25 August 07:05]\n", "[Sunday 24 August 2025 18:36 +02:00, note] ", "[Sun", "\n",
                    "Current time: Sunday 24 August 2025 18:36 +02:00 (Europe/Vienna)\n", "[note] ", "é", "[",
                ]),
                0..4,
            ),
            words in "[a-zé\\[\\] 0-9:,]{0,12}",
            cuts in prop::collection::vec(0usize..160, 0..8),
        ) {
            let whole = stamps.concat() + &words;
            let mut cuts: Vec<usize> = cuts.into_iter().filter(|cut| whole.is_char_boundary(*cut)).collect();
            cuts.retain(|cut| *cut <= whole.len());
            cuts.extend([0, whole.len()]);
            cuts.sort_unstable();
            let pieces: Vec<&str> = cuts.windows(2).filter_map(|pair| whole.get(pair[0]..pair[1])).collect();
            prop_assert_eq!(spoken(&pieces), spoken(&[&whole]));
        }
    }
}
