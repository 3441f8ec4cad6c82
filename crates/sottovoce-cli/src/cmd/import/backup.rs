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
A file that was sealed under another key than this store's opens with that key: name its key file's 64 digits, or the
secret string or passphrase, as a key below.

Examples:
  sottovoce import backup ~/backup.sottovoce
  sottovoce import backup ~/old.sottovoce --ask-key      sealed under the key of a store that is gone

Exit codes:
  0  all is taken                  3  something was refused; the rest is taken
  1  failed; see the message       4  no key opens it
 130  interrupted; the same command goes on from there";

/// Takes back what `sottovoce export` has written: JSON, or a sealed backup
///
/// Each conversation goes where it was. Into an empty one it goes exactly as it was, to the number, with its settings,
/// artifacts, snapshots and limits. Into any other goes what is not there yet; nothing is doubled, and what was forgotten
/// there since stays forgotten. Nothing that is there and not in the file is removed, hidden or cleared, limits stay as
/// they are there, and a persona comes into no other conversation than its own: what is left out for that is told.
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
    let reports = tokio::select! {
        reports = backup.import(open, move |progress| super::advance(&shown, progress), |_| {}) => Some(reports),
        _ = interrupt.heard() => None,
    };
    bar.finish_and_clear();
    let Some(reports) = reports else {
        output::note(
            "interrupted; what was taken is kept, and the same command goes on from there",
        );
        return Ok(Exit::Interrupted);
    };
    tell(session, reports?)
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
