//! Tables whose columns are as wide as what stands in them.

use std::io;

use anstyle::Style;
use unicode_width::UnicodeWidthStr;

use crate::output::{self, BOLD};

/// What lies between two columns.
const GAP: &str = "  ";

/// What stands in one place.
pub(crate) struct Cell {
    text: String,
    style: Style,
    is_number: bool,
}

impl Cell {
    /// Anybody's words, on one line and without what could steer a terminal.
    pub(crate) fn new(text: &str) -> Self {
        Self { text: output::one_line(text), style: Style::new(), is_number: false }
    }

    /// A figure, at the right end of its column.
    pub(crate) fn number(number: u64) -> Self {
        Self { is_number: true, ..Self::new(&number.to_string()) }
    }

    pub(crate) fn style(self, style: Style) -> Self {
        Self { style, ..self }
    }

    /// Cut to so many columns.
    pub(crate) fn at_most(mut self, columns: usize) -> Self {
        if self.text.width() <= columns {
            return self;
        }
        while self.text.width() >= columns && self.text.pop().is_some() {}
        self.text.truncate(self.text.trim_end().len());
        self.text.push('…');
        self
    }

    /// The text over the given width, none behind the last column.
    fn shown(&self, width: usize, is_last: bool) -> String {
        let Self { text, style, .. } = self;
        let space = " ".repeat(width.saturating_sub(text.width()));
        match (self.is_number, is_last) {
            (true, _) => format!("{space}{style}{text}{style:#}"),
            (false, true) => format!("{style}{text}{style:#}"),
            (false, false) => format!("{style}{text}{style:#}{space}"),
        }
    }
}

/// Writes a table to standard output, below its columns' names.
pub(crate) fn show<const N: usize>(names: [&str; N], rows: Vec<[Cell; N]>) -> io::Result<()> {
    lines(names, rows).iter().try_for_each(output::line)
}

fn lines<const N: usize>(names: [&str; N], rows: Vec<[Cell; N]>) -> Vec<String> {
    let numeric: Vec<bool> =
        rows.first().into_iter().flatten().map(|cell| cell.is_number).collect();
    let mut is_number = numeric.into_iter();
    let head = names.map(|name| Cell {
        is_number: is_number.next().unwrap_or(false),
        ..Cell::new(name).style(BOLD)
    });
    let all: Vec<[Cell; N]> = std::iter::once(head).chain(rows).collect();
    let mut widths = [0; N];
    for row in &all {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = cell.text.width().max(*width);
        }
    }
    let line = |row: &[Cell; N]| {
        let cells = row.iter().zip(widths).enumerate();
        let shown: Vec<String> =
            cells.map(|(at, (cell, width))| cell.shown(width, at + 1 == N)).collect();
        shown.join(GAP)
    };
    all.iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plain(names: [&str; 3], rows: Vec<[Cell; 3]>) -> Vec<String> {
        let lines = lines(names, rows);
        lines.iter().map(|line| anstream::adapter::strip_str(line).to_string()).collect()
    }

    #[test]
    fn columns_stand_below_each_other_however_wide_a_character_is() {
        let rows = vec![
            [Cell::new("顧問"), Cell::number(7), Cell::new("one")],
            [Cell::new("Zoë\nB"), Cell::number(1200), Cell::new("two")],
        ];
        assert_eq!(
            plain(["name", "messages", "state"], rows),
            ["name   messages  state", "顧問          7  one", "Zoë B      1200  two"]
        );
    }

    #[test]
    fn what_is_too_long_is_cut_to_columns_and_not_to_characters() {
        for (text, shown) in
            [("short", "short"), ("exactly10c", "exactly10c"), ("顧問顧問顧問", "顧問顧問…")]
        {
            assert_eq!(Cell::new(text).at_most(10).text, shown);
        }
        assert_eq!(Cell::new("one two three").at_most(9).text, "one two…");
    }
}
