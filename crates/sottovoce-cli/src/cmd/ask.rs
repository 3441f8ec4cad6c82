//! `sottovoce ask`

use std::io::{self, IsTerminal};
use std::sync::Arc;

use sottovoce::model::ModelRequest;
use sottovoce::prompt::Utterance;
use sottovoce::{AnswerEvent, Source, StoredMessage, ToolCall};

use crate::cmd::prompt::{self, HistoryOptions};
use crate::cmd::reply::{self, End, NEARLY_FULL, NoModel, Reply};
use crate::exit::{Exit, Outcome};
use crate::interrupt::Interrupt;
use crate::output::wrap::Wrap;
use crate::output::{self, Object, object};
use crate::session::{Session, words};

const AFTER_HELP: &str = "\
Examples:
  sottovoce ask What is my sister called?     no quotes needed
  sottovoce ask - < question.txt              a long text
  sottovoce ask --clean Tell me a joke        the model sees nothing said before
  sottovoce --user ann ask Am I invited?      in Ann's own conversation

With --json each line is an event: `text` as words come, `toolCall` where the model calls a function, and one `done` at the end, with the numbers of both messages, the whole answer and what the turn took.";

/// Stores an utterance and asks the model to answer it
///
/// Seals the utterance on disk first. Then shows the answer as it arrives, and stores what was shown. If no model can
/// be reached, the utterance is stored, and the exit code is 6.
#[derive(clap::Args)]
#[command(after_help = AFTER_HELP)]
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

pub(crate) async fn run(session: &Session, args: Args) -> Outcome {
    let text = words(&args.text)?;
    let session = &session.with(|config| args.history.apply(config))?;
    let config = session.config()?;
    let store = match args.off_record {
        true => session.store_or_empty().await?,
        false => Arc::new(session.store_or_make().await?),
    };
    let conversation = session.conversation_from(store, args.clean).await?;
    let utterance = conversation.message(sottovoce::ChatRole::User, &text);
    let mut utterance = utterance.else_from(Source::Typed);
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
    let mut reply = reply?;
    match &reply.end {
        End::Failed(error) if reply.words.is_empty() => {
            let Some(missing) = NoModel::of(config, error) else {
                if session.json {
                    output::json(&answered(kept.as_ref(), &reply))?;
                }
                return Ok(reply.say_failed(config, error, ""));
            };
            if !session.json {
                output::note(&match &kept {
                    Some(kept) => format!("what you said is kept as number {}", kept.seq),
                    None => "nothing is kept".to_owned(),
                });
            }
            let mut request = None;
            // A program that reads the answer is told nothing else unless it asks.
            if args.show_request || (!session.json && io::stdout().is_terminal()) {
                let asked = kept.clone().map_or_else(|| utterance.into(), Utterance::from);
                let (prompt, receipt) = conversation.prompt(asked).await?;
                output::skipped(&receipt.skipped);
                if args.show_request {
                    request = Some(config.renderer().render(&prompt));
                } else {
                    output::note("a model would get this prompt:\n");
                    prompt::show(&prompt, &receipt)?;
                    output::note("");
                }
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
        End::Failed(error) => reply.say_failed(config, error, ""),
    })
}

/// The result of an answer that was shown and is therefore stored, as JSON.
fn answered(utterance: Option<&Arc<StoredMessage>>, reply: &Reply) -> Object {
    let (answer, report) = match &reply.end {
        End::Complete(done) => (done.message.as_ref(), Some(&done.report)),
        _ => (None, None),
    };
    let cut_off = match &reply.end {
        End::Complete(done) => done.report.usage.cut.then_some("length"),
        End::Interrupted(_) => Some("interrupted"),
        End::Failed(_) => Some("failed"),
    };
    object!(
        // The utterance's number; none off the record.
        "event": "done", "seq": utterance.map(|utterance| utterance.seq),
        "file": utterance.map(|utterance| utterance.file_name()),
        // None if it is not stored yet.
        "answerSeq": answer.map(|answer| answer.seq), "answer": reply.words,
        // Why the answer is incomplete, as stored with it; no report if the turn did not end.
        "cutOff": cut_off, "report": report,
    )
}

/// Writes a piece of an answer as JSON.
fn event(_: &mut Wrap, piece: &AnswerEvent) -> io::Result<()> {
    let called = |call: &ToolCall| output::json(&object!("event": "toolCall").all_of(call));
    match piece {
        AnswerEvent::Text(text) => output::json(&object!("event": "text", "text": text)),
        AnswerEvent::LookedUp(call) => called(call),
        AnswerEvent::ToolCalls(calls) => calls.iter().try_for_each(called),
        _ => Ok(()),
    }
}

/// Says how to get an answer, and to programs what is stored.
fn say_missing(
    session: &Session,
    kept: Option<&StoredMessage>,
    missing: &NoModel,
    request: Option<ModelRequest>,
) -> Outcome {
    if session.json {
        let mut row = object!(
            "event": "done", "seq": kept.map(|kept| kept.seq),
            "file": kept.map(StoredMessage::file_name), "reason": missing.what,
            "commands": missing.commands,
        );
        if let Some(ModelRequest { path, body, .. }) = request {
            row = row.and("path", &path).and("request", &output::raw_json(body)?);
        }
        output::json(&row)?;
        return Ok(Exit::Model);
    }
    missing.report();
    if let Some(request) = request {
        output::note(&format!("a model would get this request at {}:", request.path));
        output::request(&request)?;
    }
    Ok(Exit::Model)
}
