//! `sottovoce persona delete`

use serde::Serialize;
use sottovoce::Error;
use sottovoce::persona::{PersonaFailure, Preset};

use crate::exit::{Exit, Outcome};
use crate::output;
use crate::session::Session;

/// Deletes a preset; for a built-in one, undoes the changes
///
/// Asks first. Contexts that were created from it stay as they are.
#[derive(clap::Args)]
pub(super) struct Args {
    /// Its id or name
    #[arg(value_name = "ID|NAME")]
    preset: String,

    /// Does not ask
    #[arg(long, short)]
    yes: bool,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Deleted {
    deleted: String,
    /// Whether a built-in preset of that id remains.
    is_built_in: bool,
}

pub(super) async fn run(session: &Session, args: &Args) -> Outcome {
    let config = session.config()?;
    let preset = Preset::find(session.presets(&config).await?, &args.preset)?;
    let is_built_in = preset.is_built_in();
    if is_built_in && preset.updated_at.is_none() {
        return Err(Error::Persona(PersonaFailure::BuiltIn).into());
    }
    let name = output::one_line(&preset.name);
    if !args.yes {
        let (deed, question) = match is_built_in {
            true => (
                format!("take back all changes of the preset {}", preset.id),
                format!("Really take back all changes of “{name}”?"),
            ),
            false => (
                format!("delete the preset {} for ever", preset.id),
                format!("Really delete “{name}” for ever?"),
            ),
        };
        session.check_attended(&deed)?;
        if !output::confirmed(&question)? {
            output::note("nothing was deleted");
            return Ok(Exit::Done);
        }
    }
    session.contexts_or_make(&config)?.delete_preset(&preset.id).await?;
    let deleted = preset.id;
    if session.json {
        output::json(&Deleted { deleted, is_built_in })?;
    } else if is_built_in {
        output::note(&format!("the preset {deleted} is what is built in again"));
    } else {
        output::note(&format!("deleted the preset {deleted} for ever"));
    }
    Ok(Exit::Done)
}
