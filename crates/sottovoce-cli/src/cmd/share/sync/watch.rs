//! `sottovoce sync --watch`

use std::sync::Arc;
use std::time::Duration;

use sottovoce::Config;
use sottovoce_sync::{SyncError, Syncer};

use crate::cmd::share::watching;
use crate::exit::Outcome;
use crate::session::Session;

/// The interval if servers do not sync.
const INTERVAL: u64 = 60;

/// Syncs this store until Ctrl-C.
pub(super) async fn run(session: &Session, config: &Config, syncer: Syncer) -> Outcome {
    if syncer.address().await?.is_none() {
        return Err(SyncError::NotSetUp.into());
    }
    let seconds = match config.sync.interval_seconds {
        0 => INTERVAL,
        seconds => seconds,
    };
    watching::run(session, Arc::new(syncer), Duration::from_secs(seconds)).await
}
