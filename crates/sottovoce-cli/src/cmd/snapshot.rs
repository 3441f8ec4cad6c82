//! `sottovoce snapshot`

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;

use clap::Subcommand;
use sottovoce::store::Snapshot;
use sottovoce::{Conversation, ConversationStore, FileConversationStore};

use crate::exit::{Exit, Outcome};
use crate::interrupt::awaited;
use crate::output::{self, BOLD, DIM, Object, message_row, moment, object};
use crate::session::Session;

const AFTER_HELP: &str = "\
Examples:
  sottovoce snapshot save before the move     described so
  sottovoce snapshot list
  sottovoce snapshot show 3f2a
  sottovoce snapshot restore 3f2a             its messages count for prompts again";

/// Saves and restores windows of a conversation
///
/// A snapshot holds the messages of all threads within the window since the last clear. An ID may be abbreviated as
/// long as it is unique.
#[derive(clap::Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct Args {
    #[command(subcommand)]
    action: Action,
}

#[derive(Subcommand)]
enum Action {
    Save(SaveArgs),
    /// Lists the snapshots, newest first
    List,
    /// Shows a snapshot with its messages
    Show {
        /// Its id or abbreviation
        id: String,
    },
    Restore(RestoreArgs),
    /// Deletes a snapshot permanently; the conversation keeps its messages
    Delete {
        /// Its id or abbreviation
        id: String,
        /// Does not ask
        #[arg(long, short)]
        yes: bool,
    },
}

/// Saves the window as a snapshot, with a summary by the model
#[derive(clap::Args)]
pub(crate) struct SaveArgs {
    /// Its description; several words need no quotes
    description: Vec<String>,
}

/// Restores a snapshot's messages into the window, each into its own thread; with --thread, only that thread's
#[derive(clap::Args)]
pub(crate) struct RestoreArgs {
    /// Its id or abbreviation
    id: String,
    /// Restores all of them into THREAD instead; "" means outside all threads
    #[arg(long, value_name = "THREAD")]
    into: Option<String>,
}

pub(crate) async fn run(session: &Session, args: Args) -> Outcome {
    let store = match args.action {
        Action::Save(_) | Action::Restore(_) => Arc::new(session.store_or_make().await?),
        _ => session.store_or_empty().await?,
    };
    let conversation = session.conversation(Arc::clone(&store))?;
    match args.action {
        Action::Save(args) => save(session, &conversation, &args).await,
        Action::List => list(session, &store).await,
        Action::Show { id } => show_one(session, &conversation, &id).await,
        Action::Restore(args) => restore(session, &conversation, args).await,
        Action::Delete { id, yes } => delete(session, &conversation, &id, yes).await,
    }
}

/// Saves the window.
pub(crate) async fn save(
    session: &Session,
    conversation: &Conversation,
    args: &SaveArgs,
) -> Outcome {
    let description = Some(args.description.join(" ")).filter(|text| !text.trim().is_empty());
    let saved = conversation.save_snapshot(description);
    let snapshot = awaited("the model summarizes", "nothing was saved", saved).await??;
    show(session, &snapshot)?;
    Ok(Exit::Done)
}

/// Lists the snapshots, newest first.
pub(crate) async fn list(session: &Session, store: &FileConversationStore) -> Outcome {
    let (snapshots, findings) = store.snapshots().await?;
    output::skipped(&findings);
    if snapshots.is_empty() && findings.is_empty() && !session.json {
        output::note("no snapshot was saved in this conversation");
    }
    snapshots.iter().try_for_each(|snapshot| show(session, snapshot))?;
    Ok(Exit::Done)
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
    RestoreArgs { id, into }: RestoreArgs,
) -> Outcome {
    let restored = match into {
        None => conversation.restore(&id).await?,
        Some(thread) => {
            conversation.restore_into(&id, Some(thread).filter(|thread| !thread.is_empty())).await?
        }
    };
    let seqs: Vec<u64> = restored.iter().map(|stored| stored.seq).collect();
    let mut threads: BTreeMap<Option<&str>, usize> = BTreeMap::new();
    for stored in &restored {
        *threads.entry(stored.message.thread_id.as_deref()).or_default() += 1;
    }
    let parts = threads.iter();
    let parts = parts.map(|(thread, restored)| object!("thread": thread, "restored": restored));
    let row = object!("restored": seqs.len(), "seqs": seqs, "threads": parts.collect::<Vec<_>>());
    session.tell(row, || said_restored(seqs.len(), &threads))
}

fn said_restored(messages: usize, threads: &BTreeMap<Option<&str>, usize>) -> String {
    if messages == 0 {
        return "the window holds all of it already".to_owned();
    }
    let said = format!("brought {} back into the window", output::messages(messages));
    if threads.keys().all(Option::is_none) {
        return said;
    }
    let parts = threads.iter().map(|(thread, restored)| match thread {
        Some(thread) => format!("{restored} into thread {}", output::one_line(thread)),
        None => format!("{restored} outside all threads"),
    });
    format!("{said}: {}", parts.collect::<Vec<_>>().join(", "))
}

async fn delete(session: &Session, conversation: &Conversation, id: &str, yes: bool) -> Outcome {
    // A damaged one can be deleted without a look at it.
    let snapshot = if yes { None } else { Some(conversation.snapshot(id).await?) };
    let id = snapshot.as_ref().map_or(id, |snapshot| &*snapshot.id);
    let deed = format!("delete the snapshot {id} for ever");
    let show = async || Ok(snapshot.iter().try_for_each(|snapshot| show(session, snapshot))?);
    let question = "Really delete it for ever?";
    if session.agrees(yes, &deed, question, "nothing was deleted", show).await? {
        let deleted = conversation.delete_snapshot(id).await?;
        let words = format!("deleted the snapshot {deleted} for ever");
        session.tell(object!("deleted": deleted), || words)?;
    }
    Ok(Exit::Done)
}

fn row(snapshot: &Snapshot) -> Object {
    object!(
        "id": snapshot.id, "savedAt": snapshot.saved_at, "description": snapshot.description,
        "summary": snapshot.summary, "messageCount": snapshot.messages.len(),
        "windowStart": snapshot.window_start, "windowEnd": snapshot.window_end,
    )
}

/// Shows a snapshot's metadata in a few lines.
fn show(session: &Session, snapshot: &Snapshot) -> io::Result<()> {
    if session.json {
        return output::json(&row(snapshot));
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
        let messages = saved.map(|saved| message_row(saved.seq, &saved.message));
        return output::json(&row(snapshot).and("messages", &messages.collect::<Vec<_>>()));
    }
    show(session, snapshot)?;
    snapshot.messages.iter().try_for_each(|saved| output::said(saved.seq, &saved.message))
}
