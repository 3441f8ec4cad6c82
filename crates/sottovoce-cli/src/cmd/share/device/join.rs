//! `sottovoce device join`

use std::io::{self, IsTerminal};
use std::path::Path;

use sottovoce_sync::{Invitation, SyncError};
use zeroize::Zeroizing;

use crate::cmd::share::newcomer::{self, Newcomer};
use crate::cmd::share::selection::described;
use crate::cmd::share::{address, text};
use crate::exit::{Failure, Outcome};
use crate::output;
use crate::session::Session;

/// More than any code has.
const LONGEST: u64 = 16 << 10;

/// What to do if it cannot be read.
const HELP: &str = "give what `sottovoce device add` has shown";

const AFTER_HELP: &str = "\
Examples:
  sottovoce device join /media/stick/code
  sottovoce device join - < code                        a code on the command line stays in the shell's history
  sottovoce device join CODE --name kitchen
  sottovoce device join CODE --at /Volumes/nas/sottovoce   the same folder has another path here
  sottovoce device join CODE --only kitchen

Then `sottovoce sync` brings what the other devices have published.";

/// Joins the devices that share conversations, with the code of one of them
///
/// What is in this store already stays, and is shared too. Receives and publishes nothing yet.
#[derive(Debug, clap::Args)]
#[command(after_help = AFTER_HELP)]
pub(super) struct Args {
    /// What `sottovoce device add` has shown, the file that it wrote, or `-` for standard input
    #[arg(value_name = "FILE|CODE|-")]
    code: String,

    /// The remote's address on this device, if it is another than in the code
    #[arg(long, value_name = "ADDRESS", value_parser = address::parse)]
    at: Option<String>,

    #[command(flatten)]
    newcomer: Newcomer,
}

pub(super) async fn run(session: &Session, args: Args) -> Outcome {
    let invitation: Invitation = read(&args.code)?.parse()?;
    let invitation = match args.at {
        Some(address) => invitation.at(address),
        None => invitation,
    };
    let (syncer, options) = args.newcomer.begin(session)?;
    syncer.join(&invitation, options.clone()).await?;
    let shares = format!("joined; this device shares {}", described(&options.selection));
    let next = "`sottovoce sync` brings what the other devices have published";
    newcomer::tell(session, invitation.address(), &options, [&shares, next])
}

/// The text of a code, from where the argument says.
fn read(argument: &str) -> Result<Zeroizing<String>, Failure> {
    if argument == "-" {
        if io::stdin().is_terminal() {
            output::note("paste the code, then press Ctrl-D");
        }
        return text::limited(io::stdin(), LONGEST, "standard input", HELP);
    }
    match std::fs::File::open(Path::new(argument)) {
        Ok(file) => text::limited(file, LONGEST, argument, HELP),
        // No code is a path that exists.
        Err(_) if argument.contains('@') => Ok(Zeroizing::new(argument.to_owned())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            Err(SyncError::InvalidCode { reason: "it has no address, and no file has this name" }
                .into())
        }
        Err(error) => Err(Failure::input(
            format!("{argument}: {error}"),
            "name a file that this user can read, or give the code itself",
        )),
    }
}
