//! `sottovoce prompt`, and what the last prompt of a chat held

use std::io;

use clap::ValueEnum;
use sottovoce::Config;
use sottovoce::conversation::TurnReport;
use sottovoce::model::{
    OllamaChatRenderer, OllamaPromptRenderer, OpenAiChatRenderer, PromptRenderer,
};
use sottovoce::prompt::{EntryOutcome, Prompt, Receipt};

use crate::advice;
use crate::cmd::reply::seconds;
use crate::exit::{Exit, Outcome};
use crate::output::{self, BOLD, DIM, GOOD, WARN, moment, object};
use crate::session::{Session, words};

const AFTER_HELP: &str = "\
Examples:
  sottovoce prompt What is my sister called?              as `ask` would send it
  sottovoce prompt --explain What is my sister called?    what is in it, and why
  sottovoce prompt --renderer text -n 10 Hello            as plain text";

/// Builds the prompt that `ask` would send for an utterance, and stores nothing
///
/// Asks the server about the model, which may load the model. If the server cannot be reached, the prompt is for a
/// model that cannot call functions.
#[derive(clap::Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct Args {
    /// The utterance; several words need no quotes, and `-` reads standard input
    text: Vec<String>,

    /// The format of the request; that of the configured server unless given
    #[arg(long, value_enum)]
    renderer: Option<Renderer>,

    /// Shows for each message whether it is in the prompt, why, and its tokens
    #[arg(long)]
    explain: bool,

    /// Starts clean: the prompt holds nothing that was said before
    #[arg(long)]
    clean: bool,

    #[command(flatten)]
    history: HistoryOptions,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Renderer {
    /// The messages of Ollama's /api/chat
    OllamaChat,
    /// One text in the JSON of Ollama's /api/generate
    OllamaGenerate,
    /// The messages of /v1/chat/completions
    OpenaiChat,
    /// One text, without JSON
    Text,
}

pub(crate) async fn run(session: &Session, args: Args) -> Outcome {
    let text = words(&args.text)?;
    let session = &session.with(|config| args.history.apply(config))?;
    let config = session.config()?;
    let store = session.store_or_empty().await?;
    let conversation = session.conversation_from(store, args.clean).await?;
    let (prompt, receipt) = conversation.prompt(text.as_str()).await?;
    output::skipped(&receipt.skipped);
    let options = config.model_options();
    let request = match args.renderer {
        None => config.renderer().render(&prompt),
        Some(Renderer::OllamaChat) => OllamaChatRenderer::new(options).render(&prompt),
        Some(Renderer::OllamaGenerate | Renderer::Text) => {
            OllamaPromptRenderer::new(options).render(&prompt)
        }
        Some(Renderer::OpenaiChat) => OpenAiChatRenderer::new(options).render(&prompt),
    };
    if session.json && args.explain {
        let body = output::raw_json(request.body)?;
        let receipt = output::raw_json(advice::receipt_json(&receipt)?)?;
        output::json(&object!("request": body, "receipt": receipt))?;
        return Ok(Exit::Done);
    }
    match args.renderer {
        _ if session.json => output::json_text(&request.body)?,
        Some(Renderer::Text) => {
            output::line(output::printable(&OllamaPromptRenderer::render_text(&prompt)))?;
        }
        _ => output::request(&request)?,
    }
    if args.explain {
        explain(&receipt);
        let cleared = conversation.store().profile().await?.cleared;
        if let Some(cleared) = cleared {
            output::note(&format!("the conversation was cleared at {}", moment(cleared.at)));
        }
    }
    Ok(Exit::Done)
}

/// Shows a prompt as text, and what it holds and why.
pub(crate) fn show(prompt: &Prompt, receipt: &Receipt) -> io::Result<()> {
    output::line(output::printable(&prompt.system))?;
    output::line("")?;
    output::line(output::printable(&OllamaPromptRenderer::render_text(prompt)))?;
    explain(receipt);
    Ok(())
}

/// The column of the reasons.
const WHY: usize = 28;

/// Prints the receipt as a table on standard error, so that standard output holds only the prompt.
pub(crate) fn explain(receipt: &Receipt) {
    let row = |text: String| output::remark(&text, WHY);
    row(format!("\n{BOLD}{:>7}  {:<9}  {:>6}  why{BOLD:#}", "number", "role", "tokens"));
    let system = receipt.system_tokens.saturating_sub(receipt.tool_tokens);
    row(format!("{:>7}  {:<9}  {system:>6}  in: the system prompt", "", "system"));
    if receipt.tool_tokens > 0 {
        let what = "in: the functions that the model may call";
        row(format!("{:>7}  {:<9}  {:>6}  {what}", "", "", receipt.tool_tokens));
    }
    if let Some(last) = receipt.starts_after {
        row(format!("{:>7}  {:<9}  {:>6}  started clean after number {last}", "", "", ""));
    }
    for entry in &receipt.entries {
        let seq = entry.seq.map_or_else(String::new, |seq| seq.to_string());
        let (style, verdict) = match entry.outcome {
            EntryOutcome::Included => (GOOD, "in".to_owned()),
            EntryOutcome::OverBudget | EntryOutcome::TooLong | EntryOutcome::OtherScope => {
                (WARN, format!("out, {}", entry.outcome.in_words()))
            }
            outcome => (DIM, format!("out, {}", outcome.in_words())),
        };
        row(format!(
            "{seq:>7}  {:<9}  {:>6}  {style}{verdict}{style:#}: {} ({})",
            entry.role.as_str(),
            entry.tokens,
            output::one_line(entry.reason()),
            entry.source
        ));
    }
    row(format!("{:>7}  {:<9}  {:>6}  in: the utterance", "", "user", receipt.user_tokens));
    let of = receipt.budget_tokens.map_or_else(String::new, |budget| format!(" of {budget}"));
    row(format!(
        "{BOLD}{} of {}, about {}{of} tokens{BOLD:#}",
        receipt.included(),
        output::messages(receipt.entries.len()),
        receipt.used_tokens
    ));
}

/// The options of every command that builds a prompt.
#[derive(Debug, clap::Args)]
pub(crate) struct HistoryOptions {
    /// At least N messages of history, instead of Context.LastN
    ///
    /// The history of a prompt grows from N messages to four times as many, and is then cut back to N, in whole
    /// exchanges. The beginning of the prompt therefore seldom changes, and a local model reads only what is new. A
    /// context has as much history as its token limit allows, and a conversation with a rolling window (`sottovoce
    /// settings --window`) has the messages within it; N does not matter there.
    #[arg(long, short = 'n', value_name = "N", value_parser = clap::value_parser!(u16).range(..=10_000))]
    last_n: Option<u16>,

    /// Exactly N messages of history, as with Context.Exact
    ///
    /// In a conversation with a rolling window, exactly the messages within the window. A local model then reads the
    /// whole prompt again in every turn.
    #[arg(long)]
    exact: bool,
}

impl HistoryOptions {
    pub(crate) fn apply(&self, config: &mut Config) {
        if let Some(n) = self.last_n {
            config.context.last_n = n.into();
        }
        config.context.exact |= self.exact;
    }
}

/// Width of a bar in columns.
const WIDTH: usize = 40;

/// Shows a turn's prompt and figures on standard error.
pub(crate) fn explain_turn(report: &TurnReport) {
    explain(&report.receipt);
    let row = |text: String| output::remark(&text, 9);
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
    let mut counts: Vec<(&str, usize)> = Vec::new();
    for entry in receipt.entries.iter().filter(|e| e.outcome != EntryOutcome::Included) {
        let why = entry.outcome.in_words();
        match counts.iter_mut().find(|(known, _)| *known == why) {
            Some((_, count)) => *count += 1,
            None => counts.push((why, 1)),
        }
    }
    counts.into_iter().map(|(why, count)| format!("{count} {why}")).collect()
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
