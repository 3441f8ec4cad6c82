//! Times, sizes and names as pages show them.

use jiff::tz::TimeZone;
use jiff::{Timestamp, Zoned};
use maud::{Markup, html};
use sottovoce::Scope;

use crate::english as en;
use crate::html::words::cut;

/// A time on this machine's clock.
pub(crate) fn local(at: Timestamp, zone: &TimeZone) -> Zoned {
    at.to_zoned(zone.clone())
}

/// "24 August 2025, 16:36", with the exact time for machines.
pub(crate) fn moment(at: Timestamp, zone: &TimeZone) -> Markup {
    let local = local(at, zone);
    html! {
        time datetime=(at.strftime("%Y-%m-%dT%H:%M:%SZ")) { (local.strftime("%-d %B %Y, %H:%M")) }
    }
}

/// "16:36".
pub(crate) fn clock_time(at: Timestamp, zone: &TimeZone) -> Markup {
    let local = local(at, zone);
    html! {
        time datetime=(at.strftime("%Y-%m-%dT%H:%M:%SZ")) title=(local.strftime("%Y-%m-%d %H:%M:%S %Z")) {
            (local.strftime("%H:%M"))
        }
    }
}

/// "Sunday, 24 August 2025".
pub(crate) fn date(date: jiff::civil::Date) -> String {
    date.strftime("%A, %-d %B %Y").to_string()
}

/// "512 B", "1.5 KiB", "3.2 MiB".
#[expect(clippy::cast_precision_loss, reason = "one decimal is shown")]
pub(crate) fn size(bytes: u64) -> String {
    let mut number = bytes as f64;
    let mut units = ["B", "KiB", "MiB", "GiB", "TiB"].into_iter();
    let mut unit = units.next().unwrap_or_default();
    while number >= 1024.0
        && let Some(next) = units.next()
    {
        (number, unit) = (number / 1024.0, next);
    }
    if unit == "B" { format!("{bytes} B") } else { format!("{number:.1} {unit}") }
}

/// "1 day 1 hour", the two largest units.
pub(crate) fn duration(seconds: u64) -> String {
    let parts = [
        (seconds / 86_400, en::DAY),
        (seconds / 3600 % 24, en::HOUR),
        (seconds / 60 % 60, en::MINUTE),
        (seconds % 60, en::SECOND),
    ];
    let shown: Vec<String> = parts
        .into_iter()
        .filter(|(number, _)| *number > 0)
        .take(2)
        .map(|(number, unit)| counted(number, unit))
        .collect();
    if shown.is_empty() { counted(0, en::SECOND) } else { shown.join(" ") }
}

/// "1 message", "12,345 messages".
pub(crate) fn counted(number: u64, (one, many): (&str, &str)) -> String {
    let digits = number.to_string();
    let mut grouped = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    match (number, one) {
        (_, "") => grouped,
        (1, _) => format!("{grouped} {one}"),
        _ => format!("{grouped} {many}"),
    }
}

/// A conversation's name: its title, or else whose it is.
pub(crate) fn name(scope: &Scope, title: Option<&str>) -> String {
    match title.map(one_line).filter(|title| !title.is_empty()) {
        Some(title) => title,
        None => one_line(&en::scope_name(scope)),
    }
}

/// The most characters of a name, and the most bytes that it takes as markup.
const LONGEST: usize = 160;
const WIDEST: usize = 480;

/// A text in one line, without characters that control how it is shown, cut if it is too long for a name.
pub(crate) fn one_line(text: &str) -> String {
    let (text, is_cut) = cut(text, WIDEST);
    let end = if is_cut || text.chars().nth(LONGEST).is_some() { "…" } else { "" };
    text.chars()
        .take(LONGEST)
        .map(|c| match c {
            c if c.is_whitespace() => ' ',
            c if c.is_control() || is_direction(c) => '\u{fffd}',
            c => c,
        })
        .collect::<String>()
        .trim()
        .to_owned()
        + end
}

/// Characters that change the direction of what follows them.
fn is_direction(c: char) -> bool {
    matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{200e}' | '\u{200f}' | '\u{61c}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_sizes_and_durations_read_well() {
        assert_eq!(counted(1_234_567, ("message", "messages")), "1,234,567 messages");
        assert_eq!(counted(1, ("message", "messages")), "1 message");
        assert_eq!(counted(999, ("", "")), "999");
        assert_eq!([size(0), size(1536), size(3 << 30)], ["0 B", "1.5 KiB", "3.0 GiB"]);
        assert_eq!(duration(90_061), "1 day 1 hour");
        assert_eq!(duration(0), "0 seconds");
    }

    #[test]
    fn a_name_stays_in_its_line_and_in_its_direction() {
        assert_eq!(one_line("a\nb\u{202e}c\u{0}"), "a b\u{fffd}c\u{fffd}");
        assert_eq!(one_line(&"&".repeat(200)), "&".repeat(80) + "…");
    }
}
