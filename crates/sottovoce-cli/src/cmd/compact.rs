//! `sottovoce compact`

use sottovoce::Conversation;
use sottovoce::conversation::SummaryReport;

use crate::exit::{Exit, Outcome};
use crate::interrupt::awaited;
use crate::output::{self, BOLD, moment, object};
use crate::session::Session;

const AFTER_HELP: &str = "\
Examples:
  sottovoce compact                  all but about the newest messages of a prompt (Context.LastN)
  sottovoce compact --keep 20
  sottovoce compact --show           the summary that stands in prompts now
  sottovoce compact --undo           prompts hold the messages themselves again

By itself this happens once a prompt fills the share Context.CompactAt of its budget, in a chat that is idle.";

/// Asks the model to summarize older messages; prompts then hold the summary instead
///
/// The messages stay stored, and `sottovoce tail` still shows them. A later run extends the summary. Forgetting one
/// of the messages deletes the summary.
#[derive(Debug, clap::Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct Args {
    /// The number of newest messages that are not summarized
    #[arg(long, value_name = "K")]
    keep: Option<usize>,

    /// Undoes the last summary
    #[arg(long, conflicts_with_all = ["keep", "show"])]
    undo: bool,

    /// Shows the current summary
    #[arg(long, conflicts_with = "keep")]
    show: bool,
}

/// Runs the command in an open conversation.
pub(crate) async fn obey(session: &Session, conversation: &Conversation, args: Args) -> Outcome {
    if args.show {
        return show(session, conversation).await;
    }
    if args.undo {
        let undone = conversation.undo_summary().await?;
        return session.tell(object!("undone": undone), || match undone {
            true => "undid the last summary; prompts hold its messages again".to_owned(),
            false => "no summary stands for anything here".to_owned(),
        });
    }
    let keep = args.keep.unwrap_or(session.config()?.context.last_n);
    let kept = "the finished part of the summary is stored";
    let work = conversation.summarize(keep);
    let summarized = awaited("the model summarizes", kept, work).await??;
    tell(session, conversation, &summarized).await
}

async fn tell(session: &Session, conversation: &Conversation, done: &SummaryReport) -> Outcome {
    if session.json {
        output::json(done)?;
        return Ok(Exit::Done);
    }
    if done.messages == 0 {
        output::note("there are no older messages to summarize");
        return Ok(Exit::Done);
    }
    output::line(format!(
        "{BOLD}summarized {}{BOLD:#}, {} to {} tokens, in {}",
        output::messages(done.messages),
        done.tokens_before,
        done.tokens_after,
        output::counted(done.requests as u64, "request"),
    ))?;
    show(session, conversation).await?;
    output::note("nothing was deleted; `compact --undo` undoes it");
    Ok(Exit::Done)
}

async fn show(session: &Session, conversation: &Conversation) -> Outcome {
    let profile = conversation.store().profile().await?;
    let summary = profile.summary(session.thread.as_deref());
    if session.json {
        output::json(&object!(
            "summary": summary.map(|summary| &summary.text),
            "messages": summary.map_or(0, sottovoce::store::Summary::messages),
            "createdAt": summary.map(|summary| summary.at),
            "lastAt": summary.map(|summary| summary.until),
        ))?;
        return Ok(Exit::Done);
    }
    match summary {
        None => output::note("no summary stands for anything here; `compact` makes one"),
        Some(summary) => {
            let messages = output::counted(summary.messages(), "message");
            output::note(&format!("for {messages} up to {}:", moment(summary.until)));
            let text = output::printable(&summary.text).replace('\n', "\n    ");
            output::line(format!("    {text}"))?;
        }
    }
    Ok(Exit::Done)
}
