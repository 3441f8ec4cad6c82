//! `sottovoce context`, and `/context` in a chat: shows and changes the context.

pub(crate) mod named;
mod screen;
pub(crate) mod show;

use std::sync::Arc;

use clap::Subcommand;
use sottovoce::{ChatRole, Config, Conversation, ConversationStore, FileConversationStore};

use crate::cmd::backup::export;
use crate::cmd::forgetting::{clear, compact, prune};
use crate::cmd::memory::{artifact, snapshot, stats};
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

/// Shows the context of a conversation; creates and lists contexts
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
    /// Lists the messages, and marks those outside the context
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
    Show(show::Args),
    /// Shows the size of the conversation, and when it expires
    Stats,
    Add(artifact::add::Args),
    AddFolder(artifact::folder::Args),
    AddSearch(artifact::search::Args),
    Prune(prune::Args),
    /// Clears the context: later prompts hold nothing that was said so far; deletes nothing
    Clear(clear::Args),
    Compact(compact::Args),
    Export(export::Args),
    /// Saves recent messages as a snapshot, with a summary by the model
    Save {
        /// Its description; several words need no quotes
        description: Vec<String>,
    },
    /// Lists the snapshots, newest first
    History,
    /// Restores a snapshot's messages into the window, each into its own thread; with --thread, only that thread's
    Restore {
        /// Its id or abbreviation
        id: String,
        /// Restores all of them into THREAD instead; "" means outside all threads
        #[arg(long, value_name = "THREAD")]
        into: Option<String>,
    },
}

/// An open conversation.
pub(crate) struct Open<'a> {
    pub(crate) session: &'a Session,
    pub(crate) config: &'a Config,
    pub(crate) store: &'a Arc<FileConversationStore>,
    pub(crate) conversation: &'a Conversation,
}

pub(crate) async fn run(session: &Session, args: Args) -> Outcome {
    let action = match args.action {
        Some(Verb::Named(action)) => return named::run(session, action).await,
        Some(Verb::One(action)) => Some(action),
        None => None,
    };
    let config = session.config()?;
    let writes =
        matches!(action, Some(Action::Clear(_) | Action::Save { .. } | Action::Restore { .. }));
    let store = match writes {
        true => Arc::new(session.store_or_make(&config).await?),
        false => session.store_or_empty(&config).await?,
    };
    let conversation = session.conversation(&config, Arc::clone(&store))?;
    let open = Open { session, config: &config, store: &store, conversation: &conversation };
    open.obey(action).await
}

impl Open<'_> {
    /// Runs the action; without one, shows the summary.
    pub(crate) async fn obey(&self, action: Option<Action>) -> Outcome {
        let Self { session, config, store, conversation } = *self;
        match action {
            None => screen::show(self).await?,
            Some(Action::Messages { role, last }) => self.messages(role, last).await?,
            Some(Action::Artifacts) => return artifact::list::list(session, store).await,
            Some(Action::Show(args)) => return show::run(self, args).await,
            Some(Action::Stats) => {
                let stats = store.stats().await?;
                match session.json {
                    true => stats::json(store.scope(), &stats)?,
                    false => stats::show(store.scope(), &stats)?,
                }
            }
            Some(Action::Add(args)) => return artifact::add::run(session, args).await,
            Some(Action::AddFolder(args)) => return artifact::folder::run(session, args).await,
            Some(Action::AddSearch(args)) => return artifact::search::run(session, args).await,
            Some(Action::Prune(args)) => {
                return prune::obey(session, config, conversation, args).await;
            }
            Some(Action::Compact(args)) => {
                return compact::obey(session, config, conversation, args).await;
            }
            Some(Action::Clear(args)) => clear::obey(session, conversation, &args).await?,
            Some(Action::Export(args)) => return export::run(session, args).await,
            Some(Action::Save { description }) => {
                snapshot::save(session, conversation, &description).await?;
            }
            Some(Action::History) => snapshot::list(session, store).await?,
            Some(Action::Restore { id, into }) => {
                snapshot::restore(session, conversation, &id, into).await?;
            }
        }
        Ok(Exit::Done)
    }

    async fn messages(&self, role: Option<ChatRole>, last: Option<usize>) -> Result<(), Failure> {
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
            let of = stored.message.thread_id.as_deref();
            let why = if profile.hides(stored) {
                Some("cleared")
            } else if profile.is_pruned(stored.seq) {
                Some("pruned")
            } else if profile.summary(of).is_some_and(|summary| summary.replaces(stored)) {
                Some("summarized")
            } else {
                None
            };
            output::message(stored, self.session.json)?;
            if let Some(why) = why.filter(|_| !self.session.json) {
                out += 1;
                output::line(format!("        {DIM}not in the context: {why}{DIM:#}"))?;
            }
        }
        if messages.is_empty() && !self.session.json {
            output::note("no such message is kept");
        } else if out > 0 {
            output::note("what is not in the context is stored all the same");
        }
        Ok(())
    }
}
