//! `sottovoce artifact`

pub(crate) mod add;
mod delete;
mod export;
pub(crate) mod folder;
pub(crate) mod list;
pub(crate) mod search;
pub(crate) mod show;
mod size;
mod source;

use serde::Serialize;
#[cfg(feature = "team")]
use sottovoce::config::OpenConversations;
use sottovoce::store::{AddedArtifact, Artifact, ArtifactContents, ArtifactStore, find_artifact};
use sottovoce::{ChatMessage, ChatRole, Config, ConversationStore, Error, FileConversationStore};

#[cfg(feature = "team")]
use crate::cmd::share::team::artifacts;
use crate::exit::{Failure, Outcome};
use crate::output;
use crate::session::Session;

const AFTER_HELP: &str = "\
Examples:
  sottovoce artifact add src/main.rs                        and a message that refers to it
  cargo test 2>&1 | sottovoce artifact add - --name tests   what a command printed
  sottovoce artifact add-folder src                         its text files, and its tree
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
    Add(add::Args),
    AddFolder(folder::Args),
    AddSearch(search::Args),
    /// Lists the artifacts, oldest first
    List,
    Show(show::Args),
    Export(export::Args),
    Delete(delete::Args),
}

pub(crate) async fn run(session: &Session, args: Args) -> Outcome {
    match args.verb {
        Verb::Add(args) => add::run(session, args).await,
        Verb::AddFolder(args) => folder::run(session, args).await,
        Verb::AddSearch(args) => search::run(session, args).await,
        Verb::List => list::run(session).await,
        Verb::Show(args) => show::run(session, args).await,
        Verb::Export(args) => export::run(session, args).await,
        Verb::Delete(args) => delete::run(session, args).await,
    }
}

/// An added artifact in JSON.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Row<'a> {
    #[serde(flatten)]
    artifact: &'a Artifact,
    was_there: bool,
    /// The number of the message that refers to it.
    message: Option<u64>,
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

/// Appends a message about an artifact, unless one that prompts may hold refers to it already.
async fn refer(
    session: &Session,
    store: &FileConversationStore,
    added: &AddedArtifact,
    text: String,
    note: Option<(&str, &str)>,
) -> Result<Option<u64>, Failure> {
    if added.was_there && is_referred_to(session, store, &added.artifact).await? {
        return Ok(None);
    }
    tell(session, store, text, note).await.map(Some)
}

/// Appends a message about an artifact.
async fn tell(
    session: &Session,
    store: &FileConversationStore,
    text: String,
    note: Option<(&str, &str)>,
) -> Result<u64, Failure> {
    let mut message = ChatMessage::new(ChatRole::System, text, &session.clock().now());
    message.metadata.extend(note.map(|(name, value)| (name.to_owned(), value.to_owned())));
    message.thread_id.clone_from(&session.thread);
    match store.append_message(message).await {
        Ok(stored) => Ok(stored.seq),
        Err(error) => {
            output::warning("the artifact was added, but not the message that refers to it");
            Err(error.into())
        }
    }
}

/// Reports the added artifact; on standard output with `--json`.
fn report(session: &Session, added: &AddedArtifact, message: Option<u64>) -> std::io::Result<()> {
    let AddedArtifact { artifact, was_there, .. } = added;
    if session.json {
        return output::json(&Row { artifact, was_there: *was_there, message });
    }
    let what = format!("{}: {}", description(artifact), artifact.reference());
    let told = match (was_there, message) {
        (true, Some(number)) => {
            format!("the same bytes are there already; message {number} refers to them anew: ")
        }
        (true, None) => "the same bytes are there already as ".to_owned(),
        (false, Some(number)) => format!("added, with message {number}: "),
        (false, None) => "added, without a message: ".to_owned(),
    };
    output::note(&format!("{told}{what}"));
    Ok(())
}

/// Opens the artifact with this id or abbreviation. One of a team comes from its server.
async fn open(session: &Session, config: &Config, id: &str) -> Result<ArtifactContents, Failure> {
    let store = FileConversationStore::clone(&*session.store_or_empty(config).await?);
    #[cfg(feature = "team")]
    let conversations = session
        .keys(config)
        .and_then(|keys| Ok(OpenConversations::new(config.clone(), keys, session.clock())?))
        .ok();
    #[cfg(feature = "team")]
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
