//! Benchmark of recall: what it finds, how long that takes, and what it costs a turn.
//!
//! `cargo bench --profile release --bench recall -- [--quick] [--plot FILE.svg] [--url http://127.0.0.1:11434 --model NAME]`
//!
//! Quality is measured on the conversations that the project carries, and on the files `*.jsonl` of the folder
//! `RECALL_CORPUS`, as `crates/sottovoce-recall/measure/corpora.py` writes them. Turns are held with a
//! scripted model; with `--url`, with the one of a server. `--quick` leaves out 100,000 messages.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, missing_docs)]
#![allow(clippy::print_stdout, clippy::print_stderr)]

mod answers;
mod appends;
mod latency;
mod plot;
mod rows;
mod stores;
mod talk;
mod turns;

#[path = "../../tests/common/ollama.rs"]
mod ollama;
#[path = "../support/mod.rs"]
mod support;

use std::error::Error;

use support::is_trial;

/// How much is measured.
pub(crate) struct Settings {
    /// Turns of an index in memory. The plot shows all, the table the ones with a goal.
    turns: Vec<usize>,
    /// Messages of a store.
    messages: Vec<usize>,
    rounds: usize,
    appends: usize,
    plot: Option<String>,
    server: Option<turns::Server>,
}

fn main() -> Result<(), Box<dyn Error>> {
    if stores::is_child() {
        return stores::answer_once();
    }
    let settings = settings();
    let mut rows = answers::measure(is_trial())?;
    let latencies = latency::measure(&settings.turns, &mut rows);
    stores::measure(&settings, &mut rows)?;
    appends::measure(&settings, &mut rows)?;
    let turns = turns::measure(settings.server.as_ref(), &mut rows)?;
    rows::print(&rows);
    if let Some(file) = &settings.plot {
        plot::draw(file, &latencies, &turns)?;
        println!("\nplotted to {file}");
    }
    Ok(())
}

fn settings() -> Settings {
    let mut settings = Settings {
        turns: vec![1_000, 3_000, 10_000, 30_000, 100_000],
        messages: vec![10_000, 100_000],
        rounds: 9,
        appends: 500,
        plot: None,
        server: None,
    };
    let (mut url, mut model) = (None, "llama3.2".to_owned());
    let mut is_quick = is_trial();
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        let mut value = || arguments.next().expect("a value behind the option");
        match argument.as_str() {
            "--quick" => is_quick = true,
            "--plot" => settings.plot = Some(value()),
            "--url" => url = Some(value()),
            "--model" => model = value(),
            _ => {}
        }
    }
    settings.server = url.map(|url| turns::Server { url, model });
    if is_quick {
        settings.turns = vec![1_000, 10_000];
        settings.messages = vec![10_000];
        (settings.rounds, settings.appends) = (3, 100);
    }
    if is_trial() {
        settings.turns = vec![300];
        settings.messages = vec![300];
        (settings.rounds, settings.appends) = (1, 2);
    }
    settings
}
