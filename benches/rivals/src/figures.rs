//! Measures each figure.

mod appends;
mod disk;
mod reads;

use std::io::{self, Write};
use std::time::{Duration, Instant};

use crate::arena::Arena;
use crate::contender::{Kind, Outcome};
use crate::figure::{Cell, Figure, Who};
use crate::report::amount;
use crate::rounds::{Entrant, Rounds};

/// The messages of a prompt.
pub(crate) const TAIL: usize = 6;

/// All requested figures of one size. Those that add many messages come last.
pub(crate) fn all(
    arena: &mut Arena,
    rounds: &mut Rounds,
    wanted: impl Fn(Figure) -> bool,
) -> Outcome<Vec<Cell>> {
    type Taking = fn(&mut Arena, &mut Rounds) -> Outcome<Vec<Cell>>;
    let order: [(Figure, Taking); 10] = [
        (Figure::Disk, disk::disk),
        (Figure::Unchanged, reads::unchanged),
        (Figure::Open, reads::open),
        (Figure::Memory, reads::memory),
        (Figure::Day, reads::day),
        (Figure::Scan, reads::scan),
        (Figure::OwnAppend, reads::after_own_append),
        (Figure::OtherAppend, reads::after_anothers_append),
        (Figure::Append, appends::append),
        (Figure::Bulk, appends::bulk),
    ];
    let mut cells = Vec::new();
    for (figure, take) in order.into_iter().filter(|(figure, _)| wanted(*figure)) {
        let started = Instant::now();
        let taken = take(arena, rounds).map_err(|error| format!("{}: {error}", figure.name()))?;
        tell(&taken, started.elapsed());
        cells.extend(taken);
    }
    println!();
    Ok(cells)
}

/// Prints a line for each figure, so that an interrupted run has printed some.
fn tell(cells: &[Cell], took: Duration) {
    let mut figure = None;
    for cell in cells {
        if figure.replace(cell.figure) != Some(cell.figure) {
            print!("\n  {} ({took:.0?}):", cell.figure.name());
        }
        print!(" {} {};", cell.who.name(), amount(cell.figure.unit(), cell.summary.median));
    }
    io::stdout().flush().ok();
}

fn entrants(figure: Figure, kinds: impl IntoIterator<Item = Kind>) -> Vec<Entrant> {
    let entrant = |kind| Entrant { figure, who: Who::Store(kind) };
    kinds.into_iter().map(entrant).collect()
}

/// Of each contender that takes part, with its seat.
fn of_stores(
    arena: &mut Arena,
    rounds: &mut Rounds,
    figure: Figure,
    mut sample: impl FnMut(&mut crate::arena::Seat) -> Outcome<f64>,
) -> Outcome<Vec<Cell>> {
    let (messages, count) = (arena.messages(), rounds.rounds);
    let entrants = entrants(figure, arena.kinds());
    rounds.hold(messages, count, &entrants, |entrant| sample(arena.seat(entrant.who.store()?)?))
}

fn timed<T>(work: impl FnOnce() -> Outcome<T>) -> Outcome<(f64, T)> {
    let started = Instant::now();
    let outcome = std::hint::black_box(work());
    Ok((started.elapsed().as_secs_f64(), outcome?))
}
