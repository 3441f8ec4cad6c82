//! `sottovoce up`

mod systemd;

use std::sync::Arc;

use futures_util::future::{LocalBoxFuture, OptionFuture, join_all};
use sottovoce::config::OpenConversations;
use sottovoce_serve::{Hub, listen, serve_health};
use tokio_util::sync::CancellationToken;

#[cfg(feature = "mcp")]
use crate::cmd::mcp;
use crate::cmd::{page, serve, servers, wyoming};
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
    let conversations = servers::conversations(session).await?;
    let servers = Box::pin(bind(session, &conversations)).await?;
    if servers.is_empty() {
        let help = "set Serve.Address, Wyoming.Addresses, Mcp.Address or Page.Address";
        return Err(Failure::input("no server has an address", help));
    }
    let config = session.config()?;
    let mut health = None;
    if let Some(address) = servers::address(UP, config.up.health_address.as_deref())? {
        let listening = listen(address, serve::access(config, Vec::new())).await;
        health = Some(listening.map_err(|error| serve::failure(&error).of(UP))?);
    }
    let syncing = servers::Syncing::new(&conversations)?;
    let metrics = syncing.metrics();
    // Health is told to the very end.
    let serve = |stop: CancellationToken| async move {
        let done = CancellationToken::new();
        let health = health.map(|listening| {
            output::note(&format!("health at http://{}", listening.address()));
            serve_health(listening, conversations, metrics, stop.clone(), done.clone())
        });
        let all = async {
            join_all(servers.into_iter().map(|start| start(stop.clone()))).await;
            done.cancel();
        };
        let told = OptionFuture::from(health);
        tokio::join!(all, told, systemd::notify(stop.clone(), done.clone()));
    };
    let served = servers::until_stopped(|stop| Box::pin(syncing.during(Box::pin(serve(stop)))));
    let ((), exit) = served.await?;
    Ok(exit)
}

/// What starts a server that is bound to its address already. It runs until the token is cancelled.
type Start = Box<dyn FnOnce(CancellationToken) -> LocalBoxFuture<'static, ()>>;

/// Binds every address that the settings name. Nothing answers yet.
async fn bind(
    session: &Session,
    conversations: &Arc<OpenConversations>,
) -> Result<Vec<Start>, Failure> {
    let config = session.config()?;
    let mut servers: Vec<Start> = Vec::new();
    if let Some(address) = servers::address(SERVE, config.serve.address.as_deref())? {
        let listening = serve::listen(session, address, Vec::new()).await;
        let listening = listening.map_err(|failure| failure.of(SERVE))?;
        let (config, hub) = (config.clone(), Hub::new(Arc::clone(conversations))?);
        servers.push(Box::new(move |stop| Box::pin(serve::serve(&config, listening, hub, stop))));
    }
    let wyoming = Box::pin(wyoming::Bound::bind(session, wyoming::Args::default())).await;
    if let Some(bound) = wyoming.map_err(|failure| failure.of(WYOMING))? {
        let conversations = Arc::clone(conversations);
        servers.push(Box::new(|stop| Box::pin(bound.serve(conversations, stop))));
    }
    if let Some(address) = servers::address(MCP, config.mcp.address.as_deref())? {
        #[cfg(feature = "mcp")]
        {
            let listening = mcp::listen(config, address, Vec::new()).await;
            let listening = listening.map_err(|failure| failure.of(MCP))?;
            let hub = sottovoce_mcp::Hub::new(Arc::clone(conversations))?;
            servers.push(Box::new(|stop| Box::pin(mcp::serve(listening, hub, stop))));
        }
        #[cfg(not(feature = "mcp"))]
        return Err(Failure::input(
            format!("{MCP}: {address} has no server: this program was built without `mcp`"),
            "build it with the feature `mcp`, or set Mcp.Address to null",
        ));
    }
    if let Some(address) = servers::address(PAGE, config.page.address.as_deref())? {
        let page = sottovoce_page::Page::shared(Arc::clone(conversations));
        let listening = page::listen(session, page, address, Vec::new()).await;
        let listening = listening.map_err(|failure| failure.of(PAGE))?;
        servers.push(Box::new(|stop| Box::pin(page::serve(listening, stop))));
    }
    Ok(servers)
}
