//! `sottovoce device add`

use serde::Serialize;

use crate::cmd::share::device::code::Target;
use crate::cmd::share::{no_remote, syncer};
use crate::exit::{Exit, Outcome};
use crate::output;
use crate::session::Session;

const AFTER_HELP: &str = "\
Examples:
  sottovoce device add
  sottovoce device add --to /media/stick/code      then, on the other device: sottovoce device join /media/stick/code

The other device needs credentials of its own for the remote, if the remote wants any.";

/// Shows the code with which another device joins
///
/// The code holds the address of the remote and the key of what is shared there. It is always the same one, until a
/// device is removed.
#[derive(Debug, clap::Args)]
#[command(after_help = AFTER_HELP)]
pub(super) struct Args {
    #[command(flatten)]
    target: Target,
}

#[derive(Serialize)]
struct Row<'a> {
    address: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    code: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<&'a std::path::Path>,
}

pub(super) async fn run(session: &Session, args: Args) -> Outcome {
    let config = session.config()?;
    args.target.check(&config)?;
    let syncer = syncer(session, no_remote())?;
    let invitation = syncer.invitation().await?;
    args.target.put(session, &config, &invitation)?;
    if session.json {
        let file = args.target.file();
        let code = invitation.code();
        output::json(&Row {
            address: invitation.address(),
            code: file.is_none().then_some(&code),
            file,
        })?;
    }
    if syncer.status().await?.synced_at.is_none() {
        output::note(
            "run `sottovoce sync` here first: a device can join once something is published",
        );
    }
    Ok(Exit::Done)
}
