//! Recall in German, French, Spanish and Japanese, and between them.

use jiff::{Timestamp, tz::TimeZone};
use sottovoce_recall::{Asked, Index, Language, Question, Role, Turn};

const NOTED: [&str; 16] = [
    "Guten Morgen! Mein Hund heißt Bruno, und er hat die ganze Nacht gebellt.",
    "Wie schön. Soll ich die Kaffeemaschine anstellen?",
    "Ja, bitte. Ich trinke ihn immer mit Hafermilch.",
    "Meine Schwester wohnt seit dem Frühling in den Niederlanden, in einem Haus am Meer.",
    "Bonjour ! Ma voisine a acheté une vieille librairie dans la rue du Moulin.",
    "Quelle bonne nouvelle !",
    "Le dentiste m'a donné un rendez-vous pour l'école de mon fils.",
    "Mi abuelo tenía un barco de pesca en Cádiz y me enseñó a nadar.",
    "Qué bonito recuerdo.",
    "Los martes voy a clase de guitarra con una profesora argentina.",
    "私の犬の名前はポチです。毎朝公園を散歩します。",
    "いいですね。",
    "昨日、母と一緒に京都のお寺に行きました。",
    "The plumber comes on Friday because of the bathroom.",
    "Turn on the light.",
    "Thank you!",
];

fn best(question: &str, language: Language) -> u64 {
    let mut index = Index::default();
    for (seq, text) in (0..).zip(NOTED) {
        let role = if [1, 5, 8, 11].contains(&seq) { Role::Assistant } else { Role::User };
        index.push(&Turn::new(seq, seq as i64 * 90_000_000, seq as i32, role, text));
    }
    let mut asked =
        Asked::new(Timestamp::UNIX_EPOCH.to_zoned(TimeZone::UTC), index.years().unwrap());
    asked.language = language;
    index.rank(&Question::new(question, &asked), |_| true, 1)[0].seq
}

#[test]
fn finds_in_the_language_of_the_question() {
    assert_eq!(best("Wie heißt mein Hund?", Language::German), 0);
    assert_eq!(best("Welche Milch trinke ich im Kaffee? Hafermilch?", Language::German), 2);
    assert_eq!(best("Wo steht das Haus meiner Schwester?", Language::German), 3);
    assert_eq!(best("Qu'est-ce que ma voisine a acheté ?", Language::French), 4);
    assert_eq!(best("Quand est le rendez-vous à l'école ?", Language::French), 6);
    assert_eq!(best("¿Quién me enseñó a nadar?", Language::Spanish), 7);
    assert_eq!(best("¿Cuándo tengo clases de guitarra?", Language::Spanish), 9);
    assert_eq!(best("犬の名前は何ですか", Language::English), 10);
    assert_eq!(best("京都に誰と行きましたか", Language::English), 12);
}

#[test]
fn finds_names_and_words_of_other_languages() {
    assert_eq!(best("Who is Bruno?", Language::English), 0);
    assert_eq!(best("Wann kommt der plumber?", Language::German), 13);
    assert_eq!(best("Cádiz", Language::English), 7);
}
