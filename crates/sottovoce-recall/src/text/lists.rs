//! The word lists of all languages, read from `data/*.txt` once.

use std::{collections::HashMap, sync::OnceLock};

use super::{language::Language, phrases::Phrase, words::is_hiragana};

/// What the lists say about a word, a bit for each list and language.
#[derive(Clone, Copy, Default)]
pub(crate) struct Traits(u64);

/// "I", "what", "who" and "now" in Japanese.
const JAPANESE: [&str; 5] = ["私", "僕", "何", "誰", "今"];

const STOP: u32 = 0;
const ASKING: u32 = 8;
const ME: u32 = 16;
const TIME: u32 = 24;
const NUMBER: u32 = 32;

impl Traits {
    fn has(self, list: u32, language: Language) -> bool {
        self.0 >> (list + language.number() as u32) & 1 == 1
    }

    /// A word that carries no meaning of its own.
    pub(crate) fn is_stop(self, language: Language) -> bool {
        self.has(STOP, language)
    }

    /// A word that asks, and says little about what is asked for.
    pub(crate) fn is_asking(self, language: Language) -> bool {
        self.has(ASKING, language)
    }

    /// A word for oneself.
    pub(crate) fn is_me(self, language: Language) -> bool {
        self.has(ME, language)
    }

    /// A word of time, such as "yesterday" or "Monday".
    pub(crate) fn is_time(self, language: Language) -> bool {
        self.has(TIME, language)
    }

    /// A number in words.
    pub(crate) fn is_number(self, language: Language) -> bool {
        self.has(NUMBER, language)
    }
}

/// The phrases and names of one language.
#[derive(Default)]
pub(crate) struct LanguageLists {
    /// Standing wishes: "I prefer".
    pub standing: Vec<Phrase>,
    /// Standing wishes at the beginning of a sentence: "always".
    pub standing_first: Vec<Phrase>,
    /// Words that may stand before those: "please".
    pub lead: Vec<&'static str>,
    /// Beginnings of a question that asks for a time.
    pub asks_when: Vec<Phrase>,
    /// Parts of a question that asks for a number.
    pub asks_number: Vec<Phrase>,
    /// Beginnings of a question that asks for a name.
    pub asks_name: Vec<Phrase>,
    /// The assistant is asked for what it said.
    pub you_said: Vec<Phrase>,
    /// The assistant is asked to do something.
    pub requests: Vec<Phrase>,
    /// Words that join two names into one subject: "and".
    pub together: Vec<&'static str>,
    /// Words that refer to what was said just before: "his".
    pub follow_up: Vec<&'static str>,
    /// Beginnings of what goes on from what was said just before: "and", "what about".
    pub follow_up_first: Vec<Phrase>,
    /// Words around small talk.
    pub fillers: Vec<&'static str>,
    /// Small talk: "thank you".
    pub small_talk: Vec<Phrase>,
    /// What may stand before a command: "could you".
    pub before_command: Vec<Phrase>,
    /// Beginnings of a command: "turn".
    pub commands: Vec<Phrase>,
    /// Last words of a command: "off".
    pub command_ends: Vec<&'static str>,
    /// Parts of a question about now: "what time".
    pub now: Vec<Phrase>,
    /// Parts of a question about what everyone may know: "capital of".
    pub general: Vec<Phrase>,
    /// Parts of a question about the past: "did we".
    pub past: Vec<Phrase>,
    /// A name and its short forms.
    pub short_names: Vec<Vec<&'static str>>,
    /// Names of the months, in order.
    pub months: Vec<&'static str>,
    /// Names of the days of the week from Monday on.
    pub weekdays: Vec<&'static str>,
}

/// The lists of all languages.
pub(crate) struct Lists {
    traits: HashMap<&'static str, Traits>,
    languages: [LanguageLists; 4],
}

impl Lists {
    pub(crate) fn traits(&self, word: &str) -> Traits {
        match word.chars().all(is_hiragana) || JAPANESE.contains(&word) {
            // Endings, particles and pronouns of Japanese, which has no lists of its own.
            true => Traits(0b1111 << STOP),
            false => self.traits.get(word).copied().unwrap_or_default(),
        }
    }

    /// All words that carry no meaning of their own in some language.
    pub(crate) fn stop_words(&self) -> impl Iterator<Item = &'static str> {
        let is_stop =
            |traits: &Traits| Language::ALL.iter().any(|language| traits.is_stop(*language));
        self.traits.iter().filter(move |(_, traits)| is_stop(traits)).map(|(word, _)| *word)
    }

    pub(crate) fn of(&self, language: Language) -> &LanguageLists {
        let [english, german, french, spanish] = &self.languages;
        match language {
            Language::English => english,
            Language::German => german,
            Language::French => french,
            Language::Spanish => spanish,
        }
    }

    fn parse() -> Self {
        let mut traits = HashMap::new();
        let languages = Language::ALL.map(|language| {
            let text = match language {
                Language::English => include_str!("../../data/en.txt"),
                Language::German => include_str!("../../data/de.txt"),
                Language::French => include_str!("../../data/fr.txt"),
                Language::Spanish => include_str!("../../data/es.txt"),
            };
            parse_language(text, language, &mut traits)
        });
        Self { traits, languages }
    }
}

/// The lists, read on first use.
pub(crate) fn lists() -> &'static Lists {
    static LISTS: OnceLock<Lists> = OnceLock::new();
    LISTS.get_or_init(Lists::parse)
}

fn parse_language(
    text: &'static str,
    language: Language,
    traits: &mut HashMap<&'static str, Traits>,
) -> LanguageLists {
    let mut lists = LanguageLists::default();
    let mut section = "";
    for line in
        text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'))
    {
        if let Some(name) = line.strip_prefix('[').and_then(|line| line.strip_suffix(']')) {
            section = name;
            continue;
        }
        let mut mark = |list: u32| {
            for word in line.split_whitespace() {
                traits.entry(word).or_default().0 |= 1 << (list + language.number() as u32);
            }
        };
        match section {
            "stop" => mark(STOP),
            "asking" => mark(ASKING),
            "me" => mark(ME),
            "time" => mark(TIME),
            "numbers" => mark(NUMBER),
            "weekdays" => {
                mark(TIME);
                lists.weekdays.extend(line.split_whitespace());
            }
            "months" => lists.months.extend(line.split_whitespace()),
            "lead" => lists.lead.extend(line.split_whitespace()),
            "follow up" => lists.follow_up.extend(line.split_whitespace()),
            "follow up first" => lists.follow_up_first.push(Phrase::new(line)),
            "fillers" => lists.fillers.extend(line.split_whitespace()),
            "small talk" => lists.small_talk.push(Phrase::new(line)),
            "before a command" => lists.before_command.push(Phrase::new(line)),
            "commands" => lists.commands.push(Phrase::new(line)),
            "command ends" => lists.command_ends.extend(line.split_whitespace()),
            "now" => lists.now.push(Phrase::new(line)),
            "general" => lists.general.push(Phrase::new(line)),
            "past" => lists.past.push(Phrase::new(line)),
            "together" => lists.together.extend(line.split_whitespace()),
            "short names" => lists.short_names.push(line.split_whitespace().collect()),
            "standing" => lists.standing.push(Phrase::new(line)),
            "standing first" => lists.standing_first.push(Phrase::new(line)),
            "asks when" => lists.asks_when.push(Phrase::new(line)),
            "asks how many" => lists.asks_number.push(Phrase::new(line)),
            "asks who" => lists.asks_name.push(Phrase::new(line)),
            "you said" => lists.you_said.push(Phrase::new(line)),
            "requests" => lists.requests.push(Phrase::new(line)),
            _ => debug_assert!(false, "a section without a reader"),
        }
    }
    lists
}
