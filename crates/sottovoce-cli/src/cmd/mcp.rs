//! `sottovoce mcp`

mod client_config;

use std::io::IsTerminal;
use std::net::SocketAddr;
use std::sync::Arc;

use sottovoce::{Config, with_causes};
use sottovoce_mcp::{Hub, http, serve_http, serve_stdio};
use tokio_util::sync::CancellationToken;

use crate::cmd::servers;
use crate::exit::{Failure, Outcome};
use crate::output;
use crate::session::Session;

const AFTER_HELP: &str = "\
Examples:
  sottovoce mcp --print-config                 the block for the client's configuration
  sottovoce mcp                                what a client starts, and speaks to
  sottovoce mcp --http 127.0.0.1:8765          for clients of http://127.0.0.1:8765/mcp
  SOTTOVOCE__MCP__TOKEN=… sottovoce mcp --http 0.0.0.0:8765 --allow-host pi

Settings: Mcp.Scopes says which conversations clients may touch (contexts, and the server's own memory), Mcp.PreferSampling when a client's own \
model is asked where it offers that (never, always, or fallback: where the configured model cannot be reached), Mcp.Token what clients must show over HTTP.";

/// Serves contexts and presets to clients of the Model Context Protocol
///
/// Standard output carries only the protocol. While it runs, the server makes a sealed backup every day, and removes
/// contexts that have been expired or deleted for long enough.
#[derive(Debug, clap::Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct Args {
    /// Listens on this address instead; other machines can reach it only with the setting Mcp.Token
    #[arg(long, value_name = "ADDR:PORT", value_parser = servers::parse_address)]
    http: Option<SocketAddr>,

    /// A host name that clients use for this machine, besides localhost; may be repeated
    #[arg(long, value_name = "NAME", requires = "http")]
    allow_host: Vec<String>,

    /// Prints the configuration block for clients, and ends
    #[arg(long)]
    print_config: bool,
}

pub(crate) async fn run(session: &Session, args: Args) -> Outcome {
    let config = session.config()?;
    if args.print_config {
        let token = config.mcp.token.is_some();
        return client_config::print(session.config_file.as_deref(), args.http, token);
    }
    let conversations = servers::conversations(session).await?;
    let hub = Hub::new(Arc::clone(&conversations))?;
    if let Some(address) = args.http {
        let listening = listen(config, address, args.allow_host).await?;
        let serve = |stop| serve(listening, hub, stop);
        return servers::serve_and_sync(&conversations, serve).await;
    }
    if std::io::stdin().is_terminal() {
        output::note(
            "waiting for a client; `sottovoce mcp --print-config` prints what clients need",
        );
    }
    let (served, exit) = servers::until_stopped(|stop| serve_stdio(hub, stop)).await?;
    served.map(|()| exit).map_err(|error| failure(&error))
}

/// Binds an address for clients, as configured.
pub(crate) async fn listen(
    config: &Config,
    address: SocketAddr,
    allow_host: Vec<String>,
) -> Result<http::Listening, Failure> {
    let hosts = servers::listed(&config.mcp.hosts).map(str::to_owned);
    let token = config.mcp.token.clone().map(|secret| secret.0);
    let admission = http::Admission::new(token).hosts(hosts.chain(allow_host).collect());
    http::listen(address, admission).await.map_err(|error| failure(&error))
}

/// Serves clients that connect, until `stop` is cancelled. Says where they find it.
pub(crate) async fn serve(listening: http::Listening, hub: Arc<Hub>, stop: CancellationToken) {
    let address = listening.address();
    output::note(&format!("serving at http://{address}{}", http::PATH));
    output::note(&format!(
        "`sottovoce mcp --http {address} --print-config` prints what clients need"
    ));
    serve_http(listening, hub, stop).await;
}

fn failure(error: &http::TransportError) -> Failure {
    let help = match error {
        http::TransportError::NoToken { .. } | http::TransportError::EmptyToken => {
            "set Mcp.Token, or SOTTOVOCE__MCP__TOKEN, to a long secret, and give it to the clients"
        }
        http::TransportError::Listen { .. } => servers::TAKEN,
        _ => "start it from a client; `sottovoce mcp --print-config` shows how",
    };
    Failure::input(with_causes(error), help)
}
