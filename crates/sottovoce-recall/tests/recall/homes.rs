//! In homes that speak no English, questions bring back what they need, and small talk and commands nothing.

use jiff::{Zoned, civil::date, tz::TimeZone};
use sottovoce_recall::{Asked, Index, Language, Role, Turn, needs_memory};

use crate::encoding::{question, understand, vector};

/// Milliseconds of a day.
const DAY: i64 = 24 * 60 * 60 * 1000;

#[derive(Default)]
struct Home {
    code: &'static str,
    said: Vec<&'static str>,
    asked: Vec<(&'static str, &'static str)>,
    nothing: Vec<&'static str>,
}

fn homes() -> Vec<Home> {
    let mut homes: Vec<Home> = Vec::new();
    for line in include_str!("../corpus/homes.txt").lines() {
        if let Some(code) = line.strip_prefix('[').and_then(|line| line.strip_suffix(']')) {
            homes.push(Home { code, ..Home::default() });
            continue;
        }
        let Some(home) = homes.last_mut() else { continue };
        match line.split_once(": ").unwrap() {
            ("said", said) => home.said.push(said),
            ("asked", asked) => home.asked.push(asked.split_once(" = ").unwrap()),
            ("nothing", nothing) => home.nothing.push(nothing),
            (other, _) => unreachable!("{other}"),
        }
    }
    homes
}

/// A year of commands and small talk, with a fact in between now and then.
fn lived(home: &Home) -> (Index, Vec<String>) {
    let mut index = Index::default();
    let mut texts = Vec::new();
    for day in 0..300 {
        let commands = home.nothing.iter().cycle().skip(day).take(3);
        let fact = (day % 30 == 7).then(|| home.said[day / 30]);
        for said in commands.copied().chain(fact) {
            let at = day as i64 * DAY + texts.len() as i64 * 60_000;
            let seq = texts.len() as u64;
            index.push(&Turn::new(seq, at, day as i32, Role::User, said));
            texts.push(said.to_owned());
            index.push(&Turn::new(seq + 1, at + 5_000, day as i32, Role::Assistant, "OK."));
            texts.push("OK.".to_owned());
        }
    }
    understand(&mut index, |seq| &texts[seq as usize]);
    (index, texts)
}

fn now() -> Zoned {
    date(1970, 11, 20).at(12, 0, 0, 0).to_zoned(TimeZone::UTC).unwrap()
}

fn recalled(home: &Home, index: &mut Index, text: &str) -> Vec<(u64, f32)> {
    if !needs_memory(&vector(text)) {
        return Vec::new();
    }
    let mut asked = Asked::new(now(), 1970..=1970);
    asked.language = Language::from_code(home.code).unwrap_or_default();
    let hits = index.rank(&question(text, &asked), |_| true, 5);
    hits.iter().map(|hit| (hit.seq, hit.score)).collect()
}

#[test]
fn questions_get_theirs() {
    let mut all = Vec::new();
    for home in homes() {
        let (mut index, texts) = lived(&home);
        let mut missed = Vec::new();
        for (question, expected) in &home.asked {
            let found = recalled(&home, &mut index, question);
            if !found.iter().any(|(seq, _)| texts[*seq as usize].contains(expected)) {
                missed.push((*question, found));
            }
        }
        if missed.len() * 10 > home.asked.len() {
            all.push((home.code, missed));
        }
    }
    assert!(all.is_empty(), "{all:#?}");
}

#[test]
fn small_talk_and_commands_bring_in_nothing() {
    let homes = homes();
    let all: Vec<&str> = homes.iter().flat_map(|home| home.nothing.iter().copied()).collect();
    let loud: Vec<_> = all.iter().filter(|text| needs_memory(&vector(text))).collect();
    assert!(loud.len() * 20 <= all.len(), "{} of {}: {loud:?}", loud.len(), all.len());
}
