//! `sottovoce device remove`

use serde::Serialize;

use crate::cmd::share::credentials::Source;
use crate::cmd::share::device::code::Target;
use crate::cmd::share::report::{self, ReportRow};
use crate::cmd::share::syncer;
use crate::exit::{Exit, Outcome};
use crate::output;
use crate::session::Session;

const AFTER_HELP: &str = "\
Examples:
  sottovoce device remove phone
  sottovoce device remove phone --to code --yes      then, on each other device: sottovoce device join code

Also change the credentials of the remote, if the lost device had them.";

/// Shuts a lost device out: what is shared gets a new key, and your other devices join again
///
/// Publishes everything anew under that key and deletes what is at the remote. What the device has read it keeps; it reads
/// nothing from now on. An interrupted removal goes on with the next sync.
#[derive(Debug, clap::Args)]
#[command(after_help = AFTER_HELP)]
pub(super) struct Args {
    /// The device's name or id, as `sottovoce device list` shows it
    name: String,

    /// Does not ask
    #[arg(long, short)]
    yes: bool,

    #[command(flatten)]
    target: Target,

    #[command(flatten)]
    credentials: Source,
}

#[derive(Serialize)]
struct Row<'a> {
    removed: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    code: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<&'a std::path::Path>,
    /// The devices that have to join again.
    rejoin: Vec<&'a str>,
    report: ReportRow,
}

pub(super) async fn run(session: &Session, args: Args) -> Outcome {
    let config = session.config()?;
    args.target.check(&config)?;
    let syncer = syncer(session, args.credentials.remote(&config)?)?;
    let before = syncer.status().await?;
    let is_named = |peer: &&sottovoce_sync::DeviceStatus| {
        peer.name == args.name || peer.id.to_string() == args.name
    };
    let others: Vec<&str> =
        before.peers.iter().filter(|peer| !is_named(peer)).map(|peer| &*peer.name).collect();
    let is_known = others.len() < before.peers.len();
    if is_known && !args.yes {
        session.check_attended("shut a device out, and the others have to join again")?;
        let question = match others.is_empty() {
            true => format!("Shut {} out?", args.name),
            false => format!("Shut {} out? {} must join again.", args.name, others.join(", ")),
        };
        if !output::confirmed(&output::one_line(&question))? {
            output::note("nothing was changed");
            return Ok(Exit::Done);
        }
    }
    let (bar, progress) = report::bar();
    let removing = syncer.remove_device(&args.name, progress);
    let done = report::attended(&bar, removing).await?;
    let invitation = syncer.invitation().await?;
    if session.json {
        let (file, code) = (args.target.file(), invitation.code());
        args.target.put(session, &config, &invitation)?;
        output::json(&Row {
            removed: &args.name,
            code: file.is_none().then_some(&code),
            file,
            rejoin: others,
            report: ReportRow::of(&done),
        })?;
        return Ok(if done.problems.is_empty() { Exit::Done } else { Exit::Problems });
    }
    let exit = report::show(session, &done)?;
    output::note(&output::one_line(&format!("{} is shut out; this is the new code:", args.name)));
    args.target.put(session, &config, &invitation)?;
    if !others.is_empty() {
        output::note(&output::one_line(&format!(
            "join again with it, by `sottovoce device join`, on {}",
            others.join(", ")
        )));
    }
    Ok(exit)
}
