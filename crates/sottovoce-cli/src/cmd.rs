//! The commands: one file each, and the list of them.

pub(crate) mod append;
pub(crate) mod artifact;
pub(crate) mod ask;
pub(crate) mod chat;
pub(crate) mod cleanup;
pub(crate) mod clear;
pub(crate) mod compact;
pub(crate) mod completions;
pub(crate) mod config;
pub(crate) mod context;
pub(crate) mod conversations;
pub(crate) mod doctor;
pub(crate) mod export;
pub(crate) mod forget;
pub(crate) mod import;
pub(crate) mod key;
pub(crate) mod man;
#[cfg(feature = "mcp")]
pub(crate) mod mcp;
pub(crate) mod models;
pub(crate) mod named;
#[cfg(feature = "servers")]
pub(crate) mod page;
pub(crate) mod persona;
pub(crate) mod privacy;
pub(crate) mod prompt;
pub(crate) mod prune;
pub(crate) mod recall;
pub(crate) mod rekey;
pub(crate) mod repair;
pub(crate) mod reply;
pub(crate) mod restore;
pub(crate) mod search;
#[cfg(feature = "servers")]
pub(crate) mod serve;
#[cfg(feature = "servers")]
pub(crate) mod servers;
pub(crate) mod settings;
#[cfg(feature = "share")]
pub(crate) mod share;
pub(crate) mod snapshot;
pub(crate) mod stats;
pub(crate) mod tail;
pub(crate) mod traits;
#[cfg(feature = "servers")]
pub(crate) mod up;
pub(crate) mod verify;
#[cfg(feature = "servers")]
pub(crate) mod wyoming;

use clap::Subcommand;

use crate::exit::Outcome;
use crate::session::Session;
use context::{Action, act};

/// Every visible command, in its group, as `--help` lists them.
pub(crate) const GROUPS: [(&str, &str); 8] = [
    ("Talk", "ask chat prompt models"),
    (
        "Remember",
        "append tail recall search context persona conversations scopes stats artifact snapshot",
    ),
    ("Forget", "clear prune compact forget settings cleanup"),
    ("Back up", "export restore key"),
    ("Share", "sync device team"),
    ("Look after", "privacy doctor verify repair pack init rekey config completions help"),
    ("Import", "import"),
    ("Serve", "page up serve wyoming mcp"),
];

#[derive(Subcommand)]
pub(crate) enum Command {
    Ask(ask::Args),
    Chat(chat::Args),
    Prompt(prompt::Args),
    Append(append::Args),
    Tail(tail::Args),
    Recall(recall::Args),
    Search(search::Args),
    /// Begins anew: later prompts hold nothing that was said so far
    ///
    /// Deletes nothing, and applies to all threads of the conversation. Only this command, and `/context clear` in a
    /// chat, clears anything. Spoken text never does.
    Clear(clear::Args),
    Persona(persona::Args),
    Context(context::Args),
    Prune(prune::Args),
    Compact(compact::Args),
    Snapshot(snapshot::Args),
    Artifact(artifact::Args),
    Forget(forget::Args),
    /// Lists the conversations and their sizes
    Scopes,
    Conversations(conversations::Args),
    Stats(stats::Args),
    Settings(settings::Args),
    Cleanup(cleanup::Args),
    Export(export::Args),
    Import(import::Args),
    Restore(restore::Args),
    #[cfg(feature = "share")]
    #[command(flatten)]
    Share(share::Command),
    Verify(verify::Args),
    Pack(repair::PackArgs),
    Repair(repair::Args),
    /// Lists the models on the server
    ///
    /// A star marks the configured one.
    Models,
    #[cfg(feature = "servers")]
    #[command(flatten)]
    Server(Server),
    Init(key::InitArgs),
    Key(key::Args),
    Rekey(rekey::Args),
    Doctor(doctor::Args),
    Config(config::Args),
    /// Shows what is stored, where, for how long, and who could read it
    ///
    /// Also which copies exist, and how to move and delete it all. Reads the newest message's sealed file to prove that its seal holds. Asks no server.
    Privacy,
    Completions(completions::Args),
    #[command(hide = true)]
    Man(man::Args),
}

/// The commands that serve others until they are stopped.
#[cfg(feature = "servers")]
#[derive(Subcommand)]
pub(crate) enum Server {
    Up(up::Args),
    #[cfg(feature = "mcp")]
    Mcp(mcp::Args),
    Serve(serve::Args),
    Wyoming(wyoming::Args),
    Page(page::Args),
}

#[cfg(feature = "servers")]
impl Server {
    async fn run(self, session: &Session) -> Outcome {
        match self {
            Self::Up(args) => up::run(session, args).await,
            #[cfg(feature = "mcp")]
            Self::Mcp(args) => mcp::run(session, args).await,
            Self::Serve(args) => serve::run(session, args).await,
            Self::Wyoming(args) => wyoming::run(session, args).await,
            Self::Page(args) => page::run(session, args).await,
        }
    }
}

impl Command {
    /// Runs the command.
    pub(crate) async fn run(self, session: &Session) -> Outcome {
        // In boxes, the largest ones need no room on the stack while another runs.
        match self {
            Self::Ask(args) => ask::run(session, args).await,
            Self::Chat(args) => chat::run(session, args).await,
            Self::Prompt(args) => prompt::run(session, args).await,
            Self::Append(args) => append::run(session, args).await,
            Self::Tail(args) => tail::run(session, args).await,
            Self::Recall(args) => recall::run(session, args).await,
            Self::Search(args) => search::run(session, args).await,
            Self::Clear(args) => act(session, Some(Action::Clear(args))).await,
            Self::Persona(args) => persona::run(session, args).await,
            Self::Context(args) => context::run(session, args).await,
            Self::Prune(args) => act(session, Some(Action::Prune(args))).await,
            Self::Compact(args) => act(session, Some(Action::Compact(args))).await,
            Self::Snapshot(args) => snapshot::run(session, args).await,
            Self::Artifact(args) => artifact::run(session, args).await,
            Self::Forget(args) => forget::run(session, args).await,
            Self::Scopes => conversations::run_scopes(session).await,
            Self::Conversations(args) => conversations::run(session, args).await,
            Self::Stats(args) => stats::run(session, args).await,
            Self::Settings(args) => settings::run(session, args).await,
            Self::Cleanup(args) => cleanup::run(session, args).await,
            Self::Export(args) => export::run(session, args).await,
            Self::Import(args) => import::run(session, args).await,
            Self::Restore(args) => restore::run(session, args).await,
            #[cfg(feature = "share")]
            Self::Share(command) => Box::pin(share::run(session, command)).await,
            Self::Verify(args) => verify::run(session, args).await,
            Self::Pack(args) => repair::pack(session, args).await,
            Self::Repair(args) => repair::run(session, args).await,
            Self::Models => models::run(session).await,
            #[cfg(feature = "servers")]
            Self::Server(server) => Box::pin(server.run(session)).await,
            Self::Init(args) => key::init(session, &args),
            Self::Key(args) => key::run(session, args).await,
            Self::Rekey(args) => rekey::run(session, args).await,
            Self::Doctor(args) => doctor::run(session, args).await,
            Self::Config(args) => config::run(session, args),
            Self::Privacy => privacy::run(session).await,
            Self::Completions(args) => completions::run(&args),
            Self::Man(args) => man::run(&args),
        }
    }

    /// Whether the command reads standard input until it ends.
    pub(crate) fn reads_input(&self) -> bool {
        #[cfg(feature = "mcp")]
        let reads = matches!(self, Self::Server(Server::Mcp(_)));
        #[cfg(not(feature = "mcp"))]
        let reads = false;
        reads
    }

    /// Whether the command is a server, whose failures only its clients see unless it logs them.
    pub(crate) fn is_server(&self) -> bool {
        match self {
            #[cfg(feature = "servers")]
            Self::Server(_) => true,
            #[cfg(feature = "share")]
            Self::Share(command) => command.is_server(),
            _ => false,
        }
    }
}
