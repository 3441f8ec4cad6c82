//! `sottovoce wyoming`

mod announcement;

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use sottovoce::config::OpenConversations;
use sottovoce::{Scope, with_causes};
use sottovoce_wyoming::{Access, Agent, ListenError, Listening, Phrases, Rooms, listen, serve};
use tokio_util::sync::CancellationToken;

use crate::cli::whose;
use crate::cmd::servers;
use crate::cmd::wyoming::announcement::Announcement;
use crate::exit::{Failure, Outcome};
use crate::output;
use crate::session::Session;

const AFTER_HELP: &str = "\
In Home Assistant, add the integration Wyoming Protocol with this machine's address and port 10700, and choose the agent \
\"sottovoce\" in the voice assistant's settings.

Examples:
  sottovoce wyoming
  sottovoce wyoming --map assist_satellite.kitchen=kitchen
  sottovoce wyoming --addr 0.0.0.0:10700 --allow 192.168.1.20
  sottovoce wyoming --addr 127.0.0.1:10701=named/kitchen

Home Assistant 2026.4 and newer names the satellite and the device of each utterance; older ones need an address for each \
room. The agent asks LanguageModel.Model at LanguageModel.BaseUrl. The protocol knows no passwords: other machines than this one must be allowed by their address.";

/// Answers voice assistants that speak the Wyoming protocol, such as Home Assistant
///
/// Each utterance is stored before the model sees it, and of each answer what was sent. Who speaks while an answer is
/// spoken interrupts it. Failures are spoken too, in the language of the turn.
#[derive(Debug, Default, clap::Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct Args {
    /// Listens on this address, with a conversation of its own if one is given, instead of Wyoming.Addresses, which is
    /// 127.0.0.1:10700 unless set; may be repeated
    #[arg(long, value_name = "ADDR:PORT[=SCOPE]", value_parser = parse_address)]
    addr: Vec<(SocketAddr, Option<Scope>)>,

    /// The conversation of a satellite or device, by the name that Home Assistant gives it; may be repeated
    #[arg(long, value_name = "NAME=SCOPE", value_parser = parse_room)]
    map: Vec<(String, Scope)>,

    /// Another machine that may connect, by its address; may be repeated
    #[arg(long, value_name = "ADDR", value_parser = parse_machine)]
    allow: Vec<IpAddr>,

    /// What is spoken in a language when there is no answer; may be repeated
    #[arg(long, value_name = "LANG=SENTENCE", value_parser = parse_phrase)]
    phrase: Vec<(String, String)>,

    /// Announces the agent in the local network, so that Home Assistant finds it by itself; also Wyoming.Announce
    #[arg(long)]
    announce: bool,
}

fn parse_address(text: &str) -> Result<(SocketAddr, Option<Scope>), String> {
    let (address, scope) = match text.split_once('=') {
        Some((address, scope)) => (address, Some(whose::scope(scope)?)),
        None => (text, None),
    };
    Ok((servers::parse_address(address)?, scope))
}

fn parse_machine(text: &str) -> Result<IpAddr, String> {
    text.parse().map_err(|_| "write the IP address of a machine, such as 192.168.1.20".to_owned())
}

fn parse_room(text: &str) -> Result<(String, Scope), String> {
    let (name, scope) =
        split(text, "a satellite and its conversation: assist_satellite.kitchen=named/kitchen")?;
    Ok((name, whose::scope(&scope)?))
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

pub(crate) async fn run(session: &Session, args: Args) -> Outcome {
    let conversations = servers::conversations(session).await?;
    let Some(bound) = Bound::bind(session, args).await? else {
        let what = "Wyoming.Addresses names no address";
        return Err(Failure::input(what, "name one with --addr"));
    };
    let serve = |stop| bound.serve(Arc::clone(&conversations), stop);
    servers::serve_and_sync(&conversations, serve).await
}

/// An agent that is bound to its addresses but does not answer yet.
pub(crate) struct Bound {
    listening: Listening,
    rooms: Rooms,
    phrases: Phrases,
    announcement: Option<Announcement>,
}

impl Bound {
    /// Binds the addresses that are configured, or those of the command line; `None` if there are none.
    pub(crate) async fn bind(session: &Session, args: Args) -> Result<Option<Self>, Failure> {
        let settings = &session.config()?.wyoming;
        let mut addresses = args.addr;
        if addresses.is_empty() {
            let configured = settings.addresses.as_deref().unwrap_or_default();
            addresses = list("Wyoming.Addresses", servers::listed(configured), parse_address)?;
        }
        if addresses.is_empty() {
            return Ok(None);
        }
        let machines = servers::listed(&settings.allow);
        let mut allowed = list("Wyoming.Allow", machines, parse_machine)?;
        allowed.extend(args.allow);
        let map = list("Wyoming.Map", servers::listed(&settings.map), parse_room)?;
        let rooms = map.into_iter().chain(args.map);
        let rooms = rooms.fold(Rooms::new(session.scope.clone()), |rooms, (name, scope)| {
            rooms.with(name, scope)
        });
        let sentences = settings.phrases.split('|').map(str::trim).filter(|text| !text.is_empty());
        let phrases = list("Wyoming.Phrases", sentences, parse_phrase)?.into_iter();
        let phrases = phrases
            .chain(args.phrase)
            .fold(Phrases::default(), |all, (language, said)| all.with(language, said));
        let access = Access::default().allow(allowed);
        let listening = listen(addresses, access).await.map_err(|error| failure(&error))?;
        let announces = settings.announce || args.announce;
        let announcement =
            announces.then(|| Announcement::make(listening.addresses())).transpose()?;
        Ok(Some(Self { listening, rooms, phrases, announcement }))
    }

    /// Answers until `stop` is cancelled. Says where clients find it.
    pub(crate) async fn serve(
        self,
        conversations: Arc<OpenConversations>,
        stop: CancellationToken,
    ) {
        for address in self.listening.addresses() {
            output::note(&format!("answering at {address}"));
        }
        let agent = Agent::new(conversations, self.phrases);
        serve(self.listening, agent, self.rooms, stop).await;
        if let Some(announcement) = self.announcement {
            announcement.withdraw().await;
        }
    }
}

fn list<'a, T>(
    setting: &str,
    entries: impl Iterator<Item = &'a str>,
    parse: impl Fn(&str) -> Result<T, String>,
) -> Result<Vec<T>, Failure> {
    let parsed = entries.map(|entry| parse(entry).map_err(|why| servers::unusable(setting, why)));
    parsed.collect()
}

fn failure(error: &ListenError) -> Failure {
    let help = match error {
        ListenError::NobodyAllowed { .. } => {
            "name the machines that may connect with --allow or in Wyoming.Allow"
        }
        _ => servers::TAKEN,
    };
    Failure::input(with_causes(error), help)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_satellite_s_conversation_is_written_as_for_every_other_option() {
        for text in ["assist_satellite.kitchen=named/kitchen", "assist_satellite.kitchen=kitchen"] {
            let (satellite, scope) = parse_room(text).unwrap();
            assert_eq!(
                (&*satellite, &*scope.to_string()),
                ("assist_satellite.kitchen", "named/kitchen")
            );
        }
        let refused = parse_room("assist_satellite.kitchen=rooms/kitchen").unwrap_err();
        assert!(refused.contains("did you mean named/kitchen?"), "{refused}");
    }
}
