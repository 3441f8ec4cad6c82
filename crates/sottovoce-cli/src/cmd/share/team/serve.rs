//! `sottovoce team serve`

use std::fs;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;

use sottovoce::with_causes;
use sottovoce_sync::SyncError;
use sottovoce_team::Link;
use sottovoce_team_api::{NotASecret, Secret};
use sottovoce_team_server::{
    DatabaseOptions, Error, Limits, Team, listen, listen_plain, listen_tls, open_database, serve,
};

use crate::cmd::servers;
use crate::cmd::share::address;
use crate::cmd::share::credentials::Source;
use crate::exit::{Failure, Outcome};
use crate::output;
use crate::session::Session;

/// The port, unless another is given.
const PORT: u16 = 8473;

const AFTER_HELP: &str = "\
Examples:
  sottovoce team serve                                            for members on this machine, to try it out
  sottovoce team serve --addr 0.0.0.0:8473 --url https://pi.local:8473 \\\n      --tls-certificate pi.pem --tls-key pi.key
  sottovoce team serve --database postgres://team@db/team \\\n      --objects s3://bucket/team --credentials-file /etc/sottovoce/team

If there is no team yet, shows the link that begins one, which is valid until the server ends. An OPERATOR_TOKEN among the \
credentials takes its place and is never shown: 43 characters of base64url, as of `head -c 32 /dev/urandom | basenc --base64url | \
tr -d =`. It begins any number of teams, with the link URL/#start:OPERATOR_TOKEN, and opens /metrics. A DATABASE_URL with a password belongs there too.";

/// Runs the server of a team: on one file and a folder, or on PostgreSQL and an object store
///
/// It needs no key, and keeps nothing that it could read. Several servers may share one database and one object store.
#[derive(Debug, clap::Args)]
#[command(after_help = AFTER_HELP)]
pub(super) struct Args {
    /// Listens on this address; beyond this machine it needs a certificate or --allow-plain
    #[arg(long, value_name = "ADDR:PORT", default_value_t = SocketAddr::from((Ipv4Addr::LOCALHOST, PORT)))]
    addr: SocketAddr,

    /// The address by which members reach the server, for the link
    #[arg(long, value_name = "URL")]
    url: Option<String>,

    /// The folder of the server's database and objects, unless these are elsewhere; among the user's data unless given
    #[arg(long, value_name = "FOLDER")]
    data: Option<PathBuf>,

    /// The database: a postgres:// URL, or a file for SQLite; DATABASE_URL of the credentials unless given
    #[arg(long, value_name = "URL|FILE")]
    database: Option<String>,

    /// Where artifacts and old records are: a folder, or an address as `sottovoce sync --help` lists them
    #[arg(long, value_name = "ADDRESS", value_parser = address::parse)]
    objects: Option<String>,

    #[command(flatten)]
    credentials: Source,

    /// The certificate for HTTPS, and its chain, in PEM
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    tls_certificate: Option<PathBuf>,

    /// The certificate's key, in PEM
    #[arg(long, value_name = "FILE", requires = "tls_certificate")]
    tls_key: Option<PathBuf>,

    /// Speaks plain HTTP also beyond this machine, for a proxy that speaks TLS
    #[arg(long, conflicts_with = "tls_certificate")]
    allow_plain: bool,

    /// Counts invitations that nobody made by the address in X-Forwarded-For, which the proxy in front sets
    #[arg(long)]
    behind_proxy: bool,

    /// Lets owners in again whose access has expired: their next `team sync` within a week renews it
    #[arg(long)]
    renew_owners: bool,
}

pub(super) async fn run(session: &Session, args: Args) -> Outcome {
    let config = session.config()?;
    let data = match &args.data {
        Some(folder) => folder.clone(),
        None => default_data()?,
    };
    let credentials = args.credentials.read(config)?;
    let named = args.database.as_deref().or(credentials.get(&["DATABASE_URL"]));
    let database = match named {
        Some(database) => database.to_owned(),
        None => {
            make_folder(&data)?;
            data.join("team.sqlite").display().to_string()
        }
    };
    let objects = match &args.objects {
        Some(objects) => objects.clone(),
        None => {
            let folder = data.join("objects");
            make_folder(&folder)?;
            address::parse(&folder.display().to_string())
                .map_err(|error| Failure::input(error, "name a folder with --objects"))?
        }
    };
    let objects = args.credentials.remote(config)?(&objects)?;
    let given = credentials.get(&["OPERATOR_TOKEN"]);
    let operator = match given {
        Some(token) => token.parse().map_err(|error: NotASecret| {
            let help = "make one with: head -c 32 /dev/urandom | basenc --base64url | tr -d =";
            Failure::input(format!("OPERATOR_TOKEN: {error}"), help)
        })?,
        None => Secret::random().ok_or(SyncError::NoRandom)?,
    };
    let database = open_database(&database, DatabaseOptions::default()).await;
    let team = Team::new(database.map_err(|error| failure(&error))?, objects);
    let listening = match (&args.tls_certificate, &args.tls_key) {
        (Some(certificate), Some(key)) => listen_tls(args.addr, certificate, key).await,
        _ if args.allow_plain => listen_plain(args.addr).await,
        _ => listen(args.addr).await,
    };
    let listening = listening.map_err(|error| failure(&error))?;
    let scheme = if args.tls_certificate.is_some() { "https" } else { "http" };
    let here = format!("{scheme}://{}", listening.address());
    let url = args.url.map_or_else(|| here.clone(), |url| url.trim_end_matches('/').to_owned());
    output::note(&format!("serving at {here}"));
    if team.is_empty().await.map_err(|error| failure(&error))? {
        output::note("there is no team yet; begin one with: sottovoce team create LINK NAME");
        // A token that stays valid is not written where a journal keeps it.
        match given {
            Some(_) => output::note(&format!("the link is {url}/#start: and the OPERATOR_TOKEN")),
            None => output::line(&*Link::start(url, operator.clone()).reveal())?,
        }
    }
    if args.renew_owners {
        let renewed = team.renew_owners().await.map_err(|error| failure(&error))?;
        let devices = output::counted(renewed as u64, "device");
        output::note(&format!("{devices} of owners can sync again, for a week"));
    }
    let mut limits = Limits::default();
    limits.is_behind_proxy = args.behind_proxy;
    let serve = |stop| serve(listening, team, Some(operator), limits, stop);
    let ((), exit) = servers::until_stopped(serve).await?;
    Ok(exit)
}

fn default_data() -> Result<PathBuf, Failure> {
    let folders = directories::ProjectDirs::from("", "", "sottovoce");
    let none = || Failure::input("this user has no home folder", "name a folder with --data");
    Ok(folders.ok_or_else(none)?.data_dir().join("team-server"))
}

/// Makes a folder that only its owner can open.
fn make_folder(folder: &PathBuf) -> Result<(), Failure> {
    use std::os::unix::fs::DirBuilderExt;
    let made = fs::DirBuilder::new().recursive(true).mode(0o700).create(folder);
    made.map_err(|error| {
        Failure::input(format!("{}: {error}", folder.display()), "name another folder with --data")
    })
}

fn failure(error: &Error) -> Failure {
    let help = match error {
        Error::Busy | Error::Unavailable => "check that the database runs, and its address",
        error => error.help().unwrap_or("run the command again with --verbose"),
    };
    Failure::input(with_causes(error), help)
}
