//! The target figures.

use crate::contender::Kind;
use crate::figure::{Cell, Figure, Who};

const MILLION: usize = 1_000_000;
const SCANNED: usize = 100_000;
const SMALL: usize = 1_000;

/// A figure and its reference.
pub(crate) struct Aim {
    pub(crate) figure: Figure,
    pub(crate) messages: usize,
    pub(crate) against: Against,
    pub(crate) bound: Bound,
}

#[derive(Clone, Copy)]
pub(crate) enum Against {
    /// A rival, possibly in another figure.
    Rival(Who, Figure),
    /// This store with this many messages, possibly in another figure.
    Self_(usize, Figure),
    Nothing,
}

#[derive(Clone, Copy)]
pub(crate) enum Bound {
    /// The reference costs at least this many times as much.
    Gain(f64),
    /// This store costs at most this many times as much.
    Share(f64),
    /// This store's cost itself is at most this.
    AtMost(f64),
}

/// The result of a target.
pub(crate) struct Reached {
    pub(crate) ours: f64,
    /// The reference's cost.
    pub(crate) theirs: Option<f64>,
    /// The value that the bound limits.
    pub(crate) value: f64,
    pub(crate) is_reached: bool,
}

impl Aim {
    pub(crate) fn all() -> Vec<Self> {
        use Bound::{AtMost, Gain, Share};
        use Figure::{
            Append, Bulk, Day, Disk, Memory, Open, OtherAppend, OtherDay, OwnAppend, Scan, ScanTwo,
            Singly, Unchanged,
        };
        let (document, cipher) = (Who::Store(Kind::Document), Who::Store(Kind::SqlCipher));
        let rival = |figure, messages, who, bound| Self {
            figure,
            messages,
            against: Against::Rival(who, figure),
            bound,
        };
        let alone = |figure, messages, bound| Self {
            figure,
            messages,
            against: Against::Nothing,
            bound: AtMost(bound),
        };
        vec![
            rival(Unchanged, MILLION, document, Gain(500_000.0)),
            rival(Unchanged, MILLION, cipher, Gain(8.0)),
            rival(OwnAppend, MILLION, cipher, Gain(8.0)),
            rival(OtherAppend, MILLION, cipher, Gain(3.0)),
            rival(Open, MILLION, document, Gain(15_000.0)),
            rival(Open, MILLION, cipher, Gain(3.0)),
            Self {
                figure: Open,
                messages: MILLION,
                against: Against::Self_(SMALL, Open),
                bound: Share(1.5),
            },
            alone(Memory, MILLION, f64::from(1 << 20)),
            rival(Append, MILLION, Who::Floor, Share(1.15)),
            alone(Bulk, MILLION, 1.0 / 100_000.0),
            Self {
                figure: Bulk,
                messages: MILLION,
                against: Against::Rival(cipher, Singly),
                bound: Gain(10.0),
            },
            rival(Scan, SCANNED, document, Gain(8.0)),
            rival(Scan, SCANNED, cipher, Gain(1.0)),
            Self {
                figure: ScanTwo,
                messages: SCANNED,
                against: Against::Rival(cipher, Scan),
                bound: Gain(1.0),
            },
            Self {
                figure: ScanTwo,
                messages: SCANNED,
                against: Against::Self_(SCANNED, Scan),
                bound: Gain(1.8),
            },
            rival(Disk, SCANNED, document, Gain(7.0)),
            alone(Day, MILLION, 1e-3),
            rival(Day, MILLION, cipher, Share(2.0)),
            rival(OtherDay, MILLION, cipher, Share(2.0)),
        ]
    }

    /// `None` if a needed figure was not measured.
    pub(crate) fn reached(&self, cells: &[Cell]) -> Option<Reached> {
        let ours = cost(cells, self.figure, self.messages, Who::Store(Kind::Ours))?;
        let theirs = match self.against {
            Against::Rival(who, figure) => Some(cost(cells, figure, self.messages, who)?),
            Against::Self_(messages, figure) => {
                Some(cost(cells, figure, messages, Who::Store(Kind::Ours))?)
            }
            Against::Nothing => None,
        };
        let (value, is_reached) = match (self.bound, theirs) {
            (Bound::Gain(least), Some(theirs)) => (theirs / ours, theirs / ours >= least),
            (Bound::Share(most), Some(theirs)) => (ours / theirs, ours / theirs <= most),
            (Bound::AtMost(most), _) => (ours, ours <= most),
            (_, None) => return None,
        };
        Some(Reached { ours, theirs, value, is_reached })
    }
}

pub(crate) fn cost(cells: &[Cell], figure: Figure, messages: usize, who: Who) -> Option<f64> {
    let cell = cells
        .iter()
        .find(|cell| cell.figure == figure && cell.messages == messages && cell.who == who)?;
    Some(cell.summary.median)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::Summary;

    fn cell(messages: usize, who: Who, value: f64) -> Cell {
        let summary = Summary::of(value);
        Cell { figure: Figure::Open, messages, who, summary, settled: true }
    }

    #[test]
    fn an_aim_is_about_the_right_two_figures_in_the_right_order() {
        let ours = Who::Store(Kind::Ours);
        let cells = [
            cell(SMALL, ours, 1.0),
            cell(MILLION, ours, 2.0),
            cell(MILLION, Who::Store(Kind::SqlCipher), 7.0),
        ];
        let open = Aim::all().into_iter().filter(|aim| aim.figure == Figure::Open);
        let outcomes: Vec<_> = open
            .map(|aim| aim.reached(&cells).map(|reached| (reached.value, reached.is_reached)))
            .collect();
        assert_eq!(outcomes, [None, Some((3.5, true)), Some((2.0, false))]);
    }
}
