//! `sottovoce device`

mod add;
mod code;
mod join;
pub(super) mod list;
mod remove;

use crate::cmd::share::{no_remote, syncer};
use crate::exit::{Exit, Failure, Outcome};
use crate::output;
use crate::session::Session;

const AFTER_HELP: &str = "\
Examples:
  sottovoce device add                    on a device that syncs: shows the code
  sottovoce device join CODE              on the new device, then `sottovoce sync`
  sottovoce device list
  sottovoce device remove phone           after the phone was lost";

/// Adds your devices to those that share conversations, lists and removes them
///
/// Whoever has a code can read everything that is shared. `sottovoce sync --help` tells more.
#[derive(Debug, clap::Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct Args {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, clap::Subcommand)]
enum Verb {
    Add(add::Args),
    Join(join::Args),
    /// Lists the devices, when each last published, and what has not been read yet
    List,
    /// Gives this device another name; others see it after the next sync
    Rename {
        /// The name
        name: String,
    },
    Remove(remove::Args),
}

pub(crate) async fn run(session: &Session, args: Args) -> Outcome {
    match args.verb {
        Verb::Add(args) => add::run(session, args).await,
        Verb::Join(args) => join::run(session, args).await,
        Verb::List => list::run(session).await,
        Verb::Rename { name } => rename(session, &name).await,
        Verb::Remove(args) => remove::run(session, args).await,
    }
}

async fn rename(session: &Session, name: &str) -> Outcome {
    let name = output::one_line(name.trim());
    if name.is_empty() {
        return Err(Failure::input("the name is empty", "give a name, such as kitchen"));
    }
    syncer(session, no_remote())?.rename(&name).await?;
    output::note("other devices see the name after the next sync");
    Ok(Exit::Done)
}

/// The name of this machine.
pub(super) fn host_name() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}
