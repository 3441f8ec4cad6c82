//! `sottovoce import backup`

use std::path::PathBuf;
use std::sync::Arc;

use sottovoce::import::{Backup, ConversationReport, OpenStore};
use sottovoce::{EncryptionKey, Error, Scope};

use super::conversations;
use super::keys::Sources;
use super::limits::Limits;
use crate::exit::{Exit, Failure, Outcome};
use crate::interrupt::Interrupt;
use crate::output;
use crate::session::Session;

const AFTER_HELP: &str = "\
To import a file that was sealed under another key than this store's, give that key as below: the 64 digits of its key
file, its secret string or its passphrase.

Examples:
  sottovoce import backup ~/backup.sottovoce
  sottovoce import backup ~/old.sottovoce --ask-key      sealed under the key of a store that is gone";

/// Imports what `sottovoce export` wrote: JSON, or a sealed backup
///
/// Each conversation goes into the scope that it came from. An empty conversation becomes exactly the exported one,
/// with its message numbers, settings, artifacts, snapshots and limits. Into any other, messages are merged: none is
/// stored twice, no message that was forgotten here comes back, and those that were forgotten in the exported store are
/// forgotten here too. Nothing else is deleted. Messages that exist only here are never hidden or cleared, limits stay,
/// and no persona moves to another conversation. The result lists what was left out.
#[derive(clap::Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct Args {
    /// The file
    file: PathBuf,

    #[command(flatten)]
    keys: Sources,

    #[command(flatten)]
    limits: Limits,
}

pub(super) async fn run(session: &Session, args: Args) -> Outcome {
    conversations::check(session)?;
    let Some(others) = args.keys.read()? else { return Ok(Exit::Interrupted) };
    if args.limits.are_wanted && !args.limits.confirm_those_of("the backup")? {
        return Ok(Exit::Interrupted);
    }
    let mut backup = Backup::new(args.file).with_limits(args.limits.are_wanted);
    for text in others {
        for key in readings(&text)? {
            backup = backup.key(key);
        }
    }
    let config = Arc::new(session.config()?);
    let keys = session.stores_or_make(&config)?.keys();
    backup = keys.iter().cloned().fold(backup, Backup::key);
    let clock = session.clock();
    let open: OpenStore = Box::new(move |scope: Scope| {
        let (config, keys, clock) = (Arc::clone(&config), keys.clone(), Arc::clone(&clock));
        Box::pin(async move { config.open_store_with(keys, scope, clock).await })
    });
    let bar = output::progress(Some(0), "restoring");
    let shown = bar.clone();
    let mut interrupt = Interrupt::listen()?.and_hangup_if_heeded()?;
    let restoring = backup.import(open, move |progress| super::advance(&shown, progress), |_| {});
    let reports = interrupt.or(super::IMPORTED, restoring).await??;
    bar.finish_and_clear();
    tell(session, reports)
}

/// The keys that a text may mean: a key file's digits, a passphrase, a secret string.
fn readings(text: &str) -> Result<Vec<EncryptionKey>, Failure> {
    if let Some(key) = EncryptionKey::from_hex(text) {
        return Ok(vec![key]);
    }
    let keys = [EncryptionKey::from_passphrase(text.to_owned()), EncryptionKey::from_secret(text)];
    let keys: Result<Vec<_>, Error> = keys.into_iter().collect();
    Ok(keys?)
}

fn tell(session: &Session, reports: Vec<ConversationReport>) -> Outcome {
    let mut total = conversations::Total::of("sottovoce");
    let mut refused = Vec::new();
    for report in reports {
        total.add(&report);
        conversations::tell(session, &report, false)?;
        refused.extend(report.messages.refused);
    }
    conversations::finish(session, total, &refused)
}
