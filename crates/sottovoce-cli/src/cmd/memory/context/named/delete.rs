//! `sottovoce context delete`

use std::path::PathBuf;

use serde::Serialize;

use crate::cmd::memory::context::named::shown::expiry;
use crate::exit::{Exit, Outcome};
use crate::output;
use crate::session::Session;

const AFTER_HELP: &str = "\
Examples:
  sottovoce context delete Kitchen
  sottovoce context delete Kitchen --now --yes
  sottovoce import backup BACKUP                  brings back what was removed";

/// Deletes a context: nobody can talk to it any more, and `sottovoce cleanup` removes it some days later
///
/// Until then `sottovoce context update --active true` restores it. It is removed only after a sealed backup.
#[derive(clap::Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct Args {
    /// Its id, or its name if that is unique
    #[arg(value_name = "ID|NAME")]
    target: String,

    /// Removes it at once after backing it up, and prints the backup's path
    #[arg(long)]
    now: bool,

    /// Does not ask
    #[arg(long, short)]
    yes: bool,
}

#[derive(Serialize)]
struct Deleted {
    id: String,
    /// Whether it was removed, and does not wait for `cleanup`.
    removed: bool,
    backup: Option<PathBuf>,
}

pub(super) async fn run(session: &Session, args: &Args) -> Outcome {
    let config = session.config()?;
    let (contexts, found) = session.find_context(&config, &args.target).await?;
    let id = found.id.clone();
    if !args.yes {
        let deed = if args.now { "remove" } else { "delete" };
        session.check_attended(&format!("{deed} the context {id}"))?;
        let (name, messages) = (output::one_line(&found.name), found.messages);
        let messages = output::counted(messages, "message");
        output::note(&format!("{id}: “{name}”, {messages}, {}", expiry(session, &found)));
        if !output::confirmed(&format!("Really {deed} it?"))? {
            output::note("nothing was deleted");
            return Ok(Exit::Done);
        }
    }
    let backup = match args.now {
        true => Some(contexts.remove(&id).await?),
        false => {
            contexts.delete(&id).await?;
            None
        }
    };
    if session.json {
        output::json(&Deleted { id, removed: args.now, backup })?;
        return Ok(Exit::Done);
    }
    match backup {
        Some(backup) => {
            output::note(&format!(
                "removed the context {id}; `sottovoce import backup` brings it back from"
            ));
            output::line(backup.to_string_lossy())?;
        }
        None => {
            let days = output::counted(config.personas.remove_after_days.into(), "day");
            output::note(&format!(
                "deleted the context {id}; `sottovoce cleanup` removes it after {days}"
            ));
            output::note(&format!(
                "until then `sottovoce context update {id} --active true` takes it back"
            ));
        }
    }
    Ok(Exit::Done)
}
