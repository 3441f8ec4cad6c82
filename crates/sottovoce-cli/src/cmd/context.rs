//! `sottovoce context`, and `/context` in a chat: shows and changes the context.

mod screen;

use std::sync::Arc;

use clap::Subcommand;
use sottovoce::persona::PersonaFailure;
use sottovoce::store::Profile;
use sottovoce::{
    ChatRole, Conversation, ConversationStore, Error, FileConversationStore, StoredMessage,
};

use crate::cmd::artifact::contents::{self, Bytes, parse_bytes};
use crate::cmd::named::{self, shown};
use crate::cmd::{artifact, clear, compact, export, prune, snapshot, stats};
use crate::exit::{Exit, Failure, Outcome};
use crate::output::{self, DIM};
use crate::session::Session;

const AFTER_HELP: &str = "\
Examples:
  sottovoce context                               the summary
  sottovoce context messages --role user -n 20
  sottovoce context add src/main.rs
  sottovoce context prune --max-tokens 1000 --dry-run
  sottovoce context compact
  sottovoce context export talk.json --yes
  sottovoce context create --preset calm-counselor    a conversation with a personality
  sottovoce context list                              which of these there are
  sottovoce --context \"Calm Counselor\" chat          and talking to one

In a chat what is about one conversation stands behind /context.";

/// Shows what prompts hold of a conversation; creates and lists contexts
///
/// Without an action, shows a summary: messages by role, artifacts, tokens of the next prompt, the cost so far, and
/// the newest messages. A created context is a conversation in which the model plays a persona until the context
/// expires. The global option --context selects one by id or name.
#[derive(clap::Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct Args {
    #[command(subcommand)]
    action: Option<Verb>,
}

#[derive(Subcommand)]
enum Verb {
    #[command(flatten)]
    Named(named::Action),
    #[command(flatten)]
    One(Action),
}

/// Actions on one conversation. A chat has them too.
#[derive(Subcommand)]
pub(crate) enum Action {
    /// Lists the messages, and marks those that no prompt holds
    Messages {
        /// Only messages of this role: user, assistant, system or tool
        #[arg(long, value_name = "ROLE")]
        role: Option<ChatRole>,
        /// Only this many newest messages
        #[arg(short = 'n', long, value_name = "N")]
        last: Option<usize>,
    },
    /// Lists the artifacts
    Artifacts,
    Show(ShowArgs),
    /// Shows the size of the conversation, and when it expires
    Stats,
    Add(contents::AddArgs),
    AddFolder(artifact::AddFolderArgs),
    AddSearch(artifact::AddSearchArgs),
    Prune(prune::Args),
    /// Begins anew: later prompts hold nothing that was said so far; deletes nothing
    Clear(clear::Args),
    Compact(compact::Args),
    Export(export::Args),
    Save(snapshot::SaveArgs),
    /// Lists the snapshots, newest first
    History,
    Restore(snapshot::RestoreArgs),
}

/// An open conversation.
pub(crate) struct Open<'a> {
    pub(crate) session: &'a Session,
    pub(crate) store: &'a Arc<FileConversationStore>,
    pub(crate) conversation: &'a Conversation,
}

pub(crate) async fn run(session: &Session, args: Args) -> Outcome {
    match args.action {
        Some(Verb::Named(action)) => named::run(session, action).await,
        Some(Verb::One(action)) => act(session, Some(action)).await,
        None => act(session, None).await,
    }
}

/// Runs an action on the command's conversation.
pub(crate) async fn act(session: &Session, action: Option<Action>) -> Outcome {
    let store = match action {
        Some(Action::Clear(_) | Action::Save(_) | Action::Restore(_)) => {
            Arc::new(session.store_or_make().await?)
        }
        Some(Action::Prune(_) | Action::Compact(_)) => Arc::new(session.store().await?),
        _ => session.store_or_empty().await?,
    };
    let conversation = session.conversation(Arc::clone(&store))?;
    // In a chat, leaving a pager early would be an error of the terminal.
    let _pager = match action {
        Some(Action::Messages { .. }) => session.pager()?,
        _ => None,
    };
    Open { session, store: &store, conversation: &conversation }.obey(action).await
}

impl Open<'_> {
    /// Runs the action; without one, shows the summary.
    pub(crate) async fn obey(&self, action: Option<Action>) -> Outcome {
        let Self { session, store, conversation } = *self;
        let Some(action) = action else { return screen::show(self).await };
        match action {
            Action::Messages { role, last } => self.messages(role, last).await,
            Action::Stats => {
                let stats = store.stats().await?;
                match session.json {
                    true => output::json(&stats::row(store.scope(), &stats))?,
                    false => stats::show(store.scope(), &stats)?,
                }
                Ok(Exit::Done)
            }
            Action::Artifacts => artifact::list(session, store).await,
            Action::Show(args) => show(self, args).await,
            Action::Add(args) => contents::add(session, args).await,
            Action::AddFolder(args) => artifact::add_folder(session, args).await,
            Action::AddSearch(args) => artifact::add_search(session, args).await,
            Action::Prune(args) => prune::obey(session, conversation, args).await,
            Action::Compact(args) => compact::obey(session, conversation, args).await,
            Action::Clear(args) => clear::obey(session, conversation, &args).await,
            Action::Export(args) => export::run(session, args).await,
            Action::Save(args) => snapshot::save(session, conversation, &args).await,
            Action::History => snapshot::list(session, store).await,
            Action::Restore(args) => snapshot::restore(session, conversation, args).await,
        }
    }

    async fn messages(&self, role: Option<ChatRole>, last: Option<usize>) -> Outcome {
        let reading = self.store.read_tail(usize::MAX).await?;
        output::skipped(&reading.skipped);
        let profile = self.store.profile().await?;
        let thread = self.session.thread.as_deref();
        let mut messages = reading.messages;
        messages.retain(|stored| {
            role.is_none_or(|role| stored.message.role == role)
                && (thread.is_none() || stored.message.thread_id.as_deref() == thread)
        });
        let surplus = last.map_or(0, |last| messages.len().saturating_sub(last));
        let mut out = 0;
        for stored in messages.iter().skip(surplus) {
            output::message(stored, self.session.json)?;
            if let Some(why) = why_out(&profile, stored).filter(|_| !self.session.json) {
                out += 1;
                output::line(format!("        {DIM}in no prompt: {why}{DIM:#}"))?;
            }
        }
        if messages.is_empty() && !self.session.json {
            output::note("no such message is kept");
        } else if out > 0 {
            output::note("what no prompt holds is stored all the same");
        }
        Ok(Exit::Done)
    }
}

/// Why prompts do not hold a message, if so.
fn why_out(profile: &Profile, stored: &StoredMessage) -> Option<&'static str> {
    let summary = profile.summary(stored.message.thread_id.as_deref());
    if profile.hides(stored) {
        Some("cleared")
    } else if profile.is_pruned(stored.seq) {
        Some("pruned")
    } else if summary.is_some_and(|summary| summary.replaces(stored)) {
        Some("summarized")
    } else {
        None
    }
}

const SHOW_HELP: &str = "\
Examples:
  sottovoce context show Kitchen
  sottovoce --context Kitchen context show
  sottovoce context show 5b1c90f2 --bytes 0-999";

/// Shows a context with its personality, or an artifact or a snapshot of this conversation
#[derive(clap::Args)]
#[command(after_help = SHOW_HELP)]
pub(crate) struct ShowArgs {
    /// A context's id or name, or an artifact's or snapshot's id or abbreviation; this conversation's context unless
    /// given
    #[arg(value_name = "ID|NAME")]
    id: Option<String>,

    /// Only these bytes of an artifact, counted from 0, both ends included; `1000-` goes to the end
    #[arg(long, value_name = "FIRST-LAST", value_parser = parse_bytes, requires = "id")]
    bytes: Option<Bytes>,
}

async fn show(open: &Open<'_>, args: ShowArgs) -> Outcome {
    let Open { session, store, conversation } = *open;
    let Some(id) = args.id else {
        let context = session.context_of(store).await?.ok_or_else(|| {
            let help = "name one; `sottovoce context list` shows them";
            Failure::input("this conversation is no context", help)
        })?;
        return shown::show(session, &context);
    };
    // Only artifacts have bytes.
    if args.bytes.is_none() {
        match session.find_context(&id).await {
            Ok((_, context)) => return shown::show(session, &context),
            // If no id begins like this, a context's name was meant.
            Err(Failure::Library(Error::Persona(PersonaFailure::NoSuchConversation {
                ..
            }))) if is_id(&id) => {}
            Err(failure) => return Err(failure),
        }
    }
    let profile = store.profile().await?;
    let is_snapshot = profile.snapshots().any(|known| known.starts_with(&id))
        && !profile.artifacts().any(|known| known.starts_with(&id));
    match is_snapshot {
        true => snapshot::show_one(session, conversation, &id).await,
        false => contents::show(session, contents::ShowArgs { id, bytes: args.bytes }).await,
    }
}

/// Whether this can be the id of an artifact or a snapshot, or its abbreviation.
fn is_id(text: &str) -> bool {
    let id = text.strip_prefix("artifact://").unwrap_or(text);
    id.chars().all(|c| c.is_ascii_hexdigit() || c == '-')
}
