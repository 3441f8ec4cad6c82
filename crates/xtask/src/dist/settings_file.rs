//! The settings file of a release: every known setting with its default and what it means.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt::Write;
use std::fs;
use std::path::Path;

use serde_json::Value;
use sottovoce::Config;

use crate::task::Result;

/// The widest line of an explanation.
const WIDTH: usize = 100;

/// What only the environment may hold; a settings file with it is refused.
const NOT_IN_A_FILE: &str = "LanguageModel.ApiKey";

/// Makes the file. Defaults stand in comments, so that a later version's apply; what `set` names does not.
///
/// The explanations are those of `docs/settings.md`. A known setting that is missing there is an error.
pub(crate) fn make(root: &Path, set: &[(&str, &str)]) -> Result<String> {
    let page = fs::read_to_string(root.join("docs/settings.md"))?;
    let meanings: BTreeMap<&str, String> = page.lines().filter_map(row).collect();
    let defaults = load("{}")?;
    let mut sections: Vec<(&str, String)> = Vec::new();
    for setting in defaults.settings().iter().filter(|setting| setting.key != NOT_IN_A_FILE) {
        let key = setting.key;
        let meaning = meanings.get(key).ok_or_else(|| format!("docs/settings.md lacks {key}"))?;
        let (section, name) = key.split_once('.').ok_or_else(|| format!("{key} has no section"))?;
        let (mark, value) = match set.iter().find(|(other, _)| *other == key) {
            Some((_, value)) => ("", Value::from(*value)),
            // What stands for a key is no key, and not for repeating.
            None if key == "Context.EncryptionKey" => ("// ", Value::Null),
            None => ("// ", setting.value.clone()),
        };
        if sections.last().is_none_or(|(last, _)| *last != section) {
            sections.push((section, String::new()));
        }
        if let Some((_, text)) = sections.last_mut() {
            wrapped(text, meaning);
            writeln!(text, "    {mark}\"{name}\": {value},\n")?;
        }
    }
    let file = assembled(&sections);
    check(&file, &defaults)?;
    Ok(file)
}

fn assembled(sections: &[(&str, String)]) -> String {
    let section =
        |(name, text): &(&str, String)| format!("  \"{name}\": {{\n{}\n  }}", text.trim_end());
    let sections: Vec<String> = sections.iter().map(section).collect();
    format!(
        "// Sottovoce's settings. What stands behind // is the default: remove the // to change it.\n\
         // sottovoce config shows what applies, and where it comes from.\n{{\n{}\n}}\n",
        sections.join(",\n\n")
    )
}

/// One row of the page's tables: the setting and what it means.
fn row(line: &str) -> Option<(&str, String)> {
    let line = line.strip_prefix("| `")?;
    let (key, rest) = line.split_once("` |")?;
    let (_, meaning) = rest.split_once(" | ").or_else(|| rest.split_once("| "))?;
    Some((key, plain(meaning.trim().trim_end_matches('|').trim_end())))
}

/// Without the marks of Markdown.
fn plain(text: &str) -> String {
    let mut plain = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('[') {
        let link =
            after.split_once("](").and_then(|(name, after)| Some((name, after.split_once(')')?.1)));
        let Some((name, after)) = link else { break };
        plain.push_str(before);
        plain.push_str(name);
        rest = after;
    }
    plain.push_str(rest);
    plain.replace('`', "").replace("\\|", "|")
}

/// Writes the text as comments.
fn wrapped(file: &mut String, text: &str) {
    let mut line = String::new();
    for word in text.split(' ') {
        if !line.is_empty() && line.len() + word.len() >= WIDTH {
            let _ = writeln!(file, "    //{line}");
            line.clear();
        }
        line.push(' ');
        line.push_str(word);
    }
    let _ = writeln!(file, "    //{line}");
}

/// Both as it is and with every default stated, the file must mean the defaults, apart from what it sets.
fn check(file: &str, defaults: &Config) -> Result<()> {
    let stated: String = file
        .lines()
        .filter(|line| !line.trim_start().starts_with("// \"EncryptionKey"))
        .map(|line| line.replacen("// \"", "\"", 1) + "\n")
        .collect();
    for text in [file, &stated] {
        let loaded = load(text)?;
        for (loaded, default) in loaded.settings().iter().zip(defaults.settings()) {
            if loaded.origin == default.origin || loaded.value == default.value {
                continue;
            }
            let is_set = file.lines().any(|line| {
                let name = loaded.key.split_once('.').unwrap_or_default().1;
                line.trim_start().starts_with(&format!("\"{name}\":"))
            });
            if !is_set {
                return Err(format!("the settings file changes {}", loaded.key).into());
            }
        }
    }
    Ok(())
}

/// The settings of this text alone.
fn load(text: &str) -> Result<Config> {
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("appsettings.json");
    fs::write(&path, text)?;
    let nothing = std::iter::empty::<(OsString, OsString)>();
    Ok(Config::load_with(Some(&path), nothing)?)
}
