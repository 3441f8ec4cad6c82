//! `sottovoce context show`

use sottovoce::persona::PersonaFailure;
use sottovoce::{ConversationStore, Error};

use crate::cmd::memory::artifact::show as artifact;
use crate::cmd::memory::artifact::show::{Bytes, parse_range};
use crate::cmd::memory::context::Open;
use crate::cmd::memory::context::named::shown;
use crate::cmd::memory::snapshot;
use crate::exit::{Exit, Failure, Outcome};

const AFTER_HELP: &str = "\
Examples:
  sottovoce context show Kitchen
  sottovoce --context Kitchen context show
  sottovoce context show 5b1c90f2 --bytes 0-999";

/// Shows a context with its personality, or an artifact or a snapshot of this conversation
#[derive(clap::Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct Args {
    /// A context's id or name, or an artifact's or snapshot's id or abbreviation; this conversation's context unless
    /// given
    #[arg(value_name = "ID|NAME")]
    id: Option<String>,

    /// Only these bytes of an artifact, counted from 0, both ends included; `1000-` goes to the end
    #[arg(long, value_name = "FIRST-LAST", value_parser = parse_range, requires = "id")]
    bytes: Option<Bytes>,
}

pub(super) async fn run(open: &Open<'_>, args: Args) -> Outcome {
    let Open { session, config, store, conversation } = *open;
    let Some(id) = args.id else {
        let context = session.context_of(config, store).await?;
        let context = context.ok_or_else(|| {
            Failure::input(
                "this conversation is no context",
                "name one; `sottovoce context list` shows them",
            )
        })?;
        shown::show(session, &context)?;
        return Ok(Exit::Done);
    };
    // Only artifacts have bytes.
    if args.bytes.is_none() {
        match session.find_context(config, &id).await {
            Ok((_, context)) => {
                shown::show(session, &context)?;
                return Ok(Exit::Done);
            }
            // If no id begins like this, a context's name was meant.
            Err(
                error @ Failure::Library(Error::Persona(PersonaFailure::NoSuchConversation {
                    ..
                })),
            ) => {
                if !is_id(&id) {
                    return Err(error);
                }
            }
            Err(error) => return Err(error),
        }
    }
    let profile = store.profile().await?;
    let is_snapshot = profile.snapshots().any(|known| known.starts_with(&id))
        && !profile.artifacts().any(|known| known.starts_with(&id));
    match is_snapshot {
        true => snapshot::show_one(session, conversation, &id).await,
        false => artifact::run(session, artifact::Args { id, bytes: args.bytes }).await,
    }
}

/// Whether this can be the id of an artifact or a snapshot, or its abbreviation.
fn is_id(text: &str) -> bool {
    let id = text.strip_prefix("artifact://").unwrap_or(text);
    id.chars().all(|c| c.is_ascii_hexdigit() || c == '-')
}
