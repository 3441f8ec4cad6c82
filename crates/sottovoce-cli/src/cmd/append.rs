//! `sottovoce append`

use std::io::{self, BufRead, IsTerminal};

use jiff::Timestamp;
use sottovoce::{ChatMessage, ChatRole, ConversationStore, Error, FileConversationStore};
use tokio::sync::mpsc;

use crate::exit::{Exit, Failure, Outcome};
use crate::output;
use crate::session::Session;

mod row;

/// How many messages of a stream share one round of making durable.
const BATCH: usize = 256;

/// Keeps messages without building a prompt
///
/// With TEXT, one message. Without, JSON lines from standard input: {"role":"user","content":"…"}, and where known
/// "timestampUtc", "metadata", "toolCalls", "toolCallId", "threadId", "offsetMinutes"; "id" is ignored. With --json
/// one line is printed for each message as soon as a power cut can no longer lose it; without, they are kept in
/// batches, which is faster.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Who speaks: user, assistant, system or tool
    #[arg(long, short, value_name = "ROLE", requires = "text")]
    role: Option<ChatRole>,

    /// When it was said, such as 2025-08-24T16:36:25Z; now if left out
    #[arg(long, value_name = "TIME", requires = "text")]
    at: Option<Timestamp>,

    /// A note to keep with it, such as lang=en; may be repeated
    #[arg(long, value_name = "KEY=VALUE", requires = "text", value_parser = parse_note)]
    metadata: Vec<(String, String)>,

    /// What was said; several words need no quotes
    #[arg(requires = "role")]
    text: Vec<String>,
}

fn parse_note(text: &str) -> Result<(String, String), String> {
    let (key, value) = text.split_once('=').ok_or("must be KEY=VALUE")?;
    Ok((key.to_owned(), value.to_owned()))
}

pub(crate) async fn run(session: &Session, args: Args) -> Outcome {
    let config = session.config()?;
    let store = session.store_or_make(&config).await?;
    let Some(role) = args.role else {
        return lines(session, &store).await;
    };
    let text = args.text.join(" ");
    let mut message = match args.at {
        Some(at) => ChatMessage::at(role, text, at),
        None => ChatMessage::new(role, text, &session.clock().now()),
    };
    message.metadata.extend(args.metadata);
    let stored = store.append_message(message).await?;
    if session.json {
        output::message(&stored, true)?;
    } else {
        output::note(&format!("sealed as number {}: {}", stored.seq, stored.file_name()));
    }
    Ok(Exit::Done)
}

/// A stream of messages being kept.
struct Stream<'a> {
    store: &'a FileConversationStore,
    json: bool,
    waiting: Vec<ChatMessage>,
    stored: usize,
}

impl Stream<'_> {
    async fn take(&mut self, message: ChatMessage) -> Result<(), Failure> {
        self.waiting.push(message);
        if self.json || self.waiting.len() >= BATCH { self.flush().await } else { Ok(()) }
    }

    async fn flush(&mut self) -> Result<(), Failure> {
        let result = self.store.append_all(std::mem::take(&mut self.waiting)).await;
        self.stored += match &result {
            Ok(stored) => stored.len(),
            Err(Error::Partial { stored, .. }) => *stored,
            Err(_) => 0,
        };
        if self.json {
            result?.iter().try_for_each(|stored| output::message(stored, true))?;
        } else {
            result?;
        }
        Ok(())
    }
}

async fn lines(session: &Session, store: &FileConversationStore) -> Outcome {
    let input = io::stdin();
    if input.is_terminal() {
        output::note("reading JSON lines; end with Ctrl-D");
    }
    let size = std::fs::metadata("/dev/stdin").ok().filter(std::fs::Metadata::is_file);
    let bar = output::progress(size.map(|file| file.len()), "appending");
    let mut stream = Stream { store, json: session.json, waiting: Vec::new(), stored: 0 };
    // Reading blocks, so it has a thread of its own, and Ctrl-C is heard meanwhile.
    let (send, mut receive) = mpsc::channel::<io::Result<String>>(BATCH);
    std::thread::spawn(move || {
        for line in input.lock().lines() {
            if send.blocking_send(line).is_err() {
                break;
            }
        }
    });
    let mut number = 0_usize;
    let outcome = loop {
        let next = tokio::select! {
            biased;
            _ = tokio::signal::ctrl_c() => break Ok(Exit::Interrupted),
            next = receive.recv() => next,
        };
        let Some(line) = next else { break Ok(Exit::Done) };
        number += 1;
        match take_line(&mut stream, number, line, session).await {
            Ok(read) => bar.inc(read),
            Err(failure) => break Err(failure),
        }
    };
    // What was read in full before the stream ended, for whatever reason, is kept.
    let flushed = stream.flush().await;
    bar.finish_and_clear();
    if !session.json || outcome.is_err() || flushed.is_err() {
        output::note(&format!("kept {} messages", stream.stored));
    }
    flushed?;
    outcome
}

async fn take_line(
    stream: &mut Stream<'_>,
    number: usize,
    line: io::Result<String>,
    session: &Session,
) -> Result<u64, Failure> {
    let line = zeroize::Zeroizing::new(line?);
    if let Some(message) = row::parse(&line, number, &session.clock().now())? {
        stream.take(message).await?;
    }
    Ok(line.len() as u64 + 1)
}
