//! `sottovoce artifact`

pub(crate) mod contents;
mod folder;
mod source;

use std::collections::BTreeSet;
use std::fmt::Write;
use std::io::Cursor;
use std::sync::Arc;

#[cfg(feature = "share")]
use sottovoce::config::OpenConversations;
use sottovoce::context::recall::{Recall, SearchResults};
use sottovoce::conversation::SEARCH_NOTE;
use sottovoce::store::{
    AddedArtifact, Artifact, ArtifactContents, ArtifactKind, ArtifactReferences, ArtifactStore,
    NewArtifact, find_artifact,
};
use sottovoce::{
    ChatMessage, ChatRole, ConversationStore, Error, FileConversationStore, StoredMessage,
};
use zeroize::Zeroizing;

pub(crate) use crate::cmd::artifact::folder::{AddFolderArgs, add_folder};
use crate::cmd::artifact::source::Wiped;
use crate::cmd::search;
#[cfg(feature = "share")]
use crate::cmd::share::team::artifacts;
use crate::exit::{Exit, Failure, Outcome};
use crate::interrupt::awaited;
use crate::output::table::Cell;
use crate::output::{self, BOLD, DIM, Object, byte_size, moment, object};
use crate::session::Session;

const AFTER_HELP: &str = "\
Examples:
  sottovoce artifact add src/main.rs                        and a message that refers to it
  cargo test 2>&1 | sottovoce artifact add - --name tests   what a command printed
  sottovoce artifact add-folder src                         what is in it
  sottovoce artifact add-search \"weather tomorrow\"          what was said about it
  sottovoce artifact list
  sottovoce artifact show 5b1c90f2 --bytes 0-999
  sottovoce artifact delete 5b1c90f2";

/// Manages large data beside the messages: files, folders, search results
///
/// An artifact is sealed as messages are. No prompt includes it by itself. A message refers to it by `artifact://`
/// and its id, so that a host or a model's tool can open it. Equal bytes are stored once. Context.Redact does not
/// apply to artifacts. An ID may be abbreviated as long as it is unique.
#[derive(clap::Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct Args {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(clap::Subcommand)]
enum Verb {
    Add(contents::AddArgs),
    AddFolder(AddFolderArgs),
    AddSearch(AddSearchArgs),
    /// Lists the artifacts, oldest first
    List,
    Show(contents::ShowArgs),
    Export(contents::ExportArgs),
    Delete(DeleteArgs),
}

pub(crate) async fn run(session: &Session, args: Args) -> Outcome {
    match args.verb {
        Verb::Add(args) => contents::add(session, args).await,
        Verb::AddFolder(args) => add_folder(session, args).await,
        Verb::AddSearch(args) => add_search(session, args).await,
        Verb::List => list_here(session).await,
        Verb::Show(args) => contents::show(session, args).await,
        Verb::Export(args) => contents::export(session, args).await,
        Verb::Delete(args) => delete(session, args).await,
    }
}

/// One line about an artifact, for messages and people.
fn description(artifact: &Artifact) -> String {
    output::one_line(&artifact.description())
}

/// Whether a message that later prompts may hold refers to the artifact, in the command's thread.
async fn is_referred_to(
    session: &Session,
    store: &FileConversationStore,
    artifact: &Artifact,
) -> Result<bool, Failure> {
    let references = store.artifact_references().await?;
    let profile = store.profile().await?;
    for seq in references.messages.get(&artifact.id).into_iter().flatten() {
        let found = store.read_seqs(*seq..=*seq).await?.messages;
        if found.iter().any(|stored| {
            stored.message.thread_id == session.thread
                && !profile.hides(stored)
                && !profile.is_pruned(stored.seq)
        }) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Appends a message about an added artifact, unless one that prompts may hold refers to it already, or none is wanted.
/// Then reports the artifact.
async fn announce(
    session: &Session,
    store: &FileConversationStore,
    added: &AddedArtifact,
    text: Option<String>,
    note: Option<(&str, &str)>,
    more: Object,
) -> Outcome {
    let AddedArtifact { artifact, was_there, .. } = added;
    let message = match text {
        Some(text) if !*was_there || !is_referred_to(session, store, artifact).await? => {
            let mut message = ChatMessage::new(ChatRole::System, text, &session.clock().now());
            let note = note.map(|(name, value)| (name.to_owned(), value.to_owned()));
            message.metadata.extend(note);
            message.thread_id.clone_from(&session.thread);
            let stored = store.append_message(message).await.inspect_err(|_| {
                output::warning("the artifact was added, but not the message that refers to it");
            });
            Some(stored?.seq)
        }
        _ => None,
    };
    let row = more.all_of(artifact).and("wasThere", was_there).and("message", &message);
    session.tell(row, || {
        let told = match (was_there, message) {
            (true, Some(number)) => {
                format!("the same bytes are there already; message {number} refers to them anew: ")
            }
            (true, None) => "the same bytes are there already as ".to_owned(),
            (false, Some(number)) => format!("added, with message {number}: "),
            (false, None) => "added, without a message: ".to_owned(),
        };
        format!("{told}{}: {}", description(artifact), artifact.reference())
    })
}

/// The message about an artifact that was added.
fn about(artifact: &Artifact) -> String {
    format!("Added {}: {}", description(artifact), artifact.reference())
}

/// Opens the artifact with this id or abbreviation. One of a team comes from its server.
async fn open(session: &Session, id: &str) -> Result<ArtifactContents, Failure> {
    let store = FileConversationStore::clone(&*session.store_or_empty().await?);
    #[cfg(feature = "share")]
    let conversations = session
        .keys()
        .and_then(|keys| {
            Ok(OpenConversations::new(session.config()?.clone(), keys, session.clock())?)
        })
        .ok();
    #[cfg(feature = "share")]
    let store = match &conversations {
        Some(conversations) => store.with_artifact_source(artifacts::source(conversations)),
        None => store,
    };
    let id = find_artifact(&store, id).await?;
    let gone = || Error::NoSuchArtifact { nearest: Vec::new() };
    Ok(store.open_artifact(&id).await?.ok_or_else(gone)?)
}

/// The error for an artifact that could not be read to its end.
fn unreadable(artifact: &Artifact, error: std::io::Error) -> Failure {
    let place = format!("artifacts/{}", artifact.id);
    match error.kind() {
        std::io::ErrorKind::InvalidData => {
            Error::Damaged { place, reason: "its seal does not fit: it was changed or cut off" }
        }
        _ => Error::Io { action: "read it", path: place.into(), source: error },
    }
    .into()
}

/// Shown digits of an id.
pub(crate) const SHORT: usize = 8;

async fn list_here(session: &Session) -> Outcome {
    let store = session.store_or_empty().await?;
    list(session, &store).await
}

/// Lists the artifacts of an open conversation.
pub(crate) async fn list(session: &Session, store: &FileConversationStore) -> Outcome {
    let (artifacts, findings) = store.artifacts().await?;
    output::skipped(&findings);
    if artifacts.is_empty() && findings.is_empty() && !session.json {
        output::note("no artifact was added to this conversation");
    }
    let names = ["id", "type", "size", "lines", "added", "name"];
    session.list(&artifacts, Artifact::clone, names, cells)?;
    Ok(Exit::of(findings.is_empty()))
}

fn cells(artifact: &Artifact) -> [Cell; 6] {
    let lines = artifact.lines.map_or_else(|| "binary".to_owned(), |lines| lines.to_string());
    let day = output::day(artifact.created_at);
    [
        Cell::new(short(&artifact.id)).style(BOLD),
        Cell::new(&artifact.kind.to_string()).at_most(14),
        Cell::new(&byte_size(artifact.size)),
        Cell::new(&lines),
        Cell::new(&day).style(DIM),
        Cell::new(&artifact.name).at_most(26),
    ]
}

/// One line for an artifact.
pub(crate) fn row(artifact: &Artifact) -> String {
    let kind = output::one_line(&artifact.kind.to_string());
    let lines = artifact.lines.map_or_else(|| "binary".to_owned(), |lines| lines.to_string());
    format!(
        "{BOLD}{}{BOLD:#}  {kind:<14}  {:>10}  {lines:>7}  {DIM}{:<20}{DIM:#}  {}",
        short(&artifact.id),
        byte_size(artifact.size),
        moment(artifact.created_at),
        output::one_line(&artifact.name),
    )
}

/// The abbreviation of an id.
pub(crate) fn short(id: &str) -> &str {
    id.get(..SHORT).unwrap_or(id)
}

/// How many message numbers are listed.
const NAMED: usize = 10;

/// Deletes artifacts permanently; messages that refer to them stay
///
/// Shows which messages these are, and asks for confirmation. Restoring an older backup does not bring a deleted
/// artifact back.
#[derive(clap::Args)]
struct DeleteArgs {
    /// Their ids or abbreviations
    #[arg(required = true, value_name = "ID")]
    ids: Vec<String>,

    /// Does not ask
    #[arg(long, short)]
    yes: bool,
}

async fn delete(session: &Session, args: DeleteArgs) -> Outcome {
    let store = session.store_or_empty().await?;
    let mut ids = BTreeSet::new();
    for id in &args.ids {
        ids.insert(find_artifact(&*store, id).await?);
    }
    let ids: Vec<String> = ids.into_iter().collect();
    let deed = format!("delete {} for ever", output::counted(ids.len() as u64, "artifact"));
    let show = async || show(&store, &ids).await;
    let question = format!("Really {deed}?");
    if session.agrees(args.yes, &deed, &question, "nothing was deleted", show).await? {
        store.delete_artifacts(&ids).await?;
        session.tell(object!("deleted": ids), || deed.replacen("delete", "deleted", 1))?;
    }
    Ok(Exit::Done)
}

/// Shows artifacts and the messages that refer to them.
async fn show(store: &FileConversationStore, ids: &[String]) -> Result<(), Failure> {
    let references = store.artifact_references().await?;
    output::skipped(&references.unread);
    for id in ids {
        match store.open_artifact(id).await {
            Ok(Some(contents)) => output::line(row(contents.artifact()))?,
            // A damaged artifact can be deleted.
            Ok(None) | Err(Error::Damaged { .. }) => output::line(short(id))?,
            Err(error) => return Err(error.into()),
        }
        output::note(&format!("    {}", said(&references, id)));
    }
    Ok(())
}

fn said(references: &ArtifactReferences, id: &str) -> String {
    let numbers: Vec<String> =
        references.messages.get(id).into_iter().flatten().map(u64::to_string).collect();
    match numbers.len() {
        0 if references.unreferenced.iter().any(|artifact| artifact.id == id) => {
            "nothing refers to it".to_owned()
        }
        0 => "a folder, a snapshot or a summary refers to it".to_owned(),
        1 => format!("message {} refers to it", numbers.concat()),
        all => {
            let first: Vec<String> = numbers.into_iter().take(NAMED).collect();
            let more = all.checked_sub(NAMED).filter(|more| *more > 0);
            let more = more.map_or_else(String::new, |more| format!(" and {more} more"));
            format!("messages {}{more} refer to it", first.join(", "))
        }
    }
}

/// Searches messages, and stores the results as an artifact
///
/// The artifact holds the results of `sottovoce search`, newest first; the query is written as there. With --thread, it searches only that
/// thread.
#[derive(clap::Args)]
pub(crate) struct AddSearchArgs {
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

pub(crate) async fn add_search(session: &Session, args: AddSearchArgs) -> Outcome {
    let words = Zeroizing::new(output::one_line(args.query.join(" ").trim()));
    let query = search::parsed(&args.query)?;
    let store = session.store_or_empty().await?;
    let recall = Recall::new(Arc::clone(&store) as Arc<dyn ConversationStore>);
    let searching = recall.search(&query, session.thread.as_deref(), args.limit as usize);
    let found = awaited("searching", "nothing was added", searching).await??;
    output::skipped(&found.skipped);
    let kept = found.hits.len();
    let row = object!("found": found.total, "kept": kept);
    if kept == 0 {
        let row = row.and("wasThere", &false).and("message", &None::<u64>);
        session.tell(row, || "no message has all of this; nothing was added".to_owned())?;
        return Ok(Exit::Problems);
    }
    let name = format!("Search results: \"{}\"", words.as_str());
    let new = NewArtifact::new(ArtifactKind::SearchResult, name.as_str());
    let added = store.add_artifact(new, Box::new(Cursor::new(results_text(&found)))).await?;
    let messages = output::counted(found.total, "message");
    let is_part = found.total > kept as u64;
    let part = if is_part { format!(", the newest {kept} of them") } else { String::new() };
    let text = format!("{name}: found {messages}{part}: {}", added.artifact.reference());
    if !session.json {
        output::note(&format!("found {messages}, kept {kept}"));
    }
    let text = Some(text).filter(|_| !args.no_message);
    announce(session, &store, &added, text, Some((SEARCH_NOTE, &words)), row).await
}

/// The results, newest first: number, time, role and text.
fn results_text(found: &SearchResults) -> Wiped {
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
