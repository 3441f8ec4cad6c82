//! `sottovoce persona edit`

use sottovoce::persona::PresetChange;

use crate::cmd::memory::append::parse_note;
use crate::cmd::memory::persona::shown;
use crate::cmd::memory::persona::traits::Traits;
use crate::exit::{Exit, Failure, Outcome};
use crate::output;
use crate::session::Session;

const AFTER_HELP: &str = "\
Examples:
  sottovoce persona edit calm-counselor --temperature 0.2
  sottovoce persona edit \"Sous Chef\" --name \"Head Chef\" --metadata kitchen=hot
  sottovoce persona edit \"Sous Chef\" --active false      no longer offered; contexts made from it stay";

/// Changes the given fields of a preset
///
/// A change of a built-in preset is stored beside it, and `sottovoce persona delete` undoes it. Contexts that were
/// created from it stay as they are.
#[derive(clap::Args)]
#[command(after_help = AFTER_HELP)]
pub(super) struct Args {
    /// Its id or name
    #[arg(value_name = "ID|NAME")]
    preset: String,

    /// Its new name
    #[arg(long)]
    name: Option<String>,

    /// The purpose of the preset
    #[arg(long, value_name = "TEXT")]
    description: Option<String>,

    /// Metadata of the preset, `KEY=` removes it; may be repeated
    #[arg(long, value_name = "KEY=VALUE", value_parser = parse_note)]
    metadata: Vec<(String, String)>,

    /// Whether it is offered for new contexts
    #[arg(long, value_name = "true|false")]
    active: Option<bool>,

    #[command(flatten)]
    traits: Traits,
}

pub(super) async fn run(session: &Session, args: Args) -> Outcome {
    let config = session.config()?;
    let mut change = PresetChange {
        name: args.name,
        description: args.description,
        persona: args.traits.change()?,
        is_active: args.active,
        metadata: None,
    };
    if change == PresetChange::default() && args.metadata.is_empty() {
        let help = "`sottovoce persona edit --help` lists what can be";
        return Err(Failure::input("nothing is to be changed", help));
    }
    let preset = sottovoce::persona::Preset::find(session.presets(&config).await?, &args.preset)?;
    if !args.metadata.is_empty() {
        let mut metadata = preset.metadata;
        for (key, value) in args.metadata {
            match value.is_empty() {
                true => drop(metadata.remove(&key)),
                false => drop(metadata.insert(key, value.into())),
            }
        }
        change.metadata = Some(metadata);
    }
    let contexts = session.contexts_or_make(&config)?;
    let changed = contexts.update_preset(&preset.id, change).await?;
    if session.json {
        shown::show(session, &changed)?;
    } else {
        output::note(&format!("changed the preset {}", changed.id));
    }
    Ok(Exit::Done)
}
