//! `sottovoce context create`

use sottovoce::{NewContext, PersonaChange, Preset};

use super::shown;
use crate::cmd::persona::traits::{self, Traits};
use crate::cmd::prune::beginning;
use crate::exit::{Exit, Failure, Outcome};
use crate::output;
use crate::session::Session;

const AFTER_HELP: &str = "\
Examples:
  sottovoce context create --preset calm-counselor
  sottovoce context create --preset calm-counselor --name Evenings --expiry-days 30
  sottovoce context create --name Kitchen --system-prompt \"You are a sous chef.\" --temperature 0.3
  sottovoce --context Kitchen chat                and talk to it";

/// Makes a context: a conversation in which the model plays a part
///
/// The part is that of a preset, changed by what else is given, or one's own with --system-prompt. Prints its id.
/// Without a word for so many days it expires; what has expired can be extended until it is removed.
#[derive(clap::Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct Args {
    /// The preset that it is made from, by id or name; `sottovoce persona list` shows them
    #[arg(long, value_name = "ID|NAME")]
    preset: Option<String>,

    /// What it is called; the preset's name or the beginning of the system prompt unless given
    #[arg(long)]
    name: Option<String>,

    #[command(flatten)]
    traits: Traits,
}

pub(super) async fn run(session: &Session, args: Args) -> Outcome {
    let config = session.config()?;
    let change = args.traits.change()?;
    let new = match &args.preset {
        Some(preset) => {
            let preset = Preset::find(session.presets(&config).await?, preset)?;
            NewContext::from_preset(&preset, args.name, change)
        }
        None => own(args.name, &change)?,
    };
    // Before a key is made for it.
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
        made.id
    ));
    Ok(Exit::Done)
}

fn own(name: Option<String>, change: &PersonaChange) -> Result<NewContext, Failure> {
    let persona = traits::made(change).ok_or_else(|| {
        Failure::input(
            "a context needs a preset or a system prompt",
            "give --preset, --system-prompt or --system-prompt-file; `sottovoce persona list` shows the presets",
        )
    })?;
    let first = persona.system_prompt.trim().lines().next().unwrap_or_default();
    let name = name.unwrap_or_else(|| beginning(first));
    Ok(NewContext::new(name, persona))
}
