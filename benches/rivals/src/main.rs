//! The store against other ways to keep a conversation: `--help` says how.

#[allow(dead_code, clippy::unwrap_used, reason = "the library's own benches use the rest")]
#[path = "../../support/ancestor.rs"]
mod ancestor;
#[allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "as in the library's benches")]
#[path = "../../support/mod.rs"]
mod support;

mod aim;
mod arena;
mod child;
mod contender;
mod figure;
mod figures;
mod place;
mod plot;
mod quiet;
mod report;
mod rounds;
mod settings;
mod stats;
mod talk;

use std::fs;
use std::process::ExitCode;
use std::time::Instant;

use arena::Arena;
use contender::{Outcome, crossing};
use figure::Cell;
use place::Place;
use quiet::Quiet;
use rounds::Rounds;
use settings::{HELP, Settings};
use talk::Talk;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let outcome = match arguments.split_first() {
        Some((first, rest)) if first == child::CHILD => child::run(rest),
        _ => measure(&arguments),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            #[expect(clippy::print_stderr, reason = "what went wrong belongs there")]
            {
                eprintln!("{error}");
            }
            ExitCode::FAILURE
        }
    }
}

fn measure(arguments: &[String]) -> Outcome<()> {
    let Some(settings) = Settings::parse(arguments)? else {
        print!("{HELP}");
        return Ok(());
    };
    let started = Instant::now();
    let place = Place::make(&settings.dir, settings.ext4)?;
    let mut conditions = place::conditions(place.folder())?;
    conditions.push(format!("crossing to a blocking thread and back takes {:.1?}", crossing()?));
    let mut rounds = Rounds {
        rounds: settings.rounds,
        sittings: settings.sittings,
        quiet: Quiet::new(settings.patience),
    };
    let mut cells = Vec::new();
    for &messages in &settings.messages {
        let talk = Talk { messages, per_day: settings.per_day };
        let mut arena =
            Arena::lay_out(place.folder().join(messages.to_string()), talk, &settings.kinds)?;
        cells.extend(figures::all(&mut arena, &mut rounds, |figure| settings.wants(figure))?);
        keep(&settings, &cells, &conditions)?;
        arena.clear()?;
    }
    drop(place);
    conditions.append(&mut rounds.quiet.disturbed);

    println!("\n{}\n", conditions.join("\n"));
    println!("{}\n", EXPLANATION.replace("PER_DAY", &settings.per_day.to_string()));
    report::print_costs(&cells);
    println!();
    report::print_aims(&cells);
    keep(&settings, &cells, &conditions)?;
    println!("\nmeasured in {:.0?}", started.elapsed());
    Ok(())
}

/// Writes the results so far to the requested files.
fn keep(settings: &Settings, cells: &[Cell], conditions: &[String]) -> Outcome<()> {
    if let Some(file) = &settings.json {
        let text = serde_json::to_string_pretty(&report::json(cells, conditions))?;
        fs::write(file, text + "\n")?;
    }
    if let Some(file) = &settings.plot {
        plot::plot(file, cells)?;
    }
    Ok(())
}

const EXPLANATION: &str = "\
Medians of interleaved rounds ± half the distance between the quartiles, with the files in the page cache; ~ marks what
did not settle, – what was not measured. One JSON file is not tried above 100,000 messages, redb bears no other process,
and scans end at 100,000. One file each and JSON do not make an append durable, and JSON is not sealed. The disk's floor
is a temporary file of as many bytes, fsync, rename and the folder's fsync. Memory is the most that a fresh process takes
beyond its start. A day has PER_DAY messages. Where sottovoce goes to the disk, one crossing to a blocking thread is
part of the figure; the rivals are called directly.";
