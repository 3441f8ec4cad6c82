//! `sottovoce serve`

use std::net::SocketAddr;
use std::sync::Arc;

use sottovoce::{Config, with_causes};
use sottovoce_serve::{Access, Hub, KeysError, Limits, ListenError, Listening};
use tokio_util::sync::CancellationToken;

use crate::cmd::servers;
use crate::exit::{Failure, Outcome};
use crate::output;
use crate::session::Session;

const AFTER_HELP: &str = "\
Clients speak to this address as they spoke to the model server: Ollama's protocol and OpenAI's both work.
  http://127.0.0.1:11435                    the default conversation, or that of --user or --room
  http://127.0.0.1:11435/s/kitchen          the conversation of the kitchen (named/kitchen)
  http://127.0.0.1:11435/u/ann              Ann's conversation (dm/ann)
  http://127.0.0.1:11435/s/kitchen/v1       the same for OpenAI's clients
  http://127.0.0.1:11435/s/kitchen/receipt  what memory added to the newest request, and why

Examples:
  sottovoce serve
  SOTTOVOCE__SERVE__TOKEN=… sottovoce serve --addr 0.0.0.0:11435 --allow-host pi

For an address that other machines can reach, set Serve.Token, or name in Serve.KeysFile a file that gives each client \
a key to its own conversations. Serve.TlsCertificate and Serve.TlsKey name a certificate for HTTPS. The model server is \
LanguageModel.BaseUrl, and clients choose the model.";

/// Puts a memory in front of the model server, for clients of Ollama or OpenAI
///
/// Each utterance is stored before the model sees it, and each answer when it ends. What was said in earlier sessions joins
/// the prompts of new ones, and what was said weeks ago joins those that need it.
#[derive(Debug, clap::Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct Args {
    /// Listens on this address instead of Serve.Address, which is 127.0.0.1:11435 unless set
    #[arg(long, value_name = "ADDR:PORT", value_parser = servers::parse_address)]
    addr: Option<SocketAddr>,

    /// A host name that clients use for this machine, besides localhost; may be repeated
    #[arg(long, value_name = "NAME")]
    allow_host: Vec<String>,
}

pub(crate) async fn run(session: &Session, args: Args) -> Outcome {
    let config = session.config()?;
    let address = match args.addr {
        None => servers::address("Serve.Address", config.serve.address.as_deref())?,
        given => given,
    };
    let Some(address) = address else {
        return Err(Failure::input("Serve.Address names no address", "name one with --addr"));
    };
    let conversations = servers::conversations(session).await?;
    let listening = self::listen(session, address, args.allow_host).await?;
    let hub = Hub::new(Arc::clone(&conversations))?;
    let serve = |stop| serve(config, listening, hub, stop);
    servers::serve_and_sync(&conversations, serve).await
}

/// Serves until `stop` is cancelled. Says where clients find it.
pub(crate) fn serve(
    config: &Config,
    listening: Listening,
    hub: Hub,
    stop: CancellationToken,
) -> impl Future<Output = ()> + use<> {
    let scheme = if config.serve.tls_certificate.is_some() { "https" } else { "http" };
    output::note(&format!("serving at {scheme}://{}", listening.address()));
    sottovoce_serve::serve(listening, hub, stop)
}

/// Binds an address for clients, as configured.
pub(crate) async fn listen(
    session: &Session,
    address: SocketAddr,
    allow_host: Vec<String>,
) -> Result<Listening, Failure> {
    let config = session.config()?;
    let settings = &config.serve;
    let mut access = access(config, allow_host).unnamed(session.scope.clone());
    if let Some(file) = &settings.keys_file {
        access = access.keys_file(file).map_err(|error| wrong_keys(&error))?;
    }
    let mut limits = Limits::default();
    limits.connections = settings.max_connections.max(1);
    let listening =
        sottovoce_serve::listen(address, access).await.map_err(|error| failure(&error))?;
    let listening = listening.limits(limits);
    let (certificate, key) = (settings.tls_certificate.as_ref(), settings.tls_key.as_ref());
    let _pair = servers::certificate("Serve", certificate, key)?;
    #[cfg(feature = "https")]
    if let Some((certificate, key)) = _pair {
        return listening.tls(certificate, key).map_err(|error| failure(&error));
    }
    Ok(listening)
}

/// Who may ask, without the keys of single conversations.
pub(crate) fn access(config: &Config, allow_host: Vec<String>) -> Access {
    let hosts = servers::listed(&config.serve.hosts).map(str::to_owned);
    let token = config.serve.token.clone().map(|secret| secret.0);
    Access::new(token).hosts(hosts.chain(allow_host))
}

fn wrong_keys(error: &KeysError) -> Failure {
    let help = match error {
        KeysError::Empty { .. } => {
            "give it a line with a scope and a key, such as `named/kitchen KEY`, or set Serve.KeysFile to null for none"
        }
        _ => "each line of the file is a scope and a key, such as `named/kitchen KEY`",
    };
    Failure::input(with_causes(error), help)
}

pub(crate) fn failure(error: &ListenError) -> Failure {
    let help = match error {
        ListenError::NoKey { .. } => {
            "set Serve.Token, or SOTTOVOCE__SERVE__TOKEN, to a long secret, or name a file in Serve.KeysFile"
        }
        ListenError::Address { .. } => servers::TAKEN,
        _ => {
            "name the certificate and its key, both in PEM, in Serve.TlsCertificate and Serve.TlsKey"
        }
    };
    Failure::input(with_causes(error), help)
}
