//! The commands in groups, as `--help` lists them.

use std::fmt::Write;

use clap::Command;
use clap::builder::StyledStr;

use crate::cli::STYLES;
use crate::cmd::GROUPS;
use crate::exit::Exit;

/// The command line with its commands in groups.
pub(crate) fn grouped(command: Command) -> Command {
    let template = template(&command);
    with_exit_codes(command.help_template(template))
}

/// The same commands with the exit codes at the end of each help that does not tell its own.
pub(crate) fn with_exit_codes(command: Command) -> Command {
    let told = command.get_after_help().map(ToString::to_string).unwrap_or_default();
    let command = match told.as_str() {
        "" => command.after_help(Exit::table()),
        told if told.contains("Exit codes:") => command,
        told => command.after_help(format!("{told}\n\n{}", Exit::table())),
    };
    command.mut_subcommands(with_exit_codes)
}

fn template(command: &Command) -> StyledStr {
    let header = STYLES.get_header();
    let literal = STYLES.get_literal();
    let width = command.get_subcommands().map(|below| below.get_name().len()).max().unwrap_or(0);
    let mut template = String::from("{before-help}{about-with-newline}\n{usage-heading} {usage}\n");
    for (group, names) in GROUPS {
        // Of a group that was not built in, nothing is said.
        if !names.split(' ').any(|name| command.find_subcommand(name).is_some()) {
            continue;
        }
        let _ = write!(template, "\n{header}{group}:{header:#}\n");
        for name in names.split(' ') {
            // Commands that were not built in are left out.
            let about = match command.find_subcommand(name) {
                Some(below) => below.get_about().map(ToString::to_string).unwrap_or_default(),
                None if name == "help" => "Prints the help of a command".to_owned(),
                None => continue,
            };
            let _ = writeln!(template, "  {literal}{name:<width$}{literal:#}  {about}");
        }
    }
    let _ = write!(template, "\n{header}Global options:{header:#}\n{{options}}{{after-help}}");
    template.into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn every_command_stands_in_one_group_and_every_group_has_one() {
        let command = crate::cli::Cli::command();
        let listed = || GROUPS.iter().flat_map(|(_, names)| names.split(' '));
        for below in command.get_subcommands().filter(|below| !below.is_hide_set()) {
            let name = below.get_name();
            assert_eq!(listed().filter(|listed| *listed == name).count(), 1, "{name}");
            assert!(below.get_about().is_some(), "{name}");
        }
        for (group, names) in GROUPS {
            let has = names.split(' ').any(|name| command.find_subcommand(name).is_some());
            let is_built_in = match group {
                "Serve" => cfg!(feature = "servers"),
                "Share" => cfg!(feature = "share"),
                _ => true,
            };
            assert!(has || !is_built_in, "{group} is empty");
        }
    }

    #[test]
    fn no_line_of_the_list_is_wider_than_a_terminal() {
        let help = grouped(crate::cli::Cli::command()).render_help().to_string();
        for line in help.lines().take_while(|line| !line.starts_with("Global options")) {
            assert!(line.chars().count() <= 100, "{line}");
        }
    }
}
