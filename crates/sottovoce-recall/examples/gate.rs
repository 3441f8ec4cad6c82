//! Prints the best score of utterances in conversations.
//!
//! `gate UTTERANCES.jsonl CONVERSATIONS.jsonl`: each utterance is `[group, language, text]`; without the first file
//! (`-`) the conversations' own questions are asked. A line: group, language, kind, score,
//! whether it is enough, text.

#![allow(clippy::print_stdout, reason = "this is a measurement")]

use std::error::Error;

use serde::Deserialize;
use sottovoce_recall::{Asked, BuildOptions, Index, Language, Question, Role, Segment, Turn};

#[derive(Deserialize)]
struct Conversation {
    turns: Vec<Line>,
    qas: Vec<Asking>,
}

#[derive(Deserialize)]
struct Line {
    s: String,
    x: String,
    cap: Option<String>,
    day: Option<i32>,
    ses: u32,
}

#[derive(Deserialize)]
struct Asking {
    q: String,
    #[serde(default)]
    cat: String,
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let (utterances, conversations) =
        (arguments.next().ok_or("no utterances")?, arguments.next().ok_or("no conversations")?);
    let mut asked: Vec<(String, String, String)> = Vec::new();
    if utterances != "-" {
        for line in std::fs::read_to_string(&utterances)?.lines() {
            asked.push(serde_json::from_str(line)?);
        }
    }
    for line in std::fs::read_to_string(&conversations)?.lines() {
        let conversation: Conversation = serde_json::from_str(line)?;
        let turn = |(seq, line)| turn(seq, line);
        let mut index = Index::default();
        index.insert(
            0,
            Segment::build((0..).zip(&conversation.turns).map(turn), &BuildOptions::default()),
        );
        let last = conversation.turns.iter().filter_map(|turn| turn.day).max().unwrap_or_default();
        let now = jiff::civil::Date::constant(1970, 1, 1)
            .checked_add(jiff::Span::new().days(last + 1))?
            .at(12, 0, 0, 0)
            .to_zoned(jiff::tz::TimeZone::UTC)?;
        let years = index.years().ok_or("no turns")?;
        let own = conversation.qas.iter().map(|qa| (qa.cat.clone(), "en".to_owned(), qa.q.clone()));
        let asked = if asked.is_empty() { own.collect() } else { asked.clone() };
        for (group, language, text) in &asked {
            let mut asked = Asked::new(now.clone(), years.clone());
            asked.language = Language::from_code(language).unwrap_or_default();
            let question = Question::new(text, &asked);
            let score = index.rank(&question, |_| true, 1).first().map_or(0., |hit| hit.score);
            let passes = score >= index.min_score(&question);
            println!("{group}\t{language}\t{:?}\t{score:.3}\t{passes}\t{text}", question.kind());
        }
    }
    Ok(())
}

fn turn(seq: u64, line: &Line) -> Turn<'_> {
    let day = line.day.unwrap_or_default();
    let role = if line.s == "assistant" { Role::Assistant } else { Role::User };
    Turn {
        speaker: Some(&*line.s).filter(|name| !["user", "assistant"].contains(name)),
        session: Some(line.ses),
        caption: line.cap.as_deref().filter(|caption| !caption.is_empty()),
        ..Turn::new(seq, i64::from(day) * 86_400_000, day, role, &line.x)
    }
}
