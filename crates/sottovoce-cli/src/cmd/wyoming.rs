//! `sottovoce wyoming`

use std::net::{IpAddr, SocketAddr};

use sottovoce::Scope;
use sottovoce_wyoming::{Access, Agent, ListenError, Phrases, Rooms, listen, serve};
use tokio_util::sync::CancellationToken;

use crate::exit::{Exit, Failure, Outcome, with_causes};
use crate::interrupt::Interrupt;
use crate::output;
use crate::session::Session;

const ADDRESS: &str = "127.0.0.1:10700";

const AFTER_HELP: &str = "\
In Home Assistant, add the integration Wyoming Protocol with this machine's address and port 10700, and choose the agent \
\"sottovoce\" in the voice assistant's settings.

Examples:
  sottovoce wyoming
  sottovoce wyoming --map assist_satellite.kitchen=named/kitchen --map assist_satellite.office=named/office
  sottovoce wyoming --addr 0.0.0.0:10700 --allow 192.168.1.20
  sottovoce wyoming --addr 127.0.0.1:10701=named/kitchen --addr 127.0.0.1:10702=named/office

Home Assistant 2026.4 and newer names the satellite and the device of each utterance; older ones need an address for each \
room. The protocol knows no passwords: other machines than this one must be allowed by their address.

Exit codes:
  1  failed; see the message       5  the configuration cannot be used
  2  the command was mistyped, or an address refused
  4  no key, or the wrong one    130  stopped; what was acknowledged is kept";

/// Answers voice assistants that speak the Wyoming protocol, such as Home Assistant
///
/// Each utterance is stored before the model sees it, and of each answer what was sent. Who speaks while an answer is
/// spoken interrupts it. Failures are spoken too, in the language of the turn.
#[derive(Debug, clap::Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct Args {
    /// Listens on this address, with a conversation of its own if one is given; may be repeated
    #[arg(long, value_name = "ADDR:PORT[=SCOPE]", default_value = ADDRESS, value_parser = parse_address)]
    addr: Vec<(SocketAddr, Option<Scope>)>,

    /// The conversation of a satellite or device, by the name that Home Assistant gives it; may be repeated
    #[arg(long, value_name = "NAME=SCOPE", value_parser = parse_room)]
    map: Vec<(String, Scope)>,

    /// Another machine that may connect, by its address; may be repeated
    #[arg(long, value_name = "ADDR")]
    allow: Vec<IpAddr>,

    /// What is spoken in a language when there is no answer; may be repeated
    #[arg(long, value_name = "LANG=SENTENCE", value_parser = parse_phrase)]
    phrase: Vec<(String, String)>,
}

fn parse_address(text: &str) -> Result<(SocketAddr, Option<Scope>), String> {
    let (address, scope) = match text.split_once('=') {
        Some((address, scope)) => (address, Some(parse_scope(scope)?)),
        None => (text, None),
    };
    let address =
        address.parse().map_err(|_| format!("write an address and a port, such as {ADDRESS}"))?;
    Ok((address, scope))
}

fn parse_room(text: &str) -> Result<(String, Scope), String> {
    let (name, scope) =
        split(text, "a satellite and its conversation: assist_satellite.kitchen=named/kitchen")?;
    Ok((name, parse_scope(&scope)?))
}

fn parse_phrase(text: &str) -> Result<(String, String), String> {
    split(text, "a language and a sentence: pl=Przepraszam, nie teraz.")
}

fn split(text: &str, wanted: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() && !value.is_empty() => {
            Ok((name.to_owned(), value.to_owned()))
        }
        _ => Err(format!("write {wanted}")),
    }
}

fn parse_scope(text: &str) -> Result<Scope, String> {
    text.parse().map_err(|error: sottovoce::Error| with_causes(&error))
}

pub(crate) async fn run(session: &Session, args: Args) -> Outcome {
    let config = session.config()?;
    let keys = session.stores_or_make(&config)?.keys();
    let access = Access::default().allow(args.allow);
    let listening = listen(args.addr, access).await.map_err(|error| failure(&error))?;
    for address in listening.addresses() {
        output::note(&format!("answering at {address}"));
    }
    let rooms = Rooms::new(session.scope.clone());
    let rooms = args.map.into_iter().fold(rooms, |rooms, (name, scope)| rooms.with(name, scope));
    let phrases = args.phrase.into_iter();
    let phrases =
        phrases.fold(Phrases::default(), |all, (language, said)| all.with(language, said));
    let agent = Agent::new(config, keys, session.clock(), phrases)?;
    let stop = CancellationToken::new();
    let mut interrupt = Interrupt::listen()?;
    let served = serve(listening, agent, rooms, stop.clone());
    tokio::pin!(served);
    tokio::select! {
        () = &mut served => Ok(Exit::Done),
        _ = interrupt.heard() => {
            stop.cancel();
            served.await;
            Ok(Exit::Interrupted)
        }
    }
}

fn failure(error: &ListenError) -> Failure {
    let help = match error {
        ListenError::NobodyAllowed { .. } => "name the machines that may connect with --allow",
        _ => "choose another address or port with --addr",
    };
    Failure::input(with_causes(error), help)
}
