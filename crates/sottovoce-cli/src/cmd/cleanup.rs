//! `sottovoce cleanup`

use serde::Serialize;
use sottovoce::{Cleaned, ConversationStore, Scope};

use crate::cmd::scopes;
use crate::exit::{Exit, Failure, Outcome, with_causes};
use crate::interrupt::Interrupt;
use crate::output;
use crate::session::{Session, Stores};

const AFTER_HELP: &str = "\
Exit codes:
  0  done                          4  no key, or the wrong one
  1  failed; see the message     130  interrupted; what was removed is recorded";

/// Removes what is over the limits: expired conversations, and messages beyond the greatest number
///
/// Everything of the kind is hidden already, so that this only frees the space; a host calls it from time to time. It
/// refuses where this machine's clock is behind the newest message. Limits are set with `sottovoce settings`, or for all
/// conversations with Context.MaxMessages and Context.TtlSeconds.
#[derive(Debug, clap::Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct Args {
    /// In every conversation of the store
    #[arg(long)]
    all: bool,
}

#[derive(Serialize)]
struct Row {
    scope: String,
    removed: usize,
    expired: bool,
}

pub(crate) async fn run(session: &Session, args: Args) -> Outcome {
    let config = session.config()?;
    let scopes = if args.all { scopes::all(&config)? } else { vec![session.scope.clone()] };
    let stores = session.stores_or_empty(&config)?;
    let bar = output::progress(Some(scopes.len() as u64), "cleaning up");
    let mut interrupt = Interrupt::listen()?;
    let mut failed = None;
    let mut removed = 0;
    for scope in scopes {
        let cleaned = tokio::select! {
            biased;
            _ = interrupt.heard() => {
                bar.finish_and_clear();
                return Ok(Exit::Interrupted);
            }
            cleaned = clean(&stores, scope.clone()) => cleaned,
        };
        bar.inc(1);
        match cleaned {
            Ok(cleaned) => {
                removed += cleaned.removed;
                if cleaned.removed > 0 || !args.all {
                    bar.suspend(|| show(session, &scope, cleaned))?;
                }
            }
            // What is the matter with one conversation keeps none of the others from being cleaned up.
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

async fn clean(stores: &Stores<'_>, scope: Scope) -> Result<Cleaned, Failure> {
    Ok(stores.open(scope).await?.cleanup().await?)
}

fn show(session: &Session, scope: &Scope, cleaned: Cleaned) -> std::io::Result<()> {
    let Cleaned { removed, expired, .. } = cleaned;
    if session.json {
        return output::json(&Row { scope: scope.to_string(), removed, expired });
    }
    let why = if expired { "; it had expired" } else { "" };
    output::note(&format!("{scope}: removed {}{why}", output::messages(removed)));
    Ok(())
}
