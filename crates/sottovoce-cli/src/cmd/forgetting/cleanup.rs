//! `sottovoce cleanup`

mod artifacts;
mod contexts;

use indicatif::ProgressBar;
use serde::Serialize;
use sottovoce::store::CleanupReport;
use sottovoce::{ConversationStore, Scope, with_causes};

use crate::cmd::memory::scopes;
use crate::exit::{Exit, Failure, Outcome};
use crate::interrupt::Interrupt;
use crate::output;
use crate::session::{Session, Stores};
use artifacts::{How, Unused};

const AFTER_HELP: &str = "\
Examples:
  sottovoce cleanup --all                   from time to time
  sottovoce cleanup --artifacts             and what no message refers to any more";

/// Deletes messages beyond the limits, and backs up contexts
///
/// These messages are hidden already, so this only frees space; run it regularly. It refuses if this machine's clock
/// is behind the newest message. Set limits with `sottovoce settings`, or for all conversations with
/// Context.MaxMessages and Context.TtlSeconds.
///
/// The upkeep of contexts always runs too. Once a day it backs up all of them, sealed. It removes those that an
/// earlier run found deleted or expired more than Personas.RemoveAfterDays ago, each after a backup of its own.
///
/// Artifacts without a message that refers to them are listed; only --artifacts deletes them, after asking. Those
/// that a snapshot, a summary or a folder in use refers to stay. All of them stay while something cannot be read.
#[derive(Debug, clap::Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct Args {
    /// Cleans every conversation of the store
    #[arg(long)]
    all: bool,

    /// Deletes artifacts that no message refers to
    #[arg(long)]
    artifacts: bool,

    /// Does not ask
    #[arg(long, short, requires = "artifacts")]
    yes: bool,
}

#[derive(Serialize)]
struct Row {
    scope: String,
    removed: usize,
    expired: bool,
    /// Artifacts that no message refers to, and whether they were deleted.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    unreferenced: Vec<String>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    deleted: bool,
}

pub(crate) async fn run(session: &Session, args: Args) -> Outcome {
    let how = How::of(session, &args)?;
    let config = session.config()?;
    // During a question, Ctrl-C must end the program.
    let mut interrupt = if how == How::Ask { None } else { Some(Interrupt::listen()?) };
    let mut failed = None;
    let maintained = tokio::select! {
        biased;
        () = heard(&mut interrupt) => return Ok(Exit::Interrupted),
        maintained = contexts::maintain(session, &config) => maintained,
    };
    match maintained {
        Ok(()) => {}
        // A backup folder that cannot be written does not prevent cleaning conversations.
        Err(Failure::Library(error)) => {
            output::warning(&format!("contexts: {}", with_causes(&error)));
            failed = Some(error);
        }
        Err(failure) => return Err(failure),
    }
    // List the scopes only now, because a context may have been removed.
    let scopes = if args.all { scopes::all(&config)? } else { vec![session.scope.clone()] };
    let stores = session.stores_or_empty(&config)?;
    let bar = output::progress(Some(scopes.len() as u64), "cleaning up");
    let mut removed = 0;
    for scope in scopes {
        let cleaned = tokio::select! {
            biased;
            () = heard(&mut interrupt) => {
                bar.finish_and_clear();
                return Ok(Exit::Interrupted);
            }
            cleaned = clean(&stores, scope.clone(), how, &bar) => cleaned,
        };
        bar.inc(1);
        match cleaned {
            Ok(cleaned) => {
                removed += cleaned.messages.removed;
                let any = cleaned.messages.removed > 0 || !cleaned.unused.is_empty();
                if any || !args.all {
                    bar.suspend(|| show(session, &scope, &cleaned))?;
                }
            }
            // An error in one conversation does not prevent cleaning the others.
            Err(Failure::Library(error)) if args.all => {
                bar.suspend(|| output::warning(&format!("{scope}: {}", with_causes(&error))));
                failed = Some(error);
            }
            Err(failure) => return Err(failure),
        }
    }
    bar.finish_and_clear();
    match failed {
        Some(error) => Err(error.into()),
        None => {
            if args.all && !session.json {
                output::note(&format!("removed {}", output::messages(removed)));
            }
            Ok(Exit::Done)
        }
    }
}

async fn heard(interrupt: &mut Option<Interrupt>) {
    match interrupt {
        Some(interrupt) => drop(interrupt.heard().await),
        None => std::future::pending().await,
    }
}

/// The result for one conversation.
struct Done {
    messages: CleanupReport,
    unused: Unused,
}

async fn clean(
    stores: &Stores<'_>,
    scope: Scope,
    how: How,
    bar: &ProgressBar,
) -> Result<Done, Failure> {
    let store = stores.open(scope).await?;
    let messages = store.cleanup().await?;
    Ok(Done { messages, unused: artifacts::clean(&store, how, bar).await? })
}

fn show(session: &Session, scope: &Scope, done: &Done) -> std::io::Result<()> {
    let CleanupReport { removed, expired, .. } = done.messages;
    if session.json {
        let (unreferenced, deleted) = (done.unused.ids(), done.unused.were_deleted);
        let scope = scope.to_string();
        return output::json(&Row { scope, removed, expired, unreferenced, deleted });
    }
    let why = if expired { "; it had expired" } else { "" };
    output::note(&format!("{scope}: removed {}{why}", output::messages(removed)));
    done.unused.show();
    Ok(())
}
