//! `sottovoce ask`

use std::sync::Arc;

use serde::Serialize;
use serde_json::value::RawValue;
use sottovoce::{Config, Error, ModelFailure, Prompt, StoredMessage, Turn, TurnReport};

use crate::exit::{Exit, Outcome, with_causes};
use crate::interrupt::Interrupt;
use crate::output::{self, piece};
use crate::recall::Recall;
use crate::reply::{self, End, NEARLY_FULL, Reply};
use crate::session::{Session, words};

/// Keeps an utterance and has the model answer it
///
/// The utterance is sealed on disk first, then the answer is shown as it comes, and sealed as far as it was shown.
/// Where no model can be reached, the request that one would get is printed instead.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// What was said; several words need no quotes, and `-` reads standard input
    text: Vec<String>,

    /// Who said it, for conversations of several people
    #[arg(long, value_name = "NAME")]
    speaker: Option<String>,

    /// Keeps neither the utterance nor the answer
    #[arg(long)]
    off_record: bool,

    /// Starts clean: the prompt holds nothing that was said before
    #[arg(long)]
    clean: bool,

    #[command(flatten)]
    recall: Recall,

    /// Fails where no model can be reached, with exit code 6; the utterance is kept all the same
    #[arg(long)]
    require_model: bool,
}

/// What machines read of an utterance that was answered, be it in part.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Answered<'a> {
    /// The utterance's number; none off the record.
    id: Option<u64>,
    file: Option<String>,
    /// The number of the answer as it is kept; none where it has none yet.
    answer_id: Option<u64>,
    answer: &'a str,
    /// Why it is not whole, as the kept answer says it.
    cut_off: Option<&'a str>,
    /// None where the turn did not come to its end.
    report: Option<&'a TurnReport>,
}

/// What machines read of an utterance that found no model.
#[derive(Serialize)]
struct Unanswered<'a> {
    id: Option<u64>,
    file: Option<String>,
    path: &'a str,
    request: &'a RawValue,
    reason: String,
}

pub(crate) async fn run(session: &Session, args: Args) -> Outcome {
    let text = words(&args.text)?;
    let mut config = session.config()?;
    args.recall.apply(&mut config);
    let store = match args.off_record {
        true => session.store_or_empty(&config).await?,
        false => Arc::new(session.store_or_make(&config).await?),
    };
    let conversation = session.conversation_from(&config, store, args.clean).await?;
    let mut utterance = conversation.message(sottovoce::ChatRole::User, &text);
    if let Some(speaker) = args.speaker {
        utterance = utterance.with_metadata("speaker", speaker);
    }
    let mut interrupt = Interrupt::listen()?;
    let answer = match args.off_record {
        true => conversation.ask_off_record(utterance.clone()).await?,
        false => conversation.ask_message(utterance.clone()).await?,
    };
    let kept = answer.utterance().cloned();
    let show = |text: &str| if session.json { Ok(()) } else { piece(text) };
    let reply = reply::read(answer, &mut interrupt, show).await;
    // Whatever happened to the terminal, what was shown is kept.
    conversation.close().await?;
    let reply = reply?;
    match &reply.end {
        End::Failed(error) if reply.words.is_empty() => {
            if args.require_model || !is_missing(error) {
                return Ok(reply.say_failed(error, ""));
            }
            let asked = kept.clone().map_or_else(|| utterance.into(), Turn::from);
            let (prompt, receipt) = conversation.prompt(asked).await?;
            output::skipped(&receipt.skipped);
            return show_request(session, &config, &prompt, kept.as_deref(), error);
        }
        _ if session.json => output::json(&answered(kept.as_ref(), &reply))?,
        _ => reply.end_line()?,
    }
    Ok(match &reply.end {
        End::Kept(done) => {
            let share = config.context.compact_at.unwrap_or(NEARLY_FULL);
            if !session.json && done.report.receipt.is_filled(share.min(NEARLY_FULL)) {
                // Nobody waits until the conversation is idle, as a chat does.
                output::note(
                    "the prompt is nearly full; `sottovoce compact` has the model summarize what is older",
                );
            }
            reply.say_done(&done.report)
        }
        End::Interrupted(_) => reply.say_interrupted(),
        End::Failed(error) => reply.say_failed(error, ""),
    })
}

/// What was read of an answer is shown here, so that it is kept with good reason.
fn answered<'a>(utterance: Option<&Arc<StoredMessage>>, reply: &'a Reply) -> Answered<'a> {
    let (answer, report) = match &reply.end {
        End::Kept(done) => (done.message.as_ref(), Some(&done.report)),
        _ => (None, None),
    };
    Answered {
        id: utterance.map(|utterance| utterance.seq),
        file: utterance.map(|utterance| utterance.file_name()),
        answer_id: answer.map(|answer| answer.seq),
        answer: &reply.words,
        cut_off: match &reply.end {
            End::Kept(done) => done.report.usage.cut.then_some("length"),
            End::Interrupted(_) => Some("interrupted"),
            End::Failed(_) => Some("failed"),
        },
        report,
    }
}

/// Whether there is no model to answer, as opposed to one that fails.
fn is_missing(error: &Error) -> bool {
    let Error::Model { failure, .. } = error else { return false };
    matches!(failure, ModelFailure::Unreachable(_) | ModelFailure::NoSuchModel { .. })
}

fn show_request(
    session: &Session,
    config: &Config,
    prompt: &Prompt,
    kept: Option<&StoredMessage>,
    error: &Error,
) -> Outcome {
    let request = config.renderer(config.renderer_kind()).render(prompt);
    if session.json {
        let body = output::raw_json(request.body)?;
        output::json(&Unanswered {
            id: kept.map(|kept| kept.seq),
            file: kept.map(StoredMessage::file_name),
            path: request.path,
            request: &body,
            reason: with_causes(error),
        })?;
        return Ok(Exit::Done);
    }
    if let Some(kept) = kept {
        let file = session.folder(config)?.join(kept.file_name());
        output::note(&format!("sealed as number {}: {}", kept.seq, file.display()));
    }
    output::warning(&with_causes(error));
    output::note(&format!("{}; a model would get this request at {}:", error.help(), request.path));
    output::request(&request)?;
    Ok(Exit::Done)
}
