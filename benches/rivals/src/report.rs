//! The tables on the terminal, and the same as JSON.

use serde_json::{Value, json};

use crate::aim::{Against, Aim, Bound};
use crate::figure::{Cell, Figure, Unit, Who};
use crate::support::{print_table, shown};

/// A cost in its figure's unit, with three digits at most.
pub(crate) fn amount(unit: Unit, value: f64) -> String {
    match unit {
        Unit::Seconds => time(value),
        Unit::SecondsEach => format!("{}/s", thousands(1.0 / value)),
        Unit::Bytes if value < 2048.0 => format!("{value:.0} B"),
        Unit::Bytes if value < 1_048_576.0 => format!("{:.0} KiB", value / 1024.0),
        Unit::Bytes => format!("{:.2} MiB", value / 1_048_576.0),
    }
}

fn time(seconds: f64) -> String {
    if seconds < 1.0 {
        shown(std::time::Duration::from_secs_f64(seconds))
    } else {
        format!("{seconds:.2} s")
    }
}

/// Two places below ten unless it is whole, and commas above a thousand.
fn thousands(value: f64) -> String {
    if value < 10.0 && value.fract() > 0.0 {
        return format!("{value:.2}");
    }
    let digits = format!("{value:.0}");
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A row for each figure and size, a column for each contender.
pub(crate) fn print_costs(cells: &[Cell]) {
    let present = |who: &Who| cells.iter().any(|cell| cell.who == *who);
    let columns: Vec<Who> = Who::ALL.into_iter().filter(present).collect();
    let mut sizes: Vec<usize> = cells.iter().map(|cell| cell.messages).collect();
    sizes.sort_unstable();
    sizes.dedup();
    let mut rows = Vec::new();
    for figure in Figure::ALL {
        for &messages in &sizes {
            let mine = |cell: &&Cell| cell.figure == figure && cell.messages == messages;
            if !cells.iter().any(|cell| mine(&cell)) {
                continue;
            }
            let mut row = vec![figure.name().to_owned(), thousands(messages as f64)];
            row.extend(columns.iter().map(|who| {
                let cell = cells.iter().filter(mine).find(|cell| cell.who == *who);
                cell.map_or_else(|| "–".to_owned(), shown_cell)
            }));
            rows.push(row);
        }
    }
    let mut head = vec!["figure", "messages"];
    head.extend(columns.iter().map(|who| who.name()));
    print_table(&head, &rows);
}

/// The median, and half the distance between the quartiles as a share of it.
fn shown_cell(cell: &Cell) -> String {
    let median = amount(cell.figure.unit(), cell.summary.median);
    let mark = if cell.settled { "" } else { " ~" };
    if cell.summary.samples == 1 {
        return median;
    }
    let spread = 100.0 * cell.summary.spread() / cell.summary.median;
    format!("{median} ±{spread:.0}%{mark}")
}

pub(crate) fn print_aims(cells: &[Cell]) {
    let rows: Vec<Vec<String>> = Aim::all()
        .iter()
        .map(|aim| {
            let unit = aim.figure.unit();
            let reached = aim.reached(cells);
            let or_dash = |text: Option<String>| text.unwrap_or_else(|| "–".to_owned());
            vec![
                aim.figure.name().to_owned(),
                thousands(aim.messages as f64),
                or_dash(reached.as_ref().map(|reached| amount(unit, reached.ours))),
                against(aim),
                or_dash(reached.as_ref().and_then(|reached| Some(amount(unit, reached.theirs?)))),
                or_dash(reached.as_ref().map(|reached| value(aim.bound, unit, reached.value))),
                bound(aim.bound, unit),
                match reached {
                    Some(reached) if reached.is_reached => "yes".to_owned(),
                    Some(_) => "NO".to_owned(),
                    None => "not measured".to_owned(),
                },
            ]
        })
        .collect();
    let head =
        ["figure", "messages", "sottovoce", "against", "theirs", "ratio", "to reach", "reached"];
    print_table(&head, &rows);
}

fn against(aim: &Aim) -> String {
    match aim.against {
        Against::Rival(who, figure) if figure == aim.figure => who.name().to_owned(),
        Against::Rival(who, _) => format!("{}, one at a time", who.name()),
        Against::Self_(messages, figure) if figure == aim.figure => {
            format!("itself with {}", thousands(messages as f64))
        }
        Against::Self_(..) => "itself, one thread".to_owned(),
        Against::Nothing => "–".to_owned(),
    }
}

fn value(bound: Bound, unit: Unit, value: f64) -> String {
    match bound {
        Bound::Gain(_) => format!("{} x", thousands(value)),
        Bound::Share(_) => format!("{value:.2}"),
        Bound::AtMost(_) => amount(unit, value),
    }
}

fn bound(bound: Bound, unit: Unit) -> String {
    match bound {
        Bound::Gain(least) => format!("≥ {} x", thousands(least)),
        Bound::Share(most) => format!("≤ {most}"),
        Bound::AtMost(most) if unit == Unit::SecondsEach => format!("≥ {}", amount(unit, most)),
        Bound::AtMost(most) => format!("≤ {}", amount(unit, most)),
    }
}

/// Costs in seconds, seconds a message, or bytes.
pub(crate) fn json(cells: &[Cell], conditions: &[String]) -> Value {
    let costs: Vec<Value> = cells
        .iter()
        .map(|cell| {
            json!({
                "figure": cell.figure.name(), "messages": cell.messages, "who": cell.who.name(),
                "unit": match cell.figure.unit() {
                    Unit::Seconds => "s",
                    Unit::SecondsEach => "s/message",
                    Unit::Bytes => "B",
                },
                "settled": cell.settled, "cost": cell.summary,
            })
        })
        .collect();
    let aims: Vec<Value> = Aim::all()
        .iter()
        .map(|aim| {
            let reached = aim.reached(cells);
            json!({
                "figure": aim.figure.name(), "messages": aim.messages, "against": against(aim),
                "toReach": bound(aim.bound, aim.figure.unit()),
                "value": reached.as_ref().map(|reached| reached.value),
                "reached": reached.map(|reached| reached.is_reached),
            })
        })
        .collect();
    json!({ "conditions": conditions, "costs": costs, "aims": aims })
}
