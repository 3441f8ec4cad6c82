//! `sottovoce config`, `sottovoce completions` and `sottovoce man`: about the program itself

use std::fs;
use std::path::{Path, PathBuf};

use clap::CommandFactory;
use clap_complete::Shell;
use sottovoce::config::{ConfiguredKey, Setting};

use crate::cli::{Cli, complete, help};
use crate::exit::{Exit, Failure, Outcome};
use crate::output::{self, BOLD, DIM};
use crate::session::Session;

pub(crate) fn config(session: &Session) -> Outcome {
    let config = session.config()?;
    let settings: Vec<Setting> =
        config.settings().iter().map(|setting| shown(setting, &config.key)).collect();
    if session.json {
        settings.iter().try_for_each(output::json)?;
        return Ok(Exit::Done);
    }
    let width = settings.iter().map(|setting| setting.key.len()).max().unwrap_or_default();
    for setting in settings {
        let value = match &setting.value {
            serde_json::Value::String(text) if text.is_empty() => "\"\"".to_owned(),
            serde_json::Value::String(text) => output::printable(text).into_owned(),
            other => other.to_string(),
        };
        let (key, origin) = (setting.key, &setting.origin);
        output::line(format!("{BOLD}{key:<width$}{BOLD:#} {value}  {DIM}({origin}){DIM:#}"))?;
    }
    for setting in config.left_out() {
        let value = output::printable(&setting.value.to_string()).into_owned();
        output::line(format!(
            "{DIM}not followed: {} {value} ({}){DIM:#}",
            setting.key, setting.origin
        ))?;
    }
    output::line(format!("\nThe store is in {}", config.storage_root()?.display()))?;
    output::line(format!("The key file is {}", config.key_file()?.display()))?;
    Ok(Exit::Done)
}

/// The setting as it may be shown.
fn shown(setting: &Setting, key: &ConfiguredKey) -> Setting {
    let mut shown = setting.clone();
    let is_secret =
        matches!(key, ConfiguredKey::Secret { from, .. } if from == "Context.EncryptionKey");
    match (setting.key, &setting.value) {
        // The placeholder is not secret. Shown redacted, it would look like a real key.
        ("Context.EncryptionKey", _) if !is_secret => {
            shown.value = "(placeholder)".into();
        }
        ("LanguageModel.BaseUrl", serde_json::Value::String(url)) => {
            shown.value = output::without_login(url).into();
        }
        _ => {}
    }
    shown
}

/// Prints the completions for a shell
///
/// They complete existing scopes, contexts, threads and models. For bash: echo 'source <(sottovoce completions bash)'
/// >> ~/.bashrc
#[derive(Debug, clap::Args)]
pub(crate) struct CompletionsArgs {
    /// The shell
    #[arg(value_enum)]
    shell: Shell,
}

pub(crate) fn completions(args: &CompletionsArgs) -> Outcome {
    let shell = args.shell.to_string();
    let script = complete::script(&shell)?
        .ok_or_else(|| Failure::input(format!("{shell} is not known"), "choose another shell"))?;
    output::bytes(&script)?;
    Ok(Exit::Done)
}

/// Writes the manual pages, one for each command
///
/// For man to find them: sottovoce man ~/.local/share/man/man1
#[derive(Debug, clap::Args)]
pub(crate) struct ManArgs {
    /// The folder, which is made if necessary
    folder: PathBuf,
}

pub(crate) fn man(args: &ManArgs) -> Outcome {
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
    clap_mangen::generate_to(help::with_exit_codes(Cli::command()), folder)
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
