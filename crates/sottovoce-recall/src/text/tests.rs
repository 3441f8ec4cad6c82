//! Words, languages and passages.

use super::{language::Language, passages, words::Words};

fn words(text: &str) -> Vec<String> {
    let mut words = Words::default();
    words.add(text, usize::MAX / 1000);
    words.range(0..words.len()).map(|(word, _)| word.to_owned()).collect()
}

fn language(text: &str, otherwise: Language) -> Language {
    let mut words = Words::default();
    words.add(text, 1000);
    Language::of(&words, otherwise)
}

#[test]
fn words_are_cut_as_people_read_them() {
    assert_eq!(
        words("I don't know: Anna's 2nd dog_house."),
        ["i", "don", "know", "anna", "2nd", "dog", "house"]
    );
    assert_eq!(
        words("L'école d'Anne, aujourd'hui qu'il"),
        ["l", "école", "d", "anne", "aujourd", "qu", "il"]
    );
    assert_eq!(words("CAFE\u{301} ｃａｆé"), ["café", "café"]);
    assert_eq!(words("犬はポチ"), ["犬", "は", "ポチ"]);
    assert_eq!(words("犬"), ["犬"]);
    assert_eq!(words("नमस्ते दुनिया"), ["नमस्ते", "दुनिया"]);
    assert_eq!(words("🤖🤖 \u{202e}abc\u{202c}"), ["abc"]);
    assert_eq!(words(&"x".repeat(1000))[0].len(), 64);
}

#[test]
fn the_language_shows_in_small_words() {
    let texts = [
        (Language::German, "Mein Hund heißt Bruno und er ist drei Jahre alt."),
        (Language::French, "Mon chien s'appelle Bruno et il a trois ans."),
        (Language::Spanish, "Mi perro se llama Bruno y tiene tres años."),
        (Language::English, "My dog is called Bruno and he is three years old."),
    ];
    for (expected, text) in texts {
        for otherwise in Language::ALL {
            assert_eq!(language(text, otherwise), expected, "{text}");
        }
    }
    assert_eq!(language("Bruno!", Language::German), Language::German);
    assert_eq!(language("", Language::French), Language::French);
    assert_eq!(Language::from_code("de-AT"), Some(Language::German));
    assert_eq!(Language::from_code("tlh"), None);
}

#[test]
fn stems_join_the_forms_of_a_word() {
    assert_eq!(Language::English.stem("dogs").as_str(), "dog");
    assert_eq!(Language::German.stem("häuser"), Language::German.stem("haus"));
    assert_eq!(Language::French.stem("mangeait"), Language::French.stem("manger"));
    assert_eq!(Language::Spanish.stem("perros"), Language::Spanish.stem("perro"));
}

#[test]
fn passages_hold_whole_sentences() {
    let text = "One two three. ".repeat(12);
    let ranges = passages::split(&text);
    assert_eq!(ranges.len(), 2);
    assert!(
        ranges.iter().all(|range| text.get(range.clone()).unwrap().split_whitespace().count()
            <= passages::LONGEST)
    );
    assert_eq!(text.get(ranges[0].clone()).unwrap().split_whitespace().count(), 24);
    assert_eq!(passages::split("short").first(), Some(&(0..5)));
    assert_eq!(passages::split(&"長い文。".repeat(40)).len(), 2);
}

#[test]
fn passages_of_any_text_follow_each_other() {
    let texts = [
        "a.b.c.".repeat(9000),
        "x".repeat(1 << 20),
        " \n.!? ".repeat(900),
        "犬".repeat(100_000),
        "é,".repeat(90_000),
    ];
    for text in texts {
        let ranges = passages::split(&text);
        assert!(ranges.len() <= passages::MOST);
        assert!(ranges.iter().all(|range| text.get(range.clone()).is_some()));
        assert!(ranges.is_sorted_by(|a, b| a.end <= b.start));
    }
}
