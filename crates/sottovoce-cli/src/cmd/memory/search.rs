//! `sottovoce search`

use serde::Serialize;
use sottovoce::Scope;
use sottovoce::conversation::{SearchHit, SearchOptions, SearchResults, search};
use zeroize::Zeroizing;

use crate::cmd::memory::scopes;
use crate::exit::{Exit, Failure, Outcome, with_causes};
use crate::interrupt::Interrupt;
use crate::output::message_row::MessageRow;
use crate::output::{self, BOLD, DIM, GOOD};
use crate::session::Session;

const AFTER_HELP: &str = "\
Examples:
  sottovoce search leek soup                 the ten best messages that have both words
  sottovoce search tea -C 2                  with two messages before and after each
  sottovoce --scope dm/42 search dentist     in another conversation
  sottovoce search dentist --all             in all of them
  sottovoce --thread 7 search milk --json    in one thread, one JSON object a hit

Exit codes:
  0  something was found           3  nothing was found, or a conversation cannot be read
  1  failed; see the message       4  no key, or the wrong one
  2  the command was mistyped    130  interrupted";

/// Finds words in what was said, best matches first
///
/// Finds messages that contain all the words, with or without accents, in any letter case and order. Messages with
/// the words as whole words come before those with the words inside longer ones ("tea" in "team"). Messages hidden by
/// the conversation's limits are not found; cleared and pruned ones are. With --thread, searches only that thread.
#[derive(clap::Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct Args {
    /// The words; several need no quotes
    #[arg(required = true)]
    words: Vec<String>,

    /// The most matches to show
    #[arg(short = 'n', long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    number: u32,

    /// Shows this many messages before and after each match
    #[arg(short = 'C', long, value_name = "N", default_value_t = 0, value_parser = clap::value_parser!(u8).range(0..=100))]
    around: u8,

    /// Searches every conversation of the store
    #[arg(long)]
    all: bool,

    /// Finds messages that contain any of the words, those with rare ones first
    #[arg(long)]
    any: bool,

    /// Ignores words inside longer words
    #[arg(short, long)]
    whole: bool,
}

/// A match in JSON.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Row<'a> {
    scope: String,
    score: f64,
    #[serde(flatten)]
    message: MessageRow<'a>,
    /// For each word without a whole-word occurrence, the longer word that contains it.
    longer_words: Vec<&'a str>,
    before: Vec<MessageRow<'a>>,
    after: Vec<MessageRow<'a>>,
}

pub(crate) async fn run(session: &Session, args: Args) -> Outcome {
    let words = Zeroizing::new(args.words.join(" "));
    if words.trim().is_empty() {
        return Err(Failure::input("there are no words to look for", "give some"));
    }
    let config = session.config()?;
    let limit = args.number as usize;
    let options = SearchOptions::new(limit)
        .in_thread(session.thread.as_deref())
        .any(args.any)
        .whole(args.whole)
        .around(args.around.into());
    let scopes = match args.all {
        true => scopes::all(&config)?,
        false => vec![session.scope.clone()],
    };
    let stores = session.stores_or_empty(&config)?;
    if scopes.is_empty() || stores.is_empty() {
        return Err(Failure::Nothing { folder: config.storage_root()? });
    }
    let mut interrupt = Interrupt::listen()?;
    let bar = output::progress(args.all.then_some(scopes.len() as u64), "searching");
    let (mut hits, mut total, mut exit) = (Vec::new(), 0, Exit::Done);
    for scope in scopes {
        let look = async {
            let store = stores.open(scope.clone()).await?;
            Ok::<SearchResults, Failure>(search(&store, &words, &options).await?)
        };
        let found = tokio::select! {
            biased;
            _ = interrupt.heard() => {
                bar.finish_and_clear();
                return Ok(Exit::Interrupted);
            }
            found = look => found,
        };
        bar.inc(1);
        match found {
            Ok(found) => {
                bar.suspend(|| output::skipped(&found.skipped));
                total += found.total;
                hits.extend(found.hits.into_iter().map(|hit| (scope.clone(), hit)));
                best(&mut hits, limit);
            }
            Err(Failure::Library(error)) if args.all => {
                exit = Exit::Problems;
                bar.suspend(|| output::warning(&format!("{scope}: {}", with_causes(&error))));
            }
            Err(failure) => {
                bar.finish_and_clear();
                return Err(failure);
            }
        }
    }
    bar.finish_and_clear();
    show(session, &hits, &args)?;
    let shown = hits.len() as u64;
    if shown == 0 {
        let several = args.words.join(" ").split_whitespace().nth(1).is_some();
        output::note(match several && !args.any {
            true => "no message has all these words; --any finds those that have some of them",
            false => "nothing was found",
        });
        return Ok(Exit::Problems);
    }
    if shown < total && !session.json {
        let all = output::counted(total, "message");
        output::note(&format!("the best {shown} of {all}; -n shows more"));
    }
    Ok(exit)
}

/// Keeps the best matches in order; if scores are equal, newer ones come first.
fn best(hits: &mut Vec<(Scope, SearchHit)>, limit: usize) {
    hits.sort_by(|(_, a), (_, b)| {
        b.score.total_cmp(&a.score).then_with(|| b.stored.ordered_at().cmp(&a.stored.ordered_at()))
    });
    hits.truncate(limit);
}

fn show(session: &Session, hits: &[(Scope, SearchHit)], args: &Args) -> std::io::Result<()> {
    let mut last = None;
    for (at, (scope, hit)) in hits.iter().enumerate() {
        if session.json {
            output::json(&Row {
                scope: scope.to_string(),
                score: (hit.score * 1e4).round() / 1e4,
                message: MessageRow::of(&hit.stored),
                longer_words: hit.longer_words.iter().map(|word| word.as_str()).collect(),
                before: hit.before.iter().map(|stored| MessageRow::of(stored)).collect(),
                after: hit.after.iter().map(|stored| MessageRow::of(stored)).collect(),
            })?;
            continue;
        }
        if at > 0 && args.around > 0 {
            output::line(format!("{DIM}--{DIM:#}"))?;
        }
        if args.all && last.replace(scope) != Some(scope) {
            output::line(format!("{BOLD}{}{BOLD:#}", output::one_line(&scope.to_string())))?;
        }
        for stored in &hit.before {
            output::said(stored.seq, &stored.message)?;
        }
        if args.around > 0 {
            output::line(format!("{GOOD}found:{GOOD:#}"))?;
        }
        output::said(hit.stored.seq, &hit.stored.message)?;
        if !hit.longer_words.is_empty() {
            let words: Vec<_> =
                hit.longer_words.iter().map(|word| output::one_line(word)).collect();
            output::line(format!("        {DIM}(only within: {}){DIM:#}", words.join(", ")))?;
        }
        for stored in &hit.after {
            output::said(stored.seq, &stored.message)?;
        }
    }
    Ok(())
}
