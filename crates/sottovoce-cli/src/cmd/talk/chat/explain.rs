//! `/explain`: what the last prompt held.

use std::io::Write;

use sottovoce::conversation::TurnReport;
use sottovoce::prompt::{EntryOutcome, Receipt};

use crate::cmd::talk::prompt;
use crate::output::reply::seconds;
use crate::output::{DIM, GOOD, WARN};

/// Width of a bar in columns.
const WIDTH: usize = 40;

/// Shows a turn's prompt and figures on standard error.
pub(super) fn show(report: &TurnReport) {
    prompt::explain(&report.receipt);
    let mut out = anstream::stderr().lock();
    let mut row = |text: String| drop(writeln!(out, "{text}"));
    let used = report.usage.prompt_tokens.and_then(|tokens| usize::try_from(tokens).ok());
    let used = used.unwrap_or(report.receipt.used_tokens);
    if let Some(window) = report.window.and_then(|window| usize::try_from(window).ok()) {
        row(format!("window   {} {used} of {window} tokens", bar(used, window)));
    }
    if let (Some(cached), Some(read)) = (report.usage.cached_tokens, report.usage.prompt_tokens) {
        row(format!("cache    {cached} of {read} tokens were not evaluated again"));
    }
    if let Some(unchanged) = report.unchanged_bytes {
        let whole = report.request_bytes;
        row(format!(
            "reuse    {} {unchanged} of {whole} bytes as in the last request",
            bar(unchanged, whole)
        ));
    }
    let dropped = dropped(&report.receipt);
    if !dropped.is_empty() {
        row(format!("dropped  {}", dropped.join(", ")));
    }
    let mut times = Vec::new();
    let usage = &report.usage;
    for (what, time) in [
        ("loading", usage.load_time),
        ("reading", usage.prompt_time),
        ("to the first word", report.time_to_first_token),
        ("answering", usage.answer_time),
    ] {
        times.extend(time.map(|time| format!("{what} {}", seconds(time))));
    }
    if !times.is_empty() {
        row(format!("time     {}", times.join(", ")));
    }
    if report.retries > 0 {
        row("retried  the server found the prompt too long, so history was dropped".to_owned());
    }
    if report.truncated {
        row(format!("{WARN}cut      the server seems to have cut the prompt{WARN:#}"));
    }
}

/// The numbers of omitted messages by reason.
fn dropped(receipt: &Receipt) -> Vec<String> {
    let reasons = [
        (EntryOutcome::OverBudget, "over the budget"),
        (EntryOutcome::TooLong, "too long beside the rest"),
        (EntryOutcome::Pruned, "pruned from the context"),
        (EntryOutcome::LowConfidence, "heard with too little confidence"),
        (EntryOutcome::Duplicate, "given already"),
        (EntryOutcome::OtherScope, "of another conversation"),
    ];
    reasons
        .into_iter()
        .map(|(outcome, why)| {
            (receipt.entries.iter().filter(|entry| entry.outcome == outcome).count(), why)
        })
        .filter(|(count, _)| *count > 0)
        .map(|(count, why)| format!("{count} {why}"))
        .collect()
}

fn bar(part: usize, whole: usize) -> String {
    let full = (part * WIDTH).div_ceil(whole.max(1)).min(WIDTH);
    let rest = WIDTH - full;
    let style = if part > whole { WARN } else { GOOD };
    format!("{style}{}{style:#}{DIM}{}{DIM:#}", "█".repeat(full), "░".repeat(rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bar_is_never_longer_than_its_place() {
        for (part, whole) in [(0, 0), (0, 10), (10, 10), (99, 10), (1, 1_000_000)] {
            let plain = anstream::adapter::strip_str(&bar(part, whole)).to_string();
            assert_eq!(plain.chars().count(), WIDTH, "{part} of {whole}");
        }
    }
}
