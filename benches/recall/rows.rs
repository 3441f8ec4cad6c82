//! The table: each figure beside its goal.

use super::support::print_table;

/// What a figure should be.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Goal {
    None,
    AtMost(f64),
    AtLeast(f64),
}

/// One figure.
pub(crate) struct Row {
    pub(crate) figure: String,
    pub(crate) value: f64,
    pub(crate) unit: &'static str,
    pub(crate) goal: Goal,
}

impl Row {
    pub(crate) fn new(
        figure: impl Into<String>,
        value: f64,
        unit: &'static str,
        goal: Goal,
    ) -> Self {
        Self { figure: figure.into(), value, unit, goal }
    }

    fn cells(&self) -> Vec<String> {
        let shown = |value: f64| format!("{} {}", number(value), self.unit).trim_end().to_owned();
        let (goal, met) = match self.goal {
            Goal::None => (String::new(), ""),
            Goal::AtMost(most) => (format!("≤ {}", shown(most)), met(self.value <= most)),
            Goal::AtLeast(least) => (format!("≥ {}", shown(least)), met(self.value >= least)),
        };
        vec![self.figure.clone(), shown(self.value), goal, met.to_owned()]
    }
}

pub(crate) fn print(rows: &[Row]) {
    let rows: Vec<Vec<String>> = rows.iter().map(Row::cells).collect();
    println!();
    print_table(&["figure", "measured", "goal", ""], &rows);
}

fn met(is_met: bool) -> &'static str {
    if is_met { "met" } else { "MISSED" }
}

/// At most three significant digits.
fn number(value: f64) -> String {
    match value.abs() {
        v if v < 10. => format!("{value:.2}"),
        v if v < 100. => format!("{value:.1}"),
        _ => format!("{value:.0}"),
    }
}

/// In thousands: `10,000`.
pub(crate) fn grouped(number: usize) -> String {
    match number {
        n if n < 1000 => n.to_string(),
        n => format!("{},{:03}", n / 1000, n % 1000),
    }
}
