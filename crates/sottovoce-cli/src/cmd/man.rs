//! `sottovoce man`

use std::fs;
use std::path::{Path, PathBuf};

use clap::CommandFactory;

use crate::cli::{Cli, help};
use crate::exit::{Exit, Failure, Outcome};

/// Writes the manual pages, one for each command
///
/// For man to find them: sottovoce man ~/.local/share/man/man1
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The folder, which is made if necessary
    folder: PathBuf,
}

pub(crate) fn run(args: &Args) -> Outcome {
    write(&args.folder).map_err(|error| {
        Failure::input(
            format!("{}: {error}", args.folder.display()),
            "choose a folder that this user may write",
        )
    })?;
    Ok(Exit::Done)
}

fn write(folder: &Path) -> std::io::Result<()> {
    fs::create_dir_all(folder)?;
    clap_mangen::generate_to(help::with_endings(Cli::command()), folder)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pages(command: &clap::Command, name: &str) -> Vec<(String, clap::Command)> {
        let below = command.get_subcommands().filter(|below| !below.is_hide_set());
        below
            .flat_map(|below| pages(below, &format!("{name}-{}", below.get_name())))
            .chain([(name.to_owned(), command.clone())])
            .collect()
    }

    #[test]
    fn every_visible_command_has_a_page_that_names_its_options() {
        let folder = tempfile::tempdir().unwrap();
        write(folder.path()).unwrap();
        let expected = pages(&Cli::command(), "sottovoce");
        for (name, command) in &expected {
            let page = fs::read_to_string(folder.path().join(format!("{name}.1"))).unwrap();
            let page = page.replace('\\', "");
            let about: String = command.get_about().unwrap().to_string().chars().take(10).collect();
            assert!(page.contains(&about), "{name}");
            for option in command.get_opts().filter(|option| !option.is_hide_set()) {
                let Some(long) = option.get_long() else { continue };
                assert!(page.contains(&format!("--{long}")), "{name} --{long}");
            }
        }
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), expected.len());
    }
}
