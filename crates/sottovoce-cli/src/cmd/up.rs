//! `sottovoce up`

mod systemd;

use std::sync::Arc;

use sottovoce::Config;
use sottovoce::config::OpenConversations;
use sottovoce_serve::{Hub, Listening, MoreMetrics, listen, serve_health};
use tokio_util::sync::CancellationToken;

#[cfg(feature = "mcp")]
use crate::cmd::mcp;
use crate::cmd::page;
use crate::cmd::{serve, servers, wyoming};
use crate::exit::{Failure, Outcome};
use crate::output;
use crate::session::Session;

/// The settings that say what runs where.
const SERVE: &str = "Serve.Address";
const WYOMING: &str = "Wyoming.Addresses";
const MCP: &str = "Mcp.Address";
const UP: &str = "Up.HealthAddress";
const PAGE: &str = "Page.Address";

const AFTER_HELP: &str = "\
What runs is what has an address in the settings:
  Serve.Address      clients of Ollama and OpenAI, as `sottovoce serve`: 127.0.0.1:11435 unless set
  Wyoming.Addresses  Home Assistant, as `sottovoce wyoming`: 127.0.0.1:10700 unless set
  Mcp.Address        clients of MCP, as `sottovoce mcp --http`: nowhere unless set
  Page.Address       the owner's page, as `sottovoce page`: nowhere unless set; its link is printed
  Up.HealthAddress   /healthz, /readyz and /metrics: 127.0.0.1:11436 unless set
null leaves one out. All of them share the open conversations: what is said by one way is known by every other.

Examples:
  sottovoce up                                        until Ctrl-C
  SOTTOVOCE__SERVE__ADDRESS=127.0.0.1:8000 sottovoce up
  SOTTOVOCE__MCP__ADDRESS=127.0.0.1:8765 sottovoce up
  curl http://127.0.0.1:11436/readyz";

/// Runs the servers that the settings name, in one process
///
/// First every address is bound. If one cannot be, nothing runs. On Ctrl-C or SIGTERM, answers in progress have a few
/// seconds, and what came of them by then is stored.
#[derive(Debug, clap::Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct Args {}

pub(crate) async fn run(session: &Session, _: Args) -> Outcome {
    let config = session.config()?;
    let conversations = servers::conversations(session).await?;
    let bound = Box::pin(Bound::bind(session, &conversations)).await?;
    if bound.is_nothing() {
        let help = "set Serve.Address, Wyoming.Addresses, Mcp.Address or Page.Address";
        return Err(Failure::input("no server has an address", help));
    }
    let syncing = servers::Syncing::new(&conversations)?;
    let serve = |stop| bound.serve(config, conversations, syncing.metrics(), stop);
    let served = servers::until_stopped(|stop| Box::pin(syncing.during(Box::pin(serve(stop)))));
    let ((), exit) = served.await?;
    Ok(exit)
}

/// Everything that is listened on. Nothing answers yet.
struct Bound {
    serve: Option<(Listening, Hub)>,
    wyoming: Option<wyoming::Bound>,
    #[cfg(feature = "mcp")]
    mcp: Option<(sottovoce_mcp::http::Listening, Arc<sottovoce_mcp::Hub>)>,
    health: Option<Listening>,
    page: Option<sottovoce_page::Listening>,
}

impl Bound {
    async fn bind(
        session: &Session,
        conversations: &Arc<OpenConversations>,
    ) -> Result<Self, Failure> {
        let config = session.config()?;
        let (mut serve, mut health) = (None, None);
        if let Some(address) = servers::address(SERVE, config.serve.address.as_deref())? {
            let listening = serve::listen(session, address, Vec::new()).await;
            let listening = listening.map_err(|failure| failure.of(SERVE))?;
            serve = Some((listening, Hub::new(Arc::clone(conversations))?));
        }
        let wyoming = Box::pin(wyoming::Bound::bind(session, wyoming::Args::default())).await;
        let wyoming = wyoming.map_err(|failure| failure.of(WYOMING))?;
        #[cfg(feature = "mcp")]
        let mcp = match servers::address(MCP, config.mcp.address.as_deref())? {
            Some(address) => {
                let listening = mcp::listen(config, address, Vec::new()).await;
                let hub = sottovoce_mcp::Hub::new(Arc::clone(conversations))?;
                Some((listening.map_err(|failure| failure.of(MCP))?, hub))
            }
            None => None,
        };
        #[cfg(not(feature = "mcp"))]
        if servers::address(MCP, config.mcp.address.as_deref())?.is_some() {
            let help = "build it with the feature `mcp`, or set Mcp.Address to null";
            return Err(Failure::input("Mcp.Address: this program was built without `mcp`", help));
        }
        if let Some(address) = servers::address(UP, config.up.health_address.as_deref())? {
            let listening = listen(address, serve::access(config, Vec::new())).await;
            health = Some(listening.map_err(|error| serve::failure(&error).of(UP))?);
        }
        let page = match servers::address(PAGE, config.page.address.as_deref())? {
            Some(address) => {
                let page = sottovoce_page::Page::shared(Arc::clone(conversations));
                let listening = page::listen(session, page, address, Vec::new()).await;
                Some(listening.map_err(|failure| failure.of(PAGE))?)
            }
            None => None,
        };
        Ok(Self {
            serve,
            wyoming,
            #[cfg(feature = "mcp")]
            mcp,
            health,
            page,
        })
    }

    /// Whether only health would be told.
    fn is_nothing(&self) -> bool {
        let is_nothing = self.serve.is_none() && self.wyoming.is_none();
        #[cfg(feature = "mcp")]
        let is_nothing = is_nothing && self.mcp.is_none();
        let is_nothing = is_nothing && self.page.is_none();
        is_nothing
    }

    /// Runs all of it until `stop` is cancelled. Health is told to the very end.
    async fn serve(
        self,
        config: &Config,
        conversations: Arc<OpenConversations>,
        metrics: MoreMetrics,
        stop: CancellationToken,
    ) {
        let done = CancellationToken::new();
        let serve =
            self.serve.map(|(listening, hub)| serve::serve(config, listening, hub, stop.clone()));
        let wyoming =
            self.wyoming.map(|bound| bound.serve(Arc::clone(&conversations), stop.clone()));
        #[cfg(feature = "mcp")]
        let mcp = self.mcp.map(|(listening, hub)| mcp::serve(listening, hub, stop.clone()));
        #[cfg(not(feature = "mcp"))]
        let mcp: Option<std::future::Ready<()>> = None;
        let health = self.health.map(|listening| {
            output::note(&format!("health at http://{}", listening.address()));
            serve_health(listening, conversations, metrics, stop.clone(), done.clone())
        });
        let page = self.page.map(|listening| page::serve(listening, stop.clone()));
        let servers = async {
            tokio::join!(maybe(serve), maybe(wyoming), maybe(mcp), maybe(page));
            done.cancel();
        };
        tokio::join!(servers, maybe(health), systemd::notify(stop, done.clone()));
    }
}

async fn maybe(served: Option<impl Future<Output = ()>>) {
    if let Some(served) = served {
        Box::pin(served).await;
    }
}
