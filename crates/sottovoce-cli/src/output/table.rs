//! Tables with columns as wide as their contents.

use std::io;

use anstyle::Style;
use unicode_width::UnicodeWidthStr;

use crate::output::{self, BOLD};

/// The least width of a cut cell.
const NARROWEST: usize = 12;
/// The gap between two columns.
const GAP: &str = "  ";

/// A cell of a table.
pub(crate) struct Cell {
    text: String,
    style: Style,
    is_number: bool,
    keeps_end: bool,
}

impl Cell {
    /// A cell with any text, on one line and without control characters.
    pub(crate) fn new(text: &str) -> Self {
        Self {
            text: output::one_line(text),
            style: Style::new(),
            is_number: false,
            keeps_end: false,
        }
    }

    /// A number, aligned right.
    pub(crate) fn number(number: u64) -> Self {
        Self::new(&number.to_string()).at_right()
    }

    /// Aligns the cell right.
    pub(crate) fn at_right(self) -> Self {
        Self { is_number: true, ..self }
    }

    /// Cuts a long text at its beginning.
    pub(crate) fn keep_end(self) -> Self {
        Self { keeps_end: true, ..self }
    }

    pub(crate) fn style(self, style: Style) -> Self {
        Self { style, ..self }
    }

    /// Cuts the text to this many columns on a terminal. Programs get the whole text.
    pub(crate) fn at_most(self, columns: usize) -> Self {
        if output::columns(io::stdout()).is_some() { self.cut(columns) } else { self }
    }

    fn cut(mut self, columns: usize) -> Self {
        if self.text.width() <= columns {
            return self;
        }
        if self.keeps_end {
            let mut end = self.text.char_indices().map(|(at, _)| self.text.get(at..).unwrap_or(""));
            let end = end.find(|end| end.width() < columns).unwrap_or("");
            self.text = format!("…{}", end.trim_start());
            return self;
        }
        while self.text.width() >= columns && self.text.pop().is_some() {}
        self.text.truncate(self.text.trim_end().len());
        self.text.push('…');
        self
    }

    /// The text padded to a width; no padding in the last column.
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

/// Writes a table with a header to standard output.
pub(crate) fn show<const N: usize>(names: [&str; N], rows: Vec<[Cell; N]>) -> io::Result<()> {
    lines(names, rows).iter().try_for_each(output::line)
}

/// Writes a table within the width of the terminal, if there is one: if it is wider, the cells of these columns are cut.
pub(crate) fn show_within<const N: usize, const CUT: usize>(
    names: [&str; N],
    rows: Vec<[Cell; N]>,
    cut: [usize; CUT],
) -> io::Result<()> {
    let within = output::columns(io::stdout()).unwrap_or(usize::MAX);
    show(names, fitted(names, rows, cut, within))
}

fn fitted<const N: usize, const CUT: usize>(
    names: [&str; N],
    mut rows: Vec<[Cell; N]>,
    cut: [usize; CUT],
    within: usize,
) -> Vec<[Cell; N]> {
    let mut widths = names.map(UnicodeWidthStr::width);
    for row in &rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = cell.text.width().max(*width);
        }
    }
    let gaps = GAP.width() * N.saturating_sub(1);
    while widths.iter().sum::<usize>() + gaps > within {
        let in_turn = widths.iter_mut().enumerate().filter(|(at, _)| cut.contains(at));
        match in_turn.map(|(_, width)| width).max() {
            Some(widest) if *widest > NARROWEST => *widest -= 1,
            _ => break,
        }
    }
    for row in &mut rows {
        for (cell, width) in row.iter_mut().zip(widths) {
            let whole = std::mem::replace(cell, Cell::new(""));
            *cell = whole.cut(width);
        }
    }
    rows
}

/// The lines of a table, first that of the columns' names.
pub(crate) fn lines<const N: usize>(names: [&str; N], rows: Vec<[Cell; N]>) -> Vec<String> {
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
    fn a_table_that_is_too_wide_is_cut_where_it_may_be() {
        let path = format!("/models/{}/llama.gguf", "long".repeat(20));
        let row = |name: &str| [Cell::new(name).keep_end(), Cell::number(7), Cell::new("tools")];
        let rows = fitted(["name", "size", "state"], vec![row(&path), row("short")], [0], 80);
        let [cut, short] =
            <[[Cell; 3]; 2]>::try_from(rows).ok().unwrap().map(|[name, ..]| name.text);
        assert!(cut.starts_with('…') && cut.ends_with("/llama.gguf"), "{cut}");
        assert_eq!((cut.width(), short.as_str()), (80 - 4 - 4 - 5, "short"));
    }

    #[test]
    fn what_is_too_long_is_cut_to_columns_and_not_to_characters() {
        for (text, shown) in
            [("short", "short"), ("exactly10c", "exactly10c"), ("顧問顧問顧問", "顧問顧問…")]
        {
            assert_eq!(Cell::new(text).cut(10).text, shown);
        }
        assert_eq!(Cell::new("one two three").cut(9).text, "one two…");
    }
}
