//! `sottovoce scopes`

use serde::Serialize;
use sottovoce::{Config, Scope, Stats, scopes};

use crate::cmd::stats::{self, bytes, moment};
use crate::exit::{Exit, Failure, Outcome, with_causes};
use crate::interrupt::Interrupt;
use crate::output::{self, BOLD, DIM};
use crate::session::{Session, Stores};

#[derive(Serialize)]
struct Unreadable {
    scope: String,
    error: String,
}

pub(crate) async fn run(session: &Session) -> Outcome {
    let config = session.config()?;
    let root = config.storage_root()?;
    let all = all(&config)?;
    if all.is_empty() {
        return Err(Failure::Nothing { folder: root });
    }
    let stores = session.stores_or_empty(&config)?;
    let mut interrupt = Interrupt::listen()?;
    let bar = output::progress(Some(all.len() as u64), "looking");
    let mut rows = Vec::new();
    for scope in all {
        let stats = tokio::select! {
            biased;
            _ = interrupt.heard() => {
                bar.finish_and_clear();
                return Ok(Exit::Interrupted);
            }
            stats = look(&stores, scope.clone()) => stats,
        };
        bar.inc(1);
        rows.push((scope, stats));
    }
    bar.finish_and_clear();
    let mut exit = Exit::Done;
    if !session.json {
        output::line(format!(
            "{BOLD}{:<32} {:>9} {:>10}  {:<20}  {:<20}  expires{BOLD:#}",
            "scope", "messages", "size", "first", "last"
        ))?;
    }
    for (scope, stats) in rows {
        match stats {
            Ok(stats) => show(session, &scope, &stats)?,
            Err(Failure::Library(error)) => {
                exit = Exit::Found;
                let error = with_causes(&error);
                if session.json {
                    output::json(&Unreadable { scope: scope.to_string(), error })?;
                } else {
                    output::warning(&format!("{scope}: {error}"));
                }
            }
            Err(failure) => return Err(failure),
        }
    }
    Ok(exit)
}

/// Every conversation of the store.
pub(crate) fn all(config: &Config) -> Result<Vec<Scope>, Failure> {
    Ok(scopes(&config.storage_root()?)?)
}

async fn look(stores: &Stores<'_>, scope: Scope) -> Result<Stats, Failure> {
    Ok(stores.open(scope).await?.stats().await?)
}

fn show(session: &Session, scope: &Scope, stats: &Stats) -> std::io::Result<()> {
    if session.json {
        return stats::json(scope, stats);
    }
    let time = |at: Option<jiff::Timestamp>| at.map_or_else(String::new, moment);
    let expires = match (stats.expires_at, stats.expires_in) {
        (Some(_), Some(0)) => "expired".to_owned(),
        (Some(at), _) => moment(at),
        (None, _) => "never".to_owned(),
    };
    output::line(format!(
        "{:<32} {:>9} {:>10}  {:<20}  {:<20}  {DIM}{expires}{DIM:#}",
        scope.to_string(),
        stats.message_count,
        bytes(stats.bytes),
        time(stats.first),
        time(stats.last),
    ))
}
