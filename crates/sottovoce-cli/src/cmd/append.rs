//! `sottovoce append`

mod rows;

use std::fs::File;
use std::io::{self, IsTerminal};
use std::os::fd::AsFd;
use std::sync::Arc;
use std::time::Duration;

use jiff::fmt::temporal::{Pieces, PiecesOffset};
use jiff::tz::Offset;
use jiff::{Timestamp, Zoned};
use sottovoce::{
    ChatMessage, ChatRole, Conversation, ConversationStore, Error, FileConversationStore, Source,
    StoredMessage,
};
use tokio::sync::mpsc;

use crate::cmd::append::rows::{Rows, refused};
use crate::exit::{Exit, Failure, Outcome};
use crate::interrupt::Interrupt;
use crate::output::{self, message_row};
use crate::session::{Session, words};

/// Messages that the reading thread hands over together.
const TOGETHER: usize = 1024;
/// How many such groups may be read ahead.
const AHEAD: usize = 4;
/// How long messages wait for more, so that they can be stored together.
const PATIENCE: Duration = Duration::from_secs(1);

const AFTER_HELP: &str = "\
Examples:
  sottovoce append My sister is called Ada.
  sottovoce append -r assistant \"Noted.\"         what an assistant answered
  sottovoce append --metadata cameFrom=document \"No pets.\"
  sottovoce append --at 2025-08-24T18:36+02:00 We met in Ulm.
  sottovoce append < messages.jsonl              many messages, one JSON object a line";

/// Stores messages without building a prompt
///
/// With TEXT, stores one message. Without it, reads JSON lines from standard input: {"role":"user","content":"…"},
/// and optionally "timestampUtc", "metadata", "toolCalls", "toolCallId", "threadId", "offsetMinutes"; "id" and
/// "source" are ignored. With --json, prints one line for each message as soon as it is durable. Without it, stores messages in
/// batches, which is faster. A tool result above Context.LongResult becomes an artifact, and its message a line about
/// that.
#[derive(clap::Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct Args {
    /// The speaker: user, assistant, system or tool; user unless given
    #[arg(long, short, value_name = "ROLE", requires = "text")]
    role: Option<ChatRole>,

    /// The time of the message, such as 2025-08-24T16:36:25Z or 2025-08-24T18:36+02:00; now unless given
    #[arg(long, value_name = "TIME", requires = "text", value_parser = parse_time)]
    at: Option<Moment>,

    /// Metadata to store with it, such as lang=en; may be repeated
    #[arg(long, value_name = "KEY=VALUE", requires = "text", value_parser = parse_note)]
    metadata: Vec<(String, String)>,

    /// The text; several words need no quotes, and `-` reads standard input
    text: Vec<String>,
}

/// A time, and the speaker's offset from UTC if it was given.
#[derive(Clone, Copy)]
struct Moment {
    timestamp: Timestamp,
    offset: Option<Offset>,
}

fn parse_time(text: &str) -> Result<Moment, String> {
    let wrong = |error: jiff::Error| error.to_string();
    let pieces = Pieces::parse(text).map_err(wrong)?;
    if pieces.time_zone_annotation().is_some() {
        let zoned: Zoned = text.parse().map_err(wrong)?;
        return Ok(Moment { timestamp: zoned.timestamp(), offset: Some(zoned.offset()) });
    }
    // -00:00 means, like Z, that the local time is unknown.
    let offset = match pieces.offset() {
        Some(PiecesOffset::Numeric(given))
            if !(given.is_negative() && given.offset().is_zero()) =>
        {
            Some(given.offset())
        }
        _ => None,
    };
    Ok(Moment { timestamp: text.parse().map_err(wrong)?, offset })
}

pub(crate) fn parse_note(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((key, value)) if !key.trim().is_empty() => Ok((key.to_owned(), value.to_owned())),
        _ => Err("must be KEY=VALUE".to_owned()),
    }
}

pub(crate) async fn run(session: &Session, args: Args) -> Outcome {
    let text = (!args.text.is_empty()).then(|| words(&args.text)).transpose()?;
    let store = session.store_or_make().await?;
    let conversation = session.conversation_from(Arc::new(store.clone()), false).await?;
    let Some(text) = text else { return many(session, &store, &conversation).await };
    let role = args.role.unwrap_or(ChatRole::User);
    let mut message = match args.at {
        Some(Moment { timestamp, offset: Some(offset) }) => {
            ChatMessage::new(role, text, &timestamp.to_zoned(offset.to_time_zone()))
        }
        Some(Moment { timestamp, offset: None }) => ChatMessage::at(role, text, timestamp),
        None => ChatMessage::new(role, text, &session.clock().now()),
    };
    message.metadata.extend(args.metadata);
    message.thread_id.clone_from(&session.thread);
    prepare(&conversation, &mut message).await?;
    let stored = store.append_message(message).await?;
    session.tell(message_row(stored.seq, &stored.message), || {
        format!("sealed as number {}: {}", stored.seq, stored.file_name())
    })
}

/// Notes that words were typed unless they say otherwise, and shortens a tool result as a conversation does: a long one becomes
/// an artifact.
async fn prepare(conversation: &Conversation, message: &mut ChatMessage) -> Result<(), Failure> {
    *message = message.clone().else_from(Source::Typed);
    if message.role == ChatRole::Tool && message.moved_to().is_none() {
        *message = conversation.shortened(message.clone()).await?;
    }
    Ok(())
}

/// Stores the messages of standard input until it ends.
async fn many(
    session: &Session,
    store: &FileConversationStore,
    conversation: &Conversation,
) -> Outcome {
    if io::stdin().is_terminal() {
        output::note("reading JSON lines; end with Ctrl-D");
    }
    let size = std::fs::metadata("/dev/stdin").ok().filter(std::fs::Metadata::is_file);
    let bar = output::progress(size.map(|file| file.len()), "appending");
    let mut stream = Stream { store, json: session.json, waiting: Vec::new(), bytes: 0, stored: 0 };
    let mut interrupt = Interrupt::listen()?;
    // Reading blocks, so it has its own thread. The main thread can then handle Ctrl-C.
    let (send, mut receive) = mpsc::channel::<Result<Rows, Failure>>(AHEAD);
    let input = File::from(io::stdin().as_fd().try_clone_to_owned()?);
    let (clock, most) = (session.clock(), if session.json { 1 } else { TOGETHER });
    let thread = session.thread.clone();
    std::thread::spawn(move || {
        rows::read(input, most, &*clock, |rows| {
            send.blocking_send(rows.map(|rows| rows.in_thread(thread.as_deref()))).is_ok()
        });
    });
    let work = async {
        loop {
            let next = tokio::select! {
                biased;
                _ = interrupt.heard() => return Ok(Exit::Interrupted),
                next = receive.recv() => next,
                () = tokio::time::sleep(PATIENCE), if !stream.waiting.is_empty() => {
                    stream.flush().await?;
                    continue;
                }
            };
            let Some(rows) = next else { return Ok(Exit::Done) };
            let mut rows = rows?;
            bar.inc(rows.bytes);
            for (_, message) in &mut rows.messages {
                prepare(conversation, message).await?;
            }
            stream.take(rows).await?;
        }
    };
    let outcome: Outcome = work.await;
    // Messages that were read completely before the stream ended are stored.
    let flushed = stream.flush().await;
    bar.finish_and_clear();
    output::note(&format!("kept {}", output::messages(stream.stored)));
    flushed?;
    outcome
}

/// The most messages in one batch: as many as one pack holds.
const BATCH: usize = 32_768;
/// The most bytes of input in one batch.
const BATCH_BYTES: u64 = 16 << 20;

/// A stream of messages being stored, each with its line number.
struct Stream<'a> {
    store: &'a FileConversationStore,
    json: bool,
    waiting: Vec<(usize, ChatMessage)>,
    bytes: u64,
    /// The number of durable messages.
    stored: usize,
}

impl Stream<'_> {
    async fn take(&mut self, mut rows: Rows) -> Result<(), Failure> {
        self.bytes += rows.bytes;
        self.waiting.append(&mut rows.messages);
        let full = self.waiting.len() >= BATCH || self.bytes >= BATCH_BYTES;
        if !self.json && !full {
            return Ok(());
        }
        // Messages beyond this pack start the next one.
        let rest = self.waiting.split_off(self.waiting.len().min(BATCH));
        self.flush().await?;
        self.waiting = rest;
        Ok(())
    }

    async fn flush(&mut self) -> Result<(), Failure> {
        self.bytes = 0;
        let mut parts = vec![std::mem::take(&mut self.waiting)];
        while let Some(mut part) = parts.pop() {
            let messages = part.iter().map(|(_, message)| message.clone()).collect();
            match self.store.append_all(messages).await {
                Ok(stored) => self.kept(&stored)?,
                // One refused message refuses its batch. The messages before it are stored again without it.
                Err(error) if concerns_message(&error) => {
                    if let [(line, _)] = part.as_slice() {
                        return Err(refused(*line, &error.to_string()));
                    }
                    let rest = part.split_off(part.len() / 2);
                    parts.extend([rest, part]);
                }
                Err(error) => {
                    if let Error::Partial { stored, .. } = &error {
                        self.stored += stored;
                    }
                    return Err(error.into());
                }
            }
        }
        Ok(())
    }

    fn kept(&mut self, stored: &[Arc<StoredMessage>]) -> Result<(), Failure> {
        self.stored += stored.len();
        if self.json {
            stored.iter().try_for_each(|stored| output::message(stored, true))?;
        }
        Ok(())
    }
}

/// Whether the error concerns the message itself and not the store.
fn concerns_message(error: &Error) -> bool {
    matches!(error, Error::TooLarge { .. } | Error::FromTheFuture | Error::InvalidMessage { .. })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_keeps_the_offset_it_was_given_with() {
        for (text, minutes) in [
            ("2025-08-24T10:00+02:00[Europe/Berlin]", Some(120)),
            ("2025-08-24T10:00[Europe/Berlin]", Some(120)),
            ("2025-08-24T10:00+02:00", Some(120)),
            ("2025-08-24T02:30-05:30", Some(-330)),
            ("2025-08-24T08:00+00:00", Some(0)),
            ("2025-08-24T08:00-00:00", None),
            ("2025-08-24T08:00Z", None),
        ] {
            let moment = parse_time(text).unwrap();
            assert_eq!(moment.timestamp, "2025-08-24T08:00Z".parse().unwrap(), "{text}");
            assert_eq!(moment.offset.map(|offset| offset.seconds() / 60), minutes, "{text}");
        }
        for wrong in ["", "today", "2025-08-24", "2025-08-24T10:00", "2025-08-24T10:00+02:00[X/Y]"]
        {
            assert!(parse_time(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_note_has_a_name() {
        assert_eq!(parse_note("a=b=c"), Ok(("a".to_owned(), "b=c".to_owned())));
        assert_eq!(parse_note("a="), Ok(("a".to_owned(), String::new())));
        for wrong in ["", "a", "=v", " =v"] {
            assert!(parse_note(wrong).is_err(), "{wrong}");
        }
    }
}
