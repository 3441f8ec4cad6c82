//! `sottovoce ask`

use std::sync::Arc;

use serde::Serialize;
use serde_json::value::RawValue;
use sottovoce::RendererKind;

use crate::exit::{Exit, Outcome};
use crate::output;
use crate::session::{Session, words};

/// Keeps an utterance and builds the prompt for answering it
///
/// The utterance is sealed on disk first. There is no model client yet, so the request that a model would get is
/// printed instead of an answer.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// What was said; several words need no quotes, and `-` reads standard input
    text: Vec<String>,

    /// Who said it, for conversations of several people
    #[arg(long, value_name = "NAME")]
    speaker: Option<String>,
}

#[derive(Serialize)]
struct Asked<'a> {
    id: u64,
    file: String,
    path: &'a str,
    request: &'a RawValue,
}

pub(crate) async fn run(session: &Session, args: Args) -> Outcome {
    let text = words(&args.text)?;
    let config = session.config()?;
    let store = session.store_or_make(&config).await?;
    let conversation = config.conversation(Arc::new(store), session.clock())?;
    let mut utterance = conversation.message(sottovoce::ChatRole::User, text);
    if let Some(speaker) = args.speaker {
        utterance = utterance.with_metadata("speaker", speaker);
    }
    let heard = conversation.hear_message(utterance).await?;
    let request = config.renderer(RendererKind::OllamaChat).render(&heard.prompt);
    output::skipped(&heard.receipt.skipped);
    if heard.receipt.is_over_budget() {
        output::warning(
            "the utterance and the system prompt alone are longer than the model's window",
        );
    }
    let (seq, file) = (heard.message.seq, heard.message.file_name());
    if session.json {
        let body = output::raw_json(request.body)?;
        output::json(&Asked { id: seq, file, path: request.path, request: &body })?;
    } else {
        let folder = config.storage_root()?;
        output::note(&format!("sealed as number {seq}: {}", folder.join(file).display()));
        output::warning(&format!(
            "there is no model client yet; POST {}{} would get this request:",
            output::without_login(config.language_model.base_url.trim_end_matches('/')),
            request.path
        ));
        output::request(&request)?;
    }
    Ok(Exit::Done)
}
