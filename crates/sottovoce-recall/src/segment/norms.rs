//! The lengths of passages' vectors, alone and with their neighbours'.

use std::{collections::VecDeque, ops::Range};

use crate::vectors::{DIMENSIONS, Vector, add, length};

/// Passages on each side that count as neighbours.
pub(crate) const REACH: usize = 5;
/// What is left of a neighbour's meaning with each passage of distance.
pub(crate) const FADES: [f32; REACH] = [0.7, 0.49, 0.343, 0.2401, 0.16807];

/// The lengths of a passage's vector: of its own words, and with its neighbours'.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub(crate) struct Norms {
    pub own: f32,
    pub around: f32,
}

/// The lengths for the passages of `wanted`, which belong to one session of passages `session`.
/// `add_passage` adds the words of a passage to a vector.
pub(crate) fn measure(
    wanted: Range<usize>,
    session: Range<usize>,
    add_passage: impl Fn(usize, &mut Vector),
    mut found: impl FnMut(usize, Norms),
) {
    let mut window: VecDeque<Vector> = VecDeque::with_capacity(2 * REACH + 1);
    let mut next = wanted.start.saturating_sub(REACH).max(session.start);
    let mut first = next;
    for passage in wanted {
        while next < session.end.min(passage + REACH + 1) {
            let mut vector = [0.; DIMENSIONS];
            add_passage(next, &mut vector);
            window.push_back(vector);
            next += 1;
        }
        while first + REACH < passage {
            window.pop_front();
            first += 1;
        }
        let Some(own) = window.get(passage - first) else { continue };
        let mut around = *own;
        for (distance, fade) in (1..REACH + 1).zip(FADES).rev() {
            let before = (passage - first).checked_sub(distance).and_then(|at| window.get(at));
            if let Some(vector) = before {
                add(&mut around, vector, fade);
            }
        }
        for (distance, fade) in (1..).zip(FADES) {
            if let Some(vector) = window.get(passage - first + distance) {
                add(&mut around, vector, fade);
            }
        }
        found(passage, Norms { own: length(own), around: length(&around) });
    }
}
