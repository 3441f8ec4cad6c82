//! What the encoder promises: vectors like the reference's, the reference's tokens, any input, the same bytes each time.
#![allow(missing_docs, clippy::unwrap_used, clippy::indexing_slicing, clippy::string_slice)]

use sottovoce_encoder::{Encoder, Vector};

const SENTENCES: &str = include_str!("fixtures/sentences.txt");
const TOKENS: &str = include_str!("fixtures/tokens.txt");
const VECTORS: &str = include_str!("fixtures/vectors.txt");

fn encoder() -> &'static Encoder {
    Encoder::shared().unwrap()
}

/// A vector of the fixture: a signed byte a number, in 512ths.
fn reference(hex: &str) -> Vector {
    let byte = |i: usize| u8::from_str_radix(&hex[2 * i..2 * i + 2], 16).unwrap();
    std::array::from_fn(|i| f32::from(byte(i).cast_signed()) / 512.0)
}

fn dot(one: &Vector, two: &Vector) -> f32 {
    one.iter().zip(two).map(|(a, b)| a * b).sum()
}

/// The directions in which vectors lie from their mean. Nearly all of a vector is what it has in common with all others.
fn apart(vectors: &[Vector]) -> Vec<Vector> {
    let mean: Vector =
        std::array::from_fn(|i| vectors.iter().map(|v| v[i]).sum::<f32>() / vectors.len() as f32);
    let apart = vectors.iter().map(|vector| {
        let away: Vector = std::array::from_fn(|i| vector[i] - mean[i]);
        away.map(|number| number / dot(&away, &away).sqrt())
    });
    apart.collect()
}

#[test]
fn vectors_are_those_of_the_four_bit_weights_but_for_what_quantizing_costs() {
    let ours: Vec<Vector> = SENTENCES.lines().map(|text| encoder().encode(text)).collect();
    let theirs: Vec<Vector> = VECTORS.lines().map(reference).collect();
    let pairs = apart(&ours).into_iter().zip(apart(&theirs));
    let cosines: Vec<f32> = pairs.map(|(our, their)| dot(&our, &their)).collect();
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
    let [said, vectors] =
        [said, asked].map(|texts| apart(&texts.map(|text| encoder().encode(text))));
    for (i, (question, asked)) in asked.iter().zip(&vectors).enumerate() {
        let best =
            (0..said.len()).max_by(|&a, &b| dot(asked, &said[a]).total_cmp(&dot(asked, &said[b])));
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
        let length = dot(&vector, &vector);
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
fn debug_output_shows_no_weights() {
    assert_eq!(format!("{:?}", encoder()), "Encoder { .. }");
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
