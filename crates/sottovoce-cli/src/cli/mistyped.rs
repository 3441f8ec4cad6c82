//! Suggestions for a mistyped command, as clap makes them. They never propose a command or option that destroys or
//! hides anything.

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{CommandFactory, Error};

use crate::cli::Cli;

/// Commands that destroy messages, keys or settings, or hide messages from prompts.
const DESTROYING: [&str; 14] = [
    "clear", "forget", "prune", "cleanup", "compact", "delete", "rekey", "repair", "restore",
    "untag", "detach", "import", "settings", "remove",
];

/// Options that skip a question or extend what is destroyed.
const RECKLESS: [&str; 4] = ["--yes", "--force", "--all", "--no-backup"];

/// Commands that a program may be built without: the feature that brings each, and whether it is here.
const OPTIONAL: [(&str, &str, bool); 10] = [
    ("mcp", "mcp", cfg!(feature = "mcp")),
    ("sync", "share", cfg!(feature = "share")),
    ("device", "share", cfg!(feature = "share")),
    ("team", "share", cfg!(feature = "share")),
    ("chorus", "sqlite", cfg!(feature = "sqlite")),
    ("mcp-llm-generator", "sqlite", cfg!(feature = "sqlite")),
    ("serve", "servers", cfg!(feature = "servers")),
    ("wyoming", "servers", cfg!(feature = "servers")),
    ("page", "servers", cfg!(feature = "servers")),
    ("up", "servers", cfg!(feature = "servers")),
];

/// What the owner's page is called elsewhere.
const PAGE: [&str; 4] = ["web", "ui", "gui", "browser"];

/// The error without suggestions that do harm. For a command that is not built in, how to get it.
pub(crate) fn told(mut error: Error) -> Error {
    if error.kind() == ErrorKind::InvalidSubcommand
        && let Some(ContextValue::String(name)) = error.get(ContextKind::InvalidSubcommand)
    {
        let meant = if PAGE.contains(&name.as_str()) { "page" } else { name };
        if let Some((_, feature, false)) = OPTIONAL.iter().find(|(command, ..)| *command == meant) {
            return Error::raw(ErrorKind::InvalidSubcommand, without(meant, feature));
        }
        let usage = error.get(ContextKind::Usage).map(ToString::to_string).unwrap_or_default();
        let nearest = nearest(meant).filter(|_| usage.contains("sottovoce [OPTIONS]"));
        if let Some(nearest) = nearest {
            error.remove(ContextKind::SuggestedSubcommand);
            // What destroys is not proposed, but where it is explained.
            if DESTROYING.contains(&nearest.as_str()) {
                let tip = format!("see `sottovoce {nearest} --help`");
                error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip.into()]));
                return error;
            }
            error.insert(ContextKind::SuggestedSubcommand, ContextValue::Strings(vec![nearest]));
        }
    }
    for kind in
        [ContextKind::SuggestedSubcommand, ContextKind::SuggestedArg, ContextKind::Suggested]
    {
        let Some(proposed) = error.remove(kind) else { continue };
        if let Some(left) = harmless(proposed) {
            error.insert(kind, left);
        } else if kind == ContextKind::SuggestedArg {
            // The usage names the option that was mistaken for the intended one.
            error.remove(ContextKind::Usage);
        }
    }
    error
}

/// The command that is written most like this, if one is nearly so.
fn nearest(name: &str) -> Option<String> {
    let cli = Cli::command();
    let names = cli.get_subcommands().map(clap::Command::get_name);
    let wrong = names.map(|other| (strsim::osa_distance(name, other), other));
    let (wrong, nearest) = wrong.min()?;
    (wrong <= name.len() / 4).then(|| nearest.to_owned())
}

fn without(name: &str, feature: &str) -> String {
    format!(
        "this program was built without `{name}`\n\n  \
         tip: cargo install --locked --path crates/sottovoce-cli --features {feature}\n"
    )
}

/// Removes harmful proposals.
fn harmless(value: ContextValue) -> Option<ContextValue> {
    let is_harmless = |text: &str| {
        let words = text.split(|c: char| !(c.is_ascii_alphanumeric() || c == '-'));
        words.into_iter().all(|word| !DESTROYING.contains(&word) && !RECKLESS.contains(&word))
    };
    match value {
        ContextValue::String(one) => is_harmless(&one).then_some(ContextValue::String(one)),
        ContextValue::Strings(mut all) => {
            all.retain(|one| is_harmless(one));
            (!all.is_empty()).then_some(ContextValue::Strings(all))
        }
        ContextValue::StyledStrs(mut all) => {
            // The tip to put a word after `--` names only what was typed.
            all.retain(|one| is_harmless(&one.to_string()) || one.to_string().contains(" -- "));
            (!all.is_empty()).then_some(ContextValue::StyledStrs(all))
        }
        other => Some(other),
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    fn shown(arguments: &[&str]) -> String {
        let all = [&["sottovoce"], arguments].concat();
        told(Cli::try_parse_from(all).err().unwrap()).render().to_string()
    }

    #[test]
    fn a_command_that_is_not_built_in_says_which_feature_brings_it() {
        for (name, feature, is_here) in OPTIONAL {
            let is_of_import = feature == "sqlite";
            let typed: &[&str] = if is_of_import { &["import", name] } else { &[name] };
            let cli = Cli::command();
            let cli = if is_of_import { cli.find_subcommand("import").unwrap() } else { &cli };
            assert_eq!(cli.find_subcommand(name).is_some(), is_here, "{name}");
            let text = without(name, feature);
            assert!(text.contains(&format!("without `{name}`")), "{text}");
            assert!(text.contains(&format!("--features {feature}")), "{text}");
            assert!(is_here || shown(typed).contains(&text), "{}", shown(typed));
        }
    }

    #[test]
    fn no_command_that_destroys_is_proposed_for_a_mistyped_one() {
        let cli = Cli::command();
        let names: Vec<&str> = cli.get_subcommands().map(clap::Command::get_name).collect();
        for name in DESTROYING {
            for at in 0..name.len() {
                let mistyped =
                    format!("{}{}", name.get(..at).unwrap(), name.get(at + 1..).unwrap());
                if names.contains(&mistyped.as_str()) || mistyped.is_empty() {
                    continue;
                }
                let shown = shown(&[&mistyped]);
                let Some((_, proposed)) = shown.split_once("similar") else { continue };
                let proposed = proposed.lines().next().unwrap();
                assert!(!proposed.contains(&format!("'{name}'")), "{mistyped}: {shown}");
            }
        }
        assert!(!shown(&["forget", "--al"]).contains("--all"), "{}", shown(&["forget", "--al"]));
        assert!(!shown(&["--ye"]).contains("--yes"), "{}", shown(&["--ye"]));
        assert!(shown(&["tial"]).contains("'tail'"));
        assert!(shown(&["forgt"]).contains("`sottovoce forget --help`"), "{}", shown(&["forgt"]));
        assert!(!shown(&["forgt"]).contains("export"), "{}", shown(&["forgt"]));
        assert!(!shown(&["serch"]).contains("'serve'"), "{}", shown(&["serch"]));
    }

    #[cfg(feature = "servers")]
    #[test]
    fn what_the_page_is_called_elsewhere_leads_to_it() {
        for name in PAGE {
            assert!(shown(&[name]).contains("'page'"), "{}", shown(&[name]));
        }
    }
}
