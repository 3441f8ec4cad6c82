//! Figures of reading.

use std::collections::HashMap;
use std::path::Path;

use super::{TAIL, entrants, of_stores, timed};
use crate::arena::Arena;
use crate::child::{Memory, Neighbour, memory_of_opening};
use crate::contender::{Contender, Kind, Outcome, Words};
use crate::figure::{Cell, Figure, Who};
use crate::rounds::{Entrant, Rounds};

/// Fast reads are repeated for about this long.
const A_WHILE: f64 = 5e-3;
const IN_A_ROW: f64 = 200.0;
/// Larger conversations are not scanned, because all of it would be in memory.
const SCANNED: usize = 100_000;

pub(super) fn unchanged(arena: &mut Arena, rounds: &mut Rounds) -> Outcome<Vec<Cell>> {
    of_stores(arena, rounds, Figure::Unchanged, |seat| {
        // The first read finds the processor's caches full of other contenders' data.
        let words = seat.contender()?.tail(TAIL)?;
        seat.check(&words, TAIL)?;
        let (once, _) = timed(|| seat.contender()?.tail(TAIL))?;
        let times = (A_WHILE / once).clamp(1.0, IN_A_ROW).floor();
        let (all, _) = timed(|| seat.contender()?.tails(TAIL, times as usize))?;
        Ok(all / times)
    })
}

/// First beside the store that this process has open, which saves SQLite creating its journal and shared memory; then
/// alone.
pub(super) fn open(arena: &mut Arena, rounds: &mut Rounds) -> Outcome<Vec<Cell>> {
    let mut cells = of_stores(arena, rounds, Figure::Open, |seat| {
        let kind = seat.kind;
        let (time, words) = seat.beside(|folder| {
            let (time, (_, words)) = timed(|| open_and_read(kind, folder))?;
            Ok((time, words))
        })?;
        seat.check(&words, TAIL)?;
        Ok(time)
    })?;
    cells.extend(of_stores(arena, rounds, Figure::OpenAlone, |seat| {
        let (time, words) = seat.reopened(|kind, folder| {
            let (time, (contender, words)) = timed(|| open_and_read(kind, folder))?;
            Ok((contender, (time, words)))
        })?;
        seat.check(&words, TAIL)?;
        Ok(time)
    })?);
    Ok(cells)
}

fn open_and_read(kind: Kind, folder: &Path) -> Outcome<(Box<dyn Contender>, Words)> {
    let mut contender = kind.open(folder)?;
    let words = contender.tail(TAIL)?;
    Ok((contender, words))
}

pub(super) fn memory(arena: &mut Arena, rounds: &mut Rounds) -> Outcome<Vec<Cell>> {
    let talk = arena.talk;
    let mut opening = |figure, part: fn(Memory) -> f64| {
        of_stores(arena, rounds, figure, |seat| {
            let kind = seat.kind;
            Ok(part(seat.beside(|folder| memory_of_opening(kind, folder, talk))?))
        })
    };
    let mut cells = opening(Figure::Memory, |memory| memory.own)?;
    cells.extend(opening(Figure::Resident, |memory| memory.resident)?);
    Ok(cells)
}

pub(super) fn day(arena: &mut Arena, rounds: &mut Rounds) -> Outcome<Vec<Cell>> {
    let (talk, day, expected) = (arena.talk, arena.talk.day()?, arena.talk.of_a_day());
    let mut cells = of_stores(arena, rounds, Figure::Day, |seat| {
        let (time, words) = timed(|| seat.contender()?.between(&day))?;
        seat.check_count(&words, expected)?;
        Ok(time)
    })?;
    let mut times: HashMap<&str, usize> = HashMap::new();
    cells.extend(of_stores(arena, rounds, Figure::OtherDay, |seat| {
        let time = times.entry(seat.kind.code()).or_default();
        *time += 1;
        let day = talk.other_day(*time)?;
        let (time, words) = timed(|| seat.contender()?.between(&day))?;
        seat.check_count(&words, expected)?;
        Ok(time)
    })?);
    Ok(cells)
}

pub(super) fn scan(arena: &mut Arena, rounds: &mut Rounds) -> Outcome<Vec<Cell>> {
    if arena.messages() > SCANNED {
        return Ok(Vec::new());
    }
    let mut entrants = entrants(Figure::Scan, arena.kinds());
    if arena.kinds().contains(&Kind::Ours) {
        entrants.push(Entrant { figure: Figure::ScanTwo, who: Who::Store(Kind::Ours) });
    }
    let (messages, count) = (arena.messages(), rounds.rounds);
    rounds.hold(messages, count, &entrants, |entrant| {
        let seat = arena.seat(entrant.who.store()?)?;
        let expected = seat.count();
        let threads = if entrant.figure == Figure::ScanTwo { 2 } else { 1 };
        let (time, words) = timed(|| seat.contender()?.all(threads))?;
        seat.check(&words, expected)?;
        Ok(time)
    })
}

pub(super) fn after_own_append(arena: &mut Arena, rounds: &mut Rounds) -> Outcome<Vec<Cell>> {
    of_stores(arena, rounds, Figure::OwnAppend, |seat| {
        let message = seat.take_one()?;
        seat.contender()?.append(message)?;
        let (time, words) = timed(|| seat.contender()?.tail(TAIL))?;
        seat.check(&words, TAIL)?;
        Ok(time)
    })
}

pub(super) fn after_anothers_append(arena: &mut Arena, rounds: &mut Rounds) -> Outcome<Vec<Cell>> {
    let (talk, mut neighbours) = (arena.talk, HashMap::new());
    let kinds: Vec<Kind> = arena.kinds().into_iter().filter(|kind| !kind.is_exclusive()).collect();
    for &kind in &kinds {
        let neighbour = Neighbour::start(kind, &arena.seat(kind)?.folder, talk)?;
        neighbours.insert(kind.code(), neighbour);
    }
    let (messages, count) = (arena.messages(), rounds.rounds);
    rounds.hold(messages, count, &entrants(Figure::OtherAppend, kinds), |entrant| {
        let kind = entrant.who.store()?;
        let seat = arena.seat(kind)?;
        let place = seat.take_place();
        neighbours.get_mut(kind.code()).ok_or("nobody else has it open")?.append(place)?;
        let (time, words) = timed(|| seat.contender()?.tail(TAIL))?;
        seat.check(&words, TAIL)?;
        Ok(time)
    })
}
