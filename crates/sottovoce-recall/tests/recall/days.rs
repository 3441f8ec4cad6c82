//! A question that names days is answered from them, and nothing of other days comes by its date alone.

use jiff::{Zoned, civil::date, tz::TimeZone};
use serde_json::Value;
use sottovoce_recall::{Asked, Hit, Index, Role, Turn};

use crate::encoding::{question, understand};

/// 10 May 2026, a Sunday.
const TODAY: i32 = 20_583;

/// Questions of each language, and how many days ago their day is.
const ASKED: [(&str, [(&str, i32); 4]); 4] = [
    (
        "en",
        [
            ("What did I tell you yesterday?", 1),
            ("What did we talk about last Wednesday?", 4),
            ("What did I say on 3 May?", 7),
            ("What did I tell you this morning?", 0),
        ],
    ),
    (
        "de",
        [
            ("Was habe ich dir gestern erzählt?", 1),
            ("Worüber haben wir letzten Mittwoch geredet?", 4),
            ("Was habe ich am 3. Mai gesagt?", 7),
            ("Was habe ich dir heute Morgen erzählt?", 0),
        ],
    ),
    (
        "fr",
        [
            ("Qu'est-ce que je t'ai raconté hier ?", 1),
            ("De quoi avons-nous parlé mercredi dernier ?", 4),
            ("Qu'est-ce que j'ai dit le 3 mai ?", 7),
            ("Qu'est-ce que je t'ai raconté ce matin ?", 0),
        ],
    ),
    (
        "es",
        [
            ("¿Qué te conté ayer?", 1),
            ("¿De qué hablamos el miércoles pasado?", 4),
            ("¿Qué dije el 3 de mayo?", 7),
            ("¿Qué te conté esta mañana?", 0),
        ],
    ),
];

/// Ten days of a household: four facts a day, each answered.
fn lived(language: &str) -> (Index, Vec<String>) {
    let lines = include_str!("../../measure/home/dev.jsonl").lines();
    let rows = lines.map(|line| serde_json::from_str::<Value>(line).unwrap());
    let told = rows.filter(|row| row["language"] == language);
    let told: Vec<String> = told.map(|row| row["statement"].as_str().unwrap().to_owned()).collect();
    let (mut index, mut texts) = (Index::default(), Vec::new());
    for (at, said) in told.iter().cycle().take(40).enumerate() {
        let day = TODAY - 9 + at as i32 / 4;
        let moment = i64::from(day) * 86_400_000 + 28_800_000 + at as i64 * 60_000;
        for (role, text) in [(Role::User, said.as_str()), (Role::Assistant, "OK.")] {
            index.push(&Turn::new(texts.len() as u64, moment, day, role, text));
            texts.push(text.to_owned());
        }
    }
    understand(&mut index, |seq| &texts[seq as usize]);
    (index, texts)
}

fn now() -> Zoned {
    date(2026, 5, 10).at(20, 0, 0, 0).to_zoned(TimeZone::UTC).unwrap()
}

#[test]
fn a_named_day_means_that_day() {
    for (language, asked) in ASKED {
        let (mut index, _) = lived(language);
        for (text, ago) in asked {
            let asking = question(text, &Asked::new(now(), index.years().unwrap()));
            let day = TODAY - ago;
            let all = index.rank(&asking, |_| true, 80);
            assert_eq!(days(&all), [day; 8], "{text}");
            // As in a prompt that holds that day already.
            let of_day: Vec<u64> = all.iter().map(|hit| hit.seq).collect();
            let others = index.rank(&asking, |seq| !of_day.contains(&seq), 24);
            assert!(others.is_empty(), "{text}: {:?}", days(&others));
        }
    }
}

#[test]
fn a_question_about_something_finds_it_on_another_day_than_it_names() {
    let (mut index, texts) = lived("en");
    let text = "What did I tell you yesterday about the passports?";
    let asking = question(text, &Asked::new(now(), index.years().unwrap()));
    let hits = index.rank(&asking, |_| true, 10);
    assert!(
        hits.iter()
            .any(|hit| hit.day != TODAY - 1 && texts[hit.seq as usize].contains("passports"))
    );
}

fn days(hits: &[Hit]) -> Vec<i32> {
    hits.iter().map(|hit| hit.day).collect()
}

#[test]
fn a_question_what_happens_on_a_day_also_finds_what_was_said_of_it() {
    let told = "The dentist expects me on 10 May.";
    let mut index = Index::default();
    let (day, moment) = (TODAY - 7, (i64::from(TODAY) - 7) * 86_400_000);
    index.push(&Turn::new(0, moment, day, Role::User, told));
    understand(&mut index, |_| told);
    for text in ["What is happening today?", "What is going on today?"] {
        let asking = question(text, &Asked::new(now(), index.years().unwrap()));
        assert_eq!(days(&index.rank(&asking, |_| true, 5)), [day], "{text}");
    }
}
