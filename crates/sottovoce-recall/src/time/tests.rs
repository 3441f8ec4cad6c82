//! Expressions of time in four languages, by clocks at the ends of days, weeks, months, years and summer time.

use jiff::{ToSpan, Zoned, civil::Date};
use proptest::prelude::*;

use super::{DaySpan, spans};
use crate::text::language::Language::{self, English, French, German, Spanish};

/// Expressions by clock: the language, the text and the days, as `FIRST`, `FIRST/LAST` or nothing.
type Table = &'static [(&'static str, &'static [(Language, &'static str, &'static str)])];

const TABLE: Table = &[
    // A Thursday in the middle of everything.
    (
        "2026-05-21T15:00[Europe/Berlin]",
        &[
            (English, "What did we say last Tuesday?", "2026-05-19"),
            (English, "what did I do yesterday", "2026-05-20"),
            (English, "yesterday evening", "2026-05-20"),
            (English, "the day before yesterday", "2026-05-19"),
            (English, "this morning", "2026-05-21"),
            (English, "earlier today", "2026-05-21"),
            (English, "last night", "2026-05-20/2026-05-21"),
            (English, "in May", "2026-05-01/2026-05-21"),
            (English, "in June", "2025-06-01/2025-06-30"),
            (English, "last May", "2025-05-01/2025-05-31"),
            (English, "in December", "2025-12-01/2025-12-31"),
            (English, "on 7 May", "2026-05-07"),
            (English, "on May 7th", "2026-05-07"),
            (English, "on the 7th of May", "2026-05-07"),
            (English, "on the seventh of June", "2025-06-07"),
            (English, "May 22", "2025-05-22"),
            (English, "May 21", "2026-05-21"),
            (English, "on May twenty-first", "2026-05-21"),
            (English, "7 May 2023", "2023-05-07"),
            (English, "May 7, 2023", "2023-05-07"),
            (English, "May 2023", "2023-05-01/2023-05-31"),
            (English, "in May 2023", "2023-05-01/2023-05-31"),
            (English, "by December of 2023", "2023-12-01/2023-12-31"),
            (English, "2023-05-07", "2023-05-07"),
            (English, "2023-05", "2023-05-01/2023-05-31"),
            (English, "7/5/2023", "2023-05-07"),
            (English, "5/27/2023", "2023-05-27"),
            (English, "in 2024", "2024-01-01/2024-12-31"),
            (English, "three weeks ago", "2026-04-27/2026-05-03"),
            (English, "3 days ago", "2026-05-18"),
            (English, "a month ago", "2026-04-06/2026-05-06"),
            (English, "two years ago", "2024-01-01/2024-12-31"),
            (English, "an hour ago", "2026-05-21"),
            (English, "a couple of days ago", "2026-05-19"),
            (English, "a few days ago", "2026-05-15/2026-05-19"),
            (English, "last week", "2026-05-11/2026-05-17"),
            (English, "the week before last", "2026-05-04/2026-05-10"),
            (English, "this week", "2026-05-18/2026-05-21"),
            (English, "last month", "2026-04-01/2026-04-30"),
            (English, "this month", "2026-05-01/2026-05-21"),
            (English, "last year", "2025-01-01/2025-12-31"),
            (English, "this year", "2026-01-01/2026-05-21"),
            (English, "last weekend", "2026-05-16/2026-05-17"),
            (English, "at the weekend", "2026-05-16/2026-05-17"),
            (English, "this weekend", ""),
            (English, "on Tuesday", "2026-05-19"),
            (English, "on Thursday", "2026-05-14"),
            (English, "this Tuesday", "2026-05-19"),
            (English, "this Friday", ""),
            (English, "Tuesday of last week", "2026-05-12"),
            (English, "last week on Friday", "2026-05-15"),
            (English, "in the last two weeks", "2026-05-07/2026-05-21"),
            (English, "over the past few days", "2026-05-15/2026-05-21"),
            (English, "since Monday", "2026-05-18/2026-05-21"),
            (English, "since March", "2026-03-01/2026-05-21"),
            (English, "since yesterday", "2026-05-20/2026-05-21"),
            (English, "last summer", "2025-06-01/2025-08-31"),
            (English, "in the summer of 2024", "2024-06-01/2024-08-31"),
            (English, "last winter", "2025-12-01/2026-02-28"),
            (English, "this spring", "2026-03-01/2026-05-21"),
            (English, "on the 3rd", "2026-05-03"),
            (English, "on the 30th", "2026-04-30"),
            (English, "on 29 February", "2024-02-29"),
            (English, "the other day", "2026-05-07/2026-05-20"),
            (English, "tomorrow", ""),
            (English, "next week", ""),
            (English, "next Tuesday", ""),
            (English, "in two weeks", ""),
            (English, "the day after tomorrow", ""),
            (English, "on Tuesdays", ""),
            (English, "May I ask you something?", ""),
            (English, "march on", ""),
            (English, "I have 2 dogs", ""),
            (German, "vor drei Wochen", "2026-04-27/2026-05-03"),
            (German, "Was haben wir letzten Dienstag besprochen?", "2026-05-19"),
            (German, "im Mai", "2026-05-01/2026-05-21"),
            (German, "im März", "2026-03-01/2026-03-31"),
            (German, "heute Morgen", "2026-05-21"),
            (German, "heute früh", "2026-05-21"),
            (German, "heute", "2026-05-21"),
            (German, "gestern Abend", "2026-05-20"),
            (German, "vorgestern", "2026-05-19"),
            (German, "letzte Woche", "2026-05-11/2026-05-17"),
            (German, "vorletzte Woche", "2026-05-04/2026-05-10"),
            (German, "letzten Monat", "2026-04-01/2026-04-30"),
            (German, "letztes Jahr", "2025-01-01/2025-12-31"),
            (German, "am Dienstagabend", "2026-05-19"),
            (German, "im Mai 2023", "2023-05-01/2023-05-31"),
            (German, "am 7. Mai", "2026-05-07"),
            (German, "am 7.5.", "2026-05-07"),
            (German, "am 7.5.2023", "2023-05-07"),
            (German, "am siebten Mai 2023", "2023-05-07"),
            (German, "vor einem Jahr", "2025-01-01/2025-12-31"),
            (German, "vor ein paar Tagen", "2026-05-15/2026-05-19"),
            (German, "am Wochenende", "2026-05-16/2026-05-17"),
            (German, "letzten Sommer", "2025-06-01/2025-08-31"),
            (German, "in den letzten zwei Wochen", "2026-05-07/2026-05-21"),
            (German, "seit Montag", "2026-05-18/2026-05-21"),
            (German, "am Freitag letzter Woche", "2026-05-15"),
            (German, "letzte Nacht", "2026-05-20/2026-05-21"),
            (German, "morgen", ""),
            (German, "morgen früh", ""),
            (German, "übermorgen", ""),
            (German, "nächste Woche", ""),
            (German, "nächsten Dienstag", ""),
            (German, "in drei Tagen", ""),
            (German, "dienstags", ""),
            (French, "la semaine dernière", "2026-05-11/2026-05-17"),
            (French, "Qu'est-ce que j'ai fait hier ?", "2026-05-20"),
            (French, "hier soir", "2026-05-20"),
            (French, "avant-hier", "2026-05-19"),
            (French, "aujourd'hui", "2026-05-21"),
            (French, "ce matin", "2026-05-21"),
            (French, "cet après-midi", "2026-05-21"),
            (French, "mardi dernier", "2026-05-19"),
            (French, "mardi", "2026-05-19"),
            (French, "il y a trois semaines", "2026-04-27/2026-05-03"),
            (French, "il y a deux jours", "2026-05-19"),
            (French, "il y a quelques jours", "2026-05-15/2026-05-19"),
            (French, "le mois dernier", "2026-04-01/2026-04-30"),
            (French, "l'année dernière", "2025-01-01/2025-12-31"),
            (French, "l'an dernier", "2025-01-01/2025-12-31"),
            (French, "en mai", "2026-05-01/2026-05-21"),
            (French, "en août", "2025-08-01/2025-08-31"),
            (French, "au mois d'avril", "2026-04-01/2026-04-30"),
            (French, "en mai 2023", "2023-05-01/2023-05-31"),
            (French, "le 7 mai", "2026-05-07"),
            (French, "le 1er mai 2023", "2023-05-01"),
            (French, "le week-end dernier", "2026-05-16/2026-05-17"),
            (French, "cette semaine", "2026-05-18/2026-05-21"),
            (French, "l'été dernier", "2025-06-01/2025-08-31"),
            (French, "ces trois derniers jours", "2026-05-18/2026-05-21"),
            (French, "depuis lundi", "2026-05-18/2026-05-21"),
            (French, "demain", ""),
            (French, "la semaine prochaine", ""),
            (French, "mardi prochain", ""),
            (French, "dans deux jours", ""),
            (Spanish, "el martes pasado", "2026-05-19"),
            (Spanish, "¿Qué dije ayer?", "2026-05-20"),
            (Spanish, "ayer por la tarde", "2026-05-20"),
            (Spanish, "anteayer", "2026-05-19"),
            (Spanish, "anoche", "2026-05-20/2026-05-21"),
            (Spanish, "esta mañana", "2026-05-21"),
            (Spanish, "hoy", "2026-05-21"),
            (Spanish, "la semana pasada", "2026-05-11/2026-05-17"),
            (Spanish, "el mes pasado", "2026-04-01/2026-04-30"),
            (Spanish, "el año pasado", "2025-01-01/2025-12-31"),
            (Spanish, "hace tres semanas", "2026-04-27/2026-05-03"),
            (Spanish, "hace unos días", "2026-05-15/2026-05-19"),
            (Spanish, "en mayo", "2026-05-01/2026-05-21"),
            (Spanish, "en mayo de 2023", "2023-05-01/2023-05-31"),
            (Spanish, "el 7 de mayo", "2026-05-07"),
            (Spanish, "el siete de mayo de 2023", "2023-05-07"),
            (Spanish, "el fin de semana pasado", "2026-05-16/2026-05-17"),
            (Spanish, "el verano pasado", "2025-06-01/2025-08-31"),
            (Spanish, "en los últimos tres días", "2026-05-18/2026-05-21"),
            (Spanish, "desde el lunes", "2026-05-18/2026-05-21"),
            (Spanish, "el miércoles", "2026-05-20"),
            (Spanish, "mañana", ""),
            (Spanish, "mañana por la mañana", ""),
            (Spanish, "la próxima semana", ""),
            (Spanish, "la semana que viene", ""),
            (Spanish, "el próximo martes", ""),
            (Spanish, "los martes", ""),
        ],
    ),
    // The last minute of a year, a Thursday.
    (
        "2026-12-31T23:59:59[Europe/Berlin]",
        &[
            (English, "yesterday", "2026-12-30"),
            (English, "this year", "2026-01-01/2026-12-31"),
            (English, "in December", "2026-12-01/2026-12-31"),
            (English, "in January", "2026-01-01/2026-01-31"),
            (English, "last month", "2026-11-01/2026-11-30"),
            (German, "heute Abend", "2026-12-31"),
            (German, "letzte Woche", "2026-12-21/2026-12-27"),
        ],
    ),
    // The first minute of a year, a Friday.
    (
        "2027-01-01T00:00:30[Europe/Berlin]",
        &[
            (English, "yesterday", "2026-12-31"),
            (English, "ten minutes ago", "2026-12-31"),
            (English, "this evening", "2026-12-31/2027-01-01"),
            (English, "this week", "2026-12-28/2027-01-01"),
            (English, "last week", "2026-12-21/2026-12-27"),
            (English, "last month", "2026-12-01/2026-12-31"),
            (English, "last year", "2026-01-01/2026-12-31"),
            (English, "in January", "2027-01-01"),
            (English, "in December", "2026-12-01/2026-12-31"),
            (English, "on Thursday", "2026-12-31"),
            (German, "vor einem Monat", "2026-11-16/2026-12-16"),
            (French, "hier", "2026-12-31"),
            (Spanish, "el año pasado", "2026-01-01/2026-12-31"),
        ],
    ),
    // A Sunday evening, the end of a week and of a month, in a leap year.
    (
        "2032-02-29T22:00[Europe/Paris]",
        &[
            (English, "last week", "2032-02-16/2032-02-22"),
            (English, "this week", "2032-02-23/2032-02-29"),
            (English, "this weekend", "2032-02-28/2032-02-29"),
            (English, "last weekend", "2032-02-21/2032-02-22"),
            (English, "on Sunday", "2032-02-22"),
            (English, "on Monday", "2032-02-23"),
            (English, "on 29 February", "2032-02-29"),
            (English, "last month", "2032-01-01/2032-01-31"),
            (English, "a year ago", "2031-01-01/2031-12-31"),
            (French, "il y a un mois", "2032-01-14/2032-02-13"),
        ],
    ),
    // A Monday, the first day of a week and a month, in a year after a leap year.
    (
        "2033-08-01T00:05[Europe/Madrid]",
        &[
            (English, "last week", "2033-07-25/2033-07-31"),
            (English, "this week", "2033-08-01"),
            (English, "last weekend", "2033-07-30/2033-07-31"),
            (English, "at the weekend", "2033-07-30/2033-07-31"),
            (English, "last Monday", "2033-07-25"),
            (English, "last Sunday", "2033-07-31"),
            (English, "on the 31st", "2033-07-31"),
            (English, "on 29 February", "2032-02-29"),
            (Spanish, "este mes", "2033-08-01"),
            (Spanish, "el mes pasado", "2033-07-01/2033-07-31"),
        ],
    ),
    // The hour after summer time begins: 1:30 was an hour ago, 00:30 two.
    (
        "2026-03-29T03:30[Europe/Berlin]",
        &[
            (English, "three hours ago", "2026-03-28"),
            (English, "two hours ago", "2026-03-29"),
            (English, "yesterday", "2026-03-28"),
            (German, "vor drei Stunden", "2026-03-28"),
            (German, "heute Nacht", "2026-03-28/2026-03-29"),
        ],
    ),
    // The second half past two of the night in which summer time ends.
    (
        "2026-10-25T02:30+01:00[Europe/Berlin]",
        &[
            (English, "three hours ago", "2026-10-25"),
            (English, "four hours ago", "2026-10-24"),
            (French, "il y a trois heures", "2026-10-25"),
            (Spanish, "hace cuatro horas", "2026-10-24"),
            (Spanish, "ayer", "2026-10-24"),
        ],
    ),
    // It is tomorrow on the other side of the earth.
    ("2026-05-22T01:00[Pacific/Auckland]", &[(English, "yesterday", "2026-05-21")]),
    ("2026-05-21T06:00[America/Los_Angeles]", &[(English, "yesterday", "2026-05-20")]),
];

fn shown(span: &DaySpan) -> String {
    let date = |day: i32| Date::constant(1970, 1, 1).checked_add(day.days()).unwrap().to_string();
    if span.first == span.last {
        date(span.first)
    } else {
        format!("{}/{}", date(span.first), date(span.last))
    }
}

#[test]
fn reads_expressions_as_people_mean_them() {
    let (mut count, mut wrong) = (0, Vec::new());
    for (clock, rows) in TABLE {
        let now: Zoned = clock.parse().unwrap();
        for (language, text, wanted) in *rows {
            for text in [(*text).to_owned(), format!("Bruno, {}!", text.to_uppercase())] {
                count += 1;
                let found = spans(&text, *language, &now, 2020..=2033).spans;
                let surely: Vec<String> =
                    found.iter().filter(|span| span.weight == 1.).map(shown).collect();
                if surely.join(" ") != *wanted {
                    wrong.push(format!("{clock} {text:?}: {surely:?}, not {wanted}"));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{} of {count}:\n{}", wrong.len(), wrong.join("\n"));
    assert!(count >= 240);
}

fn rest(language: Language, text: &str) -> String {
    let now = "2026-05-21T15:00[Europe/Berlin]".parse().unwrap();
    let rest = spans(text, language, &now, 2020..=2026).rest;
    rest.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn takes_the_words_of_a_time_out_of_the_question() {
    assert_eq!(
        rest(English, "What did we say about Bruno last Tuesday?"),
        "what did we say about bruno ?"
    );
    assert_eq!(rest(English, "Where did we go last summer?"), "where did we go last summer?");
    assert_eq!(rest(English, "When is the dentist on Tuesday?"), "when is the dentist on tuesday?");
    assert_eq!(rest(English, "What do I need tomorrow?"), "what do i need tomorrow?");
    assert_eq!(
        rest(German, "Was war vor drei Wochen im Garten?"),
        "was war vor drei wochen im garten?"
    );
    assert_eq!(rest(French, "Où étais-je l'été dernier ?"), "où étais-je l'été dernier ?");
    assert_eq!(rest(Spanish, "¿Qué compré el 7 de mayo?"), "¿qué compré ?");
}

#[test]
fn a_month_may_be_of_an_earlier_year() {
    let now = "2026-05-21T15:00[Europe/Berlin]".parse().unwrap();
    let found = spans("in June", English, &now, 2023..=2026).spans;
    assert_eq!(found.iter().map(|span| span.weight).collect::<Vec<_>>(), [1., 0.5, 0.5]);
    assert!(found.windows(2).all(|pair| pair[1].last < pair[0].first));
    let hostile = spans("in June", English, &now, i16::MIN..=i16::MAX).spans;
    assert!(hostile.len() < 30);
}

proptest! {
    #[test]
    fn spans_are_in_order_and_not_in_the_future(
        text in "[ -~äéß¿'日]{0,60}",
        words in prop::collection::vec(prop::sample::select(WORDS), 0..12),
        second in -377705116800i64..253402207200,
        zone in prop::sample::select(&["UTC", "Europe/Berlin", "America/New_York", "Pacific/Apia"][..]),
        language in prop::sample::select(&Language::ALL[..]),
        years in (1960i16..2030, 0i16..60),
    ) {
        let now = jiff::Timestamp::from_second(second).unwrap().in_tz(zone).unwrap();
        let today = super::span::day_number(now.date()).unwrap();
        let years = years.0..=years.0 + years.1;
        for text in [text.as_str(), &words.join(" "), &format!("{text} {}", words.join(" "))] {
            let found = spans(text, language, &now, years.clone());
            prop_assert!(found.rest.len() <= text.to_lowercase().len() + text.len());
            let names_year = text.as_bytes().windows(4).any(|four| four.iter().all(u8::is_ascii_digit));
            for span in found.spans {
                prop_assert!(span.first <= span.last);
                prop_assert!(names_year || span.last <= today, "{} {now}", shown(&span));
                prop_assert!((0. ..=1.).contains(&span.weight));
            }
        }
    }
}

const WORDS: &[&str] = &[
    "last",
    "Tuesday",
    "week",
    "weeks",
    "ago",
    "three",
    "9999",
    "7",
    "2023",
    "May",
    "in",
    "on",
    "the",
    "this",
    "morning",
    "years",
    "year",
    "months",
    "since",
    "of",
    "before",
    "few",
    "past",
    "7th",
    "29",
    "February",
    "31",
    "vor",
    "Jahren",
    "letzten",
    "Dienstag",
    "im",
    "Mai",
    "heute",
    "drei",
    "am",
    "7.",
    "5.",
    "il",
    "y",
    "a",
    "dernière",
    "semaine",
    "en",
    "mai",
    "ces",
    "hace",
    "años",
    "el",
    "pasado",
    "lunes",
    "de",
    "mayo",
    "últimos",
    "los",
    "días",
    "0",
    "minutes",
    "hours",
    "Stunden",
    "2026-02-30",
    "99/99/9999",
    "0000-01-01",
    "9999-12-31",
    "summer",
    "winter",
];
