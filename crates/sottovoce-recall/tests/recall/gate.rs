//! Utterances that need nothing bring nothing in; questions about what was said do. Follow-ups go on from what was said.

use jiff::{Zoned, civil::date, tz::TimeZone};
use sottovoce_recall::{
    Asked, BuildOptions, Index, Language, Question, Segment, goes_on, needs_memory,
};

use crate::{
    conversations::conversations,
    encoding::{understand, vector},
};

fn now() -> Zoned {
    date(2024, 7, 20).at(12, 0, 0, 0).to_zoned(TimeZone::UTC).unwrap()
}

fn question(text: &str, language: Language, earlier: &[&str]) -> Question {
    let mut asked = Asked::new(now(), 2023..=2024);
    asked.language = language;
    asked.earlier = earlier;
    Question::new(text, &asked)
}

#[test]
fn utterances_that_need_nothing_bring_nothing_in() {
    let lines = include_str!("../corpus/needs-nothing.txt").lines();
    let lines: Vec<&str> = lines.filter(|line| !line.starts_with(['#', '['])).collect();
    assert_eq!(lines.len(), 200);
    let recalled: Vec<_> = lines.iter().filter(|line| needs_memory(&vector(line))).collect();
    assert!(recalled.len() * 20 <= lines.len(), "{} of 200: {recalled:#?}", recalled.len());
}

#[test]
fn questions_about_what_was_said_need_it() {
    let asked: Vec<String> =
        conversations().into_iter().flat_map(|talk| talk.qas).map(|asking| asking.q).collect();
    let missed: Vec<_> = asked.iter().filter(|text| !needs_memory(&vector(text))).collect();
    assert!(missed.len() * 10 <= asked.len(), "{} of {}: {missed:#?}", missed.len(), asked.len());
}

#[test]
fn follow_ups_take_words_from_before() {
    use Language::{English, French, German, Spanish};
    for (language, text, earlier) in [
        (English, "And his age?", "What is my brother called?"),
        (English, "When was that?", "We bought the house by the sea."),
        (English, "Why?", "Tom sold his boat."),
        (English, "And Anna?", "Where does Tom work?"),
        (German, "Und wann?", "Wer hat meine Schwester besucht?"),
        (German, "Wann war das?", "Wir haben das Haus am Meer gekauft."),
        (German, "Und sein Alter?", "Wie heißt mein Bruder?"),
        (French, "Et toi ?", "J'aime les romans policiers."),
        (French, "Et son âge ?", "Comment s'appelle mon frère ?"),
        (Spanish, "¿Y cuándo?", "¿Quién visitó a mi hermana?"),
        (Spanish, "¿Y su edad?", "¿Cómo se llama mi hermano?"),
    ] {
        assert!(question(text, language, &[earlier]).is_follow_up(), "{text}");
        assert!(!question(text, language, &[]).is_follow_up(), "{text}");
    }
    for (language, text) in [
        (English, "What is my dog called?"),
        (English, "Where did we put the keys of the blue car?"),
        (German, "Wie heißt das Buch über den Garten?"),
        (Spanish, "¿Dónde está la llave del coche?"),
    ] {
        assert!(!question(text, language, &["Anna sold her boat."]).is_follow_up(), "{text}");
    }
}

#[test]
fn what_goes_on_is_told_from_what_stands_for_itself() {
    #[derive(serde::Deserialize)]
    struct Said {
        earlier: String,
        utterance: String,
        follows: bool,
        needs: bool,
    }
    let all = include_str!("../../measure/home/held-follow.jsonl").lines();
    let all: Vec<Said> = all.map(|line| serde_json::from_str(line).unwrap()).collect();
    let share = |wanted: &dyn Fn(&Said) -> bool, holds: &dyn Fn(&Said) -> bool| {
        let wanted: Vec<_> = all.iter().filter(|said| wanted(said)).collect();
        let held = wanted.iter().filter(|said| holds(said)).count();
        assert!(wanted.len() > 20);
        held as f64 / wanted.len() as f64
    };
    let follows = |said: &Said| goes_on(&vector(&said.utterance));
    assert!(share(&|said| said.follows, &follows) >= 0.6);
    assert!(share(&|said| !said.follows, &follows) <= 0.05);
    let needs =
        |said: &Said| needs_memory(&vector(&[&said.earlier, " ", &said.utterance].concat()));
    assert!(share(&|said| said.follows && said.needs, &needs) >= 0.9);
    assert!(share(&|said| said.follows && !said.needs, &needs) <= 0.2);
}

#[test]
fn a_follow_up_finds_what_the_turns_before_are_about() {
    let conversation = conversations().remove(0);
    let mut index = Index::default();
    index.insert(0, Segment::build(conversation.turns(), &BuildOptions::default()));
    understand(&mut index, |seq| &conversation.turns[seq as usize].x);
    for earlier in [&["What is my dog called?"][..], &["And how old?", "What is my dog called?"]] {
        let question = question("And his name?", Language::English, earlier);
        let question = question.meaning(&vector("What is my dog called? And his name?"));
        let hits = index.rank(&question, |_| true, 3);
        let has = |word: &str| {
            hits.iter().any(|hit| conversation.turns[hit.seq as usize].x.contains(word))
        };
        assert!(has("dog"), "{hits:?}");
    }
}
