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

use cli::{Cli, complete, help, mistyped, whose};
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
    output::FULL.store(cli.full, std::sync::atomic::Ordering::Relaxed);
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
        no_pager: cli.no_pager,
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
    cli.command.run(&session).await
}
