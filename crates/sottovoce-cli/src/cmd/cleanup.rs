//! `sottovoce cleanup`

use std::collections::BTreeSet;

use indicatif::ProgressBar;
use sottovoce::persona::MaintenanceReport;
use sottovoce::store::{Artifact, ArtifactStore, CleanupReport};
use sottovoce::{ConversationStore, FileConversationStore, Scope, with_causes};

use crate::cmd::artifact::row;
use crate::exit::{Exit, Failure, Outcome};
use crate::interrupt::Interrupt;
use crate::output::{self, object};
use crate::session::Session;

const AFTER_HELP: &str = "\
Examples:
  sottovoce cleanup --all                   from time to time
  sottovoce cleanup --artifacts             and what no message refers to any more";

/// Deletes messages beyond the limits, and backs up contexts
///
/// These messages are hidden already, so this only frees space; run it regularly. It refuses if this machine's clock
/// is behind the newest message. Set limits with `sottovoce settings`, or for all conversations with
/// Context.MaxMessages and Context.TtlSeconds.
///
/// The upkeep of contexts always runs too. Once a day it backs up all of them, sealed. It removes those that an
/// earlier run found deleted or expired more than Personas.RemoveAfterDays ago, each after a backup of its own.
///
/// Artifacts without a message that refers to them are listed; only --artifacts deletes them, after asking. Those
/// that a snapshot, a summary or a folder in use refers to stay. All of them stay while something cannot be read.
#[derive(Debug, clap::Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct Args {
    /// Cleans every conversation of the store
    #[arg(long)]
    all: bool,

    /// Deletes artifacts that no message refers to
    #[arg(long)]
    artifacts: bool,

    /// Does not ask
    #[arg(long, short, requires = "artifacts")]
    yes: bool,
}

pub(crate) async fn run(session: &Session, args: Args) -> Outcome {
    let asks = args.artifacts && !args.yes;
    if asks {
        session.check_attended("delete artifacts that no message refers to")?;
    }
    let work = clean_up(session, &args);
    match asks {
        // During a question, Ctrl-C must end the program.
        true => work.await,
        false => Interrupt::listen()?.or("", work).await?,
    }
}

async fn clean_up(session: &Session, args: &Args) -> Outcome {
    let mut failed = None;
    match maintain(session).await {
        Ok(()) => {}
        // A backup folder that cannot be written does not prevent cleaning conversations.
        Err(Failure::Library(error)) => {
            output::warning(&format!("contexts: {}", with_causes(&error)));
            failed = Some(error);
        }
        Err(failure) => return Err(failure),
    }
    // List the scopes only now, because a context may have been removed.
    let scopes = session.scopes(args.all)?;
    let stores = session.stores_or_empty()?;
    let bar = output::progress(Some(scopes.len() as u64), "cleaning up");
    let mut removed = 0;
    for scope in scopes {
        let clean = async {
            let store = stores.open(scope.clone()).await?;
            Ok((store.cleanup().await?, clean_artifacts(&store, args, &bar).await?))
        };
        let cleaned = clean.await;
        bar.inc(1);
        match cleaned {
            Ok((report, unused)) => {
                removed += report.removed;
                if report.removed > 0 || !unused.artifacts.is_empty() || !args.all {
                    bar.suspend(|| show(session, &scope, &report, &unused))?;
                }
            }
            // An error in one conversation does not prevent cleaning the others.
            Err(Failure::Library(error)) if args.all => {
                bar.suspend(|| output::warning(&format!("{scope}: {}", with_causes(&error))));
                failed = Some(error);
            }
            Err(failure) => return Err(failure),
        }
    }
    bar.finish_and_clear();
    if let Some(error) = failed {
        return Err(error.into());
    }
    if args.all && !session.json {
        output::note(&format!("removed {}", output::messages(removed)));
    }
    Ok(Exit::Done)
}

/// Shows the result for one conversation.
fn show(
    session: &Session,
    scope: &Scope,
    CleanupReport { removed, expired, .. }: &CleanupReport,
    unused: &Unused,
) -> std::io::Result<()> {
    if session.json {
        let ids = Some(unused.ids()).filter(|ids| !ids.is_empty());
        let row = object!("scope": scope.to_string(), "removed": removed, "expired": expired);
        let row = row.maybe("unreferenced", ids);
        return output::json(&row.maybe("deleted", unused.were_deleted.then_some(true)));
    }
    let why = if *expired { "; it had expired" } else { "" };
    output::note(&format!("{scope}: removed {}{why}", output::messages(*removed)));
    unused.show();
    Ok(())
}

/// The artifacts that no message refers to.
#[derive(Default)]
struct Unused {
    artifacts: Vec<Artifact>,
    /// Whether something that may refer to them could not be read.
    is_doubtful: bool,
    were_deleted: bool,
}

impl Unused {
    fn ids(&self) -> Vec<String> {
        self.artifacts.iter().map(|artifact| artifact.id.clone()).collect()
    }

    fn count(&self) -> String {
        output::counted(self.artifacts.len() as u64, "artifact")
    }

    /// Reports the artifacts found or deleted.
    fn show(&self) {
        if self.artifacts.is_empty() {
            return;
        }
        if self.were_deleted {
            output::note(&format!("deleted {} that no message refers to", self.count()));
            return;
        }
        output::note(&format!("no message refers to {}:", self.count()));
        self.artifacts.iter().for_each(|artifact| output::note(&format!("    {}", row(artifact))));
        match self.is_doubtful {
            true => output::warning(
                "nothing was deleted: unreadable messages may refer to them; `sottovoce verify` shows more, `sottovoce artifact delete` deletes them anyway",
            ),
            false => output::note("`sottovoce cleanup --artifacts` deletes them"),
        }
    }
}

/// Looks for them if there are any artifacts, and deletes them if asked to.
async fn clean_artifacts(
    store: &FileConversationStore,
    args: &Args,
    bar: &ProgressBar,
) -> Result<Unused, Failure> {
    let mut unused = find(store).await?;
    if unused.artifacts.is_empty() || unused.is_doubtful || !args.artifacts {
        return Ok(unused);
    }
    if !args.yes {
        let asked = format!("Really delete {} of {} for ever?", unused.count(), store.scope());
        let is_sure = bar.suspend(|| {
            unused.artifacts.iter().try_for_each(|artifact| output::line(row(artifact)))?;
            output::confirmed(&asked)
        })?;
        if !is_sure {
            return Ok(unused);
        }
        // A message may have been added during the question.
        let still: BTreeSet<String> = find(store).await?.ids().into_iter().collect();
        unused.artifacts.retain(|artifact| still.contains(&artifact.id));
    }
    store.delete_artifacts(&unused.ids()).await?;
    unused.were_deleted = true;
    Ok(unused)
}

async fn find(store: &FileConversationStore) -> Result<Unused, Failure> {
    if store.profile().await?.artifacts().next().is_none() {
        return Ok(Unused::default());
    }
    let references = store.artifact_references().await?;
    let is_doubtful = !references.unread.is_empty();
    Ok(Unused { artifacts: references.unreferenced, is_doubtful, were_deleted: false })
}

/// Runs the upkeep of contexts. There are none before the first use.
async fn maintain(session: &Session) -> Result<(), Failure> {
    let Some(contexts) = session.contexts()? else { return Ok(()) };
    let work = async |_: &_| contexts.maintain().await;
    let done = output::with_bar(None, "maintaining contexts", work).await?;
    if done == MaintenanceReport::default() {
        return Ok(());
    }
    if !session.json {
        say(&done);
        return Ok(());
    }
    let removed = done.removed.iter().map(|(id, backup)| object!("id": id, "backup": backup));
    let row = object!(
        "backups": done.backups, "unread": done.unread, "removed": removed.collect::<Vec<_>>(),
        "kept": done.kept,
    );
    Ok(output::json(&object!("contexts": row))?)
}

fn say(done: &MaintenanceReport) {
    if let Some(folder) = done.backups.first().and_then(|backup| backup.parent()) {
        output::note(&format!("backed up the contexts in {}", folder.display()));
    }
    if done.unread > 0 {
        let files = output::counted(done.unread as u64, "file");
        output::warning(&format!(
            "the backups lack {files} that cannot be read, so that older ones are kept; \
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
