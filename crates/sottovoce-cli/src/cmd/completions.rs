//! `sottovoce completions`

use clap_complete::Shell;

use crate::cli::complete;
use crate::exit::{Exit, Failure, Outcome};
use crate::output;

/// Prints the completions for a shell
///
/// They complete existing scopes, contexts, threads and models. For bash: echo 'source <(sottovoce completions bash)'
/// >> ~/.bashrc
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The shell
    #[arg(value_enum)]
    shell: Shell,
}

pub(crate) fn run(args: &Args) -> Outcome {
    let shell = args.shell.to_string();
    let script = complete::script(&shell)?
        .ok_or_else(|| Failure::input(format!("{shell} is not known"), "choose another shell"))?;
    output::bytes(&script)?;
    Ok(Exit::Done)
}
