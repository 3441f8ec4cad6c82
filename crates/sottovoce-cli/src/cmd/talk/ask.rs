//! `sottovoce ask`

use std::io;
use std::sync::Arc;

use serde::Serialize;
use serde_json::value::RawValue;
use sottovoce::conversation::TurnReport;
use sottovoce::model::ModelRequest;
use sottovoce::prompt::Utterance;
use sottovoce::{AnswerEvent, StoredMessage, ToolCall};

use crate::exit::{Exit, Outcome};
use crate::history_options::HistoryOptions;
use crate::interrupt::Interrupt;
use crate::no_model::NoModel;
use crate::output;
use crate::output::reply;
use crate::output::reply::{End, NEARLY_FULL, Reply};
use crate::session::{Session, words};

/// Stores an utterance and asks the model to answer it
///
/// Seals the utterance on disk first. Then shows the answer as it arrives, and stores what was shown. If no model can
/// be reached, the utterance is stored, and the exit code is 6.
#[derive(clap::Args)]
#[command(after_help = JSON)]
pub(crate) struct Args {
    /// The text; several words need no quotes, and `-` reads standard input
    text: Vec<String>,

    /// The speaker's name, for conversations of several people
    #[arg(long, value_name = "NAME")]
    speaker: Option<String>,

    /// Stores neither the utterance nor the answer
    #[arg(long)]
    off_record: bool,

    /// Starts clean: the prompt holds nothing that was said before
    #[arg(long)]
    clean: bool,

    #[command(flatten)]
    history: HistoryOptions,

    /// If no model can be reached, prints the request for one
    #[arg(long)]
    show_request: bool,
}

const JSON: &str = "\
With --json each line is an event: `text` as words come, `toolCall` where the model calls a function, and one `done` at
the end, with the numbers of both messages, the whole answer and what the turn took.";

/// The JSON lines of an answer while it arrives.
#[derive(Serialize)]
#[serde(tag = "event", rename_all = "camelCase")]
enum Event<'a> {
    Text {
        text: &'a str,
    },
    ToolCall(&'a ToolCall),
    /// The utterance was answered, at least in part.
    #[serde(rename = "done")]
    Answered(Answered<'a>),
    /// No model was found.
    #[serde(rename = "done")]
    Unanswered(Unanswered<'a>),
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Answered<'a> {
    /// The utterance's number; none off the record.
    seq: Option<u64>,
    file: Option<String>,
    /// The number of the stored answer; none if it is not stored yet.
    answer_seq: Option<u64>,
    answer: &'a str,
    /// Why the answer is incomplete, as stored with it.
    cut_off: Option<&'a str>,
    /// None if the turn did not end.
    report: Option<&'a TurnReport>,
}

#[derive(Serialize)]
struct Unanswered<'a> {
    seq: Option<u64>,
    file: Option<String>,
    reason: &'a str,
    /// Commands that make a model available.
    commands: &'a [String],
    #[serde(flatten)]
    request: Option<Request<'a>>,
}

/// The request for a model.
#[derive(Serialize)]
struct Request<'a> {
    path: &'a str,
    request: &'a RawValue,
}

pub(crate) async fn run(session: &Session, args: Args) -> Outcome {
    let text = words(&args.text)?;
    let mut config = session.config()?;
    args.history.apply(&mut config);
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
    let show = if session.json { event } else { output::piece };
    let reply = reply::read(answer, &mut interrupt, show).await;
    // Store what was shown, even if the terminal failed.
    conversation.close().await?;
    let reply = reply?;
    match &reply.end {
        End::Failed(error) if reply.words.is_empty() => {
            let Some(missing) = NoModel::of(&config, error) else {
                if session.json {
                    output::json(&answered(kept.as_ref(), &reply))?;
                }
                return Ok(reply.say_failed(&config, error, ""));
            };
            let mut request = None;
            if args.show_request {
                let asked = kept.clone().map_or_else(|| utterance.into(), Utterance::from);
                let (prompt, receipt) = conversation.prompt(asked).await?;
                output::skipped(&receipt.skipped);
                request = Some(config.renderer().render(&prompt));
            }
            return say_missing(session, kept.as_deref(), &missing, request);
        }
        _ if session.json => output::json(&answered(kept.as_ref(), &reply))?,
        _ => reply.end_line()?,
    }
    Ok(match &reply.end {
        End::Complete(done) => {
            let share = config.context.compact_at.unwrap_or(NEARLY_FULL);
            if !session.json && done.report.receipt.is_filled(share.min(NEARLY_FULL)) {
                // This command does not wait for an idle conversation as a chat does.
                output::note(
                    "the prompt is nearly full; `sottovoce compact` has the model summarize what is older",
                );
            }
            reply.say_done(&done.report)
        }
        End::Interrupted(_) => reply.say_interrupted(),
        End::Failed(error) => reply.say_failed(&config, error, ""),
    })
}

/// The result of an answer that was shown and is therefore stored.
fn answered<'a>(utterance: Option<&Arc<StoredMessage>>, reply: &'a Reply) -> Event<'a> {
    let (answer, report) = match &reply.end {
        End::Complete(done) => (done.message.as_ref(), Some(&done.report)),
        _ => (None, None),
    };
    Event::Answered(Answered {
        seq: utterance.map(|utterance| utterance.seq),
        file: utterance.map(|utterance| utterance.file_name()),
        answer_seq: answer.map(|answer| answer.seq),
        answer: &reply.words,
        cut_off: match &reply.end {
            End::Complete(done) => done.report.usage.cut.then_some("length"),
            End::Interrupted(_) => Some("interrupted"),
            End::Failed(_) => Some("failed"),
        },
        report,
    })
}

/// Writes a piece of an answer as JSON.
fn event(piece: &AnswerEvent) -> io::Result<()> {
    match piece {
        AnswerEvent::Text(text) => output::json(&Event::Text { text }),
        AnswerEvent::LookedUp(call) => output::json(&Event::ToolCall(call)),
        AnswerEvent::ToolCalls(calls) => {
            calls.iter().try_for_each(|call| output::json(&Event::ToolCall(call)))
        }
        _ => Ok(()),
    }
}

/// Says that the utterance is stored, and how to get an answer.
fn say_missing(
    session: &Session,
    kept: Option<&StoredMessage>,
    missing: &NoModel,
    request: Option<ModelRequest>,
) -> Outcome {
    if session.json {
        let body = request.as_ref().map(|request| output::raw_json(request.body.clone()));
        let body = body.transpose()?;
        let shown = request.as_ref().zip(body.as_deref());
        output::json(&Event::Unanswered(Unanswered {
            seq: kept.map(|kept| kept.seq),
            file: kept.map(StoredMessage::file_name),
            reason: &missing.what,
            commands: &missing.commands,
            request: shown.map(|(request, body)| Request { path: request.path, request: body }),
        }))?;
        return Ok(Exit::Model);
    }
    output::note(&match kept {
        Some(kept) => format!("what you said is kept as number {}", kept.seq),
        None => "nothing is kept".to_owned(),
    });
    missing.report();
    if let Some(request) = request {
        output::note(&format!("a model would get this request at {}:", request.path));
        output::request(&request)?;
    }
    Ok(Exit::Model)
}
