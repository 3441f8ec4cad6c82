//! `sottovoce`, the command line of the library of the same name.

mod advice;
mod cli;
mod cmd;
mod exit;
mod interrupt;
mod open_files;
mod output;
mod own_settings;
mod private_file;
mod secret;
mod session;

use std::process::ExitCode;
use std::time::Duration;

use clap::{CommandFactory, FromArgMatches};
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

#[cfg(feature = "servers")]
use cli::Server;
use cli::{Cli, Command, complete, help, mistyped, whose};
use cmd::context::{Action, act};
use exit::Outcome;
use session::Session;
use sottovoce::Scope;

/// How long file work in the background of a server may take to end.
const PATIENCE: Duration = Duration::from_secs(1);

fn main() -> ExitCode {
    // A shell's request for completions is answered here, and nothing else runs.
    complete::answer();
    let cli = help::grouped(Cli::command())
        .try_get_matches()
        .and_then(|matches| Cli::from_arg_matches(&matches))
        .unwrap_or_else(|error| mistyped::told(error).exit());
    cli.color.write_global();
    open_files::allow_more();
    let level = match cli.verbose {
        true => Some(LevelFilter::DEBUG),
        false => cli.command.is_server().then_some(LevelFilter::WARN),
    };
    if let Some(level) = level {
        let stderr = std::io::stderr();
        let colors = anstream::AutoStream::choice(&stderr) != anstream::ColorChoice::Never;
        tracing_subscriber::fmt()
            .with_writer(std::io::stderr)
            .with_ansi(colors)
            .with_max_level(level)
            .finish()
            // Logs of other libraries do not help the user.
            .with(Targets::new().with_target("sottovoce", level))
            .init();
    }
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
    let outcome = match runtime {
        Ok(runtime) => {
            let reads_input = cli.command.reads_input();
            let outcome = runtime.block_on(run(cli));
            if reads_input {
                // Reading a terminal cannot be cancelled. Other work is waited for, because it may have a copy to
                // remove.
                runtime.shutdown_timeout(PATIENCE);
            }
            outcome
        }
        Err(error) => Err(error.into()),
    };
    match outcome {
        Ok(code) => code.into(),
        Err(failure) => {
            output::failure(&failure);
            failure.code().into()
        }
    }
}

async fn run(cli: Cli) -> Outcome {
    let mut session = Session {
        config_file: cli.config,
        json: cli.json,
        passphrase_fd: cli.passphrase_fd,
        thread: cli.thread,
        model: cli.model,
        ..Session::default()
    };
    let at_home = whose::at_home(cli.user, cli.room)?;
    session.scope = match (cli.scope, &cli.context, at_home) {
        (None, None, None) => Scope::Default,
        (Some(scope), None, None) | (None, None, Some(scope)) => scope,
        (None, Some(name), None) => session.scope_of_context(name).await?,
        _ => {
            let what = "--scope, --context and --user with --room each select a conversation";
            return Err(exit::Failure::input(what, "give one of them"));
        }
    };
    // In boxes, the largest ones need no room on the stack while another runs.
    match cli.command {
        Command::Ask(args) => cmd::ask::run(&session, args).await,
        Command::Chat(args) => cmd::chat::run(&session, args).await,
        Command::Prompt(args) => cmd::prompt::run(&session, args).await,
        Command::Append(args) => cmd::append::run(&session, args).await,
        Command::Tail(args) => cmd::tail::run(&session, args).await,
        Command::Recall(args) => cmd::recall::run(&session, args).await,
        Command::Search(args) => cmd::search::run(&session, args).await,
        Command::Clear(args) => act(&session, Some(Action::Clear(args))).await,
        Command::Persona(args) => cmd::persona::run(&session, args).await,
        Command::Context(args) => cmd::context::run(&session, args).await,
        Command::Prune(args) => act(&session, Some(Action::Prune(args))).await,
        Command::Compact(args) => act(&session, Some(Action::Compact(args))).await,
        Command::Snapshot(args) => cmd::snapshot::run(&session, args).await,
        Command::Artifact(args) => cmd::artifact::run(&session, args).await,
        Command::Forget(args) => cmd::forget::run(&session, args).await,
        Command::Scopes => cmd::conversations::run_scopes(&session).await,
        Command::Conversations(args) => cmd::conversations::run(&session, args).await,
        Command::Stats(args) => cmd::stats::run(&session, args).await,
        Command::Settings(args) => cmd::settings::run(&session, args).await,
        Command::Cleanup(args) => cmd::cleanup::run(&session, args).await,
        Command::Export(args) => cmd::export::run(&session, args).await,
        Command::Import(args) => cmd::import::run(&session, args).await,
        #[cfg(feature = "share")]
        Command::Share(command) => Box::pin(cmd::share::run(&session, command)).await,
        Command::Verify(args) => cmd::verify::run(&session, args).await,
        Command::Pack(args) => cmd::repair::pack(&session, args).await,
        Command::Repair(args) => cmd::repair::run(&session, args).await,
        Command::Models => cmd::models::run(&session).await,
        #[cfg(feature = "servers")]
        Command::Server(command) => Box::pin(serve(&session, command)).await,
        Command::Init(args) => cmd::key::init(&session, &args),
        Command::Key(args) => cmd::key::run(&session, args).await,
        Command::Rekey(args) => cmd::rekey::run(&session, args).await,
        Command::Doctor(args) => cmd::doctor::run(&session, args).await,
        Command::Config => cmd::config::run(&session),
        Command::Completions(args) => cmd::completions::run(&args),
        Command::Man(args) => cmd::man::run(&args),
    }
}

#[cfg(feature = "servers")]
async fn serve(session: &Session, server: Server) -> Outcome {
    match server {
        Server::Up(args) => cmd::up::run(session, args).await,
        #[cfg(feature = "mcp")]
        Server::Mcp(args) => cmd::mcp::run(session, args).await,
        Server::Serve(args) => cmd::serve::run(session, args).await,
        Server::Wyoming(args) => cmd::wyoming::run(session, args).await,
        Server::Page(args) => cmd::page::run(session, args).await,
    }
}
