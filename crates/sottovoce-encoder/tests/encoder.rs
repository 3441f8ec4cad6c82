//! What the encoder promises: vectors like the reference's, the reference's tokens, any input, the same bytes each time.
#![allow(missing_docs, clippy::unwrap_used, clippy::indexing_slicing, clippy::string_slice)]

use sottovoce_encoder::{Encoder, Vector, WIDTH};

const SENTENCES: &str = include_str!("fixtures/sentences.txt");
const TOKENS: &str = include_str!("fixtures/tokens.txt");
const VECTORS: &str = include_str!("fixtures/vectors.txt");

fn encoder() -> &'static Encoder {
    Encoder::shared().unwrap()
}

fn stored(hex: &str) -> [u8; WIDTH] {
    std::array::from_fn(|i| u8::from_str_radix(&hex[2 * i..2 * i + 2], 16).unwrap())
}

#[test]
fn vectors_are_those_of_the_four_bit_weights_but_for_what_quantizing_costs() {
    let cosines: Vec<f32> = SENTENCES
        .lines()
        .zip(VECTORS.lines())
        .map(|(text, reference)| {
            encoder().encode(text).dot(&Vector::from_bytes(&stored(reference)))
        })
        .collect();
    assert_eq!(cosines.len(), 24);
    let mean = cosines.iter().sum::<f32>() / cosines.len() as f32;
    assert!(mean > 0.97, "{mean} on average");
    for (text, cosine) in SENTENCES.lines().zip(cosines) {
        assert!(cosine > 0.95, "{cosine}: {text}");
    }
}

#[test]
fn tokens_are_those_of_the_reference() {
    for (text, reference) in SENTENCES.lines().zip(TOKENS.lines()) {
        assert_eq!(encoder().pieces(text).join(" "), reference, "{text}");
    }
}

#[test]
fn a_question_finds_its_statement_in_another_language() {
    let said = [
        "We got a hamster and called it Pixel.",
        "Der Klempner kommt am Donnerstag um neun.",
        "奶奶的生日是农历八月十五。",
        "Ma sœur est allergique aux noix.",
    ];
    let asked = [
        "Comment s'appelle notre animal ?",
        "When does the plumber come?",
        "Wann hat Oma Geburtstag?",
        "¿Qué no puede comer mi hermana?",
    ];
    let said = said.map(|text| encoder().encode(text).to_bytes());
    for (i, question) in asked.iter().enumerate() {
        let question_vector = encoder().encode(question);
        let best = (0..said.len()).max_by(|&a, &b| {
            question_vector.dot_bytes(&said[a]).total_cmp(&question_vector.dot_bytes(&said[b]))
        });
        assert_eq!(best, Some(i), "{question}");
    }
}

#[test]
fn any_text_has_a_vector_of_length_1() {
    let long = "x".repeat(1 << 20);
    let long_words = "the bus is late ".repeat(1 << 16);
    let combining = "\u{301}".repeat(20_000);
    let texts = [
        "",
        " ",
        "\0",
        "\0\u{1}\u{7f}\u{200b}\u{feff}",
        "\u{301}",
        "\u{fffd}\u{ffff}\u{10ffff}",
        "～～",
        "a\u{301}\u{323}\u{5bf} ",
        "<s></s><unk><pad><mask>",
        "👩‍👩‍👧‍👦🏳️‍🌈",
        "\u{fdfa}\u{fdfa}\u{fdfa}",
        &long,
        &long_words,
        &combining,
        &"\u{fdfa}".repeat(5_000),
        &"漢".repeat(10_000),
    ];
    for text in texts {
        let vector = encoder().encode(text);
        let length: f32 = vector.numbers().iter().map(|number| number * number).sum();
        assert!(
            (length - 1.0).abs() < 1e-4,
            "{length} for {:?}",
            text.chars().take(20).collect::<String>()
        );
    }
}

#[test]
fn what_looks_like_a_special_token_is_read_as_text() {
    assert!(encoder().pieces("</s>").iter().all(|piece| piece != "</s>" && piece != "<unk>"));
}

#[test]
fn characters_without_a_token_are_one_unknown_token() {
    assert_eq!(encoder().pieces("a \u{1a00}\u{1a01}\u{1a02}"), ["▁a", "▁", "<unk>"]);
}

#[test]
fn the_same_text_has_the_same_bytes_in_any_thread_beside_any_other() {
    let alone = encoder().encode("Where did I put the torch?");
    std::thread::scope(|scope| {
        for i in 0..4 {
            let alone = &alone;
            scope.spawn(move || {
                for n in 0..3 {
                    encoder().encode(&format!("{i} other words, {n} of them"));
                    assert!(encoder().encode("Where did I put the torch?") == *alone);
                }
            });
        }
    });
    assert!(Encoder::load().unwrap().encode("Where did I put the torch?") == alone);
}

#[test]
fn what_a_text_has_beyond_the_models_reach_changes_nothing() {
    let reach = "The quick brown fox jumps over the lazy dog. ".repeat(100);
    assert!(encoder().encode(&reach) == encoder().encode(&format!("{reach}And then it rained.")));
}

#[test]
fn a_vector_survives_being_stored_but_for_a_hundredth() {
    let [one, two] = ["Mein Bruder heißt Jonas.", "¿Cómo se llama mi hermano?"]
        .map(|text| encoder().encode(text));
    let bytes = two.to_bytes();
    assert!((one.dot(&two) - one.dot_bytes(&bytes)).abs() < 0.01);
    assert!(Vector::from_bytes(&bytes).dot(&two) > 0.999);
    assert!(Vector::from_bytes(&[0; WIDTH]).numbers().iter().all(|number| number.is_finite()));
}

#[test]
fn debug_output_shows_no_number_and_no_word() {
    let vector = encoder().encode("The code is 4711.");
    assert_eq!(format!("{vector:?} {:?}", encoder()), "Vector(..) Encoder { .. }");
}

#[test]
fn damaged_data_is_refused_with_words() {
    for data in [
        &b""[..],
        b"SVENCODE",
        b"SVENCODF\x01\0\0\0",
        b"SVENCODE\x01\0\0\0\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff",
    ] {
        let error = Encoder::from_data(data).unwrap_err().to_string();
        assert!(error.contains("the encoder's data file") && error.contains("build"), "{error}");
    }
}
