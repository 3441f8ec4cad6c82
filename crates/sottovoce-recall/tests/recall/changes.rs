//! Facts that change: the newer statement comes first, and the older one is still there.

use std::collections::HashMap;

use jiff::{civil::date, tz::TimeZone};
use sottovoce_recall::{Asked, Index, Language, Role, Turn, put_newer_first};

use crate::encoding::{question, understand};

const CHATTER: [(Role, &str); 12] = [
    (Role::Assistant, "Noted."),
    (Role::User, "Turn on the light in the hall, please."),
    (Role::Assistant, "The light is on."),
    (Role::User, "What a lovely morning, the birds are singing."),
    (Role::Assistant, "Enjoy it! It stays sunny until the evening."),
    (Role::User, "We had pancakes with apples for breakfast."),
    (Role::Assistant, "That sounds delicious."),
    (Role::User, "Set a timer for ten minutes."),
    (Role::Assistant, "Ten minutes from now."),
    (Role::User, "Heute regnet es, die Wäsche bleibt drinnen."),
    (Role::User, "On a mangé une tarte aux pommes dans le jardin."),
    (Role::User, "Los vecinos hicieron una fiesta muy larga."),
];

struct Change {
    language: Language,
    statements: [&'static str; 2],
    question: &'static str,
}

fn changes() -> Vec<Change> {
    let lines = include_str!("../corpus/changes.txt").lines().filter(|line| !line.starts_with('#'));
    let change = |line: &'static str| {
        let parts: Vec<&str> = line.split('|').collect();
        let language = Language::from_code(parts[0]).unwrap();
        Change { language, statements: [parts[1], parts[2]], question: parts[3] }
    };
    lines.map(change).collect()
}

/// All older statements, then all newer ones, an hour of chatter and a night after each. The numbers of the
/// statements are twenty apart.
fn index(changes: &[Change], order: [usize; 2]) -> Index {
    let mut index = Index::default();
    let mut texts = HashMap::new();
    let mut seq = 0;
    for which in order {
        for change in changes {
            let day = (seq / 20) as i32;
            let mut push = |role, text| {
                let at = i64::from(day) * 86_400_000 + (seq % 20) as i64 * 60_000;
                index.push(&Turn::new(seq, at, day, role, text));
                texts.insert(seq, text);
                seq += 1;
            };
            push(Role::User, change.statements[which]);
            for (role, text) in CHATTER {
                push(role, text);
            }
            seq = seq.div_ceil(20) * 20;
        }
    }
    understand(&mut index, |seq| texts[&seq]);
    index
}

#[test]
fn the_newer_statement_comes_first() {
    let changes = changes();
    assert_eq!(changes.len(), 50);
    let now = date(1971, 6, 1).at(12, 0, 0, 0).to_zoned(TimeZone::UTC).unwrap();
    let (mut first, mut both, mut wrong) = (0, 0, Vec::new());
    // Each in both orders, so that what a statement says does not decide.
    for order in [[0, 1], [1, 0]] {
        let mut index = index(&changes, order);
        for (number, change) in (0..).zip(&changes) {
            let mut asked = Asked::new(now.clone(), 1970..=1970);
            asked.language = change.language;
            let question = question(change.question, &asked);
            let mut hits = index.rank(&question, |_| true, 5);
            put_newer_first(&mut hits, &question);
            let place = |seq: u64| hits.iter().position(|hit| hit.seq == seq);
            let (older, newer) = (place(number * 20), place((50 + number) * 20));
            both += usize::from(older.is_some() && newer.is_some());
            let is_first = newer.is_some() && older.is_none_or(|older| newer.unwrap() < older);
            first += usize::from(is_first);
            if !is_first || older.is_none() {
                wrong.push((change.question, older, newer));
            }
        }
    }
    assert!(first >= 95 && both >= 95, "{first} newer first, {both} both of 100: {wrong:#?}");
}
