//! `sottovoce scopes`

use jiff::Timestamp;
use serde::Serialize;
use sottovoce::admin::{Stats, scopes};
use sottovoce::{Config, ConversationStore, Scope, with_causes};

use crate::cmd::memory::stats;
use crate::cmd::memory::stats::bytes;
use crate::exit::{Exit, Failure, Outcome};
use crate::interrupt::Interrupt;
use crate::output::table;
use crate::output::table::Cell;
use crate::output::{self, DIM};
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
        let stats = interrupt.or("", look(&stores, scope.clone())).await?;
        bar.inc(1);
        rows.push((scope, stats));
    }
    bar.finish_and_clear();
    // It holds the presets, even if it has no messages.
    rows.retain(|(scope, stats)| {
        *scope != Scope::Default || !stats.as_ref().is_ok_and(|(stats, _)| is_empty(stats))
    });
    if rows.is_empty() {
        return Err(Failure::Nothing { folder: root });
    }
    let mut exit = Exit::Done;
    let (mut cells, mut names) = (Vec::new(), Vec::new());
    for (scope, stats) in rows {
        match stats {
            Ok((stats, _)) if session.json => stats::json(&scope, &stats)?,
            Ok((stats, name)) => {
                cells.push(row(&scope, &stats));
                names.push(name);
            }
            Err(Failure::Library(error)) => {
                exit = Exit::Problems;
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
    if !session.json {
        let lines = table::lines(["scope", "messages", "size", "last said", "expires"], cells);
        for (line, name) in lines.iter().zip(std::iter::once(None).chain(names)) {
            output::line(line)?;
            if let Some(name) = name {
                output::line(format!("  {DIM}{}{DIM:#}", output::one_line(&name)))?;
            }
        }
    }
    Ok(exit)
}

/// Every conversation of the store.
pub(crate) fn all(config: &Config) -> Result<Vec<Scope>, Failure> {
    Ok(scopes(&config.storage_root()?)?)
}

fn is_empty(stats: &Stats) -> bool {
    stats.message_count + stats.hidden == 0 && stats.snapshots + stats.artifacts == 0
}

/// A conversation's statistics, and its name if it is a context.
async fn look(stores: &Stores<'_>, scope: Scope) -> Result<(Stats, Option<String>), Failure> {
    let store = stores.open(scope).await?;
    let profile = store.profile().await?;
    let name = profile.assigned_persona.as_ref().and_then(|_| profile.title.clone());
    Ok((store.stats().await?, name))
}

/// One row of the table. The scope is never cut, because other commands take it.
fn row(scope: &Scope, stats: &Stats) -> [Cell; 5] {
    let time = |at: Timestamp| at.strftime("%Y-%m-%d %H:%M").to_string();
    let expires = match (stats.expires_at, stats.expires_in) {
        (Some(_), Some(0)) => "expired".to_owned(),
        (Some(at), _) => at.strftime("%Y-%m-%d").to_string(),
        (None, _) => "never".to_owned(),
    };
    [
        Cell::new(&scope.to_string()),
        Cell::number(stats.message_count),
        Cell::new(&bytes(stats.bytes)),
        Cell::new(&stats.last.map_or_else(String::new, time)),
        Cell::new(&expires).style(DIM),
    ]
}
