//! Reports that no model can answer.

use sottovoce::config::ModelKind;
use sottovoce::model::ModelFailure;
use sottovoce::{Config, Error};

use crate::output;

/// Lists the models on the server.
const MODELS: &str = "sottovoce models";

/// Why there is no model, and the commands that change that.
pub(crate) struct NoModel {
    pub(crate) what: String,
    pub(crate) commands: Vec<String>,
}

impl NoModel {
    /// Returns a value if no model exists; `None` if the model failed.
    pub(crate) fn of(config: &Config, error: &Error) -> Option<Self> {
        let Error::Model { failure, .. } = error else { return None };
        let model = &config.language_model;
        let url = output::without_login(&model.base_url);
        let (serve, pull) = match model.kind {
            ModelKind::OpenAi => (vec!["llama-server -m MODEL.gguf".to_owned()], MODELS.to_owned()),
            _ => {
                let pull = format!("ollama pull {}", model.model);
                (vec!["ollama serve".to_owned(), pull.clone()], pull)
            }
        };
        match failure {
            ModelFailure::Unreachable(cause) => Some(Self {
                what: format!("no model is running at {url} ({})", innermost(&**cause)),
                commands: serve,
            }),
            ModelFailure::NoSuchModel { model } => Some(Self {
                what: format!("the server at {url} has no model {model:?}"),
                commands: vec![pull],
            }),
            _ => None,
        }
    }

    /// Reports it on standard error.
    pub(crate) fn report(&self) {
        let these = match self.commands.as_slice() {
            [only] if only == MODELS => "set LanguageModel.Model to one that this command lists",
            [_] => "this command changes that; `sottovoce models` lists what the server has",
            _ => "these commands change that, each in a terminal of its own",
        };
        let commands: Vec<String> =
            self.commands.iter().map(|command| format!("\n        {command}")).collect();
        output::error(&self.what, &output::printable(&format!("{these}:{}", commands.concat())));
    }
}

fn innermost(error: &dyn std::error::Error) -> String {
    let mut cause = error;
    while let Some(next) = cause.source() {
        cause = next;
    }
    cause.to_string()
}
