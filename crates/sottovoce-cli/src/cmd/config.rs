//! `sottovoce config`

use crate::exit::{Exit, Outcome};
use crate::output::{self, BOLD, DIM};
use crate::session::Session;

pub(crate) fn run(session: &Session) -> Outcome {
    let config = session.config()?;
    if session.json {
        config.settings().iter().try_for_each(output::json)?;
        return Ok(Exit::Done);
    }
    for setting in config.settings() {
        let value = match &setting.value {
            serde_json::Value::String(text) => output::printable(text).into_owned(),
            other => other.to_string(),
        };
        let (key, origin) = (setting.key, &setting.origin);
        output::line(format!("{BOLD}{key:<26}{BOLD:#} {value}  {DIM}({origin}){DIM:#}"))?;
    }
    output::line(format!("\nThe store is in {}", config.storage_root()?.display()))?;
    output::line(format!("The key file is {}", config.key_file()?.display()))?;
    Ok(Exit::Done)
}
