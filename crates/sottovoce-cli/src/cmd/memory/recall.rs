//! `sottovoce recall`

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::Serialize;
use sottovoce::context::recall::{Recall, RecallHit, RecallQuery, Understood};
use zeroize::Zeroizing;

use crate::cmd::memory::understand;
use crate::exit::{Exit, Failure, Outcome};
use crate::interrupt::Interrupt;
use crate::output::message_row::MessageRow;
use crate::output::{self, DIM};
use crate::session::Session;

const AFTER_HELP: &str = "\
Examples:
  sottovoce recall what is my dog called      the messages that fit the question best
  sottovoce recall where did we go in May -n 3
  sottovoce recall Bruno --max-tokens 200     as many as 200 tokens hold
  sottovoce recall Bruno --json               one JSON object a message, with its score and why
  sottovoce recall --understand               after an import: encodes what all messages mean";

/// Finds what was said earlier and fits a question, best first
///
/// Ranks the messages by their meaning, the question's words, the day and the speaker, without a model. Prompts get
/// what they need from earlier in the conversation in the same way; see Context.Recall.Tokens. Cleared, pruned and
/// expired messages are not found, and with --thread only that thread's. To find exact words, use `search`.
#[derive(clap::Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct Args {
    /// The question; several words need no quotes
    #[arg(required_unless_present = "understand")]
    text: Vec<String>,

    /// The most messages to show
    #[arg(short = 'n', long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u16).range(1..=1000))]
    number: u16,

    /// The most tokens of messages to show, at four characters a token
    #[arg(long, value_name = "T")]
    max_tokens: Option<u32>,

    /// Encodes all messages that have no meaning yet, and asks nothing. Ctrl-C keeps what is done
    #[arg(long, conflicts_with_all = ["text", "number", "max_tokens"])]
    understand: bool,
}

/// A message in JSON.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Row<'a> {
    scope: String,
    score: f64,
    why: BTreeMap<&'static str, f64>,
    #[serde(flatten)]
    message: MessageRow<'a>,
}

pub(crate) async fn run(session: &Session, args: Args) -> Outcome {
    let text = Zeroizing::new(args.text.join(" "));
    if text.trim().is_empty() && !args.understand {
        return Err(Failure::input("there is no question", "ask something"));
    }
    let config = session.config()?;
    let stores = session.stores_or_empty(&config)?;
    if stores.is_empty() {
        return Err(Failure::Nothing { folder: config.storage_root()? });
    }
    if args.understand {
        let store = stores.open(session.scope.clone()).await?;
        let understood = understand::all(Arc::new(store)).await?;
        let Understood { known, all, .. } = understood;
        match session.json {
            true => output::json(&serde_json::json!({ "understood": known, "messages": all }))?,
            false => output::note(&understand::words(understood)),
        }
        return Ok(Exit::Done);
    }
    let mut interrupt = Interrupt::listen()?;
    let find = async {
        let store = stores.open(session.scope.clone()).await?;
        let recall = Recall::new(Arc::new(store));
        let query = RecallQuery::new(&text, session.clock().now(), args.number.into());
        let mut found = recall.find_in(&query, session.thread.as_deref()).await?;
        if let Some(tokens) = args.max_tokens {
            found = found.within(tokens as usize, usize::MAX);
        }
        Ok::<_, Failure>((recall, found))
    };
    let (recall, found) = interrupt.or("", find).await??;
    output::skipped(&found.skipped);
    let understood = recall.understood().await?;
    if understood.known < understood.all {
        output::note(&understand::words(understood));
    }
    for hit in &found.hits {
        show(session, hit)?;
    }
    understand::go_on(&recall).await;
    if found.hits.is_empty() {
        output::note("nothing was found");
        return Ok(Exit::Problems);
    }
    Ok(Exit::Done)
}

fn show(session: &Session, RecallHit { stored, hit, .. }: &RecallHit) -> std::io::Result<()> {
    let rounded = |score: f32| (f64::from(score) * 100.0).round() / 100.0;
    let shares = hit.why.features().into_iter();
    let why: BTreeMap<_, _> = shares
        .filter(|(_, share)| share.abs() >= 0.05)
        .map(|(name, share)| (name, rounded(share)))
        .collect();
    if session.json {
        return output::json(&Row {
            scope: session.scope.to_string(),
            score: rounded(hit.score),
            why,
            message: MessageRow::of(stored),
        });
    }
    output::said(stored.seq, &stored.message)?;
    output::line(format!("        {DIM}{}{DIM:#}", hit.why.in_words()))
}
