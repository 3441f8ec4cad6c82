//! `sottovoce snapshot`

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;

use clap::Subcommand;
use jiff::Timestamp;
use serde::Serialize;
use sottovoce::store::Snapshot;
use sottovoce::{Conversation, ConversationStore, FileConversationStore};

use crate::cmd::memory::stats::moment;
use crate::exit::{Exit, Failure, Outcome};
use crate::output::message_row::MessageRow;
use crate::output::{self, BOLD, DIM};
use crate::session::Session;

/// Saves and restores windows of a conversation
///
/// A snapshot holds the messages of all threads within the window since the last clear. An ID may be abbreviated as
/// long as it is unique.
#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    action: Action,
}

#[derive(Subcommand)]
enum Action {
    /// Saves the window, with a summary by the model
    Save {
        /// Its description; several words need no quotes
        description: Vec<String>,
    },
    /// Lists the snapshots, newest first
    List,
    /// Shows a snapshot with its messages
    Show {
        /// Its id or abbreviation
        id: String,
    },
    /// Restores a snapshot's messages into the window, each into its own thread; with --thread, only that thread's
    Restore {
        /// Its id or abbreviation
        id: String,
        /// Restores all of them into THREAD instead; "" means outside all threads
        #[arg(long, value_name = "THREAD")]
        into: Option<String>,
    },
    /// Deletes a snapshot permanently; the conversation keeps its messages
    Delete {
        /// Its id or abbreviation
        id: String,
        /// Does not ask
        #[arg(long, short)]
        yes: bool,
    },
}

/// A snapshot without its messages.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Row<'a> {
    id: &'a str,
    saved_at: Timestamp,
    description: Option<&'a str>,
    summary: &'a str,
    message_count: usize,
    window_start: Timestamp,
    window_end: Timestamp,
    #[serde(skip_serializing_if = "Option::is_none")]
    messages: Option<Vec<MessageRow<'a>>>,
}

impl<'a> Row<'a> {
    fn of(snapshot: &'a Snapshot) -> Self {
        Self {
            id: &snapshot.id,
            saved_at: snapshot.saved_at,
            description: snapshot.description.as_deref(),
            summary: &snapshot.summary,
            message_count: snapshot.messages.len(),
            window_start: snapshot.window_start,
            window_end: snapshot.window_end,
            messages: None,
        }
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Restored<'a> {
    restored: usize,
    seqs: Vec<u64>,
    threads: Vec<InThread<'a>>,
}

/// The number of messages restored into a thread.
#[derive(Serialize)]
struct InThread<'a> {
    thread: Option<&'a str>,
    restored: usize,
}

#[derive(Serialize)]
struct Deleted {
    deleted: String,
}

pub(crate) async fn run(session: &Session, args: Args) -> Outcome {
    let config = session.config()?;
    let store = match args.action {
        Action::Save { .. } | Action::Restore { .. } => {
            Arc::new(session.store_or_make(&config).await?)
        }
        _ => session.store_or_empty(&config).await?,
    };
    let conversation = session.conversation(&config, Arc::clone(&store))?;
    match args.action {
        Action::Save { description } => save(session, &conversation, &description).await?,
        Action::List => list(session, &store).await?,
        Action::Show { id } => return show_one(session, &conversation, &id).await,
        Action::Restore { id, into } => restore(session, &conversation, &id, into).await?,
        Action::Delete { id, yes } => delete(session, &conversation, &id, yes).await?,
    }
    Ok(Exit::Done)
}

/// Saves the window.
pub(crate) async fn save(
    session: &Session,
    conversation: &Conversation,
    description: &[String],
) -> Result<(), Failure> {
    let description = Some(description.join(" ")).filter(|text| !text.trim().is_empty());
    let snapshot = conversation.save_snapshot(description).await?;
    Ok(show(session, &snapshot)?)
}

/// Lists the snapshots, newest first.
pub(crate) async fn list(session: &Session, store: &FileConversationStore) -> Result<(), Failure> {
    let (snapshots, findings) = store.snapshots().await?;
    output::skipped(&findings);
    if snapshots.is_empty() && findings.is_empty() && !session.json {
        output::note("no snapshot was saved in this conversation");
    }
    Ok(snapshots.iter().try_for_each(|snapshot| show(session, snapshot))?)
}

/// Shows a snapshot with its messages.
pub(crate) async fn show_one(session: &Session, conversation: &Conversation, id: &str) -> Outcome {
    let snapshot = conversation.snapshot(id).await?;
    show_whole(session, &snapshot)?;
    Ok(Exit::Done)
}

/// Restores a snapshot into the window.
pub(crate) async fn restore(
    session: &Session,
    conversation: &Conversation,
    id: &str,
    into: Option<String>,
) -> Result<(), Failure> {
    let restored = match into {
        None => conversation.restore(id).await?,
        Some(thread) => {
            conversation.restore_into(id, Some(thread).filter(|thread| !thread.is_empty())).await?
        }
    };
    let seqs: Vec<u64> = restored.iter().map(|stored| stored.seq).collect();
    let mut threads: BTreeMap<Option<&str>, usize> = BTreeMap::new();
    for stored in &restored {
        *threads.entry(stored.message.thread_id.as_deref()).or_default() += 1;
    }
    let threads = threads.into_iter().map(|(thread, restored)| InThread { thread, restored });
    let threads: Vec<InThread<'_>> = threads.collect();
    if session.json {
        return Ok(output::json(&Restored { restored: seqs.len(), seqs, threads })?);
    }
    output::note(&said_restored(seqs.len(), &threads));
    Ok(())
}

fn said_restored(messages: usize, threads: &[InThread<'_>]) -> String {
    if messages == 0 {
        return "the window holds all of it already".to_owned();
    }
    let said = format!("brought {} back into the window", output::messages(messages));
    if threads.iter().all(|part| part.thread.is_none()) {
        return said;
    }
    let parts = threads.iter().map(|InThread { thread, restored }| match thread {
        Some(thread) => format!("{restored} into thread {}", output::one_line(thread)),
        None => format!("{restored} outside all threads"),
    });
    format!("{said}: {}", parts.collect::<Vec<_>>().join(", "))
}

async fn delete(
    session: &Session,
    conversation: &Conversation,
    id: &str,
    yes: bool,
) -> Result<(), Failure> {
    if !yes {
        let snapshot = conversation.snapshot(id).await?;
        session.check_attended(&format!("delete the snapshot {} for ever", snapshot.id))?;
        show(session, &snapshot)?;
        if !output::confirmed("Really delete it for ever?")? {
            output::note("nothing was deleted");
            return Ok(());
        }
    }
    let deleted = conversation.delete_snapshot(id).await?;
    if session.json {
        output::json(&Deleted { deleted })?;
    } else {
        output::note(&format!("deleted the snapshot {deleted} for ever"));
    }
    Ok(())
}

/// Shows a snapshot's metadata in a few lines.
fn show(session: &Session, snapshot: &Snapshot) -> io::Result<()> {
    if session.json {
        return output::json(&Row::of(snapshot));
    }
    let description = snapshot.description.as_deref().map(output::one_line).unwrap_or_default();
    output::line(format!(
        "{BOLD}{}{BOLD:#}  {DIM}{}  {}{DIM:#}  {description}",
        snapshot.id,
        moment(snapshot.saved_at),
        output::messages(snapshot.messages.len()),
    ))?;
    output::line(format!("    {}", output::printable(&snapshot.summary).replace('\n', "\n    ")))
}

fn show_whole(session: &Session, snapshot: &Snapshot) -> io::Result<()> {
    if session.json {
        let saved = snapshot.messages.iter();
        let messages =
            Some(saved.map(|saved| MessageRow::new(saved.seq, &saved.message)).collect());
        return output::json(&Row { messages, ..Row::of(snapshot) });
    }
    show(session, snapshot)?;
    snapshot.messages.iter().try_for_each(|saved| output::said(saved.seq, &saved.message))
}
