//! `sottovoce key check`

use std::path::PathBuf;
use std::sync::Arc;

use serde::Serialize;
use sottovoce::admin::StoreKey;
use sottovoce::{EncryptionKey, Error};

use crate::cmd::backup::key::{of_store, wrong};
use crate::exit::{Exit, Failure, Outcome};
use crate::output::{self, BAD, DIM, GOOD, WARN};
use crate::session::Session;

/// Checks whether the key opens the store, and shows how it is derived
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Checks the key in this file, such as a backup, instead of the configured one
    #[arg(long, value_name = "FILE")]
    key_file: Option<PathBuf>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Checked<'a> {
    opens: bool,
    /// Whether a change of keys is unfinished.
    unfinished: bool,
    keys: Vec<Row<'a>>,
}

#[derive(Serialize)]
struct Row<'a> {
    id: &'a str,
    derivation: &'static str,
    held: bool,
    writes: bool,
}

pub(super) fn run(session: &Session, args: Args) -> Outcome {
    let config = session.config()?;
    let root = config.storage_root()?;
    let keys = match args.key_file {
        None => match session.keys(&config) {
            Err(Failure::Library(Error::NoKey | Error::PlaceholderKey)) => {
                return Err(Failure::Nothing { folder: root });
            }
            keys => keys?,
        },
        Some(path) => {
            let reason = "there is no such file";
            let missing = || Error::KeyFile { path: path.clone(), reason };
            vec![Arc::new(EncryptionKey::read_file(&path)?.ok_or_else(missing)?)]
        }
    };
    let keys = of_store(&root, &keys)?;
    let opens = keys.first().is_some_and(StoreKey::is_held);
    let unfinished = keys.len() > 1;
    if session.json {
        let row = |(at, key): (usize, &'_ StoreKey)| Row {
            id: keys.get(at).map(StoreKey::id).unwrap_or_default(),
            derivation: key.derivation(),
            held: key.is_held(),
            writes: at == 0,
        };
        output::json(&Checked {
            opens,
            unfinished,
            keys: keys.iter().enumerate().map(row).collect(),
        })?;
        return Ok(if opens { Exit::Done } else { Exit::Key });
    }
    for (at, key) in keys.iter().enumerate() {
        let (style, word) = match (key.is_held(), at) {
            (true, _) => (GOOD, "opens    "),
            (false, 0) => (BAD, "not given"),
            (false, _) => (WARN, "not given"),
        };
        let role = if at == 0 { "" } else { ", being replaced" };
        output::line(format!(
            "{style}{word}{style:#}  {} {DIM}({}{role}){DIM:#}",
            key.id(),
            key.derivation()
        ))?;
    }
    if unfinished {
        output::note("a change of keys is not finished: run the same `sottovoce rekey` again");
    }
    match keys.first() {
        Some(key) if !opens => Err(wrong(&root, key)),
        _ => {
            output::note(&format!("the key opens the store in {}", root.display()));
            Ok(Exit::Done)
        }
    }
}
