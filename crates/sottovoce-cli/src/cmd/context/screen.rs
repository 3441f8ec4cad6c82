//! The summary screen of a context.

use std::collections::BTreeMap;
use std::sync::Arc;

use sottovoce::conversation::ConversationOverview;
use sottovoce::persona::PersonaConversation;
use sottovoce::store::{Artifact, ArtifactStore, Profile};
use sottovoce::{ConversationStore, StoredMessage};

use crate::cmd::artifact::short;
use crate::cmd::context::{Open, why_out};
use crate::cmd::named::shown::{self, context_row};
use crate::cmd::prune::beginning;
use crate::exit::{Exit, Outcome};
use crate::output::{self, BOLD, DIM, GOOD, WARN, grouped, object};

/// How many newest messages and artifacts are shown.
const MESSAGES: usize = 4;
const ARTIFACTS: usize = 3;
/// Width of the bar in columns.
const WIDTH: usize = 20;
/// The share of the budget from which the bar warns.
const FULL: f64 = 0.75;

pub(super) async fn show(open: &Open<'_>) -> Outcome {
    let overview = open.conversation.overview().await?;
    let micros = overview.cost_micros(open.session.config()?.language_model.price_per_million);
    let cost = money(micros);
    let scope = open.store.scope().to_string();
    let context = open.session.context_of(open.store).await?;
    if open.session.json {
        let row = object!("scope": scope).all_of(&overview).and("cost", &cost);
        output::json(&row.maybe("context", context.as_ref().map(context_row)))?;
        return Ok(Exit::Done);
    }
    let row = |name: &str, value: String| output::line(format!("{BOLD}{name}:{BOLD:#} {value}"));
    output::line(format!("{BOLD}Context summary{BOLD:#}\n"))?;
    row("Conversation", scope)?;
    if let Some(title) = &overview.title {
        row("Title", format!("\"{}\"", output::one_line(title)))?;
    }
    if let Some(context) = &context {
        row("Persona", persona(context))?;
        row("Expiry", shown::expiry(open.session, context))?;
    }
    if !overview.tags.is_empty() {
        let tags: Vec<String> = overview.tags.iter().map(|tag| output::one_line(tag)).collect();
        row("Tags", tags.join(", "))?;
    }
    row("Messages", with_parts(overview.message_count(), &overview.messages))?;
    let kinds = overview.artifacts.iter().map(|(kind, n)| (&**kind, *n as u64));
    let kinds: BTreeMap<String, u64> = kinds.map(|(kind, n)| (plural(kind, n), n)).collect();
    row("Artifacts", with_parts(overview.artifact_count() as u64, &kinds))?;
    row("Tokens", tokens(&overview))?;
    if overview.summarized > 0 {
        row("Summarized", output::counted(overview.summarized, "message"))?;
    }
    if overview.pruned > 0 {
        row("Pruned", output::counted(overview.pruned, "message"))?;
    }
    let tokens = format!("{} tokens", grouped(overview.spent.tokens));
    match micros {
        // A local model has no price.
        0 => row("Used", tokens)?,
        _ => row("Cost", format!("${cost:.4} for {tokens}"))?,
    }
    for (name, at) in [("Created", overview.created), ("Updated", overview.updated)] {
        if let Some(at) = at {
            row(name, output::moment(at))?;
        }
    }
    let profile = open.store.profile().await?;
    messages(&open.store.read_tail(MESSAGES).await?.messages, &profile)?;
    artifacts(&open.store.artifacts().await?.0)?;
    output::note(
        "`context messages` and `context artifacts` show all of them; `context help` tells more",
    );
    Ok(Exit::Done)
}

/// The preset of the personality, and the limits of its answers.
fn persona(context: &PersonaConversation) -> String {
    let persona = &context.assigned_persona.persona;
    let preset = context.assigned_persona.preset.as_deref().unwrap_or("its own");
    format!(
        "{}, temperature {}, answers of {} tokens, history of {}",
        output::one_line(preset),
        persona.temperature,
        grouped(persona.max_tokens.into()),
        grouped(persona.max_history_tokens.into()),
    )
}

fn messages(newest: &[Arc<StoredMessage>], profile: &Profile) -> std::io::Result<()> {
    if newest.is_empty() {
        return Ok(());
    }
    output::line(format!("\n{BOLD}Recent messages:{BOLD:#}"))?;
    newest.iter().try_for_each(|stored| {
        let message = &stored.message;
        let out = why_out(profile, stored).map(|why| format!(" {DIM}({why}){DIM:#}"));
        output::line(format!(
            "  {DIM}[{}]{DIM:#} {}{}",
            message.role.as_str(),
            beginning(&message.content),
            out.unwrap_or_default()
        ))
    })
}

fn artifacts(all: &[Artifact]) -> std::io::Result<()> {
    if all.is_empty() {
        return Ok(());
    }
    output::line(format!("\n{BOLD}Artifacts:{BOLD:#}"))?;
    for artifact in all.iter().rev().take(ARTIFACTS) {
        let what = output::one_line(&artifact.description());
        output::line(format!("  {DIM}{}{DIM:#}: {what}", short(&artifact.id)))?;
    }
    match all.len().checked_sub(ARTIFACTS) {
        Some(more @ 1..) => output::line(format!("  {DIM}… +{more} more{DIM:#}")),
        _ => Ok(()),
    }
}

/// "45 (20 user, 15 assistant, 10 tool)"
fn with_parts(total: u64, parts: &BTreeMap<impl AsRef<str> + Ord, u64>) -> String {
    let mut parts: Vec<(&str, u64)> =
        parts.iter().map(|(name, number)| (name.as_ref(), *number)).collect();
    parts.sort_by_key(|(_, number)| std::cmp::Reverse(*number));
    let parts: Vec<String> =
        parts.into_iter().map(|(name, n)| format!("{} {name}", grouped(n))).collect();
    match parts.is_empty() {
        true => grouped(total),
        false => format!("{} ({})", grouped(total), parts.join(", ")),
    }
}

fn plural(kind: &str, number: u64) -> String {
    let kind = output::one_line(kind);
    if number == 1 { kind } else { format!("{kind}s") }
}

/// The tokens of the next prompt and its budget, with a bar.
fn tokens(overview: &ConversationOverview) -> String {
    let used = grouped(overview.prompt_tokens as u64);
    let Some(budget) = overview.budget_tokens.filter(|budget| *budget > 0) else {
        return format!("{used}, no limit");
    };
    // The numbers are far too small for a loss of precision.
    #[expect(clippy::cast_precision_loss)]
    let share = overview.prompt_tokens as f64 / budget as f64;
    #[expect(clippy::cast_precision_loss, clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    let filled = ((share * WIDTH as f64).round() as usize).min(WIDTH);
    let style = if share < FULL { GOOD } else { WARN };
    format!(
        "{used} / {} ({:.1}%)  {style}{}{style:#}{DIM}{}{DIM:#}",
        grouped(budget as u64),
        share * 100.0,
        "█".repeat(filled),
        "░".repeat(WIDTH - filled),
    )
}

/// Converts millionths to units.
fn money(micros: u64) -> f64 {
    // Costs are far too small for a loss of precision.
    #[expect(clippy::cast_precision_loss)]
    let money = micros as f64 / 1e6;
    money
}

#[cfg(test)]
mod tests {

    use super::*;

    #[test]
    fn numbers_read_well() {
        assert_eq!(
            [0, 999, 1000, 85_420, 1_234_567].map(grouped),
            ["0", "999", "1,000", "85,420", "1,234,567"]
        );
        let parts = BTreeMap::from([("tool", 10), ("user", 20), ("assistant", 15)]);
        assert_eq!(with_parts(45, &parts), "45 (20 user, 15 assistant, 10 tool)");
        assert_eq!(with_parts(0, &BTreeMap::<String, u64>::new()), "0");
        assert_eq!(
            (plural("file", 1), plural("search result", 3)),
            ("file".into(), "search results".into())
        );
    }

    #[test]
    fn the_bar_is_as_long_as_the_share_and_never_longer() {
        let bar = |used: usize, budget| {
            let mut overview = ConversationOverview::default();
            overview.prompt_tokens = used;
            overview.budget_tokens = budget;
            tokens(&overview)
        };
        assert!(bar(1000, Some(2000)).contains("1,000 / 2,000 (50.0%)"));
        assert_eq!(bar(1000, Some(2000)).matches('█').count(), 10);
        assert_eq!(bar(9000, Some(2000)).matches('█').count(), 20);
        assert_eq!(bar(0, Some(2000)).matches('░').count(), 20);
        assert_eq!(bar(5, None), "5, no limit");
    }
}
