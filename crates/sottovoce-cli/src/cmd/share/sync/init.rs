//! `sottovoce sync init`

use crate::cmd::share::address;
use crate::cmd::share::newcomer::{self, Newcomer};
use crate::cmd::share::selection::described;
use crate::exit::Outcome;
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

    #[command(flatten)]
    newcomer: Newcomer,
}

pub(super) async fn run(session: &Session, args: Args) -> Outcome {
    let (syncer, options) = args.newcomer.begin(session)?;
    syncer.init(&args.address, options.clone()).await?;
    let shares = format!("this device will share {}", described(&options.selection));
    let next = "`sottovoce sync` publishes it; then `sottovoce device add` shows the code for the next device";
    newcomer::tell(session, &args.address, &options, [&shares, next])
}
