//! `sottovoce page`

use std::fs;
use std::io::{self, Write};
use std::net::SocketAddr;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use sottovoce::config::{ConfiguredKey, OpenConversations};
use sottovoce::with_causes;
use sottovoce_page::{Advice, Check, CheckState, Listening, Page, PageError};
use tokio_util::sync::CancellationToken;

use crate::cmd::privacy::{Fact, Holdings};
use crate::cmd::{doctor, servers};
use crate::exit::{Failure, Outcome};
use crate::session::Session;
use crate::{advice, output};

/// How long the desktop has to open the file with the link.
const OPENING: Duration = Duration::from_secs(60);

/// Where the page is unless an address is given.
const ADDRESS: &str = "127.0.0.1:7766";

const AFTER_HELP: &str = "\
The link that is printed lets one browser in, once. After 15 minutes without use the page locks (Page.LockAfterSeconds), and a new \
link is printed; if the store has a passphrase, the page asks for it instead. A browser that has lost its cookie gets in again by the \
new link that is printed when it opens the page's address. Page.ReadOnly makes a page on which nothing can be \
changed.

From another machine, `ssh -L 7766:localhost:7766 HOST` there makes the link work in its browser, and nothing else is needed. For an \
address that other machines can reach, Page.Token, Page.TlsCertificate with Page.TlsKey, and --allow-host are all required.

Examples:
  sottovoce page --open                        in the browser of this desktop
  SOTTOVOCE__PAGE__READONLY=true sottovoce page
  sottovoce page --addr 127.0.0.1:8000";

/// Serves a page for a browser, in which the owner sees, searches and forgets
///
/// Shows what was said and when, finds it, tells what the model sees of it and why, and forgets what its owner selects: first
/// it shows exactly what would go.
#[derive(Debug, clap::Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct Args {
    /// The address and port to listen on
    #[arg(long, value_name = "ADDR:PORT", default_value = ADDRESS, value_parser = servers::parse_address)]
    addr: SocketAddr,

    /// A host name that browsers use for this machine, besides localhost; may be repeated
    #[arg(long, value_name = "NAME")]
    allow_host: Vec<String>,

    /// Opens the link in the browser
    #[arg(long)]
    open: bool,
}

pub(crate) async fn run(session: &Session, args: Args) -> Outcome {
    let config = session.config()?;
    let mut page = Page::new(config.clone(), session.clock());
    // A key that was given to the command may be readable only once.
    if matches!(config.key, ConfiguredKey::Secret { .. })
        && let Ok(keys) = config.encryption_keys()
    {
        page = page.keys(keys);
    }
    // A passphrase is asked for on the page.
    if let Ok(keys) = config.encryption_keys() {
        OpenConversations::new(config.clone(), keys, session.clock())?.check().await?;
    }
    let listening = listen(session, page, args.addr, args.allow_host).await?;
    let link = listening.link().map_err(|error| failure(&error))?;
    output::note(&format!("the page is at {}", listening.address()));
    output::line(&link)?;
    let opened = if args.open { open(&link) } else { None };
    let removing = async move {
        tokio::time::sleep(OPENING).await;
        drop(opened);
        std::future::pending().await
    };
    tokio::select! {
        stopped = servers::until_stopped(|stop| listening.serve(stop)) => {
            let ((), exit) = stopped?;
            Ok(exit)
        }
        // It ends with the server, and the file with it.
        exit = removing => Ok(exit),
    }
}

/// Serves beside other servers until `stop` is cancelled. Says how its owner gets in.
pub(crate) async fn serve(listening: Listening, stop: CancellationToken) {
    match listening.link() {
        Ok(link) => output::note(&format!("the owner's page: {link}")),
        Err(error) => output::warning(&with_causes(&error)),
    }
    listening.serve(stop).await;
}

/// Binds an address for the page, as configured.
pub(crate) async fn listen(
    session: &Session,
    page: Page,
    address: SocketAddr,
    allow_host: Vec<String>,
) -> Result<Listening, Failure> {
    let config = session.config()?;
    let hosts = servers::listed(&config.page.hosts).map(str::to_owned);
    let advice = Advice { error: advice::help, finding: advice::advice };
    let checking = Arc::new(Session { unattended: true, ..session.clone() });
    let checks = Arc::new(move || {
        let session = Arc::clone(&checking);
        let checks = async move { doctor::checks(&session).await.into_iter().map(check).collect() };
        Box::pin(checks) as std::pin::Pin<Box<dyn Future<Output = Vec<Check>> + Send>>
    });
    let page = page
        .hosts(hosts.chain(allow_host))
        .advice(advice)
        .checks(checks)
        .facts(Arc::new(|open| Box::pin(facts(open))))
        .announce(|link| output::note(&format!("a new link to the page: {link}")));
    let (certificate, key) = (config.page.tls_certificate.as_ref(), config.page.tls_key.as_ref());
    let _pair = servers::certificate("Page", certificate, key)?;
    #[cfg(feature = "https")]
    let page = match _pair {
        Some((certificate, key)) => page.tls(certificate, key),
        None => page,
    };
    page.listen(address).await.map_err(|error| failure(&error))
}

fn check(line: doctor::Line) -> Check {
    let state = match line.state {
        doctor::State::Good => CheckState::Good,
        doctor::State::Warn => CheckState::Warn,
        doctor::State::Bad => CheckState::Bad,
    };
    let advice =
        if line.can_fix() { Some("sottovoce doctor --fix".to_owned()) } else { line.advice };
    Check::new(line.about, state, line.what, advice)
}

async fn facts(open: Arc<OpenConversations>) -> Vec<Check> {
    match Holdings::of(&open).await {
        Ok(holdings) => holdings.facts(&open).into_iter().map(of_fact).collect(),
        Err(error) => vec![Check::new("Error", CheckState::Bad, with_causes(&error), None)],
    }
}

fn of_fact(fact: Fact) -> Check {
    let state = if fact.is_warning { CheckState::Warn } else { CheckState::Good };
    Check::new(fact.about, state, fact.what, fact.commands)
}

fn failure(error: &PageError) -> Failure {
    let help = match error {
        PageError::Unprotected { .. } => {
            "set Page.Token, Page.TlsCertificate and Page.TlsKey, and name this machine with --allow-host; or listen on 127.0.0.1"
        }
        PageError::Address { .. } => servers::TAKEN,
        #[cfg(feature = "https")]
        PageError::Tls(_) => {
            "name the certificate and its key, both in PEM, in Page.TlsCertificate and Page.TlsKey"
        }
        _ => "try again",
    };
    Failure::input(with_causes(error), help)
}

/// Hands the link to the desktop's browser. Whoever has none opens the printed one. Returns what is to be removed later.
fn open(link: &str) -> Option<LinkFile> {
    let opener = if cfg!(target_os = "macos") { "open" } else { "xdg-open" };
    let file = match LinkFile::new(link) {
        Ok(file) => file,
        Err(error) => {
            output::note(&format!("{error}; open the link yourself"));
            return None;
        }
    };
    let opened = Command::new(opener)
        .arg(file.0.join(LINK_FILE))
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn();
    if opened.is_err() {
        output::note(&format!("there is no {opener}; open the link yourself"));
    }
    Some(file)
}

const LINK_FILE: &str = "link.html";

/// A folder with a file that leads a browser on to a link. Every user of the machine sees the arguments of programs, and only this one
/// can read the file. It is removed when this is dropped.
struct LinkFile(PathBuf);

impl LinkFile {
    fn new(link: &str) -> io::Result<Self> {
        let name = format!("sottovoce-page-{}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        // Fails if somebody has made it.
        fs::DirBuilder::new().mode(0o700).create(&folder)?;
        let this = Self(folder);
        let path = this.0.join(LINK_FILE);
        let mut file =
            fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
        // Of a file, browsers name nothing as the referrer; of the link, nothing either.
        let page = format!(
            "<!doctype html><meta charset=\"utf-8\"><meta name=\"referrer\" content=\"no-referrer\">\
             <meta http-equiv=\"refresh\" content=\"0; url={link}\"><title>Sottovoce</title>\
             <a href=\"{link}\">Open the page</a>\n"
        );
        file.write_all(page.as_bytes())?;
        Ok(this)
    }
}

impl Drop for LinkFile {
    fn drop(&mut self) {
        if let Err(error) = fs::remove_dir_all(&self.0) {
            output::warning(&format!("{}: {error}", self.0.display()));
        }
    }
}
