//! The upkeep of contexts: the daily backup, and the removal of expired and deleted ones.

use std::path::PathBuf;

use serde::Serialize;
use sottovoce::Config;
use sottovoce::persona::MaintenanceReport;

use crate::exit::Failure;
use crate::output;
use crate::session::Session;

/// The JSON report, if there is anything to report.
#[derive(Serialize)]
struct Row<'a> {
    contexts: Done<'a>,
}

#[derive(Serialize)]
struct Done<'a> {
    backup: Option<&'a PathBuf>,
    /// The number of files missing from the daily backup.
    unread: usize,
    removed: Vec<Removed<'a>>,
    /// Contexts that were due for removal but had to stay.
    kept: &'a [String],
}

#[derive(Serialize)]
struct Removed<'a> {
    id: &'a str,
    backup: &'a PathBuf,
}

/// Runs the upkeep of contexts. There are none before the first use.
pub(super) async fn maintain(session: &Session, config: &Config) -> Result<(), Failure> {
    let Some(contexts) = session.contexts(config)? else { return Ok(()) };
    let bar = output::progress(None, "maintaining contexts");
    let done = contexts.maintain().await;
    bar.finish_and_clear();
    let done = done?;
    if done == MaintenanceReport::default() {
        return Ok(());
    }
    match session.json {
        true => Ok(json(&done)?),
        false => {
            say(&done);
            Ok(())
        }
    }
}

fn json(done: &MaintenanceReport) -> std::io::Result<()> {
    let removed = done.removed.iter().map(|(id, backup)| Removed { id, backup }).collect();
    let (backup, unread, kept) = (done.backup.as_ref(), done.unread, &done.kept);
    output::json(&Row { contexts: Done { backup, unread, removed, kept } })
}

fn say(done: &MaintenanceReport) {
    if let Some(backup) = &done.backup {
        output::note(&format!("backed up the contexts: {}", backup.display()));
    }
    if done.unread > 0 {
        let files = output::counted(done.unread as u64, "file");
        output::warning(&format!(
            "the backup lacks {files} that cannot be read, so that older ones are kept; \
             `sottovoce verify --all` names them"
        ));
    }
    for (id, backup) in &done.removed {
        output::note(&format!("removed the context {id}; its backup is {}", backup.display()));
    }
    for id in &done.kept {
        output::warning(&format!(
            "the context {id} was due for removal, but stays: it is in use or cannot be backed up completely"
        ));
    }
}
