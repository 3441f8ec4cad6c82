//! Phrases of time by language, read from `data/time/*.txt` once.

use std::sync::OnceLock;

use zeroize::Zeroizing;

use super::{
    meaning::Meaning,
    tokens::{Token, fold},
};
use crate::text::language::Language;

/// What a phrase leaves open.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Slot {
    /// A number, in digits or in words.
    Number,
    /// A day of the month.
    Day,
    /// A day of the month in digits with an ending: "7th".
    Nth,
    Month,
    Year,
    Weekday,
    Unit,
    Part,
    Season,
}

/// What stood in the slots of a phrase.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Slots {
    pub number: Option<i32>,
    pub day: Option<i8>,
    pub month: Option<i8>,
    pub year: Option<i16>,
    /// 0 is Monday.
    pub weekday: Option<i32>,
    pub unit: Option<Unit>,
    /// 0 is spring.
    pub season: Option<i8>,
}

/// A unit of time, in the order of the data files.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Unit {
    Minute,
    Hour,
    Day,
    Week,
    Weekend,
    Month,
    Year,
}

const UNITS: [Unit; 7] =
    [Unit::Minute, Unit::Hour, Unit::Day, Unit::Week, Unit::Weekend, Unit::Month, Unit::Year];

struct Part {
    kind: Kind,
    is_optional: bool,
}

enum Kind {
    Words(Vec<String>),
    Slot(Slot),
}

/// A phrase and its meaning.
pub(super) struct Phrase {
    parts: Vec<Part>,
    pub meaning: Meaning,
    /// Up to today.
    pub since: bool,
    /// Its words rank, too.
    pub keep: bool,
}

/// The phrases and words of one language.
#[derive(Default)]
pub(super) struct Grammar {
    numbers: Vec<Vec<String>>,
    ordinals: Vec<Vec<String>>,
    suffixes: Vec<Vec<String>>,
    months: Vec<Vec<String>>,
    weekdays: Vec<Vec<String>>,
    units: Vec<Vec<String>>,
    parts: Vec<Vec<String>>,
    seasons: Vec<Vec<String>>,
    phrases: Vec<Phrase>,
}

/// The grammar of a language, read on first use.
pub(super) fn grammar(language: Language) -> &'static Grammar {
    static GRAMMARS: OnceLock<[Grammar; 4]> = OnceLock::new();
    let [english, german, french, spanish] = GRAMMARS.get_or_init(|| {
        [
            Grammar::parse(include_str!("../../data/time/en.txt")),
            Grammar::parse(include_str!("../../data/time/de.txt")),
            Grammar::parse(include_str!("../../data/time/fr.txt")),
            Grammar::parse(include_str!("../../data/time/es.txt")),
        ]
    });
    match language {
        Language::English => english,
        Language::German => german,
        Language::French => french,
        Language::Spanish => spanish,
    }
}

impl Grammar {
    fn parse(text: &str) -> Self {
        let mut grammar = Self::default();
        let mut section = "";
        for line in text.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
            if let Some(name) = line.strip_prefix('[').and_then(|line| line.strip_suffix(']')) {
                section = name;
                continue;
            }
            let forms = || line.split_whitespace().map(|form| fold(form).to_string()).collect();
            match section {
                "numbers" => grammar.numbers.push(forms()),
                "ordinals" => grammar.ordinals.push(forms()),
                "suffixes" => grammar.suffixes.push(forms()),
                "months" => grammar.months.push(forms()),
                "weekdays" => grammar.weekdays.push(forms()),
                "units" => grammar.units.push(forms()),
                "parts" => grammar.parts.push(forms()),
                "seasons" => grammar.seasons.push(forms()),
                _ => {
                    let phrase = Phrase::parse(line);
                    debug_assert!(phrase.is_some(), "a phrase without a meaning");
                    grammar.phrases.extend(phrase);
                }
            }
        }
        grammar
    }

    /// The longest phrase that begins with the first token, how many tokens it takes, and its slots.
    pub(super) fn longest(&self, tokens: &[Token]) -> Option<(&Phrase, usize, Slots)> {
        let mut longest: Option<(&Phrase, usize, Slots)> = None;
        for phrase in &self.phrases {
            if let Some((length, slots)) = self.matches(&phrase.parts, tokens, 0, Slots::default())
                && longest.is_none_or(|(_, other, _)| other < length)
            {
                longest = Some((phrase, length, slots));
            }
        }
        longest
    }

    fn matches(
        &self,
        parts: &[Part],
        tokens: &[Token],
        at: usize,
        slots: Slots,
    ) -> Option<(usize, Slots)> {
        let Some((part, rest)) = parts.split_first() else {
            return (at > 0).then_some((at, slots));
        };
        self.part(part, tokens, at, slots)
            .and_then(|(next, slots)| self.matches(rest, tokens, next, slots))
            .or_else(|| part.is_optional.then(|| self.matches(rest, tokens, at, slots)).flatten())
    }

    /// The token after a part, if it stands at `at`.
    fn part(
        &self,
        part: &Part,
        tokens: &[Token],
        at: usize,
        slots: Slots,
    ) -> Option<(usize, Slots)> {
        let token = tokens.get(at).filter(|token| at == 0 || token.is_joined)?;
        match &part.kind {
            Kind::Words(words) => words.contains(&*token.folded).then_some((at + 1, slots)),
            Kind::Slot(slot) => {
                let joined = tokens.get(at + 1).filter(|next| next.is_joined).and_then(|next| {
                    self.fill(
                        *slot,
                        &Zeroizing::new(format!("{}-{}", *token.folded, *next.folded)),
                        slots,
                    )
                });
                match joined {
                    Some(slots) => Some((at + 2, slots)),
                    None => Some((at + 1, self.fill(*slot, &token.folded, slots)?)),
                }
            }
        }
    }

    fn fill(&self, slot: Slot, word: &str, mut slots: Slots) -> Option<Slots> {
        let line = |lines: &[Vec<String>]| {
            lines.iter().position(|forms| forms.iter().any(|form| form == word))
        };
        match slot {
            Slot::Number => {
                let words = || Some(line(&self.numbers)? as i32 + 1);
                slots.number =
                    Some(word.parse().ok().filter(|n| (0..10_000).contains(n)).or_else(words)?);
            }
            Slot::Day => {
                let words = || Some(line(&self.ordinals)? as i8 + 1);
                slots.day = Some(self.day(word, false).or_else(words)?);
            }
            Slot::Nth => slots.day = Some(self.day(word, true)?),
            Slot::Month => slots.month = Some(line(&self.months)? as i8 + 1),
            Slot::Year => {
                let is_year = word.len() == 4 && word.starts_with("20");
                slots.year = Some(word.parse().ok().filter(|_| is_year)?);
            }
            Slot::Weekday => {
                slots.weekday = Some(line(&self.weekdays).or_else(|| self.compound(word))? as i32)
            }
            Slot::Unit => slots.unit = UNITS.get(line(&self.units)?).copied(),
            Slot::Part => {
                line(&self.parts)?;
            }
            Slot::Season => slots.season = Some(line(&self.seasons)? as i8),
        }
        Some(slots)
    }

    /// A day of the month in digits, with an ending such as "th" or, unless it is demanded, without.
    fn day(&self, word: &str, with_ending: bool) -> Option<i8> {
        let ending = word.trim_start_matches(|c: char| c.is_ascii_digit());
        let digits = word.get(..word.len() - ending.len())?;
        let is_ending = self.suffixes.iter().flatten().any(|suffix| suffix == ending);
        if !is_ending && (with_ending || !ending.is_empty()) {
            return None;
        }
        digits.parse().ok().filter(|day| (1..=31).contains(day))
    }

    /// A day of the week with a part of the day in one word: "Dienstagabend".
    fn compound(&self, word: &str) -> Option<usize> {
        let is_part = |rest: &str| self.parts.iter().flatten().any(|part| part == rest);
        let begins = |forms: &Vec<String>| {
            forms.iter().any(|form| word.strip_prefix(form.as_str()).is_some_and(is_part))
        };
        self.weekdays.iter().position(begins)
    }
}

impl Phrase {
    fn parse(line: &str) -> Option<Self> {
        let (parts, meaning) = line.split_once(" = ")?;
        let parts = parts.split_whitespace().map(Part::parse).collect();
        let flags = |flag: &str| meaning.split_whitespace().any(|word| word == flag);
        Some(Self {
            parts,
            meaning: Meaning::parse(meaning)?,
            since: flags("since"),
            keep: flags("keep"),
        })
    }
}

impl Part {
    fn parse(text: &str) -> Self {
        let plain = text.trim_end_matches('?');
        let kind = match plain {
            "N" => Kind::Slot(Slot::Number),
            "DAY" => Kind::Slot(Slot::Day),
            "NTH" => Kind::Slot(Slot::Nth),
            "MONTH" => Kind::Slot(Slot::Month),
            "YEAR" => Kind::Slot(Slot::Year),
            "WEEKDAY" => Kind::Slot(Slot::Weekday),
            "UNIT" => Kind::Slot(Slot::Unit),
            "PART" => Kind::Slot(Slot::Part),
            "SEASON" => Kind::Slot(Slot::Season),
            words => Kind::Words(words.split('|').map(|form| fold(form).to_string()).collect()),
        };
        Self { kind, is_optional: plain.len() < text.len() }
    }
}
