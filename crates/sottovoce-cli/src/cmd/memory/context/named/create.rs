//! `sottovoce context create`

use sottovoce::Scope;
use sottovoce::persona::{
    NewPersonaConversation, Persona, PersonaChange, PersonaConversation, Preset,
};

use crate::cmd::forgetting::prune::beginning;
use crate::cmd::memory::context::named::shown;
use crate::cmd::memory::persona::attach::attach;
use crate::cmd::memory::persona::traits;
use crate::cmd::memory::persona::traits::Traits;
use crate::exit::{Exit, Failure, Outcome};
use crate::output;
use crate::session::Session;

const AFTER_HELP: &str = "\
Examples:
  sottovoce context create --preset calm-counselor
  sottovoce context create --preset calm-counselor --name Evenings --expiry-days 30
  sottovoce context create --name Kitchen --system-prompt \"You are a sous chef.\" --temperature 0.3
  sottovoce --context Kitchen chat                and talk to it
  sottovoce --scope named/mira context create --preset calm-counselor    of a conversation that is there";

/// Creates a context: a conversation in which the model plays a persona
///
/// The persona comes from a preset, changed by the other options, or from --system-prompt. Prints the new id. The
/// context expires after a number of days without an interaction. An expired context can be extended until it is
/// removed. With --scope named/NAME, the existing conversation becomes a context with all its messages, and expires
/// only if --expiry-days is given.
#[derive(clap::Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct Args {
    /// The preset to create it from, by id or name; `sottovoce persona list` shows them
    #[arg(long, value_name = "ID|NAME")]
    preset: Option<String>,

    /// The name; the preset's name or the beginning of the system prompt unless given
    #[arg(long)]
    name: Option<String>,

    #[command(flatten)]
    traits: Traits,
}

pub(super) async fn run(session: &Session, args: Args) -> Outcome {
    let config = session.config()?;
    let change = args.traits.change()?;
    if session.scope != Scope::Default {
        return of_scope(session, args.preset, args.name, &change).await;
    }
    let new = match &args.preset {
        Some(preset) => {
            let preset = Preset::find(session.presets(&config).await?, preset)?;
            NewPersonaConversation::from_preset(&preset, args.name, change)
        }
        None => {
            let persona = own(&change)?;
            let first = persona.system_prompt.trim().lines().next().unwrap_or_default();
            match args.name {
                Some(name) => NewPersonaConversation::new(name, persona),
                None => NewPersonaConversation::new(beginning(first), persona).numbered(),
            }
        }
    };
    // Check before a key is created for it.
    new.check()?;
    let made = session.contexts_or_make(&config)?.create(new).await?;
    if session.json {
        shown::show(session, &made)?;
        return Ok(Exit::Done);
    }
    output::line(&made.id)?;
    output::note(&format!(
        "“{}” {}; `sottovoce --context {} chat` talks to it",
        output::one_line(&made.name),
        shown::expiry(session, &made),
        on_command_line(&made)
    ));
    Ok(Exit::Done)
}

/// Turns the conversation of --scope into a context.
async fn of_scope(
    session: &Session,
    preset: Option<String>,
    name: Option<String>,
    change: &PersonaChange,
) -> Outcome {
    let Scope::Named { id } = &session.scope else {
        return Err(Failure::input(
            "a context is a conversation of a scope named/NAME",
            "give any other conversation a personality with `sottovoce --scope … persona attach`",
        ));
    };
    let config = session.config()?;
    let name = name.unwrap_or_else(|| id.clone());
    let (persona, preset) = match preset {
        Some(preset) => {
            let preset = Preset::find(session.presets(&config).await?, &preset)?;
            (preset.persona, Some(preset.id))
        }
        None => (own(change)?, None),
    };
    if let Some(contexts) = session.contexts(&config)? {
        contexts.check_name_is_free(&name, id).await?;
    }
    attach(session, &config, (persona, preset), change, Some(name)).await?;
    let made = session.contexts_or_make(&config)?.get(id).await?;
    match session.json {
        true => shown::show(session, &made)?,
        false => output::line(&made.id)?,
    }
    Ok(Exit::Done)
}

/// How to name the context on a command line: by its name, unless that is ambiguous there.
fn on_command_line(made: &PersonaConversation) -> String {
    let name = &made.name;
    let is_plain = !name.starts_with('-') && output::one_line(name) == *name;
    let quoted = shlex::try_quote(name).ok().filter(|_| is_plain);
    quoted.map_or_else(|| made.id.clone(), |name| name.into_owned())
}

fn own(change: &PersonaChange) -> Result<Persona, Failure> {
    traits::made(change).ok_or_else(|| {
        Failure::input(
            "a context needs a preset or a system prompt",
            "give --preset, --system-prompt or --system-prompt-file; `sottovoce persona list` shows the presets",
        )
    })
}
