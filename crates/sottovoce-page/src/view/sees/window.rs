//! The model's window as a bar: what a prompt fills it with.

use maud::{Markup, html};
use sottovoce::context::Placement;
use sottovoce::prompt::{EntryOutcome, Receipt};

use crate::english as en;
use crate::html::counted;

const WIDTH: usize = 720;

/// The parts of a prompt, and what is left of its budget.
pub(super) fn bar(receipt: &Receipt, window: Option<u32>) -> Markup {
    let of = |placement| -> usize {
        let entries = receipt.entries.iter().filter(|entry| entry.placement == placement);
        entries
            .filter(|entry| entry.outcome == EntryOutcome::Included)
            .map(|entry| entry.tokens)
            .sum()
    };
    let parts = [
        ("system", en::SYSTEM_PROMPT, receipt.system_tokens),
        ("stable", en::STABLE, of(Placement::Stable)),
        ("history", en::HISTORY, of(Placement::History)),
        ("recalled", en::RECALLED, of(Placement::NewestTurn)),
        ("words", en::YOUR_WORDS, receipt.user_tokens),
    ];
    let budget = receipt.budget_tokens.or(window.map(|window| window as usize));
    let whole = budget.unwrap_or(0).max(receipt.used_tokens).max(1);
    let mut start = 0;
    html! {
        figure.window {
            svg viewBox="0 0 720 28" role="img" aria-label=(en::window_label(receipt.used_tokens, budget)) {
                rect.free x="0" y="0" width="720" height="28" rx="3" {}
                @for (class, name, tokens) in &parts {
                    @if *tokens > 0 {
                        @let width = (tokens * WIDTH / whole).max(2);
                        rect class=(class) x=(start) y="0" width=(width) height="28" { title { (name) ": " (tokens) } }
                        ({ start += width; "" })
                    }
                }
            }
            figcaption {
                @for (class, name, tokens) in &parts {
                    @if *tokens > 0 { span.key { svg width="12" height="12" viewBox="0 0 12 12" aria-hidden="true" { rect class=(class) width="12" height="12" rx="2" {} } " " (name) " " (tokens) } " " }
                }
                span.key { strong { (counted(receipt.used_tokens as u64, en::TOKENS)) } @if let Some(budget) = budget { " " (en::OF) " " (counted(budget as u64, ("", ""))) } }
            }
        }
    }
}
