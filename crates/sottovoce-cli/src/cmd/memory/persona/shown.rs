//! Formats presets as text and JSON.

use std::collections::BTreeMap;
use std::io;

use jiff::Timestamp;
use serde::Serialize;
use serde_json::Value;
use sottovoce::persona::Preset;

use crate::cmd::memory::persona::traits;
use crate::cmd::memory::stats::moment;
use crate::output::table;
use crate::output::table::Cell;
use crate::output::{self, BOLD, DIM, GOOD};
use crate::session::Session;

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Row<'a> {
    id: &'a str,
    name: &'a str,
    description: &'a str,
    #[serde(flatten)]
    persona: traits::Row<'a>,
    is_active: bool,
    is_built_in: bool,
    metadata: &'a BTreeMap<String, Value>,
    created_at: Option<Timestamp>,
    updated_at: Option<Timestamp>,
}

fn json(preset: &Preset) -> io::Result<()> {
    output::json(&Row {
        id: &preset.id,
        name: &preset.name,
        description: &preset.description,
        persona: traits::Row::of(&preset.persona),
        is_active: preset.is_active,
        is_built_in: preset.is_built_in(),
        metadata: &preset.metadata,
        created_at: preset.created_at,
        updated_at: preset.updated_at,
    })
}

pub(super) fn list(session: &Session, presets: &[Preset]) -> io::Result<()> {
    if session.json {
        return presets.iter().try_for_each(json);
    }
    if presets.is_empty() {
        return Ok(());
    }
    let row = |preset: &Preset| {
        let active = match preset.is_active {
            true => Cell::new("yes").style(GOOD),
            false => Cell::new("no").style(DIM),
        };
        [Cell::new(&preset.id), Cell::new(&preset.name), active]
    };
    table::show(["id", "name", "active"], presets.iter().map(row).collect())
}

/// Shows all fields of a preset.
pub(super) fn show(session: &Session, preset: &Preset) -> io::Result<()> {
    if session.json {
        return json(preset);
    }
    let changed = preset.updated_at.is_some();
    let origin = match (preset.is_built_in(), changed) {
        (true, false) => "built in",
        (true, true) => "built in, and changed since",
        (false, _) => "your own",
    };
    output::line(format!("{BOLD}{}{BOLD:#}", output::one_line(&preset.name)))?;
    traits::row("id", &preset.id)?;
    traits::row("origin", origin)?;
    if !preset.description.is_empty() {
        traits::row("description", &preset.description)?;
    }
    traits::row("active", if preset.is_active { "yes" } else { "no" })?;
    for (name, at) in [("created", preset.created_at), ("updated", preset.updated_at)] {
        if let Some(at) = at {
            traits::row(name, &moment(at))?;
        }
    }
    for (key, value) in &preset.metadata {
        let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        traits::row("metadata", &format!("{key}={value}"))?;
    }
    traits::show(&preset.persona)
}
