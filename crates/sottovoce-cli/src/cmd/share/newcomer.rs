//! How a device begins to share, as the first one or by a code.

use serde::Serialize;
use sottovoce_sync::{DeviceOptions, Syncer};

use crate::cmd::share::credentials::Source;
use crate::cmd::share::device::host_name;
use crate::cmd::share::new_syncer;
use crate::cmd::share::selection::{SelectionRow, Shared};
use crate::exit::{Exit, Failure, Outcome};
use crate::output;
use crate::session::Session;

#[derive(Debug, clap::Args)]
pub(super) struct Newcomer {
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

impl Newcomer {
    /// What syncs, and the device's options.
    pub(super) fn begin(self, session: &Session) -> Result<(Syncer, DeviceOptions), Failure> {
        let syncer = new_syncer(session, self.credentials.remote(&session.config()?)?)?;
        let name = self.name.unwrap_or_else(host_name);
        Ok((syncer, DeviceOptions { name, selection: self.shared.selection() }))
    }
}

/// Shows what a device shares from now on: as JSON, or in these notes.
pub(super) fn tell(
    session: &Session,
    address: &str,
    options: &DeviceOptions,
    notes: [&str; 2],
) -> Outcome {
    match session.json {
        true => {
            let shares = SelectionRow::of(&options.selection);
            output::json(&Row { address, name: &options.name, shares })?;
        }
        false => notes.into_iter().for_each(output::note),
    }
    Ok(Exit::Done)
}
