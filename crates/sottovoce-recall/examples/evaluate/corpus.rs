//! Conversations with questions whose answers are known, one a line as JSON.

use std::{error::Error, fs, path::Path};

use jiff::{Span, Zoned, civil::Date, tz::TimeZone};
use serde::Deserialize;
use sottovoce_recall::{Asked, BuildOptions, Index, Role, Segment, Turn};

/// A conversation.
#[derive(Deserialize)]
pub(crate) struct Conversation {
    pub(crate) turns: Vec<Line>,
    pub(crate) qas: Vec<Asking>,
    /// Whether pauses divide its sessions.
    #[serde(default)]
    by_pause: bool,
}

/// A message: speaker, text, a picture's caption, days since 1970, letters of its date, session.
#[derive(Deserialize)]
pub(crate) struct Line {
    s: String,
    x: String,
    cap: Option<String>,
    day: Option<i32>,
    at: Option<i64>,
    dlen: usize,
    ses: u32,
}

/// A question, its kind, and the numbers of the turns that hold the answer.
#[derive(Deserialize)]
pub(crate) struct Asking {
    pub(crate) q: String,
    pub(crate) cat: String,
    pub(crate) ev: Vec<u64>,
    /// What the asker said before, newest first.
    #[serde(default)]
    pub(crate) earlier: Vec<String>,
    /// The number of turns before the question; all, if it is asked at the end.
    until: Option<u64>,
}

/// The conversations of a file.
pub(crate) fn read(path: &Path) -> Result<Vec<Conversation>, Box<dyn Error>> {
    let text = fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))?;
    Ok(text.lines().map(serde_json::from_str).collect::<Result<_, _>>()?)
}

impl Conversation {
    /// Its index, as one segment.
    pub(crate) fn index(&self) -> Index {
        let turns = (0..).zip(&self.turns).map(|(seq, line)| line.turn(seq, self.by_pause));
        let mut index = Index::default();
        index.insert(0, Segment::build(turns, &BuildOptions::default()));
        index
    }

    /// Asked at noon on the day after what was said before.
    pub(crate) fn asked<'a>(
        &self,
        asking: Option<&'a Asking>,
        earlier: &'a [&'a str],
        index: &Index,
    ) -> Result<Asked<'a>, Box<dyn Error>> {
        let before = asking.map_or(usize::MAX, Asking::until);
        let days = self.turns.iter().take(before).filter_map(|line| line.day);
        let last = days.max().unwrap_or_default();
        let day = Date::constant(1970, 1, 1).checked_add(Span::new().days(last + 1))?;
        let now: Zoned = day.at(12, 0, 0, 0).to_zoned(TimeZone::UTC)?;
        let mut asked = Asked::new(now, index.years().ok_or("a conversation without turns")?);
        asked.earlier = earlier;
        Ok(asked)
    }

    /// The questions that have an answer.
    pub(crate) fn answerable(&self) -> impl Iterator<Item = &Asking> {
        let without = ["adversarial", "abstention"];
        self.qas.iter().filter(move |qa| !qa.ev.is_empty() && !without.contains(&&*qa.cat))
    }

    /// A turn by its number.
    pub(crate) fn line(&self, seq: u64) -> &Line {
        &self.turns[usize::try_from(seq).unwrap_or(usize::MAX)]
    }
}

impl Asking {
    /// The number of turns before the question.
    pub(crate) fn until(&self) -> usize {
        self.until.map_or(usize::MAX, |until| until as usize)
    }
}

impl Line {
    /// What was said.
    pub(crate) fn text(&self) -> &str {
        &self.x
    }

    /// Words of it after the speaker's name, if there is one.
    pub(crate) fn named(&self, text: &str) -> String {
        let caption = self.caption().map(|caption| format!(" ({caption})")).unwrap_or_default();
        match self.speaker() {
            Some(speaker) => format!("{speaker}: {text}{caption}"),
            None => format!("{text}{caption}"),
        }
    }

    fn speaker(&self) -> Option<&str> {
        Some(&*self.s).filter(|name| !["user", "assistant"].contains(name))
    }

    fn turn(&self, seq: u64, by_pause: bool) -> Turn<'_> {
        let day = self.day.unwrap_or_default();
        let role = if self.s == "assistant" { Role::Assistant } else { Role::User };
        Turn {
            speaker: self.speaker(),
            session: (!by_pause).then_some(self.ses),
            caption: self.caption(),
            ..Turn::new(seq, self.at.unwrap_or(i64::from(day) * 86_400_000), day, role, &self.x)
        }
    }

    fn caption(&self) -> Option<&str> {
        self.cap.as_deref().filter(|caption| !caption.is_empty())
    }

    /// Letters of the line that would show it in a prompt.
    pub(crate) fn length(&self) -> usize {
        let caption = self.caption().map_or(0, |caption| caption.chars().count() + 10);
        self.s.chars().count() + 3 + self.x.chars().count() + caption
    }

    /// Letters of the heading of its session.
    pub(crate) fn heading(&self) -> usize {
        self.dlen + 3
    }
}
