//! Searching: exact words, phrases and filters, checked against every text.

use crate::conversations::conversations;
use proptest::prelude::*;
use sottovoce_recall::{BuildOptions, DaySpan, Index, Role, SearchQuery, Segment, Turn, nearest};
use unicode_normalization::UnicodeNormalization;

fn index(turns: &[Turn<'_>]) -> Index {
    let mut index = Index::default();
    let (packed, loose) = turns.split_at(turns.len() / 2);
    index.insert(0, Segment::build(packed.iter().copied(), &BuildOptions::default()));
    loose.iter().for_each(|turn| index.push(turn));
    index
}

fn find(query: &str) -> Vec<u64> {
    let conversation = &conversations()[0];
    let turns = conversation.turns();
    let query = SearchQuery::parse(query).unwrap();
    let found = index(&turns).search(&query);
    found.into_iter().filter(|seq| query.matches(turns[*seq as usize].text)).collect()
}

#[test]
fn finds_words_phrases_and_filters() {
    assert_eq!(find("Bruno"), [34, 0]);
    assert_eq!(find("\"oat milk\""), [3, 2]);
    assert_eq!(find("oat from:me"), [2]);
    assert_eq!(find("from:assistant \"oat milk\""), [3]);
    assert_eq!(find("\"milk oat\""), [0; 0]);
    assert_eq!(find("bicycle after:2024-05"), [41]);
    assert_eq!(find("bicycle before:2024-03-05"), [6]);
    assert_eq!(find("\"I will\" sardines"), [0; 0]);
    assert_eq!(find("„the ending“ cry"), [15]);
    assert_eq!(find("riding"), [0; 0]);
    assert_eq!(find("sardin*"), find("sardines"));
    assert!(!find("sardin*").is_empty());
}

#[test]
fn reads_filters() {
    let parse = |text: &str| SearchQuery::parse(text).unwrap();
    let query = parse("from:me before:2024 after:2024-02 speaker:\"Anna Maria\" x:y");
    assert_eq!(query.speaker.as_deref(), Some("Anna Maria"));
    assert_eq!(query.before, Some(DaySpan { first: 19723, last: 20088, weight: 1. }));
    assert_eq!(query.after, Some(DaySpan { first: 19754, last: 19782, weight: 1. }));
    assert!(query.matches("an X: y!") && !query.matches("y x"));
    assert_eq!(parse("from:Anna").speaker.as_deref(), Some("Anna"));
    assert!(parse("  ").is_empty());
    assert_eq!(parse("from:you").from, Some(Role::Assistant));
    assert!(!format!("{:?}", parse("secret")).contains("secret"));
}

#[test]
fn what_is_not_understood_is_never_left_out_of_a_search() {
    let words = |n: usize| vec!["w"; n].join(" ");
    let long = format!("{} tail", "long ".repeat(900));
    let many = format!("{} last", words(200));
    let phrase = format!("\"{}\"", words(201));
    for (text, part) in [
        ("leek before:lastyear", "before:lastyear"),
        ("leek before:2025-13", "before:2025-13"),
        ("after: leek", "after:"),
        ("before:2024 before:2026", "before:2026"),
        ("from:me from:you", "from:you"),
        ("from:Anna speaker:Ben", "speaker:Ben"),
        (many.as_str(), "last"),
        (phrase.as_str(), words(201).as_str()),
    ] {
        let refused = SearchQuery::parse(text).unwrap_err();
        assert_eq!(refused.part(), part, "{text}");
        assert!(!format!("{refused} {refused:?}").contains(part), "{text}");
    }
    assert!(SearchQuery::parse(&long).unwrap_err().part().len() <= 40);
    assert!(SearchQuery::parse(&words(200)).is_ok());
    // In a title, a filter's letters are words.
    assert!(SearchQuery::of_words("before:lastyear").matches("Before last: BEFORE LASTYEAR"));
    assert!(!SearchQuery::of_words("before:lastyear").matches("anything"));
}

#[test]
fn finds_single_characters_of_scripts_without_spaces() {
    let turns = [
        Turn::new(1, 0, 0, Role::User, "私の犬はポチです"),
        Turn::new(2, 1, 0, Role::User, "猫もいます"),
    ];
    let query = SearchQuery::parse("犬").unwrap();
    let found = index(&turns).search(&query);
    assert!(found.contains(&1));
    assert!(query.matches(turns[0].text) && !query.matches(turns[1].text));
    assert_eq!(index(&turns).search(&SearchQuery::parse("ポチ").unwrap()), [1]);
}

#[test]
fn finds_words_without_their_accents_and_in_any_letter_case() {
    for (query, text) in [
        ("cafe", "Un café, por favor"),
        ("CAFÉ", "the cafe\u{301} at the corner"),
        ("strasse", "Wir wohnen in der Straße am Park"),
        ("straße", "DIE STRASSE IST LANG"),
        ("GROẞ", "gross"),
        ("istanbul", "İSTANBUL"),
        ("comerian", "Ellos comerían mucho en el restaurante con la familia"),
        ("etes", "Vous êtes là ?"),
        ("repetes", "Tu répétes la même chose pour la troisième fois"),
        ("wifi", "ｗｉ\u{fb01}"),
        ("lodz", "Jutro jadę do Łodzi, potem znów do Łódź"),
        ("da nang", "Mai con bay ra Đà Nẵng"),
        ("smorrebrod", "Der er smørrebrød i køleskabet"),
        ("aeble", "et Æble om dagen"),
        ("kizi", "kızı okula gitti"),
        ("서울", "내일 \u{1109}\u{1165}\u{110b}\u{116e}\u{11af} 에 갑니다"),
        ("السلام", "السَّلَام"),
        ("οδος", "ΟΔΟΣ"),
        ("recip*", "a recipe for leek soup"),
        ("cremes*", "crèmesuppe"),
        ("th*", "the"),
        ("犬の名", "子犬の名前"),
        ("\"大きな犬\"", "とても大きな犬がいる"),
        ("アイス", "バニラアイスクリーム"),
        ("c,d", "a,b,c,d"),
        ("last", &format!("{} last", "word. ".repeat(2000))),
        ("w399", &(0..400).map(|at| format!("w{at}")).collect::<Vec<_>>().join("-")),
    ] {
        let query = SearchQuery::parse(query).unwrap();
        let turn = Turn::new(1, 0, 0, Role::User, text);
        assert!(query.matches(text), "{query:?} {text:.60}");
        assert_eq!(index(&[turn]).search(&query), [1], "{text:.60}");
    }
    for (query, text) in [("milk", "buttermilk"), ("か", "が"), ("n", "m"), ("tea*", "steam")] {
        assert!(!SearchQuery::parse(query).unwrap().matches(text), "{query} {text}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn no_match_is_missed(
        of in 0usize..2,
        turn in any::<prop::sample::Index>(),
        start in any::<prop::sample::Index>(),
        length in 1usize..4,
        quoted in any::<bool>(),
        plain in any::<bool>(),
    ) {
        let conversation = &conversations()[of];
        let turns = conversation.turns();
        let words: Vec<&str> = turn.get(&turns).text.split_whitespace().collect();
        let start = start.index(words.len());
        let words = words[start..words.len().min(start + length)].join(" ");
        let words: String = match plain {
            true => words.nfkd().filter(|c| !('\u{300}'..'\u{370}').contains(c)).collect(),
            false => words,
        };
        let query = SearchQuery::parse(&if quoted { format!("\"{words}\"") } else { words });
        let Ok(query) = query else { return Ok(()) };
        let found = index(&turns).search(&query);
        for turn in turns.iter().filter(|turn| query.matches(turn.text)) {
            prop_assert!(!query.passes(turn.role, turn.speaker, turn.day) || found.contains(&turn.seq));
        }
    }

    #[test]
    fn any_text_is_a_search(text in ".{0,60}") {
        SearchQuery::of_words(&text).matches(&text);
        let _ = SearchQuery::parse(&text).map(|query| query.matches(&text));
    }
}

#[test]
fn a_missing_apostrophe_is_no_difference_and_what_matches_is_marked() {
    let marked = |query: &str, text: &str| -> Vec<String> {
        let query = SearchQuery::parse(query).unwrap();
        let marks = query.marks(text);
        assert_eq!(query.matches(text), marks.len() >= query.words().len().min(1), "{text}");
        marks.into_iter().map(|mark| text.get(mark).unwrap().to_owned()).collect()
    };
    let text = "The Doctor\u{2019}s appointment: doctors say no.";
    assert_eq!(marked("doctors appointment", text), ["Doctor\u{2019}s", "appointment", "doctors"]);
    assert_eq!(marked("\"doctors appointment\"", text), ["Doctor\u{2019}s appointment"]);
    assert_eq!(marked("doctor", "doctors"), [""; 0]);
    assert_eq!(marked("doctors", "doctor, the s"), [""; 0]);
    assert_eq!(marked("besanc*", "To Besanc\u{327}on!"), ["Besanc\u{327}on"]);
    assert_eq!(marked("ポチ 犬", "犬はポチ、白い犬です"), ["犬", "ポチ", "犬"]);
    assert_eq!(
        marked("하늘", "\u{1112}\u{1161}\u{1102}\u{1173}\u{11af}이"),
        ["\u{1112}\u{1161}\u{1102}\u{1173}\u{11af}"]
    );
    let turns = [Turn::new(1, 0, 0, Role::User, text)];
    assert_eq!(index(&turns).search(&SearchQuery::parse("doctors").unwrap()), [1]);
}

#[test]
fn a_word_that_nobody_said_leads_to_the_nearest_one_that_somebody_said() {
    let texts = ["My appointment moved.", "The tram was late.", "We appointed Besançon's mayor."];
    let turns: Vec<Turn<'_>> = (1..)
        .zip(texts)
        .map(|(seq, text)| Turn::new(seq, seq as i64, 0, Role::User, text))
        .collect();
    let mut index = index(&turns);
    let mut meant = |word: &str| {
        let near = index.near(word)?.into_iter();
        let near = near.filter_map(|seq| nearest(word, texts[seq as usize - 1]));
        near.min().map(|(_, word)| word)
    };
    assert_eq!(meant("appointmnt"), Some("appointment"));
    assert_eq!(meant("tramm"), Some("tram"));
    assert_eq!(meant("besancno"), Some("Besançon's"));
    assert_eq!(meant("zebra"), None);
    // These were said, or are too common or too short to guess at.
    for known in ["tram", "trams", "the", "ma"] {
        assert_eq!(meant(known), None, "{known}");
    }
}
