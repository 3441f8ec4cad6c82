//! `sottovoce completions`

use clap::CommandFactory;
use clap_complete::Shell;

use crate::cli::Cli;
use crate::exit::{Exit, Outcome};
use crate::output;

/// Prints the completions for a shell
///
/// For bash: sottovoce completions bash > ~/.local/share/bash-completion/completions/sottovoce
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The shell
    #[arg(value_enum)]
    shell: Shell,
}

pub(crate) fn run(args: &Args) -> Outcome {
    // Into memory first: it panics where it cannot write.
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "sottovoce", &mut script);
    output::bytes(&script)?;
    Ok(Exit::Done)
}
