//! `sottovoce recall`, and giving messages their meanings for it

use std::collections::BTreeMap;
use std::io::{IsTerminal, stderr};
use std::sync::Arc;
use std::time::{Duration, Instant};

use sottovoce::ConversationStore;
use sottovoce::context::recall::{Recall, RecallHit, RecallQuery, Understood};
use zeroize::Zeroizing;

use crate::exit::{Exit, Failure, Outcome};
use crate::interrupt::Interrupt;
use crate::output::{self, DIM, message_row, object};
use crate::session::Session;

const AFTER_HELP: &str = "\
Examples:
  sottovoce recall what is my dog called     what fits the question best
  sottovoce recall where did we go in May -n 3
  sottovoce recall Bruno --max-tokens 200    as many as 200 tokens hold
  sottovoce recall Bruno --json              with scores and reasons
  sottovoce recall --understand              after an import: all meanings";

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

pub(crate) async fn run(session: &Session, args: Args) -> Outcome {
    let text = Zeroizing::new(args.text.join(" "));
    if text.trim().is_empty() && !args.understand {
        return Err(Failure::input("there is no question", "ask something"));
    }
    if args.understand {
        let store = session.store().await?;
        let understood = understand_all(Arc::new(store)).await?;
        let Understood { known, all, .. } = understood;
        match session.json {
            true => output::json(&object!("understood": known, "messages": all))?,
            false => output::note(&understood_in_words(understood)),
        }
        return Ok(Exit::Done);
    }
    let mut interrupt = Interrupt::listen()?;
    let find = async {
        let recall = Recall::new(Arc::new(session.store().await?));
        let query = RecallQuery::new(&text, session.clock().now(), args.number.into());
        let mut found = recall.find_in(&query, session.thread.as_deref()).await?;
        if let Some(tokens) = args.max_tokens {
            found = found.within(tokens as usize, usize::MAX);
        }
        Ok::<_, Failure>((recall, found))
    };
    let (recall, found) = interrupt.or("", find).await??;
    let pager = session.pager()?;
    output::skipped(&found.skipped);
    let understood = recall.understood().await?;
    if understood.known < understood.all {
        output::note(&understood_in_words(understood));
    }
    for hit in &found.hits {
        show(session, hit)?;
    }
    drop(pager);
    understand_shortly(&recall).await;
    if found.hits.is_empty() {
        output::note("nothing was found");
        return Ok(Exit::Problems);
    }
    Ok(Exit::Done)
}

fn show(session: &Session, found: &RecallHit) -> std::io::Result<()> {
    let (RecallHit { stored, hit, .. }, source) = (found, output::one_line(&found.source()));
    let rounded = |score: f32| (f64::from(score) * 100.0).round() / 100.0;
    let shares = hit.why.features().into_iter();
    let why: BTreeMap<_, _> = shares
        .filter(|(_, share)| share.abs() >= 0.05)
        .map(|(name, share)| (name, rounded(share)))
        .collect();
    if session.json {
        let row = object!("scope": session.scope.to_string(), "score": rounded(hit.score));
        return output::json(
            &row.and("why", &why).all_of(&message_row(stored.seq, &stored.message)),
        );
    }
    output::said(stored.seq, &stored.message)?;
    output::line(format!("        {DIM}{} ({}){DIM:#}", hit.why.in_words(), source))
}

/// How many messages get their meanings before the progress bar moves, and before they are saved.
const AT_ONCE: usize = 16;
const SAVED_AFTER: usize = 1024;
/// How long a command works on the meanings when it has shown its result.
const SHORTLY: Duration = Duration::from_millis(300);

/// What is kept when somebody stops it.
const KEPT: &str = "what was understood is kept; `sottovoce recall --understand` goes on with it, and so does a server";

/// Gives all messages of a conversation their meanings.
pub(crate) async fn understand_all(
    store: Arc<dyn ConversationStore>,
) -> Result<Understood, Failure> {
    let recall = Recall::new(store);
    let mut interrupt = Interrupt::listen()?;
    let bar = output::progress(Some(0), "understanding");
    let work = async {
        let Understood { known, all, .. } = recall.understood().await?;
        bar.set_length((all - known) as u64);
        let mut unsaved = 0;
        loop {
            let understood = recall.understand(AT_ONCE).await?;
            bar.inc(understood as u64);
            unsaved += understood;
            if understood == 0 || unsaved >= SAVED_AFTER {
                recall.save().await?;
                unsaved = 0;
            }
            if understood == 0 {
                return recall.understood().await;
            }
        }
    };
    let understood = match interrupt.or(KEPT, work).await {
        Ok(understood) => understood?,
        Err(failure) => {
            recall.save().await?;
            return Err(failure);
        }
    };
    bar.finish_and_clear();
    Ok(understood)
}

/// Runs [`understand_all`] if standard error is a terminal. Elsewhere it is left to servers and to `recall`. The import is done, so a
/// failure is a warning.
pub(crate) async fn understand_import(store: Arc<dyn ConversationStore>) {
    if stderr().is_terminal()
        && let Err(failure) = understand_all(store).await
    {
        output::failure(&failure);
    }
}

/// Works on what is missing for a moment, and keeps it and the conversation's index for the next question.
pub(crate) async fn understand_shortly(recall: &Recall) {
    let begun = Instant::now();
    let work = async {
        while begun.elapsed() < SHORTLY && recall.understand(1).await? > 0 {}
        recall.save().await
    };
    warn(work.await);
}

/// Keeps what was worked out of a conversation's index for the next question.
pub(crate) async fn keep_index(recall: &Recall) {
    warn(recall.save().await);
}

fn warn(saved: sottovoce::Result<()>) {
    if let Err(error) = saved {
        output::warning(&format!("the index could not be kept: {error}"));
    }
}

/// How many messages are understood, in words, and what that means for the others.
pub(crate) fn understood_in_words(Understood { known, all, .. }: Understood) -> String {
    let others = if known < all { "; the others are found by their words alone" } else { "" };
    format!("understood: {known} of {}{others}", output::messages(all))
}
