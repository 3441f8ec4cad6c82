//! The conversations that the project carries.

use serde::Deserialize;
use sottovoce_recall::{Role, Turn};

#[derive(Deserialize)]
pub(crate) struct Conversation {
    pub(crate) turns: Vec<Line>,
    pub(crate) qas: Vec<Asking>,
}

#[derive(Deserialize)]
pub(crate) struct Line {
    pub(crate) s: String,
    pub(crate) x: String,
    pub(crate) cap: String,
    pub(crate) day: i32,
    pub(crate) at: i64,
    pub(crate) ses: u32,
}

#[derive(Deserialize)]
pub(crate) struct Asking {
    pub(crate) q: String,
    pub(crate) ev: Vec<u64>,
}

pub(crate) fn conversations() -> Vec<Conversation> {
    include_str!("../corpus/conversations.jsonl")
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

impl Conversation {
    pub(crate) fn turns(&self) -> Vec<Turn<'_>> {
        let turn = |(seq, line)| Self::turn(seq, line);
        (0..).zip(&self.turns).map(turn).collect()
    }

    fn turn(seq: u64, line: &Line) -> Turn<'_> {
        let role = if line.s == "assistant" { Role::Assistant } else { Role::User };
        Turn {
            speaker: Some(&*line.s).filter(|name| !["user", "assistant"].contains(name)),
            session: Some(line.ses),
            caption: Some(&*line.cap).filter(|caption| !caption.is_empty()),
            ..Turn::new(seq, line.at, line.day, role, &line.x)
        }
    }
}
