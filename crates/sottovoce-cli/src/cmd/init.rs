//! `sottovoce init`

use serde::Serialize;
use sottovoce::config::ConfiguredKey;

use crate::exit::{Exit, Failure, Outcome};
use crate::output;
use crate::session::{Session, announce_key};

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Made<'a> {
    key_file: &'a std::path::Path,
    made: bool,
}

pub(crate) fn run(session: &Session) -> Outcome {
    let config = session.config()?;
    if matches!(config.key, ConfiguredKey::Secret { .. }) {
        return Err(Failure::input(
            "the configuration has a key string, so no key file is needed",
            "remove Context.EncryptionKey first if you want a key file for a new store",
        ));
    }
    let key_file = config.key_file()?;
    let made = !key_file.exists();
    config.make_key_file()?;
    if session.json {
        output::json(&Made { key_file: &key_file, made })?;
    } else if made {
        announce_key(&key_file);
    } else {
        output::note(&format!("the key file is there already: {}", key_file.display()));
    }
    Ok(Exit::Done)
}
