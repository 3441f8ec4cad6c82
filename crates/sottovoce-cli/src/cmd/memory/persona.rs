//! `sottovoce persona`

pub(crate) mod attach;
mod create;
mod delete;
mod edit;
mod shown;
pub(crate) mod traits;

use crate::exit::{Exit, Outcome};
use crate::output;
use crate::session::Session;

const AFTER_HELP: &str = "\
Examples:
  sottovoce persona list
  sottovoce persona show calm-counselor
  sottovoce persona create \"Dive Instructor\" --system-prompt-file dive.txt --temperature 0.3
  sottovoce persona edit \"Dive Instructor\" --expiry-days 30
  sottovoce persona delete \"Dive Instructor\"
  sottovoce context create --preset calm-counselor     and talk to one
  sottovoce --scope dm/42 persona attach calm-counselor    for a conversation that is there";

/// Manages personalities: what the model is told, and how it answers
///
/// Six are built in, and you can create more. Presets and changes are sealed as messages are. A context copies its
/// personality when it is created, so that changing a preset later changes no context.
#[derive(clap::Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct Args {
    #[command(subcommand)]
    action: Action,
}

#[derive(clap::Subcommand)]
enum Action {
    /// Lists the presets: the built-in ones, then your own, newest first
    List {
        /// Includes inactive presets
        #[arg(long)]
        all: bool,
    },
    /// Shows all fields of a preset
    Show {
        /// Its id or name
        #[arg(value_name = "ID|NAME")]
        preset: String,
    },
    Create(create::Args),
    Edit(edit::Args),
    Delete(delete::Args),
    Attach(attach::Args),
    /// Removes the personality from the conversation of --scope; every message stays
    Detach,
}

pub(crate) async fn run(session: &Session, args: Args) -> Outcome {
    match args.action {
        Action::List { all } => {
            let mut presets = session.presets(&session.config()?).await?;
            presets.retain(|preset| all || preset.is_active);
            shown::list(session, &presets)?;
            if presets.is_empty() && !session.json {
                output::note("no preset is active; --all lists those that are not");
            }
        }
        Action::Show { preset } => {
            let presets = session.presets(&session.config()?).await?;
            shown::show(session, &sottovoce::persona::Preset::find(presets, &preset)?)?;
        }
        Action::Create(args) => return create::run(session, args).await,
        Action::Edit(args) => return edit::run(session, args).await,
        Action::Delete(args) => return delete::run(session, &args).await,
        Action::Attach(args) => return attach::run(session, args).await,
        Action::Detach => return attach::detach(session).await,
    }
    Ok(Exit::Done)
}
