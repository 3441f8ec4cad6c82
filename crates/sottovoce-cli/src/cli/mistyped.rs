//! Suggestions for a mistyped command. They never propose a command or option that destroys or hides anything.

use clap::Error;
use clap::builder::StyledStr;
use clap::error::{ContextKind, ContextValue};

/// Commands that destroy messages, keys or settings, or hide messages from prompts.
const DESTROYING: [&str; 14] = [
    "clear", "forget", "prune", "cleanup", "compact", "delete", "rekey", "repair", "restore",
    "untag", "detach", "import", "settings", "remove",
];

/// Options that skip a question or extend what is destroyed.
const RECKLESS: [&str; 4] = ["--yes", "--force", "--all", "--no-backup"];

/// Words that users try, with the matching commands. If several commands match, the hint says what each deletes.
const HINTS: &[(&[&str], &str)] = &[
    (
        &["remove", "rm", "del", "delete", "erase", "destroy", "wipe", "purge", "reset"],
        "to delete messages for ever, see 'forget'; to keep them but leave them out of prompts, see 'prune' and 'clear'; \
contexts, artifacts, snapshots and personas have a 'delete' of their own",
    ),
    (
        &["find", "grep", "lookup", "query", "where"],
        "'search WORDS' finds words in what was said, 'conversations WORDS' titles and tags",
    ),
    (
        &["history", "log", "show", "cat", "print", "messages", "read", "last", "view"],
        "'tail' shows the newest messages, 'search WORDS' those with certain words, 'export' all of them",
    ),
    (&["ls", "list", "rooms", "users"], "'conversations' and 'scopes' list all conversations"),
    (
        &["add", "say", "write", "remember", "note", "insert"],
        "'append' stores a message, 'artifact add' a file",
    ),
    (&["talk", "start", "run"], "'chat' starts a conversation, 'ask' asks one question"),
    (
        &["backup", "save", "dump"],
        "'export' writes a backup, 'snapshot save' keeps a window under a name",
    ),
    (
        &["load", "undo", "recover"],
        "'import' restores a backup, 'snapshot' lists saved windows, 'clear --undo' undoes a clear",
    ),
    (
        &["check", "status", "test", "diagnose"],
        "'doctor' checks the set-up, 'verify' every record, 'stats' counts",
    ),
    (&["password", "passphrase", "passwd", "encrypt"], "'key' shows the key's state"),
    (
        &["server", "daemon", "proxy", "ollama"],
        "'serve' puts a memory in front of the model server, 'mcp' serves the contexts to clients of the Model Context Protocol",
    ),
    (
        &["homeassistant", "home-assistant", "assist", "satellite", "voice"],
        "'wyoming' answers voice assistants such as Home Assistant, 'serve' is a memory for its Ollama integration",
    ),
    (
        &["share", "cloud", "mirror", "pair", "link", "devices", "join"],
        "'sync' shares conversations with your other devices, 'device' adds and removes them",
    ),
    (&["version"], "'--version' shows the version"),
];

/// Adds suggestions to an error.
pub(crate) fn told(mut error: Error) -> Error {
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
    let mistyped = match error.get(ContextKind::InvalidSubcommand) {
        Some(ContextValue::String(word)) => word.to_lowercase(),
        _ => return error,
    };
    if let Some((_, hint)) = HINTS.iter().find(|(words, _)| words.contains(&mistyped.as_str())) {
        // The intended command is known, so similar names would only distract.
        error.remove(ContextKind::SuggestedSubcommand);
        let mut styled = StyledStr::new();
        styled.push_str(hint);
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![styled]));
    }
    error
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
    use clap::{CommandFactory, Parser};

    use super::*;
    use crate::cli::Cli;

    fn shown(arguments: &[&str]) -> String {
        let all = [&["sottovoce"], arguments].concat();
        told(Cli::try_parse_from(all).err().unwrap()).render().to_string()
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
    }

    #[test]
    fn common_words_get_a_fitting_hint() {
        for (word, hint) in [
            ("remove", "to delete messages for ever, see 'forget'"),
            ("find", "'search WORDS'"),
            ("GREP", "'search WORDS'"),
            ("history", "'tail'"),
            ("ls", "'conversations'"),
        ] {
            let shown = shown(&[word]);
            assert!(shown.contains(hint) && !shown.contains("similar"), "{word}: {shown}");
        }
    }

    /// A hint for an existing command would never be shown.
    #[test]
    fn no_hint_is_for_a_command_that_there_is() {
        for command in Cli::command().get_subcommands() {
            for (words, _) in HINTS {
                assert!(!words.contains(&command.get_name()), "{}", command.get_name());
            }
        }
    }
}
