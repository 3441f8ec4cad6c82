//! `sottovoce models`

use serde::Serialize;
use sottovoce::model::ModelServer;

use crate::exit::{Exit, Outcome};
use crate::interrupt::awaited;
use crate::output::table::{self, Cell};
use crate::output::{self, DIM, GOOD};
use crate::session::Session;

/// A model in JSON.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Row {
    name: String,
    configured: bool,
    bytes: Option<u64>,
    parameters: Option<String>,
    quantization: Option<String>,
    /// The context length that it was trained with, in tokens.
    context_length: Option<u32>,
    /// The window it is loaded with, if it is loaded.
    loaded_window: Option<u32>,
    /// Whether it sends requests to another machine.
    cloud: bool,
    capabilities: Vec<String>,
}

pub(crate) async fn run(session: &Session) -> Outcome {
    let config = session.config()?;
    let server = config.server()?;
    let listed = rows(&server, &config.language_model.model);
    let rows = awaited("asking the server", "", listed).await??;
    if session.json {
        rows.iter().try_for_each(output::json)?;
        return Ok(Exit::Done);
    }
    if rows.is_empty() {
        output::note(&match server {
            ModelServer::Ollama(_) => format!(
                "the server has no models yet; `ollama pull {}` fetches the configured one",
                config.language_model.model
            ),
            _ => "the server lists no models; load one there".to_owned(),
        });
        return Ok(Exit::Done);
    }
    let names = ["", "name", "size", "params", "quant", "context", "state"];
    table::show_within(names, rows.iter().map(cells).collect(), [1, 6])?;
    let model = &config.language_model.model;
    // llama.cpp's server accepts any name for its only model.
    let answers = matches!(server, ModelServer::OpenAi(_)) && server.show(model).await.is_ok();
    if !answers && !rows.iter().any(|row| row.configured) {
        let way = match server {
            ModelServer::Ollama(_) => format!("`ollama pull {model}` fetches it"),
            _ => "set LanguageModel.Model to one of them".to_owned(),
        };
        output::warning(&format!("the configured model {model:?} is not among them; {way}"));
    }
    Ok(Exit::Done)
}

async fn rows(server: &ModelServer, configured: &str) -> sottovoce::Result<Vec<Row>> {
    let models = server.models().await?;
    let running = server.running().await?;
    let mut rows = Vec::new();
    for (model, info) in models {
        let loaded = running.iter().find(|running| running.is(&model.name));
        rows.push(Row {
            configured: model.is(configured),
            bytes: model.size,
            parameters: model.parameter_size,
            quantization: model.quantization,
            context_length: info.context_length,
            loaded_window: loaded.and_then(|running| running.context_length),
            cloud: model.remote || info.remote,
            capabilities: info.capabilities,
            name: model.name,
        });
    }
    rows.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(rows)
}

fn cells(row: &Row) -> [Cell; 7] {
    let text = |text: &Option<String>| Cell::new(text.as_deref().unwrap_or_default());
    let size =
        row.bytes.map_or_else(String::new, |bytes| indicatif::DecimalBytes(bytes).to_string());
    let mut state = Vec::new();
    if let Some(window) = row.loaded_window {
        state.push(format!("loaded with {window}"));
    }
    if row.cloud {
        state.push("runs in a cloud".to_owned());
    }
    state.extend(row.capabilities.iter().filter(|can| *can != "completion").cloned());
    [
        Cell::new(if row.configured { "*" } else { "" }).style(GOOD),
        // Paths differ at their ends.
        Cell::new(&row.name).keep_end(),
        Cell::new(&size).at_right(),
        text(&row.parameters).at_right(),
        text(&row.quantization),
        Cell::new(&row.context_length.map_or_else(String::new, |length| length.to_string()))
            .at_right(),
        Cell::new(&state.join(", ")).style(DIM),
    ]
}
