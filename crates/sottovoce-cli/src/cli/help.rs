//! The commands in groups, as `--help` lists them.

use std::fmt::Write;

use clap::builder::StyledStr;
use clap::{Arg, Command};

use crate::cli::STYLES;
use crate::cmd::GROUPS;
use crate::exit::Exit;

/// The options of every command stand in long helps only.
const FOLDED: &str = "Options for every command: --help";
const EXIT_CODES: &str = "Exit codes: sottovoce --help";

/// The command line with its commands in groups.
pub(crate) fn grouped(command: Command) -> Command {
    let template = template(&command);
    let fold = |arg: Arg| {
        let is_global = arg.is_global_set();
        arg.hide_short_help(is_global)
    };
    with_endings(command.help_template(template).mut_args(fold))
}

/// The same commands with the exit codes at the end of the first help. The others say where they are.
pub(crate) fn with_endings(command: Command) -> Command {
    ended(command.mut_subcommands(ended_below), &Exit::table())
}

fn ended_below(command: Command) -> Command {
    ended(command.mut_subcommands(ended_below), EXIT_CODES)
}

fn ended(command: Command, exit_codes: &str) -> Command {
    let told = command.get_after_help().map(|told| laid_out(&told.to_string()) + "\n\n");
    let told = told.unwrap_or_default();
    command.after_help(format!("{told}{FOLDED}")).after_long_help(format!("{told}{exit_codes}"))
}

/// Columns of a terminal.
const COLUMNS: usize = 80;

/// Examples for a terminal: if one is too wide, each has its remark below it. Paragraphs become one line each, which clap breaks.
fn laid_out(text: &str) -> String {
    let is_wide = |line: &str| line.chars().count() > COLUMNS;
    let mut lines: Vec<String> = Vec::new();
    for line in text.lines() {
        let goes_on = !line.is_empty() && !line.starts_with(' ');
        match lines.last_mut() {
            Some(last) if goes_on && is_wide(last) && !last.contains("   ") => {
                last.push(' ');
                last.push_str(line);
            }
            _ => lines.push(line.to_owned()),
        }
    }
    let any_is_wide = lines.iter().any(|line| line.starts_with("  ") && is_wide(line));
    let laid_out = lines.iter().map(|line| match line.rsplit_once("  ") {
        _ if !line.starts_with("  ") || !any_is_wide => line.clone(),
        Some((example, remark)) if !example.trim().is_empty() => {
            let remark = broken(&format!("      {}", remark.trim_start()));
            format!("{}\n{remark}", example.trim_end())
        }
        _ => line.clone(),
    });
    laid_out.collect::<Vec<_>>().join("\n")
}

/// A remark on as many lines as it needs.
fn broken(remark: &str) -> String {
    let fits = remark.char_indices().nth(COLUMNS).and_then(|(end, _)| remark.get(..end));
    match fits.and_then(|fits| fits.rfind(' ')) {
        Some(at) => {
            let (first, rest) = remark.split_at(at);
            format!("{first}\n{}", broken(&format!("      {}", rest.trim_start())))
        }
        None => remark.to_owned(),
    }
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
    fn no_example_is_torn_in_a_terminal_of_80_columns() {
        fn torn(command: &Command) -> Vec<String> {
            let after = command.get_after_help().map(ToString::to_string).unwrap_or_default();
            let wide = |line: &&str| line.starts_with("  ") && line.chars().count() > COLUMNS;
            let own: Vec<String> = after.lines().filter(wide).map(str::to_owned).collect();
            own.into_iter().chain(command.get_subcommands().flat_map(torn)).collect()
        }
        let torn = torn(&grouped(crate::cli::Cli::command()));
        assert!(torn.is_empty(), "{}", torn.join("\n"));
    }

    #[test]
    fn no_line_of_the_list_is_wider_than_a_terminal() {
        let help = grouped(crate::cli::Cli::command()).render_help().to_string();
        for line in help.lines().take_while(|line| !line.starts_with("Global options")) {
            assert!(line.chars().count() <= 100, "{line}");
        }
    }
}
