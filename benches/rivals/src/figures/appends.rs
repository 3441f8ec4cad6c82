//! Figures of writing.

use sottovoce::ChatMessage;

use super::{entrants, timed};
use crate::ancestor::{Seals, durable_floor};
use crate::arena::{Arena, Seat};
use crate::contender::Outcome;
use crate::figure::{Cell, Figure, Who};
use crate::rounds::{Entrant, Rounds};

/// Appends are fast and vary, so they have this many times as many rounds.
const MORE: usize = 5;
/// Bulk figures have this many times fewer rounds.
const FEWER: usize = 5;
/// How many single messages are measured for a batch.
const SINGLY: usize = 100;

pub(super) fn append(arena: &mut Arena, rounds: &mut Rounds) -> Outcome<Vec<Cell>> {
    let mut entrants = entrants(Figure::Append, arena.kinds());
    entrants.push(Entrant { figure: Figure::Append, who: Who::Floor });
    let floor = arena.floor();
    let mut written = 0;
    let (messages, count) = (arena.messages(), rounds.rounds * MORE);
    rounds.hold(messages, count, &entrants, |entrant| match entrant.who {
        Who::Store(kind) => append_one(arena.seat(kind)?),
        Who::Floor => {
            written += 1;
            let bytes = envelope(arena.talk.message(messages + written)?);
            Ok(timed(|| Ok(durable_floor(&floor, written, &bytes)?))?.0)
        }
    })
}

fn append_one(seat: &mut Seat) -> Outcome<f64> {
    let message = seat.take_one()?;
    let (time, ()) = timed(|| seat.contender()?.append(message))?;
    seat.settle()?;
    Ok(time)
}

/// An envelope of as many bytes as this store's file for the message: it names its version and key.
fn envelope(message: ChatMessage) -> Vec<u8> {
    let mut bytes = Seals::new().seal(&message);
    bytes.extend_from_slice(br#""v":1,"kid":"87caf0db7ccf75207d066b68fbc3d383","#);
    bytes.push(b'\n');
    bytes
}

/// Grows each store, so it runs last.
pub(super) fn bulk(arena: &mut Arena, rounds: &mut Rounds) -> Outcome<Vec<Cell>> {
    let mut entrants = entrants(Figure::Bulk, arena.kinds());
    for kind in arena.kinds().into_iter().filter(|kind| kind.is_durable()) {
        entrants.push(Entrant { figure: Figure::Singly, who: Who::Store(kind) });
    }
    let (messages, count) = (arena.messages(), rounds.rounds.div_ceil(FEWER));
    let at_once = messages.clamp(SINGLY, 20_000);
    rounds.hold(messages, count, &entrants, |entrant| {
        let seat = arena.seat(entrant.who.store()?)?;
        if entrant.figure == Figure::Bulk {
            let messages = seat.take(at_once)?;
            let (time, ()) = timed(|| seat.contender()?.append_all(messages))?;
            seat.settle()?;
            return Ok(time / at_once as f64);
        }
        let messages = seat.take(SINGLY)?;
        let (time, ()) = timed(|| {
            let contender = seat.contender()?;
            messages.into_iter().try_for_each(|message| contender.append(message))
        })?;
        Ok(time / SINGLY as f64)
    })
}
