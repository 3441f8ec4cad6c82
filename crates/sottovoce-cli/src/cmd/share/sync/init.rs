//! `sottovoce sync init`

use serde::Serialize;
use sottovoce_sync::DeviceOptions;

use crate::cmd::share::credentials::Source;
use crate::cmd::share::device::host_name;
use crate::cmd::share::selection::{SelectionRow, Shared, described};
use crate::cmd::share::{address, new_syncer};
use crate::exit::{Exit, Outcome};
use crate::output;
use crate::session::Session;

const AFTER_HELP: &str = "\
Examples:
  sottovoce sync init /mnt/nas/sottovoce
  sottovoce sync init s3://bucket/memory --credentials-file ~/.config/sottovoce/s3
  sottovoce sync init https://nas.local/dav/memory --name kitchen --except diary
  sottovoce sync init /mnt/nas/sottovoce --only 'dm/ann*'

The folder or bucket must exist. Then `sottovoce sync` publishes, and `sottovoce device add` shows the code for the next device.";

/// Begins to share conversations, on the first of your devices
///
/// Unless told otherwise, shares the default and the named conversations. Those with one person (dm/USER) and parts of groups
/// (guild/…) stay at home. Publishes nothing yet.
#[derive(Debug, clap::Args)]
#[command(after_help = AFTER_HELP)]
pub(super) struct Args {
    /// The remote: a folder, s3://…, az://…, gs://… or https://…
    #[arg(value_parser = address::parse)]
    address: String,

    /// This device's name, as your other devices show it; the host's name unless given
    #[arg(long)]
    name: Option<String>,

    #[command(flatten)]
    shared: Shared,

    #[command(flatten)]
    credentials: Source,
}

#[derive(Serialize)]
struct Row<'a> {
    address: &'a str,
    name: &'a str,
    shares: SelectionRow<'a>,
}

pub(super) async fn run(session: &Session, args: Args) -> Outcome {
    let config = session.config()?;
    let syncer = new_syncer(session, args.credentials.remote(&config)?)?;
    let options = DeviceOptions {
        name: args.name.unwrap_or_else(host_name),
        selection: args.shared.selection(),
    };
    syncer.init(&args.address, options.clone()).await?;
    if session.json {
        output::json(&Row {
            address: &args.address,
            name: &options.name,
            shares: SelectionRow::of(&options.selection),
        })?;
    } else {
        output::note(&format!("this device will share {}", described(&options.selection)));
        output::note(
            "`sottovoce sync` publishes it; then `sottovoce device add` shows the code for the next device",
        );
    }
    Ok(Exit::Done)
}
