//! Checks the model and its server.

use sottovoce::model::{ModelFailure, ModelInfo, ModelServer};
use sottovoce::{Config, Error, with_causes};

use crate::cmd::doctor::{Fix, Report};
use crate::{advice, output};

/// Checks the settings, and what the server reports about the model.
pub(super) async fn look(report: &mut Report, config: &Config) {
    let model = &config.language_model;
    settings(report, config);
    let server = match config.server() {
        Ok(server) => server,
        Err(error) => return report.error("model", &error),
    };
    match server.version().await {
        Ok(version) => {
            let url = output::without_login(&model.base_url);
            let version =
                version.map_or("answers".to_owned(), |known| format!("is version {known}"));
            report.good("model", format!("the server at {url} {version}"));
        }
        Err(error) => {
            let fix = Fix::by_hand("a server needs a terminal or a service of its own");
            let start = match server {
                ModelServer::Ollama(_) => "ollama serve",
                _ => advice::help(&error),
            };
            return report.warn("model", with_causes(&error), start, fix);
        }
    }
    match server.show(&model.model).await {
        Ok(info) => able(report, config, &server, &info).await,
        Err(Error::Model { failure: ModelFailure::NoSuchModel { .. }, .. }) => {
            let (way, fix) = match server {
                ModelServer::Ollama(_) => {
                    (format!("ollama pull {}", model.model), Fix::Pull(model.model.clone()))
                }
                _ => ("sottovoce models".to_owned(), Fix::by_hand("only you can choose the model")),
            };
            report.bad("model", format!("the server does not have {:?}", model.model), way, fix);
        }
        Err(error) => report.error("model", &error),
    }
}

fn settings(report: &mut Report, config: &Config) {
    let model = &config.language_model;
    match (model.num_ctx, model.num_predict) {
        (Some(0), _) => report.warn(
            "model",
            "LanguageModel.NumCtx is 0, which leaves no room for a prompt",
            "set LanguageModel.NumCtx to the model's window, such as 4096, or to null",
            Fix::set(config, "LanguageModel.NumCtx", 4096),
        ),
        (Some(window), Some(answer)) if answer >= window => report.warn(
            "model",
            format!(
                "LanguageModel.NumPredict ({answer}) leaves no room for a prompt in \
                 LanguageModel.NumCtx ({window})"
            ),
            "set LanguageModel.NumPredict to a part of LanguageModel.NumCtx, such as a quarter",
            Fix::set(config, "LanguageModel.NumPredict", window / 4),
        ),
        _ => {}
    }
}

async fn able(report: &mut Report, config: &Config, server: &ModelServer, info: &ModelInfo) {
    let model = &config.language_model;
    let name = &model.model;
    let yours = || Fix::by_hand("only you can choose the model");
    if info.remote && !model.allow_cloud {
        return report.bad(
            "model",
            format!("{name:?} runs in a cloud, so nothing is sent to it"),
            "set LanguageModel.Model to a model of this machine, or LanguageModel.AllowCloud to true",
            yours(),
        );
    }
    if info.remote {
        report.warn(
            "model",
            format!("{name:?} runs in a cloud: every prompt leaves this network"),
            "set LanguageModel.Model to a model of this machine",
            yours(),
        );
    }
    if !info.capabilities.is_empty() && !info.can("completion") {
        report.bad("model", format!("{name:?} cannot answer"), "sottovoce models", yours());
    }
    if model.think == Some(true) && !info.can("thinking") {
        report.warn(
            "model",
            format!("{name:?} does not think, so LanguageModel.Think does nothing"),
            "set LanguageModel.Think to null",
            Fix::set(config, "LanguageModel.Think", serde_json::Value::Null),
        );
    }
    let loaded = server.running().await.unwrap_or_default();
    let loaded = loaded.iter().find(|loaded| loaded.is(name)).and_then(|m| m.context_length);
    match (model.num_ctx, info.context_length, loaded) {
        (Some(asked), Some(trained), _) if asked > trained => report.warn(
            "model",
            format!("LanguageModel.NumCtx is {asked}, but {name:?} was made for {trained}"),
            format!("set LanguageModel.NumCtx to {trained} or less"),
            Fix::set(config, "LanguageModel.NumCtx", trained),
        ),
        (Some(asked), _, Some(loaded)) if loaded < asked => report.warn(
            "model",
            format!("{name:?} is loaded with a window of {loaded}, less than LanguageModel.NumCtx ({asked})"),
            format!("set LanguageModel.NumCtx to {loaded}"),
            Fix::set(config, "LanguageModel.NumCtx", loaded),
        ),
        (Some(asked), _, Some(loaded)) if !matches!(server, ModelServer::Ollama(_)) => report.good(
            "model",
            format!(
                "{name:?} is there with a window of {loaded}; prompts keep to LanguageModel.NumCtx ({asked})"
            ),
        ),
        _ if !is_listed(server, name).await => report.warn(
            "model",
            format!("the server answers, but does not list {name:?}: it takes any name for the model that it has"),
            "sottovoce models",
            yours(),
        ),
        (asked, ..) => {
            let asked = asked.map_or_else(|| "the server's".to_owned(), |asked| asked.to_string());
            report.good("model", format!("{name:?} is there; the window asked for is {asked}"));
        }
    }
}

/// Whether the server lists the model, as far as it lists any.
async fn is_listed(server: &ModelServer, name: &str) -> bool {
    let Ok(models) = server.models().await else { return true };
    models.is_empty() || models.iter().any(|(model, _)| model.is(name))
}
