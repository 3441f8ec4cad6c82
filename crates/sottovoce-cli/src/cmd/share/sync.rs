//! `sottovoce sync`

use std::sync::Arc;
use std::time::Duration;

use sottovoce::Config;
use sottovoce_remote::ADDRESSES;
use sottovoce_sync::{Selection, SyncError, SyncStatus, Syncer};

use crate::cmd::share::credentials::Source;
use crate::cmd::share::device::{lines, rows};
use crate::cmd::share::newcomer::{Newcomer, Shared, described, selection_row, tell_newcomer};
use crate::cmd::share::{address, no_remote, report, syncer};
use crate::exit::{Exit, Outcome};
use crate::output::{self, object};
use crate::session::Session;

const AFTER_HELP: &str = "\
Examples:
  sottovoce sync init /mnt/nas/sottovoce            a folder that exists: of a file server, or one that a program carries over
  sottovoce sync init s3://bucket/memory            S3, or what speaks its protocol
  sottovoce sync init https://nas.local/dav/memory  a WebDAV server
  sottovoce sync                                    now, once
  sottovoce sync --watch                            until Ctrl-C
  sottovoce device add                              the code for the next device
  sottovoce sync status

The remote sees the number of devices, sizes and times, and nothing that was said. `up`, `serve`, `wyoming` and `mcp --http` sync \
by themselves (Sync.IntervalSeconds).

Addresses of remotes, and the credentials of each, which are lines of NAME=value in --credentials-file or variables of the environment:
";

/// Shares conversations with your other devices, through a folder or a server
///
/// Without an action, receives what other devices have published and publishes what is new here. What is forgotten on one
/// device is forgotten on all. The folder or server cannot read what is shared. An interrupted sync loses nothing.
#[derive(Debug, clap::Args)]
#[command(after_help = format!("{AFTER_HELP}{ADDRESSES}"), args_conflicts_with_subcommands = true)]
pub(crate) struct Args {
    #[command(subcommand)]
    action: Option<Verb>,

    /// Goes on until Ctrl-C: soon after something was said here, and every minute while other devices are busy
    #[arg(long)]
    pub(super) watch: bool,

    /// Reads everything again that other devices have published; what is here stays
    #[arg(long, conflicts_with_all = ["watch", "mend"])]
    from_start: bool,

    /// Publishes again what this device has and no other, such as the messages of a device whose part of the remote is lost
    #[arg(long, conflicts_with = "watch")]
    mend: bool,

    #[command(flatten)]
    credentials: Source,
}

#[derive(Debug, clap::Subcommand)]
enum Verb {
    Init(InitArgs),
    /// Shows what is shared, with whom, and what was not published yet
    ///
    /// Asks no remote: what other devices have published since the last sync is not known.
    Status,
    Select(SelectArgs),
    /// Ends syncing of this store
    ///
    /// Deletes nothing, here or at the remote. `sync init` or `device join` can follow.
    Stop,
}

pub(super) async fn run(session: &Session, args: Args) -> Outcome {
    match args.action {
        Some(Verb::Init(args)) => init(session, args).await,
        Some(Verb::Status) => status(session).await,
        Some(Verb::Select(args)) => select(session, args).await,
        Some(Verb::Stop) => stop(session).await,
        None => sync(session, args).await,
    }
}

async fn sync(session: &Session, args: Args) -> Outcome {
    let config = session.config()?;
    let syncer = syncer(session, args.credentials.remote(config)?)?;
    if args.watch {
        return watch_store(session, config, syncer).await;
    }
    once(session, &syncer, args.from_start, args.mend).await
}

async fn once(session: &Session, syncer: &Syncer, from_start: bool, mend: bool) -> Outcome {
    let (bar, progress) = report::bar();
    let syncing = async {
        match (from_start, mend) {
            (true, _) => syncer.sync_from_start(progress).await,
            (_, true) => syncer.mend(progress).await,
            _ => syncer.sync(progress).await,
        }
    };
    report::show(session, &report::attended(&bar, syncing).await?)
}

async fn stop(session: &Session) -> Outcome {
    let syncer = syncer(session, no_remote())?;
    syncer.stop().await?;
    output::note("this store does not sync any more; what was published stays at the remote");
    Ok(Exit::Done)
}

const INIT_HELP: &str = "\
Examples:
  sottovoce sync init /mnt/nas/sottovoce
  sottovoce sync init s3://bucket/memory --credentials-file ~/s3-keys
  sottovoce sync init https://nas.local/dav/memory --name kitchen --except diary
  sottovoce sync init /mnt/nas/sottovoce --only 'dm/ann*'

The folder or bucket must exist. Then `sottovoce sync` publishes, and `sottovoce device add` shows the code for the next device.";

/// Begins to share conversations, on the first of your devices
///
/// Unless told otherwise, shares the default and the named conversations. Those with one person (dm/USER) and parts of groups
/// (guild/…) stay at home. Publishes nothing yet.
#[derive(Debug, clap::Args)]
#[command(after_help = INIT_HELP)]
struct InitArgs {
    /// The remote: a folder, or an address as `sottovoce sync --help` lists them
    #[arg(value_parser = address::parse)]
    address: String,

    #[command(flatten)]
    newcomer: Newcomer,
}

async fn init(session: &Session, args: InitArgs) -> Outcome {
    let (syncer, options) = args.newcomer.begin(session)?;
    syncer.init(&args.address, options.clone()).await?;
    let shares = format!("this device will share {}", described(&options.selection));
    let next = "`sottovoce sync` publishes it; then `sottovoce device add` shows the code for the next device";
    tell_newcomer(session, &args.address, &options, [&shares, next])
}

const SELECT_HELP: &str = "\
Examples:
  sottovoce sync select                              shows what is shared
  sottovoce sync select --all --except diary
  sottovoce sync select --only kitchen --only 'dm/*'
  sottovoce sync select --usual                      the default and the named conversations";

/// Chooses which conversations this device shares, in place of the choice before; without options, shows them
///
/// What was published before stays with the other devices. What they said in a conversation that is shared from now on
/// comes with the next sync.
#[derive(Debug, clap::Args)]
#[command(after_help = SELECT_HELP)]
struct SelectArgs {
    #[command(flatten)]
    shared: Shared,

    /// Shares the default and the named conversations, as without options of `sync init`
    #[arg(long, conflicts_with_all = ["all", "only", "except"])]
    usual: bool,
}

async fn select(session: &Session, args: SelectArgs) -> Outcome {
    let syncer = syncer(session, no_remote())?;
    let selection = match (args.usual, args.shared.is_given()) {
        (true, _) => Some(Selection::default()),
        (false, true) => Some(args.shared.selection()),
        (false, false) => None,
    };
    let selection = match selection {
        Some(selection) => {
            syncer.select(selection.clone()).await?;
            selection
        }
        None => syncer.status().await?.selection,
    };
    if session.json {
        output::json(&selection_row(&selection))?;
    } else {
        output::line(format!("this device shares {}", described(&selection)))?;
    }
    Ok(Exit::Done)
}

async fn status(session: &Session) -> Outcome {
    let status = syncer(session, no_remote())?.status().await?;
    if session.json {
        output::json(&object!(
            "address": status.address, "syncedAt": status.synced_at,
            // Conversations that have changed here since.
            "unpublished": status.unpublished, "closed": status.is_closed,
            "shares": selection_row(&status.selection), "devices": rows(&status),
        ))?;
        return Ok(Exit::Done);
    }
    output::line(in_words(&status))?;
    output::line(format!("shared: {}", described(&status.selection)))?;
    lines(&status).iter().try_for_each(output::line)?;
    if status.is_closed {
        output::warning(
            "a device was removed on another one: join the new space with `sottovoce device join`",
        );
    }
    Ok(Exit::Done)
}

fn in_words(status: &SyncStatus) -> String {
    let when = match status.synced_at {
        Some(at) => format!("last synced {}", output::moment(at)),
        None => "never synced".to_owned(),
    };
    let waiting = match status.unpublished {
        0 => "nothing waits to be published".to_owned(),
        number => format!("changed here since: {}", output::counted(number as u64, "conversation")),
    };
    format!("{}: {when}; {waiting}", output::one_line(&status.address))
}

/// The interval if servers do not sync.
const INTERVAL: u64 = 60;

/// Syncs this store until Ctrl-C.
async fn watch_store(session: &Session, config: &Config, syncer: Syncer) -> Outcome {
    if syncer.address().await?.is_none() {
        return Err(SyncError::NotSetUp.into());
    }
    let seconds = match config.sync.interval_seconds {
        0 => INTERVAL,
        seconds => seconds,
    };
    report::watch(session, Arc::new(syncer), Duration::from_secs(seconds)).await
}
