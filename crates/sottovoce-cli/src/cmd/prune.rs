//! `sottovoce prune`

use clap::ValueEnum;
use sottovoce::context::{OldestStrategy, PrunePlan, PruneStrategy, RelevanceStrategy};
use sottovoce::{Config, Conversation};
use std::ops::RangeInclusive;

use crate::cmd::forget::parse_range;
use crate::exit::{Exit, Failure, Outcome};
use crate::output::{self, BOLD, DIM, Object, object};
use crate::session::Session;

/// How many characters of a message are shown beside its score.
const SHOWN: usize = 50;

const AFTER_HELP: &str = "\
A message is worth, by relevance: 100 points less one an hour for its age; 100 for the user's words, 50 for the
assistant's, 25 for a tool's; 50 for calling functions; 25 for a result that tells of no failure; up to 50 for the
share of the task's words that it holds. What is worth most stays, as long as it fits; a call and its result stay or
go together.

Examples:
  sottovoce prune --max-tokens 1000 --dry-run             what would go, and why
  sottovoce prune --max-tokens 1000 --task \"plan the party\"
  sottovoce prune --undo                                  prompts may hold everything again
  sottovoce prune --undo 3-9";

/// Hides the least useful messages from prompts; deletes nothing
///
/// Later prompts do not hold them, but they stay stored: `sottovoce tail` still shows them, and `--undo` brings them
/// back.
#[derive(Debug, clap::Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct Args {
    /// How messages are scored
    #[arg(long, value_name = "NAME", default_value = "relevance")]
    strategy: Strategy,

    /// The most tokens that the history may take; the prompt's budget unless given
    #[arg(long, value_name = "N")]
    max_tokens: Option<usize>,

    /// How many of the newest messages always stay
    #[arg(long, value_name = "K", default_value_t = 10)]
    keep_recent: usize,

    /// The current topic: messages with its words get a higher score
    #[arg(long, value_name = "TEXT")]
    task: Option<String>,

    /// Only shows what would be removed
    #[arg(long)]
    dry_run: bool,

    /// Shows messages to prompts again: all, or those with these numbers
    #[arg(long, value_name = "NUMBER|RANGE", num_args = 0.., value_parser = parse_range,
          conflicts_with_all = ["max_tokens", "task", "dry_run"])]
    undo: Option<Vec<RangeInclusive<u64>>>,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Strategy {
    /// By age, role, function calls and keywords
    Relevance,
    /// Oldest first
    Oldest,
}

/// Runs the command in an open conversation.
pub(crate) async fn obey(session: &Session, conversation: &Conversation, args: Args) -> Outcome {
    if let Some(seqs) = args.undo {
        let unpruned = conversation.unprune(&seqs).await?;
        return session.tell(object!("unpruned": unpruned), || {
            format!("prompts may hold {} again", output::counted(unpruned, "message"))
        });
    }
    let budget = budget(session.config()?);
    let most = args.max_tokens.or(budget).ok_or_else(|| {
        Failure::input("there is no token limit to prune to", "give --max-tokens N")
    })?;
    let strategy: Box<dyn PruneStrategy> = match (args.strategy, &args.task) {
        (Strategy::Oldest, _) => Box::new(OldestStrategy),
        (Strategy::Relevance, Some(task)) => Box::new(RelevanceStrategy::for_task(task)),
        (Strategy::Relevance, None) => Box::new(RelevanceStrategy::new()),
    };
    let pruning = conversation.plan_pruning(&*strategy, most, args.keep_recent).await?;
    show(session, conversation, &pruning).await?;
    if !args.dry_run {
        conversation.prune(&pruning).await?;
    }
    let dropped = pruning.dropped().count();
    if session.json {
        output::json(&object!(
            "dropped": dropped, "kept": pruning.verdicts.len() - dropped,
            "tokensBefore": pruning.tokens_before, "tokensAfter": pruning.tokens_after,
            "dryRun": args.dry_run,
        ))?;
        return Ok(Exit::Done);
    }
    let verb = if args.dry_run { "would take" } else { "took" };
    output::line(format!(
        "{BOLD}{verb} {} out of prompts{BOLD:#}, {} to {} tokens",
        output::messages(dropped),
        pruning.tokens_before,
        pruning.tokens_after,
    ))?;
    if dropped > 0 && !args.dry_run {
        output::note("nothing was deleted; `prune --undo` brings them back");
    }
    Ok(Exit::Done)
}

/// The configured budget of a prompt.
pub(crate) fn budget(config: &Config) -> Option<usize> {
    let model = &config.language_model;
    let window = model.num_ctx?;
    let answer = model.num_predict.unwrap_or(window / 4);
    Some(window.saturating_sub(answer) as usize)
}

/// Shows what is removed and why, in the order of the conversation.
async fn show(
    session: &Session,
    conversation: &Conversation,
    pruning: &PrunePlan,
) -> Result<(), Failure> {
    for verdict in pruning.verdicts.iter().filter(|verdict| !verdict.stays || session.json) {
        let worth = verdict.score.as_ref().map(sottovoce::context::Score::total);
        if session.json {
            output::json(&Object::default().all_of(verdict).and("worth", &worth))?;
            continue;
        }
        let seq = verdict.seq;
        let found = conversation.store().read_seqs(seq..=seq).await?.messages;
        let words = found.first().map(|stored| beginning(&stored.message.content));
        let why = verdict.score.as_ref().map(ToString::to_string).unwrap_or_default();
        output::line(format!(
            "{DIM}{seq:>6}{DIM:#}  {:<9} {:>5} tokens  worth {:>4.0}  {DIM}{why}{DIM:#}\n        {}",
            verdict.role.as_str(),
            verdict.tokens,
            worth.unwrap_or_default(),
            words.unwrap_or_default(),
        ))?;
    }
    Ok(())
}

/// The beginning of a text on one line.
pub(crate) fn beginning(words: &str) -> String {
    let line = output::one_line(words);
    match line.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}…", line.get(..end).unwrap_or_default()),
        None => line,
    }
}
