//! Measures the ranker on conversations with known answers.
//!
//! `evaluate [--ablate] [--by-pause] FILE.jsonl...`: each line is a conversation with `turns` (`s` speaker, `x` text,
//! `cap` caption, `day`, `ses` session, `dlen` letters of its date) and `qas` (`q` question, `cat` kind, `ev` numbers
//! of the turns that hold the answer). Prints the share of those turns found among the best 5, 50, and within 1,024
//! and 256 tokens, by kind of question, and how many utterances would bring something in. With `--ablate` it prints
//! instead what is found @5 and within 1,024 tokens with each feature left out.

#![allow(clippy::indexing_slicing, clippy::print_stdout, reason = "this is a measurement")]

mod corpus;
mod needs;
mod quality;

use std::{error::Error, path::Path};

use corpus::Conversation;
use sottovoce_recall::Weights;

/// Utterances that need nothing of what was said before.
const NEEDS_NOTHING: &str = include_str!("../../tests/corpus/needs-nothing.txt");

type Weight = fn(&mut Weights) -> &mut f32;

const FEATURES: [(&str, Weight); 11] = [
    ("near", |weights| &mut weights.near),
    ("sense", |weights| &mut weights.sense),
    ("sense around", |weights| &mut weights.sense_around),
    ("topic", |weights| &mut weights.topic),
    ("speaker", |weights| &mut weights.speaker),
    ("date", |weights| &mut weights.date),
    ("me", |weights| &mut weights.me),
    ("answer", |weights| &mut weights.answer),
    ("time words", |weights| &mut weights.time_words),
    ("rarity", |weights| &mut weights.rarity),
    ("standing", |weights| &mut weights.standing),
];

fn main() -> Result<(), Box<dyn Error>> {
    let (options, files): (Vec<_>, Vec<_>) =
        std::env::args().skip(1).partition(|argument| argument.starts_with("--"));
    let has = |option| options.iter().any(|given| given == option);
    let corpora = files
        .iter()
        .map(|file| Ok((file.as_str(), corpus::read(Path::new(file))?)))
        .collect::<Result<Vec<_>, Box<dyn Error>>>()?;
    if has("--ablate") {
        return ablate(&corpora);
    }
    for (file, conversations) in &corpora {
        println!("{file}\n    @5    @50  1,024    256  questions");
        for (kind, quality) in
            quality::measure(conversations, &Weights::default(), has("--by-pause"))?
        {
            let [five, fifty, many, few] = quality.percent();
            println!("{five:6.2} {fifty:6.2} {many:6.2} {few:6.2}  {:4} {kind}", quality.questions);
        }
        let [idle, needed] = needs::measure(conversations, NEEDS_NOTHING)?;
        println!(
            "something comes for {:.1} % of {} utterances that need nothing, and for {:.1} % of {} questions\n",
            idle.percent(),
            idle.asked,
            needed.percent(),
            needed.asked
        );
    }
    Ok(())
}

fn ablate(corpora: &[(&str, Vec<Conversation>)]) -> Result<(), Box<dyn Error>> {
    let mut variants = vec![("all", Weights::default())];
    for (name, weight) in FEATURES {
        let mut weights = Weights::default();
        *weight(&mut weights) = 0.;
        variants.push((name, weights));
    }
    let mut without_vectors = Weights::default();
    (without_vectors.sense, without_vectors.sense_around) = (0., 0.);
    variants.push(("both senses", without_vectors));
    for (file, _) in corpora {
        println!("{file}");
    }
    for (name, weights) in variants {
        print!("{:14}", if name == "all" { name.to_owned() } else { format!("- {name}") });
        for (_, conversations) in corpora {
            let all = quality::measure(conversations, &weights, false)?[quality::ALL].percent();
            print!("  {:5.1} {:5.1}", all[0], all[2]);
        }
        println!();
    }
    Ok(())
}
