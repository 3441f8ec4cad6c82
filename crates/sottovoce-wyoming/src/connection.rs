//! One client's connection: transcripts in, answers out, and `describe` at any time.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use sottovoce_net::{Connection, Stream};
use tokio::io::{BufReader, WriteHalf};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

use crate::agent::Agent;
use crate::event::{Event, busy};
use crate::info::info;
use crate::rooms::Rooms;
use crate::turn::Turn;

/// How long a client may be silent between turns.
const SILENT: Duration = Duration::from_secs(10 * 60);
/// Events that are read ahead.
const AHEAD: usize = 4;

/// Serves one connection to its end. The end of the client's input during an answer is a barge-in: the model stops, and
/// what was sent is stored.
pub(crate) async fn run(
    stream: Stream,
    connection: &Connection,
    agent: Arc<Agent>,
    rooms: Arc<Rooms>,
    stop: CancellationToken,
) -> io::Result<()> {
    let (reader, mut writer) = tokio::io::split(stream);
    let (events, mut incoming) = mpsc::channel(AHEAD);
    let sender = connection.clone();
    let reading = AbortOnDropHandle::new(tokio::spawn(async move {
        let mut reader = BufReader::new(reader);
        while let Some(event) = Event::read(&mut reader, &sender).await? {
            if events.send(event).await.is_err() {
                break;
            }
        }
        Ok(())
    }));
    let mut served = serve(&mut incoming, &mut writer, connection, &agent, &rooms, &stop).await;
    if served.is_ok() && incoming.is_closed() {
        served = reading.await.unwrap_or(Ok(()));
    }
    if served.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::ResourceBusy) {
        let busy = json!({ "text": "the server is busy; try again later", "code": "busy" });
        send(&[Event::new("error", busy)], &mut writer).await?;
    }
    served
}

async fn serve(
    incoming: &mut mpsc::Receiver<Event>,
    writer: &mut WriteHalf<Stream>,
    connection: &Connection,
    agent: &Agent,
    rooms: &Rooms,
    stop: &CancellationToken,
) -> io::Result<()> {
    let mut next = None;
    loop {
        let event = match next.take() {
            Some(event) => event,
            None => tokio::select! {
                () = stop.cancelled() => return Ok(()),
                event = tokio::time::timeout(SILENT, incoming.recv()) => match event {
                    Ok(Some(event)) => event,
                    Ok(None) | Err(_) => return Ok(()),
                },
            },
        };
        // Busy until the event is answered.
        let client = connection.client();
        if !client.admit() {
            return Err(busy());
        }
        if event.kind != "transcript" {
            answer_aside(&event, writer).await?;
            continue;
        }
        let begun = Turn::begin(agent, rooms, &event);
        tokio::pin!(begun);
        // Sealing and asking take a moment, in which others may describe.
        let (mut turn, events) = loop {
            tokio::select! {
                begun = &mut begun => break begun,
                event = incoming.recv(), if next.is_none() => match event {
                    Some(event) if event.kind == "transcript" => next = Some(event),
                    Some(event) => answer_aside(&event, writer).await?,
                    // What was said is stored all the same.
                    None => { begun.await; return Ok(()) }
                },
            }
        };
        send(&events, writer).await?;
        loop {
            tokio::select! {
                events = turn.next(agent) => match events {
                    Some(events) => send(&events, writer).await?,
                    None => break,
                },
                event = incoming.recv(), if next.is_none() => match event {
                    // Somebody speaks again: the answer ends here.
                    Some(event) if event.kind == "transcript" => {
                        next = Some(event);
                        break;
                    }
                    Some(event) => answer_aside(&event, writer).await?,
                    None => return Ok(()),
                },
                () = stop.cancelled() => return Ok(()),
            }
        }
    }
}

/// Answers what is no turn. Unknown events are ignored, as the protocol demands.
async fn answer_aside(event: &Event, writer: &mut WriteHalf<Stream>) -> io::Result<()> {
    match event.kind.as_str() {
        "describe" => send(&[info()], writer).await,
        "ping" => send(&[Event::new("pong", json!({ "text": event.text("text") }))], writer).await,
        _ => Ok(()),
    }
}

async fn send(events: &[Event], writer: &mut WriteHalf<Stream>) -> io::Result<()> {
    for event in events {
        event.write(writer).await?;
    }
    Ok(())
}
