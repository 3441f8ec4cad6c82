//! `sottovoce config`

use sottovoce::Config;
use sottovoce::config::{ConfiguredKey, Setting, parse_setting, setting_names};

use crate::exit::{Exit, Outcome};
use crate::output::{self, BOLD, DIM, object};
use crate::own_settings;
use crate::session::Session;

const HELP: &str = "\
Examples:
  sottovoce config set LanguageModel.Model qwen3:4b
  sottovoce config set Context.LastN 12
  sottovoce config unset Context.LastN";

/// Shows every setting with its value and origin, or changes one
#[derive(Debug, clap::Args)]
#[command(after_help = HELP)]
pub(crate) struct Args {
    #[command(subcommand)]
    change: Option<Change>,
}

#[derive(Debug, clap::Subcommand)]
enum Change {
    /// Sets a setting in your own settings file; comments and everything else in it stay
    Set {
        /// Its name, in any letter case
        #[arg(value_name = "SETTING")]
        key: String,
        /// Its value; `null` for none
        value: String,
    },
    /// Takes a setting out of your own settings file, so that its default applies
    Unset {
        /// Its name, in any letter case
        #[arg(value_name = "SETTING")]
        key: String,
    },
}

pub(crate) fn run(session: &Session, args: Args) -> Outcome {
    match args.change {
        None => list(session),
        Some(Change::Set { key, value }) => {
            let setting = parse_setting(&key, &value)?;
            change(session, setting.key, Some(&setting.value))
        }
        Some(Change::Unset { key }) => {
            let known = setting_names().find(|known| known.eq_ignore_ascii_case(&key));
            let key = match known {
                Some(key) => key,
                // Its error names the nearest one.
                None => parse_setting(&key, "")?.key,
            };
            change(session, key, None)
        }
    }
}

/// Changes the file, and tells what applies now.
fn change(session: &Session, key: &str, value: Option<&serde_json::Value>) -> Outcome {
    let before = session.config()?;
    let root = before.storage_root()?;
    let file = own_settings::set(before, key, value)?;
    let now = Config::load(session.config_file.as_deref())?;
    let applies = now.settings().iter().find(|setting| setting.key == key);
    let applies = applies.map(|setting| shown(setting, &now.key));
    let done = object!("file": file).maybe("setting", applies.as_ref());
    session.tell(done, || {
        let applies = applies.map_or_else(String::new, |setting| {
            format!("; {} now ({})", output::printable(&setting.value.to_string()), setting.origin)
        });
        format!(
            "{key} is {} {}{applies}",
            if value.is_some() { "set in" } else { "not set in" },
            file.display()
        )
    })?;
    if now.storage_root()? != root && sottovoce::admin::store_exists(&root)? {
        output::warning(&format!(
            "the store that was in use stays in {}; nothing was moved",
            root.display()
        ));
    }
    Ok(Exit::Done)
}

fn list(session: &Session) -> Outcome {
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
