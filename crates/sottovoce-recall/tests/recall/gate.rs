//! Utterances that need nothing bring nothing in; questions about what was said do.

use jiff::{Zoned, civil::date, tz::TimeZone};
use sottovoce_recall::{Asked, BuildOptions, Index, Language, Question, Segment, UtteranceKind};

use crate::conversations::conversations;

fn now() -> Zoned {
    date(2024, 7, 20).at(12, 0, 0, 0).to_zoned(TimeZone::UTC).unwrap()
}

fn question(text: &str, language: Language, earlier: &[&str]) -> Question {
    let mut asked = Asked::new(now(), 2023..=2024);
    asked.language = language;
    asked.earlier = earlier;
    Question::new(text, &asked)
}

fn is_recalled(index: &mut Index, question: &Question) -> bool {
    let bar = index.min_score(question);
    index.rank(question, |_| true, 1).first().is_some_and(|hit| hit.score >= bar)
}

fn indexes() -> Vec<Index> {
    let index = |conversation: &crate::conversations::Conversation| {
        let mut index = Index::default();
        index.insert(0, Segment::build(conversation.turns(), &BuildOptions::default()));
        index
    };
    conversations().iter().map(index).collect()
}

#[test]
fn utterances_that_need_nothing_bring_nothing_in() {
    let mut language = Language::English;
    let (mut count, mut recalled) = (0, Vec::new());
    let mut indexes = indexes();
    for line in include_str!("../corpus/needs-nothing.txt").lines() {
        if line.starts_with('#') {
            continue;
        }
        if let Some(code) = line.strip_prefix('[') {
            language = Language::from_code(code.trim_end_matches(']')).unwrap();
            continue;
        }
        let question = question(line, language, &["Where did we find the house?"]);
        for index in &mut indexes {
            count += 1;
            if is_recalled(index, &question) {
                recalled.push(line);
            }
        }
    }
    assert_eq!(count, 400);
    assert!(recalled.len() * 20 <= count, "{} of {count}: {recalled:#?}", recalled.len());
}

#[test]
#[cfg(feature = "vectors")]
fn questions_about_what_was_said_get_theirs() {
    let (mut count, mut missed) = (0, Vec::new());
    for (conversation, mut index) in conversations().iter().zip(indexes()) {
        for asking in &conversation.qas {
            count += 1;
            if !is_recalled(&mut index, &question(&asking.q, Language::English, &[])) {
                missed.push(asking.q.clone());
            }
        }
    }
    assert!(missed.len() * 10 <= count, "{} of {count}: {missed:#?}", missed.len());
}

#[test]
fn tells_the_kind_of_an_utterance() {
    use Language::{English, French, German, Spanish};
    use UtteranceKind::{Command, General, Now, Past, Personal, SmallTalk};
    for (language, text, kind) in [
        (English, "Good morning, Bruno!", SmallTalk),
        (English, "Could you please turn the lamp off?", Command),
        (English, "What time is it?", Now),
        (English, "What is the capital of Portugal?", General),
        (English, "What is my dog called?", Personal),
        (English, "What did we say about the car?", Past),
        (English, "Who came to dinner last Tuesday?", Past),
        (English, "Remind me what I said about the garden.", Past),
        (German, "Danke, das war alles.", SmallTalk),
        (German, "Mach bitte das Licht aus.", Command),
        (German, "Wie wird das Wetter?", Now),
        (German, "Wie heißt mein Hund?", Personal),
        (German, "Was haben wir letzten Dienstag besprochen?", Past),
        (French, "Merci beaucoup !", SmallTalk),
        (French, "Allume la lampe, s'il te plaît.", Command),
        (French, "Quelle heure est-il ?", Now),
        (French, "Comment s'appelle mon chien ?", Personal),
        (French, "Qui est venu la semaine dernière ?", Past),
        (Spanish, "Muchas gracias", SmallTalk),
        (Spanish, "¿Puedes encender la luz?", Command),
        (Spanish, "¿Qué hora es?", Now),
        (Spanish, "¿Cómo se llama mi perro?", Personal),
        (Spanish, "¿Qué te dije ayer?", Past),
    ] {
        assert_eq!(question(text, language, &[]).kind(), kind, "{text}");
    }
}

#[test]
fn follow_ups_take_words_from_before() {
    use Language::{English, French, German, Spanish};
    for (language, text, earlier) in [
        (English, "And his age?", "What is my brother called?"),
        (English, "When was that?", "We bought the house by the sea."),
        (English, "Why?", "Tom sold his boat."),
        (English, "What about Anna?", "Where does Tom work?"),
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
        (English, "Thank you!"),
        (English, "What time is it?"),
        (English, "Where did we put the keys of the blue car?"),
        (German, "Wie heißt das Buch über den Garten?"),
        (German, "Wie spät ist es?"),
        (French, "Quelle heure est-il ?"),
        (Spanish, "¿Dónde está la llave del coche?"),
    ] {
        assert!(!question(text, language, &["Anna sold her boat."]).is_follow_up(), "{text}");
    }
}

#[test]
fn a_follow_up_finds_what_the_turns_before_are_about() {
    let mut index = indexes().remove(0);
    for earlier in [&["What is my dog called?"][..], &["And how old?", "What is my dog called?"]] {
        let question = question("And his name?", Language::English, earlier);
        let alone = index.rank(&Question::new("dog", &Asked::new(now(), 2024..=2024)), |_| true, 1);
        let hits = index.rank(&question, |_| true, 3);
        assert!(hits.iter().any(|hit| hit.seq == alone[0].seq));
    }
}
