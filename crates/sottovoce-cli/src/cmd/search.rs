//! `sottovoce search`

use std::sync::Arc;
use std::time::Duration;

use anstyle::{AnsiColor, Style};
use sottovoce::context::recall::{
    FoundMessage, Lookup, Neighbours, NotUnderstood, Passage, Recall, SearchQuery, Stage,
    neighbours,
};
use sottovoce::{Error, Scope, StoredMessage, with_causes};
use tokio::time::{Instant, timeout_at};
use zeroize::Zeroizing;

use crate::cmd::recall;
use crate::exit::{Exit, Failure, Outcome};
use crate::interrupt::Interrupt;
use crate::output::{self, BOLD, DIM, GOOD, Object, message_row, object};
use crate::session::{Session, Stores};

const MARK: Style = AnsiColor::Yellow.on_default().bold();
/// How long other conversations are looked at for a hint.
const SHORTLY: Duration = Duration::from_millis(500);

const AFTER_HELP: &str = "\
Examples:
  sottovoce search leek soup                         messages with both words
  sottovoce search \"leek soup\"                       in this order
  sottovoce search recip* after:2025-05              words that begin so
  sottovoce search tea speaker:Anna -C 2             with two messages around
  sottovoce search dentist from:assistant            or from:me, from:tool
  sottovoce search dentist before:2025-05-11 --all   in all conversations";

/// Finds words in what was said, newest first, or else what fits them best
///
/// Finds the messages that contain all the words exactly, in any order and letter case, with or without accents. Words
/// in quotes stand in this order; `recip*` finds words that begin so. The filters from:, speaker:, before: and after:
/// narrow the search; days are written 2025, 2025-05 or 2025-05-11. Messages hidden by the conversation's limits are
/// not found; cleared and pruned ones are. If no message has all the words, shows what fits best, as `recall` does,
/// and words that are written nearly so, and ends with 3. With --thread, searches only that thread.
#[derive(clap::Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct Args {
    /// The words and filters; several need no quotes
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
}

/// Reads a search as somebody typed it.
pub(crate) fn parsed(words: &[String]) -> Result<SearchQuery, Failure> {
    // The shell takes the quotes of a phrase away.
    let is_phrase = |word: &str| word.contains(char::is_whitespace) && !word.contains(['"', ':']);
    let mut text =
        Zeroizing::new(String::with_capacity(words.iter().map(|word| word.len() + 3).sum()));
    for word in words {
        let quote = if is_phrase(word) { "\"" } else { "" };
        for part in [quote, word, quote, " "] {
            text.push_str(part);
        }
    }
    let query = SearchQuery::parse(&text).map_err(|unknown| {
        let what = format!("'{}' is not understood", output::one_line(unknown.part()));
        Failure::input(what, NotUnderstood::HELP)
    })?;
    match query.is_empty() {
        true => Err(Failure::input("there are no words to look for", "give some")),
        false => Ok(query),
    }
}

pub(crate) async fn run(session: &Session, args: Args) -> Outcome {
    let query = parsed(&args.words)?;
    let scopes = session.scopes(args.all)?;
    let stores = session.stores_or_empty()?;
    if scopes.is_empty() || stores.is_empty() {
        return Err(session.nothing());
    }
    let mut interrupt = Interrupt::listen()?;
    let bar = output::progress(args.all.then_some(scopes.len() as u64), "searching");
    let (mut indexes, mut exit) = (Vec::new(), Exit::Done);
    let mut unreadable = |scope: &Scope, error: &Error| {
        exit = Exit::Problems;
        bar.suspend(|| output::warning(&format!("{scope}: {}", with_causes(error))));
    };
    for scope in scopes {
        bar.inc(1);
        match interrupt.or("", stores.open(scope.clone())).await? {
            Ok(store) => indexes.push(Arc::new(Recall::new(Arc::new(store)))),
            Err(Failure::Library(error)) if args.all => unreadable(&scope, &error),
            Err(failure) => return Err(failure),
        }
    }
    let mut lookup = Lookup::new(&query, session.clock().now(), args.number as usize);
    lookup.thread = session.thread.as_deref();
    let found = interrupt.or("", lookup.run(&indexes)).await?;
    for (place, error) in &found.failed {
        let Some(recall) = indexes.get(*place).filter(|_| args.all) else { continue };
        unreadable(recall.store().scope(), error);
    }
    bar.finish_and_clear();
    if let Some((_, error)) = found.failed.into_iter().next().filter(|_| !args.all) {
        return Err(error.into());
    }
    let _pager = session.pager()?;
    output::skipped(&found.skipped);
    match found.stage {
        Stage::Exact => {}
        Stage::Fitting => output::note("no message has all of this; these fit best"),
        _ => output::note("no message has all of this, and none fits"),
    }
    for (at, hit) in found.hits.iter().enumerate() {
        let Some(recall) = indexes.get(hit.place) else { continue };
        let around = neighbours(&**recall.store(), &hit.stored, args.around.into()).await?;
        show(session, hit, found.stage, &around, &args, at == 0)?;
    }
    if let Some(meant) = &found.did_you_mean {
        output::note(&format!("did you mean: {}", output::one_line(meant)));
    }
    let (shown, total) = (found.hits.len() as u64, found.totals.iter().sum());
    if shown < total && !session.json {
        let all = output::counted(total, "message");
        output::note(&format!("the newest {shown} of {all}; -n shows more"));
    }
    if !args.all && !session.json {
        hint_at_others(session, &stores, &lookup).await;
    }
    match (&*indexes, found.stage) {
        ([recall], Stage::Fitting | Stage::DidYouMean) => recall::understand_shortly(recall).await,
        _ => {
            for recall in &indexes {
                recall::keep_index(recall).await;
            }
        }
    }
    Ok(if found.stage == Stage::Exact { exit } else { Exit::Problems })
}

/// Says in which other conversations the words stand, as far as a short look finds them.
async fn hint_at_others(session: &Session, stores: &Stores<'_>, lookup: &Lookup<'_>) {
    let end = Instant::now() + SHORTLY;
    let (mut places, mut total) = (Vec::new(), 0);
    let others = session.scopes(true).unwrap_or_default();
    for scope in others.into_iter().filter(|scope| *scope != session.scope) {
        let look = async {
            let recall = Recall::new(Arc::new(stores.open(scope.clone()).await.ok()?));
            recall.search(lookup.query, lookup.thread, 1).await.ok()
        };
        let Ok(found) = timeout_at(end, look).await else { break };
        let Some(found) = found.filter(|found| found.total > 0) else { continue };
        total += found.total;
        places.push(scope);
    }
    let place = match &*places {
        [] => return,
        [one] => output::one_line(&one.to_string()),
        more => format!("{} other conversations", more.len()),
    };
    let them = if total == 1 { "it" } else { "them" };
    let messages = output::counted(total, "message");
    output::note(&format!("{messages} in {place}: --all shows {them}"));
}

fn show(
    session: &Session,
    hit: &FoundMessage,
    stage: Stage,
    around: &Neighbours,
    args: &Args,
    is_first: bool,
) -> std::io::Result<()> {
    let (FoundMessage { stored, .. }, Neighbours { before, after, .. }) = (hit, around);
    if session.json {
        let rows = |around: &'_ [Arc<StoredMessage>]| -> Vec<Object> {
            around.iter().map(|near| message_row(near.seq, &near.message)).collect()
        };
        let row = object!("scope": stored.scope.to_string(), "found": stage)
            .all_of(&message_row(stored.seq, &stored.message));
        return output::json(&row.and("before", &rows(before)).and("after", &rows(after)));
    }
    if !is_first && args.around > 0 {
        output::line(format!("{DIM}--{DIM:#}"))?;
    }
    if args.all {
        output::line(format!("{BOLD}{}{BOLD:#}", output::one_line(&stored.scope.to_string())))?;
    }
    let said = |stored: &Arc<StoredMessage>| output::said(stored.seq, &stored.message);
    before.iter().try_for_each(said)?;
    if args.around > 0 {
        output::line(format!("{GOOD}found:{GOOD:#}"))?;
    }
    output::excerpt(stored.seq, &stored.message, &marked(&hit.passage))?;
    if let Some(fits) = &hit.fits {
        output::line(format!("        {DIM}{}{DIM:#}", fits.why.in_words()))?;
    }
    after.iter().try_for_each(said)
}

/// A passage whose matches stand out.
fn marked(passage: &Passage) -> String {
    let mut shown = String::new();
    let mut end = 0;
    let part = |range: std::ops::Range<usize>| {
        output::printable(passage.text.get(range).unwrap_or_default()).into_owned()
    };
    for mark in &passage.marks {
        shown += &part(end..mark.start);
        shown += &format!("{MARK}{}{MARK:#}", part(mark.clone()));
        end = mark.end;
    }
    shown + &part(end..passage.text.len())
}
