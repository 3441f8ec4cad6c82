//! `sottovoce config`

use sottovoce::config::{ConfiguredKey, Setting};

use crate::exit::{Exit, Outcome};
use crate::output::{self, BOLD, DIM};
use crate::session::Session;

pub(crate) fn run(session: &Session) -> Outcome {
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
