//! `sottovoce sync`

mod init;
mod select;
mod status;
mod watch;

use sottovoce_sync::Syncer;

use crate::cmd::share::credentials::Source;
use crate::cmd::share::{no_remote, report, syncer};
use crate::exit::{Exit, Outcome};
use crate::output;
use crate::session::Session;

const AFTER_HELP: &str = "\
Examples:
  sottovoce sync init /mnt/nas/sottovoce            a folder that exists: of a file server, or one that a program carries over
  sottovoce sync init s3://bucket/memory            S3, or what speaks its protocol; also az://container/… and gs://bucket/…
  sottovoce sync init https://nas.local/dav/memory  a WebDAV server
  sottovoce sync                                    now, once
  sottovoce sync --watch                            until Ctrl-C
  sottovoce device add                              the code for the next device
  sottovoce sync status

The remote sees the number of devices, sizes and times, and nothing that was said. `up`, `serve`, `wyoming` and `mcp --http` sync \
by themselves (Sync.IntervalSeconds).

Credentials are lines of NAME=value in --credentials-file, or variables of the environment:
  S3      AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_SESSION_TOKEN, AWS_REGION, AWS_ENDPOINT_URL
  Azure   AZURE_STORAGE_ACCOUNT_NAME, AZURE_STORAGE_ACCOUNT_KEY or AZURE_STORAGE_SAS_TOKEN, AZURE_STORAGE_ENDPOINT
  Google  GOOGLE_APPLICATION_CREDENTIALS or GOOGLE_SERVICE_ACCOUNT_KEY
  WebDAV  WEBDAV_USERNAME, WEBDAV_PASSWORD";

/// Shares conversations with your other devices, through a folder or a server
///
/// Without an action, receives what other devices have published and publishes what is new here. What is forgotten on one
/// device is forgotten on all. The folder or server cannot read what is shared. An interrupted sync loses nothing.
#[derive(Debug, clap::Args)]
#[command(after_help = AFTER_HELP, args_conflicts_with_subcommands = true)]
pub(crate) struct Args {
    #[command(subcommand)]
    action: Option<Verb>,

    /// Goes on until Ctrl-C: soon after something was said here, and every minute while other devices are busy
    #[arg(long)]
    watch: bool,

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
    Init(init::Args),
    /// Shows what is shared, with whom, and what was not published yet
    ///
    /// Asks no remote: what other devices have published since the last sync is not known.
    Status,
    Select(select::Args),
    /// Ends syncing of this store
    ///
    /// Deletes nothing, here or at the remote. `sync init` or `device join` can follow.
    Stop,
}

impl Args {
    pub(crate) fn is_watching(&self) -> bool {
        self.watch
    }
}

pub(crate) async fn run(session: &Session, args: Args) -> Outcome {
    match args.action {
        Some(Verb::Init(args)) => init::run(session, args).await,
        Some(Verb::Status) => status::run(session).await,
        Some(Verb::Select(args)) => select::run(session, args).await,
        Some(Verb::Stop) => stop(session).await,
        None => sync(session, args).await,
    }
}

async fn sync(session: &Session, args: Args) -> Outcome {
    let config = session.config()?;
    let syncer = syncer(session, args.credentials.remote(&config)?)?;
    if args.watch {
        return watch::run(session, &config, syncer).await;
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
