//! The command line: global options and commands.

pub(crate) mod complete;
pub(crate) mod help;
pub(crate) mod mistyped;
pub(crate) mod whose;

use std::path::PathBuf;

use clap::Parser;
use clap::builder::styling::{AnsiColor, Styles};
use clap_complete::ArgValueCandidates;
use colorchoice_clap::Color;
use sottovoce::Scope;

use crate::cmd::Command;

const AFTER_HELP: &str = "\
Start here:
  sottovoce ask Will it rain tomorrow?   makes the key on first use
  sottovoce chat                         a conversation, until Ctrl-D
  sottovoce tail                         what was said last
  sottovoce search leek soup             who said what about it, and when
  sottovoce doctor                       is everything set up well?";

/// Remembers conversations on this machine, encrypted, and builds prompts from them.
#[derive(Parser)]
#[command(name = "sottovoce", version, next_help_heading = "Global options", after_help = AFTER_HELP, styles = STYLES, propagate_version = true)]
pub(crate) struct Cli {
    /// Reads only this file instead of your own appsettings.json and the one in the current folder
    #[arg(long, global = true, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,

    /// Prints for programs: one JSON object per line
    #[arg(long, global = true)]
    pub(crate) json: bool,

    /// Logs the store's work to standard error, without conversation text; servers always log failures
    #[arg(long, short, global = true)]
    pub(crate) verbose: bool,

    /// Reads the passphrase from this open file descriptor instead of the terminal
    #[arg(long, global = true, value_name = "FD")]
    pub(crate) passphrase_fd: Option<u32>,

    /// The conversation: default, dm/USER, guild/GUILD/CHANNEL/USER or named/NAME; a bare NAME means named/NAME
    #[arg(long, global = true, value_name = "SCOPE", value_parser = whose::scope,
        add = ArgValueCandidates::new(complete::scopes))]
    pub(crate) scope: Option<Scope>,

    /// The conversation, if it is a context: its id or name; `sottovoce context list` shows them
    #[arg(long, global = true, value_name = "NAME", add = ArgValueCandidates::new(complete::contexts))]
    pub(crate) context: Option<String>,

    /// The conversation with one person at home (dm/NAME), or with --room that person in that room
    #[arg(long, global = true, value_name = "NAME")]
    pub(crate) user: Option<String>,

    /// The conversation of one room at home (named/NAME), or with --user (guild/home/ROOM/USER)
    #[arg(long, global = true, value_name = "NAME")]
    pub(crate) room: Option<String>,

    /// The thread of the conversation; messages outside all threads unless given
    #[arg(long, global = true, value_name = "ID", add = ArgValueCandidates::new(complete::threads))]
    pub(crate) thread: Option<String>,

    /// Asks this model instead of LanguageModel.Model
    #[arg(long, global = true, value_name = "NAME", add = ArgValueCandidates::new(complete::models))]
    pub(crate) model: Option<String>,

    /// Shows long messages whole on a terminal
    #[arg(long, global = true)]
    pub(crate) full: bool,

    /// Prints long lists without $PAGER, which is `less` unless set
    #[arg(long, global = true)]
    pub(crate) no_pager: bool,

    #[command(flatten)]
    pub(crate) color: Color,

    #[command(subcommand)]
    pub(crate) command: Command,
}

pub(crate) const STYLES: Styles = Styles::styled()
    .header(AnsiColor::Yellow.on_default().bold())
    .usage(AnsiColor::Yellow.on_default().bold())
    .literal(AnsiColor::Green.on_default())
    .placeholder(AnsiColor::Cyan.on_default());

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        use clap::CommandFactory;
        Cli::command().debug_assert();
    }
    /// Otherwise the global option would take the argument's value.
    #[test]
    fn no_argument_of_a_command_has_the_name_of_a_global_option() {
        use clap::CommandFactory;
        fn own(command: &clap::Command, global: &[String]) {
            for below in command.get_subcommands() {
                for argument in below.get_arguments() {
                    let id = argument.get_id().to_string();
                    assert!(!global.contains(&id), "{id} of {}", below.get_name());
                }
                own(below, global);
            }
        }
        let cli = Cli::command();
        let global = cli.get_arguments().filter(|argument| argument.is_global_set());
        let global: Vec<String> = global.map(|argument| argument.get_id().to_string()).collect();
        assert!(global.contains(&"context".to_owned()));
        own(&cli, &global);
    }
}
