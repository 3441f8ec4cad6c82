//! `sottovoce team sync`

use std::sync::Arc;
use std::time::Duration;

use sottovoce_team::TeamError;

use crate::cmd::share::team::teams;
use crate::cmd::share::{report, watching};
use crate::exit::Outcome;
use crate::output;
use crate::session::Session;

/// The longest time between two syncs, if a server cannot tell of news.
const INTERVAL: Duration = Duration::from_secs(60);

/// Receives what members have written, and publishes what is new here
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Goes on until Ctrl-C: at once when a member writes, and soon after something was said here
    #[arg(long)]
    watch: bool,

    /// Also fetches the contents of artifacts, which otherwise come when they are opened
    #[arg(long, conflicts_with = "watch")]
    artifacts: bool,
}

impl Args {
    pub(super) fn is_watching(&self) -> bool {
        self.watch
    }
}

pub(super) async fn run(session: &Session, args: Args) -> Outcome {
    let teams = teams(session)?;
    if args.watch {
        if teams.status().await?.is_empty() {
            return Err(TeamError::NoTeam.into());
        }
        return watching::run(session, Arc::new(teams), INTERVAL).await;
    }
    let (bar, progress) = report::records_bar();
    let report = report::attended(&bar, teams.sync(progress)).await?;
    let exit = report::show(session, &report)?;
    if args.artifacts {
        let fetched = teams.fetch_artifacts().await?;
        output::note(&format!("fetched {}", output::counted(fetched as u64, "artifact")));
    }
    Ok(exit)
}
