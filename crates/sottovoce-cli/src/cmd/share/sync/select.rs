//! `sottovoce sync select`

use sottovoce_sync::Selection;

use crate::cmd::share::selection::{SelectionRow, Shared, described};
use crate::cmd::share::{no_remote, syncer};
use crate::exit::{Exit, Outcome};
use crate::output;
use crate::session::Session;

const AFTER_HELP: &str = "\
Examples:
  sottovoce sync select                              shows what is shared
  sottovoce sync select --all --except diary
  sottovoce sync select --only kitchen --only 'dm/*'
  sottovoce sync select --usual                      the default and the named conversations";

/// Chooses which conversations this device shares, in place of the choice before; without options, shows them
///
/// What was published before stays with the other devices. What they said in a conversation that is shared from now on
/// comes with the next sync.
#[derive(Debug, clap::Args)]
#[command(after_help = AFTER_HELP)]
pub(super) struct Args {
    #[command(flatten)]
    shared: Shared,

    /// Shares the default and the named conversations, as without options of `sync init`
    #[arg(long, conflicts_with_all = ["all", "only", "except"])]
    usual: bool,
}

pub(super) async fn run(session: &Session, args: Args) -> Outcome {
    let syncer = syncer(session, no_remote())?;
    let selection = match (args.usual, args.shared.is_given()) {
        (true, _) => Some(Selection::default()),
        (false, true) => Some(args.shared.selection()),
        (false, false) => None,
    };
    let selection = match selection {
        Some(selection) => {
            syncer.select(selection.clone()).await?;
            selection
        }
        None => syncer.status().await?.selection,
    };
    if session.json {
        output::json(&SelectionRow::of(&selection))?;
    } else {
        output::line(format!("this device shares {}", described(&selection)))?;
    }
    Ok(Exit::Done)
}
