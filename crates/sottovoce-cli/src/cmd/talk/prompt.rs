//! `sottovoce prompt`

use clap::ValueEnum;
use serde::Serialize;
use serde_json::value::RawValue;
use sottovoce::model::{
    OllamaChatRenderer, OllamaPromptRenderer, OpenAiChatRenderer, PromptRenderer,
};
use sottovoce::prompt::Receipt;

use crate::cmd::memory::stats::moment;
use crate::exit::{Exit, Outcome};
use crate::history_options::HistoryOptions;
use crate::output::finding_advice;
use crate::output::{self, BOLD, DIM, GOOD, WARN};
use crate::session::{Session, words};

/// Builds the prompt that `ask` would send for an utterance, and stores nothing
///
/// Asks the server about the model, which may load the model. If the server cannot be reached, the prompt is for a
/// model that cannot call functions.
#[derive(clap::Args)]
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

#[derive(Serialize)]
struct Explained<'a> {
    request: &'a RawValue,
    receipt: &'a RawValue,
}

pub(crate) async fn run(session: &Session, args: Args) -> Outcome {
    let text = words(&args.text)?;
    let mut config = session.config()?;
    args.history.apply(&mut config);
    let store = session.store_or_empty(&config).await?;
    let conversation = session.conversation_from(&config, store, args.clean).await?;
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
        let receipt = output::raw_json(finding_advice::receipt_json(&receipt)?)?;
        output::json(&Explained { request: &body, receipt: &receipt })?;
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
            output::note(&format!("the context was cleared at {}", moment(cleared.at)));
        }
    }
    Ok(Exit::Done)
}

/// Prints the receipt as a table on standard error, so that standard output holds only the prompt.
pub(crate) fn explain(receipt: &Receipt) {
    use std::io::Write;
    let mut out = anstream::stderr().lock();
    let mut row = |text: String| drop(writeln!(out, "{text}"));
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
            sottovoce::prompt::EntryOutcome::Included => (GOOD, "in"),
            sottovoce::prompt::EntryOutcome::Duplicate => (DIM, "out, offered twice"),
            sottovoce::prompt::EntryOutcome::TheUtterance => {
                (DIM, "out, it is the utterance itself")
            }
            sottovoce::prompt::EntryOutcome::OtherScope => (WARN, "out, of another conversation"),
            sottovoce::prompt::EntryOutcome::BeforeStart => {
                (DIM, "out, said before it started clean")
            }
            sottovoce::prompt::EntryOutcome::Cleared => {
                (DIM, "out, said before the context was cleared")
            }
            sottovoce::prompt::EntryOutcome::Pruned => (DIM, "out, pruned from the context"),
            sottovoce::prompt::EntryOutcome::LowConfidence => {
                (DIM, "out, heard with too little confidence")
            }
            sottovoce::prompt::EntryOutcome::OverBudget => (WARN, "out, over the budget"),
            sottovoce::prompt::EntryOutcome::TooLong => (WARN, "out, too long beside the rest"),
            _ => (DIM, "out"),
        };
        row(format!(
            "{seq:>7}  {:<9}  {:>6}  {style}{verdict}{style:#}: {}",
            entry.role.as_str(),
            entry.tokens,
            entry.why
        ));
    }
    row(format!("{:>7}  {:<9}  {:>6}  in: the utterance", "", "user", receipt.user_tokens));
    let of = receipt.budget_tokens.map_or_else(String::new, |budget| format!(" of {budget}"));
    row(format!(
        "{BOLD}{} of {} messages, about {}{of} tokens{BOLD:#}",
        receipt.included(),
        receipt.entries.len(),
        receipt.used_tokens
    ));
}
