//! `sottovoce artifact add-search`

use std::fmt::Write;
use std::io::Cursor;
use std::sync::Arc;

use serde::Serialize;
use sottovoce::context::recall::{Recall, SearchResults};
use sottovoce::conversation::SEARCH_NOTE;
use sottovoce::store::{Artifact, ArtifactKind, ArtifactStore, NewArtifact};
use sottovoce::{ConversationStore, StoredMessage};
use zeroize::Zeroizing;

use crate::cmd::memory::artifact::source::Wiped;
use crate::cmd::memory::artifact::{refer, report};
use crate::cmd::memory::search;
use crate::cmd::memory::stats::moment;
use crate::exit::{Exit, Outcome};
use crate::interrupt::Interrupt;
use crate::output;
use crate::session::Session;

const AFTER_HELP: &str = "\
Examples:
  sottovoce artifact add-search milk
  sottovoce --thread 7 artifact add-search \"weather tomorrow\" --limit 10";

/// Searches messages, and stores the results as an artifact
///
/// The artifact holds the results of `sottovoce search`, newest first; the query is written as there. With --thread, it searches only that
/// thread.
#[derive(clap::Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct Args {
    /// The words; several need no quotes
    #[arg(required = true)]
    query: Vec<String>,

    /// The most results to store
    #[arg(long, value_name = "N", default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    limit: u32,

    /// Does not append a message that refers to the results
    #[arg(long)]
    no_message: bool,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Row<'a> {
    found: u64,
    kept: usize,
    #[serde(flatten)]
    artifact: Option<&'a Artifact>,
    was_there: bool,
    message: Option<u64>,
}

pub(crate) async fn run(session: &Session, args: Args) -> Outcome {
    let words = Zeroizing::new(output::one_line(args.query.join(" ").trim()));
    let query = search::parsed(&args.query)?;
    let config = session.config()?;
    let mut interrupt = Interrupt::listen()?;
    let store = session.store_or_empty(&config).await?;
    let bar = output::progress(None, "searching");
    let recall = Recall::new(Arc::clone(&store) as Arc<dyn ConversationStore>);
    let searching = recall.search(&query, session.thread.as_deref(), args.limit as usize);
    let found = interrupt.or("nothing was added", searching).await??;
    bar.finish_and_clear();
    output::skipped(&found.skipped);
    let kept = found.hits.len();
    if kept == 0 {
        if session.json {
            let none = Row { found: 0, kept, artifact: None, was_there: false, message: None };
            output::json(&none)?;
        } else {
            output::note("no message has all of this; nothing was added");
        }
        return Ok(Exit::Problems);
    }
    let name = format!("Search results: \"{}\"", words.as_str());
    let new = NewArtifact::new(ArtifactKind::SearchResult, name.as_str());
    let content = Cursor::new(text(&found));
    let added = store.add_artifact(new, Box::new(content)).await?;
    let message = match args.no_message {
        true => None,
        false => {
            let part = if found.total > kept as u64 {
                format!(", the newest {kept} of them")
            } else {
                String::new()
            };
            let messages = output::counted(found.total, "message");
            let reference = added.artifact.reference();
            let text = format!("{name}: found {messages}{part}: {reference}");
            refer(session, &store, &added, text, Some((SEARCH_NOTE, &words))).await?
        }
    };
    if session.json {
        let artifact = Some(&added.artifact);
        output::json(&Row {
            found: found.total,
            kept,
            artifact,
            was_there: added.was_there,
            message,
        })?;
    } else {
        let messages = output::counted(found.total, "message");
        output::note(&format!("found {messages}, kept {kept}"));
        report(session, &added, message)?;
    }
    Ok(Exit::Done)
}

/// The results, newest first: number, time, role and text.
fn text(found: &SearchResults) -> Wiped {
    let length = |stored: &Arc<StoredMessage>| stored.message.content.len() * 2 + 128;
    let room = found.hits.iter().map(length).sum();
    let mut text = Zeroizing::new(String::with_capacity(room));
    for stored in &found.hits {
        let message = &stored.message;
        let (number, time, role) = (stored.seq, moment(message.said_at()), message.role.as_str());
        // Writing to a string cannot fail.
        let _ = write!(text, "{number}  {time}  {role}: ");
        let mut lines = message.content.lines();
        text.push_str(lines.next().unwrap_or_default());
        for line in lines {
            text.push_str("\n    ");
            text.push_str(line);
        }
        text.push('\n');
    }
    Wiped(text)
}
