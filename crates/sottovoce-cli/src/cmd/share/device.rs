//! `sottovoce device`

use std::io::{self, IsTerminal};

use anstyle::AnsiColor;
use jiff::Timestamp;
use qrcode::render::unicode::Dense1x2;
use qrcode::{EcLevel, QrCode};
use sottovoce_sync::{Invitation, SyncError, SyncStatus};

use crate::cmd::share::credentials::Source;
use crate::cmd::share::newcomer::{Newcomer, described, tell_newcomer};
use crate::cmd::share::{Target, address, given, no_remote, report, syncer};
use crate::exit::{Exit, Failure, Outcome};
use crate::output::table::{self, Cell};
use crate::output::{self, DIM, Object, object};
use crate::session::Session;

const AFTER_HELP: &str = "\
Examples:
  sottovoce device add                    on a device that syncs: shows the code
  sottovoce device join CODE              on the new device, then `sottovoce sync`
  sottovoce device list
  sottovoce device remove phone           after the phone was lost";

/// Adds your devices to those that share conversations, lists and removes them
///
/// Whoever has a code can read everything that is shared. `sottovoce sync --help` tells more.
#[derive(Debug, clap::Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct Args {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, clap::Subcommand)]
enum Verb {
    Add(AddArgs),
    Join(JoinArgs),
    /// Lists the devices, when each last published, and what has not been read yet
    List,
    /// Gives this device another name; others see it after the next sync
    Rename {
        /// The name
        name: String,
    },
    Remove(RemoveArgs),
}

pub(super) async fn run(session: &Session, args: Args) -> Outcome {
    match args.verb {
        Verb::Add(args) => add(session, args).await,
        Verb::Join(args) => join(session, args).await,
        Verb::List => list(session).await,
        Verb::Rename { name } => rename(session, &name).await,
        Verb::Remove(args) => remove(session, args).await,
    }
}

async fn rename(session: &Session, name: &str) -> Outcome {
    let name = output::one_line(name.trim());
    if name.is_empty() {
        return Err(Failure::input("the name is empty", "give a name, such as kitchen"));
    }
    syncer(session, no_remote())?.rename(&name).await?;
    output::note("other devices see the name after the next sync");
    Ok(Exit::Done)
}

const ADD_HELP: &str = "\
Examples:
  sottovoce device add
  sottovoce device add --to /media/stick/code      then, on the other device: sottovoce device join /media/stick/code

The other device needs credentials of its own for the remote, if the remote wants any.";

/// Shows the code with which another device joins
///
/// The code holds the address of the remote and the key of what is shared there. It is always the same one, until a
/// device is removed. If this device has never synced, it does now.
#[derive(Debug, clap::Args)]
#[command(after_help = ADD_HELP)]
struct AddArgs {
    #[command(flatten)]
    target: Target,

    #[command(flatten)]
    credentials: Source,
}

async fn add(session: &Session, args: AddArgs) -> Outcome {
    args.target.check(session)?;
    let syncer = syncer(session, args.credentials.remote(session.config()?)?)?;
    let invitation = syncer.invitation().await?;
    if syncer.status().await?.synced_at.is_none() {
        // A device can join once something is there.
        let (bar, progress) = report::bar();
        report::attended(&bar, syncer.sync(progress)).await?;
    }
    put(&args.target, session, &invitation)?;
    if session.json {
        let row = object!("address": invitation.address());
        output::json(&args.target.shown(row, "code", &invitation.code()))?;
    }
    Ok(Exit::Done)
}

/// Writes the code to its file, or shows it to people: as text, and on a terminal as a picture too.
fn put(target: &Target, session: &Session, invitation: &Invitation) -> Result<(), Failure> {
    let code = invitation.code();
    if target.write("code", &code, session)? && !session.json {
        output::line(&*code)?;
        if io::stdout().is_terminal()
            && let Some(picture) = picture(&code)
        {
            output::line(picture)?;
        }
    }
    output::note("anyone who has the code can read everything that is shared: keep it to yourself");
    Ok(())
}

/// A QR code in black on white, whatever colours the terminal has.
fn picture(code: &str) -> Option<String> {
    let style = AnsiColor::BrightWhite.on(AnsiColor::Black);
    let code = QrCode::with_error_correction_level(code, EcLevel::L).ok()?;
    // The terminal's foreground is the paper.
    let (ink, paper) = (Dense1x2::Light, Dense1x2::Dark);
    let picture = code.render::<Dense1x2>().dark_color(ink).light_color(paper).build();
    let lines = picture.lines().map(|line| format!("{style}{line}{style:#}"));
    Some(lines.collect::<Vec<_>>().join("\n"))
}

const JOIN_HELP: &str = "\
Examples:
  sottovoce device join /media/stick/code
  sottovoce device join - < code                        a code on the command line stays in the shell's history
  sottovoce device join CODE --name kitchen
  sottovoce device join CODE --at /Volumes/nas/sottovoce   the same folder has another path here
  sottovoce device join CODE --only kitchen

Then `sottovoce sync` brings what the other devices have published.";

/// Joins the devices that share conversations, with the code of one of them
///
/// What is in this store already stays, and is shared too. Receives and publishes nothing yet.
#[derive(Debug, clap::Args)]
#[command(after_help = JOIN_HELP)]
struct JoinArgs {
    /// What `sottovoce device add` has shown, the file that it wrote, or `-` for standard input
    #[arg(value_name = "FILE|CODE|-")]
    code: String,

    /// The remote's address on this device, if it is another than in the code
    #[arg(long, value_name = "ADDRESS", value_parser = address::parse)]
    at: Option<String>,

    #[command(flatten)]
    newcomer: Newcomer,
}

async fn join(session: &Session, args: JoinArgs) -> Outcome {
    let named = ("code", "sottovoce device add");
    let invalid = |reason| SyncError::InvalidCode { reason };
    let code = given(&args.code, named, args.code.contains('@'), invalid)?;
    let invitation: Invitation = code.parse()?;
    let invitation = match args.at {
        Some(address) => invitation.at(address),
        None => invitation,
    };
    let (syncer, options) = args.newcomer.begin(session)?;
    syncer.join(&invitation, options.clone()).await?;
    let shares = format!("joined; this device shares {}", described(&options.selection));
    let next = "`sottovoce sync` brings what the other devices have published";
    tell_newcomer(session, invitation.address(), &options, [&shares, next])
}

/// The devices as JSON, first this one: how many publishes were not read here yet, and how many of this device it has not
/// read yet.
pub(super) fn rows(status: &SyncStatus) -> Vec<Object> {
    let here = object!(
        "id": status.device.to_string(), "name": status.name, "here": true,
        "publishedAt": status.synced_at, "unread": 0, "behind": 0,
    );
    let peers = status.peers.iter().map(|peer| {
        object!(
            "id": peer.id.to_string(), "name": peer.name, "here": false,
            "publishedAt": peer.published_at, "unread": peer.unread, "behind": peer.behind,
        )
    });
    std::iter::once(here).chain(peers).collect()
}

/// The devices as a table.
pub(super) fn lines(status: &SyncStatus) -> Vec<String> {
    let cells = |name: &str, published: Option<Timestamp>, unread, behind| {
        let published = published.map_or_else(|| "never".to_owned(), output::moment);
        [
            Cell::new(name).at_most(40),
            Cell::new(&published).style(DIM),
            Cell::number(unread),
            Cell::number(behind),
        ]
    };
    let here = cells(&format!("{} (here)", status.name), status.synced_at, 0, 0);
    let peers = status.peers.iter();
    let peers = peers.map(|peer| cells(&peer.name, peer.published_at, peer.unread, peer.behind));
    let names = ["device", "published", "unread here", "unread there"];
    table::lines(names, std::iter::once(here).chain(peers).collect())
}

async fn list(session: &Session) -> Outcome {
    let status = syncer(session, no_remote())?.status().await?;
    match session.json {
        true => rows(&status).iter().try_for_each(output::json)?,
        false => lines(&status).iter().try_for_each(output::line)?,
    }
    Ok(Exit::Done)
}

const REMOVE_HELP: &str = "\
Examples:
  sottovoce device remove phone
  sottovoce device remove phone --to code --yes      then, on each other device: sottovoce device join code

Also change the credentials of the remote, if the lost device had them.";

/// Shuts a lost device out: what is shared gets a new key, and your other devices join again
///
/// Publishes everything anew under that key and deletes what is at the remote. What the device has read it keeps; it reads
/// nothing from now on. An interrupted removal goes on with the next sync.
#[derive(Debug, clap::Args)]
#[command(after_help = REMOVE_HELP)]
struct RemoveArgs {
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

async fn remove(session: &Session, args: RemoveArgs) -> Outcome {
    args.target.check(session)?;
    let syncer = syncer(session, args.credentials.remote(session.config()?)?)?;
    let before = syncer.status().await?;
    let is_named = |peer: &&sottovoce_sync::DeviceStatus| {
        peer.name == args.name || peer.id.to_string() == args.name
    };
    let others: Vec<&str> =
        before.peers.iter().filter(|peer| !is_named(peer)).map(|peer| &*peer.name).collect();
    let is_known = others.len() < before.peers.len();
    let question = match others.is_empty() {
        true => format!("Shut {} out?", args.name),
        false => format!("Shut {} out? {} must join again.", args.name, others.join(", ")),
    };
    let deed = "shut a device out, and the others have to join again";
    let (yes, question) = (args.yes || !is_known, output::one_line(&question));
    if !session.agrees(yes, deed, &question, "nothing was changed", async || Ok(())).await? {
        return Ok(Exit::Done);
    }
    let (bar, progress) = report::bar();
    let removing = syncer.remove_device(&args.name, progress);
    let done = report::attended(&bar, removing).await?;
    let invitation = syncer.invitation().await?;
    if session.json {
        put(&args.target, session, &invitation)?;
        let row = args.target.shown(object!("removed": args.name), "code", &invitation.code());
        output::json(&row.and("rejoin", &others).and("report", &report::row(&done)))?;
        return Ok(Exit::of(done.problems.is_empty()));
    }
    let exit = report::show(session, &done)?;
    output::note(&output::one_line(&format!("{} is shut out; this is the new code:", args.name)));
    put(&args.target, session, &invitation)?;
    if !others.is_empty() {
        output::note(&output::one_line(&format!(
            "join again with it, by `sottovoce device join`, on {}",
            others.join(", ")
        )));
    }
    Ok(exit)
}
