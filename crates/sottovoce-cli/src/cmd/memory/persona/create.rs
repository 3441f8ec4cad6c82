//! `sottovoce persona create`

use sottovoce::persona::{PersonaChange, Preset};

use crate::cmd::memory::append::parse_note;
use crate::cmd::memory::persona::shown;
use crate::cmd::memory::persona::traits;
use crate::cmd::memory::persona::traits::Traits;
use crate::exit::{Exit, Failure, Outcome};
use crate::output;
use crate::session::Session;

const AFTER_HELP: &str = "\
Examples:
  sottovoce persona create \"Sous Chef\" --system-prompt-file chef.txt --temperature 0.4
  sottovoce persona create \"Strict Sous Chef\" --from \"Sous Chef\" --personality \"Curt, never unkind\"";

/// Creates a preset
///
/// It needs a system prompt, given or from the preset that it starts from. Prints its id.
#[derive(clap::Args)]
#[command(after_help = AFTER_HELP)]
pub(super) struct Args {
    /// Its name
    name: String,

    /// Starts from another preset, and keeps the fields that are not given here
    #[arg(long, value_name = "PRESET")]
    from: Option<String>,

    /// The purpose of the preset
    #[arg(long, value_name = "TEXT")]
    description: Option<String>,

    /// Metadata of the preset; may be repeated
    #[arg(long, value_name = "KEY=VALUE", value_parser = parse_note)]
    metadata: Vec<(String, String)>,

    #[command(flatten)]
    traits: Traits,
}

pub(super) async fn run(session: &Session, args: Args) -> Outcome {
    let config = session.config()?;
    let change = args.traits.change()?;
    let mut preset = match &args.from {
        Some(from) => {
            let mut preset = Preset::find(session.presets(&config).await?, from)?;
            change.apply(&mut preset.persona);
            // A copy of an inactive preset is meant to be used.
            preset.is_active = true;
            preset
        }
        None => own(&change)?,
    };
    preset.name = args.name;
    preset.description = args.description.unwrap_or(preset.description);
    preset.metadata.extend(args.metadata.into_iter().map(|(key, value)| (key, value.into())));
    // Check before a key is created for it.
    preset.check()?;
    let made = session.contexts_or_make(&config)?.create_preset(preset).await?;
    if session.json {
        shown::show(session, &made)?;
        return Ok(Exit::Done);
    }
    output::line(&made.id)?;
    output::note(&format!("`sottovoce context create --preset {}` makes a context of it", made.id));
    Ok(Exit::Done)
}

fn own(change: &PersonaChange) -> Result<Preset, Failure> {
    let persona = traits::made(change).ok_or_else(|| {
        Failure::input(
            "a preset needs a system prompt",
            "give --system-prompt or --system-prompt-file, or start from another preset with --from",
        )
    })?;
    Ok(Preset::new("", persona))
}
