//! Measures the ranker on conversations with known answers.
//!
//! `evaluate [--ablate] [--vectors FILE] [--missing FILE] [--features FILE] [--utterances FILE] FILE.jsonl...`: each line of a file is a
//! conversation, as `measure/corpora.py` writes it. Prints the share of the turns with answers that are found among the
//! best 5, 50, and within 1,024 and 256 tokens, by kind of question. With `--ablate` it prints instead what is found @5
//! and within 1,024 tokens with each feature left out; with `--utterances FILE` the best score that each line of the
//! file reaches when it is asked of the first conversation.

#![allow(clippy::indexing_slicing, clippy::print_stdout, reason = "this is a measurement")]

mod corpus;
mod quality;
mod vectors;

use std::{error::Error, fs, io::Write, path::Path};

use corpus::Conversation;
use sottovoce_recall::{Question, Weights};
use vectors::Vectors;

type Weight = fn(&mut Weights) -> &mut f32;

const FEATURES: [(&str, Weight); 8] = [
    ("near", |weights| &mut weights.near),
    ("sense", |weights| &mut weights.sense),
    ("around", |weights| &mut weights.around),
    ("tells", |weights| &mut weights.tells),
    ("topic", |weights| &mut weights.topic),
    ("speaker", |weights| &mut weights.speaker),
    ("person", |weights| &mut weights.person),
    ("date", |weights| &mut weights.date),
];

fn main() -> Result<(), Box<dyn Error>> {
    let mut files = Vec::new();
    let (mut is_ablation, mut vectors_file, mut missing, mut features) = (false, None, None, None);
    let mut utterances = None;
    let mut weights = Weights::default();
    let mut given = std::env::args().skip(1);
    while let Some(argument) = given.next() {
        match argument.as_str() {
            "--ablate" => is_ablation = true,
            "--vectors" => vectors_file = given.next(),
            "--missing" => missing = given.next(),
            "--features" => features = given.next(),
            "--utterances" => utterances = given.next(),
            "--weights" => {
                let values = given.next().unwrap_or_default();
                for ((_, weight), value) in FEATURES.iter().zip(values.split(',')) {
                    *weight(&mut weights) = value.parse()?;
                }
            }
            _ => files.push(argument),
        }
    }
    let mut vectors = Vectors::read(Path::new(&vectors_file.unwrap_or_default()))?;
    let corpora = files
        .iter()
        .map(|file| Ok((file.as_str(), corpus::read(Path::new(file))?)))
        .collect::<Result<Vec<_>, Box<dyn Error>>>()?;
    if is_ablation {
        return ablate(&corpora, &mut vectors);
    }
    if let Some(path) = utterances {
        let (_, conversations) = corpora.first().ok_or("no conversation")?;
        let conversation = conversations.first().ok_or("no conversation")?;
        let mut index = conversation.index();
        vectors.understand(conversation, &mut index);
        let asked = conversation.asked(None, &[], &index)?;
        for line in fs::read_to_string(path)?.lines() {
            let mut question = Question::new(line, &asked);
            if let Some(vector) = vectors.of(line) {
                question = question.meaning(&vector);
            }
            let mut shares = Vec::new();
            for hit in index.rank(&question, |_| true, 5) {
                shares.extend(hit.why.features().map(|(_, share)| format!("{share:.3}")));
            }
            println!("{}", shares.join(" "));
        }
        return Ok(());
    }
    if let Some(path) = features {
        return write_features(&corpora, &mut vectors, Path::new(&path));
    }
    for (file, conversations) in &corpora {
        println!("{file}\n    @5    @50  1,024    256  questions");
        for (kind, quality) in quality::measure(conversations, &weights, &mut vectors)? {
            let [five, fifty, many, few] = quality.percent();
            println!("{five:6.2} {fifty:6.2} {many:6.2} {few:6.2}  {:4} {kind}", quality.questions);
        }
    }
    if let Some(path) = missing {
        let mut lines = vectors.missing;
        lines.sort_unstable();
        lines.dedup();
        fs::write(path, lines.join("\n"))?;
    }
    Ok(())
}

/// Writes a line for each of the best 200 turns of each question: set, question, whether it holds the answer, how many
/// turns do, letters, and the features, each with the weight 1.
fn write_features(
    corpora: &[(&str, Vec<Conversation>)],
    vectors: &mut Vectors,
    path: &Path,
) -> Result<(), Box<dyn Error>> {
    let mut out = std::io::BufWriter::new(fs::File::create(path)?);
    let weights = Weights::default();
    let by = |mut weights: Weights| FEATURES.map(|(_, weight)| *weight(&mut weights));
    let scales = by(weights.clone());
    for (set, (_, conversations)) in corpora.iter().enumerate() {
        let mut number = 0;
        let mut lines = Vec::new();
        quality::each(conversations, &weights, vectors, 200, |_, asking, hits| {
            number += 1;
            for hit in hits {
                let shares = hit.why.features().map(|(_, share)| share);
                let values =
                    shares.iter().zip(scales).map(|(share, scale)| format!("{:.5}", share / scale));
                lines.push(format!(
                    "{set} {number} {} {} {} {}",
                    u8::from(asking.ev.contains(&hit.seq)),
                    asking.ev.len(),
                    hit.length,
                    values.collect::<Vec<_>>().join(" ")
                ));
            }
        })?;
        for line in lines {
            writeln!(out, "{line}")?;
        }
    }
    Ok(())
}

fn ablate(
    corpora: &[(&str, Vec<Conversation>)],
    vectors: &mut Vectors,
) -> Result<(), Box<dyn Error>> {
    let mut variants = vec![("all", Weights::default())];
    for (name, weight) in FEATURES {
        let mut weights = Weights::default();
        *weight(&mut weights) = 0.;
        variants.push((name, weights));
    }
    for (file, _) in corpora {
        println!("{file}");
    }
    for (name, weights) in variants {
        print!("{:14}", if name == "all" { name.to_owned() } else { format!("- {name}") });
        for (_, conversations) in corpora {
            let all = quality::measure(conversations, &weights, vectors)?[quality::ALL].percent();
            print!("  {:5.1} {:5.1}", all[0], all[2]);
        }
        println!();
    }
    Ok(())
}
