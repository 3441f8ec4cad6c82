//! `sottovoce context update` and `extend`

use sottovoce::persona::PersonaConversationChange;

use crate::cmd::memory::context::named::shown;
use crate::cmd::memory::persona::traits::Traits;
use crate::exit::{Exit, Failure, Outcome};
use crate::output;
use crate::session::Session;

const UPDATE_AFTER_HELP: &str = "\
Examples:
  sottovoce context update Kitchen --temperature 0.9 --max-tokens 400
  sottovoce context update Kitchen --name \"Kitchen, winter\"
  sottovoce context update context-mep92q9v-mkorf9 --active true      takes a deleted one back";

/// Changes the given fields of a context
///
/// Later prompts use the new personality; messages stay. A change counts as an interaction, so the time until expiry
/// starts again.
#[derive(clap::Args)]
#[command(after_help = UPDATE_AFTER_HELP)]
pub(crate) struct Update {
    /// Its id, or its name if that is unique
    #[arg(value_name = "ID|NAME")]
    target: String,

    /// The new name
    #[arg(long)]
    name: Option<String>,

    /// `false` deletes the context, `true` restores it
    #[arg(long, value_name = "true|false")]
    active: Option<bool>,

    #[command(flatten)]
    traits: Traits,
}

/// Postpones the expiry of a context
///
/// By the context's own days unless given. Counts from the expiry, or from now if it has expired.
#[derive(clap::Args)]
pub(crate) struct Extend {
    /// Its id, or its name if that is unique
    #[arg(value_name = "ID|NAME")]
    target: String,

    /// The number of days
    #[arg(long, value_name = "N")]
    days: Option<u32>,
}

pub(super) async fn update(session: &Session, args: Update) -> Outcome {
    let change = PersonaConversationChange {
        name: args.name,
        persona: args.traits.change()?,
        is_active: args.active,
    };
    if change == PersonaConversationChange::default() {
        let help = "`sottovoce context update --help` lists what can be";
        return Err(Failure::input("nothing is to be changed", help));
    }
    let (contexts, found) = session.find_context(&session.config()?, &args.target).await?;
    let changed = contexts.update(&found.id, change).await?;
    if session.json {
        shown::show(session, &changed)?;
    } else {
        let (state, _) = shown::state(&changed);
        let expiry = shown::expiry(session, &changed);
        output::note(&format!("changed the context {}; it is {state} and {expiry}", changed.id));
    }
    Ok(Exit::Done)
}

pub(super) async fn extend(session: &Session, args: &Extend) -> Outcome {
    let (contexts, found) = session.find_context(&session.config()?, &args.target).await?;
    let extended = contexts.extend(&found.id, args.days).await?;
    if session.json {
        shown::show(session, &extended)?;
    } else {
        let expiry = shown::expiry(session, &extended);
        output::note(&format!("the context {} {expiry}", extended.id));
    }
    Ok(Exit::Done)
}
