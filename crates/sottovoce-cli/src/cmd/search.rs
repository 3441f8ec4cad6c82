//! `sottovoce search`

use std::sync::Arc;

use sottovoce::context::recall::{
    Neighbours, NotUnderstood, Recall, SearchQuery, SearchResults, neighbours,
};
use sottovoce::{Scope, StoredMessage, with_causes};
use zeroize::Zeroizing;

use crate::cmd::recall;
use crate::exit::{Exit, Failure, Outcome};
use crate::interrupt::Interrupt;
use crate::output::{self, BOLD, DIM, GOOD, Object, message_row, object};
use crate::session::Session;

const AFTER_HELP: &str = "\
Examples:
  sottovoce search leek soup                   the ten newest messages that have both words
  sottovoce search \"leek soup\"                that have these words in this order
  sottovoce search recip* after:2025-05        words that begin so, said after May 2025
  sottovoce search tea speaker:Anna -C 2       said by Anna, with two messages before and after each
  sottovoce search dentist from:assistant      said by the assistant; also from:me, from:tool, from:system
  sottovoce search dentist before:2025-05-11 --all    in all conversations";

/// Finds words in what was said, newest first
///
/// Finds the messages that contain all the words exactly, in any order and letter case, with or without accents. Words
/// in quotes stand in this order; `recip*` finds words that begin so. The filters from:, speaker:, before: and after:
/// narrow the search; days are written 2025, 2025-05 or 2025-05-11. Messages hidden by the conversation's limits are
/// not found; cleared and pruned ones are. With --thread, searches only that thread. `recall` finds what fits a
/// question best, in other words too.
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

/// A match with what was said around it.
struct Hit<'a> {
    scope: &'a Scope,
    stored: Arc<StoredMessage>,
    around: Neighbours,
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
    let limit = args.number as usize;
    let scopes = session.scopes(args.all)?;
    let stores = session.stores_or_empty()?;
    if scopes.is_empty() || stores.is_empty() {
        return Err(session.nothing());
    }
    let mut interrupt = Interrupt::listen()?;
    let bar = output::progress(args.all.then_some(scopes.len() as u64), "searching");
    let (mut hits, mut total, mut exit) = (Vec::new(), 0, Exit::Done);
    let mut searched = Vec::new();
    for scope in scopes {
        let look = async {
            let recall = Recall::new(Arc::new(stores.open(scope.clone()).await?));
            let found = recall.search(&query, session.thread.as_deref(), limit).await?;
            Ok::<(Recall, SearchResults), Failure>((recall, found))
        };
        let found = interrupt.or("", look).await?;
        bar.inc(1);
        match found {
            Ok((recall, found)) => {
                bar.suspend(|| output::skipped(&found.skipped));
                total += found.total;
                hits.extend(found.hits.into_iter().map(|stored| (searched.len(), stored)));
                hits.sort_by_key(|(_, stored)| {
                    std::cmp::Reverse((stored.ordered_at(), stored.seq))
                });
                hits.truncate(limit);
                searched.push((scope, recall));
            }
            Err(Failure::Library(error)) if args.all => {
                exit = Exit::Problems;
                bar.suspend(|| output::warning(&format!("{scope}: {}", with_causes(&error))));
            }
            Err(failure) => return Err(failure),
        }
    }
    bar.finish_and_clear();
    let _pager = session.pager()?;
    let shown = hits.len() as u64;
    for (at, (place, stored)) in hits.into_iter().enumerate() {
        let Some((scope, recall)) = searched.get(place) else { continue };
        let around = neighbours(&**recall.store(), &stored, args.around.into()).await?;
        show(session, &Hit { scope, stored, around }, &args, at == 0)?;
    }
    for (_, recall) in &searched {
        recall::keep_index(recall).await;
    }
    if shown == 0 {
        output::note("no message has all of this; `sottovoce recall` finds what fits best");
        return Ok(Exit::Problems);
    }
    if shown < total && !session.json {
        let all = output::counted(total, "message");
        output::note(&format!("the newest {shown} of {all}; -n shows more"));
    }
    Ok(exit)
}

fn show(session: &Session, hit: &Hit<'_>, args: &Args, is_first: bool) -> std::io::Result<()> {
    let Neighbours { before, after, .. } = &hit.around;
    if session.json {
        let rows = |around: &'_ [Arc<StoredMessage>]| -> Vec<Object> {
            around.iter().map(|near| message_row(near.seq, &near.message)).collect()
        };
        let row = object!("scope": hit.scope.to_string())
            .all_of(&message_row(hit.stored.seq, &hit.stored.message));
        return output::json(&row.and("before", &rows(before)).and("after", &rows(after)));
    }
    if !is_first && args.around > 0 {
        output::line(format!("{DIM}--{DIM:#}"))?;
    }
    if args.all {
        output::line(format!("{BOLD}{}{BOLD:#}", output::one_line(&hit.scope.to_string())))?;
    }
    let said = |stored: &Arc<StoredMessage>| output::said(stored.seq, &stored.message);
    before.iter().try_for_each(said)?;
    if args.around > 0 {
        output::line(format!("{GOOD}found:{GOOD:#}"))?;
    }
    said(&hit.stored)?;
    after.iter().try_for_each(said)?;
    Ok(())
}
