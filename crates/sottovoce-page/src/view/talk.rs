//! A turn: the answer as it comes, for scripts, or all of it, for browsers without.

use axum::body::Body;
use axum::extract::Form;
use axum::response::{IntoResponse, Redirect, Response};
use bytes::Bytes;
use futures_util::stream;
use http::HeaderMap;
use http::header::{ACCEPT, CONTENT_TYPE};
use maud::html;
use serde::{Deserialize, Serialize};
use sottovoce::conversation::TurnReport;
use sottovoce::{Answer, AnswerEvent, ChatRole, Error, with_causes};
use tokio::sync::oneshot;

use crate::deed::LastTurn;
use crate::english as en;
use crate::failure::Failure;
use crate::html::{Place, Shell, layout};
use crate::link;
use crate::room::{Here, Room};

/// How the answer is asked for by scripts: a JSON object a line.
const LINES: &str = "application/x-ndjson";

#[derive(Deserialize)]
pub(crate) struct Asked {
    #[serde(default)]
    say: String,
    #[serde(default, rename = "do")]
    action: String,
    #[serde(default)]
    off: String,
}

/// One line of a streamed answer.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
enum Line {
    /// The number by which the turn is stopped.
    Turn(u64),
    Text(String),
    /// The model thinks, or looks something up.
    Thinking(&'static str),
    /// The turn has ended.
    Done(&'static str),
    Failed {
        what: String,
        help: &'static str,
    },
}

pub(crate) async fn talk(
    room: Room,
    headers: HeaderMap,
    Form(asked): Form<Asked>,
) -> Result<Response, Failure> {
    let is_off = !asked.off.is_empty();
    let streams = headers.get(ACCEPT).is_some_and(|accept| accept == LINES);
    let answer = match begin(&room, &asked, is_off).await {
        Ok(answer) => answer,
        Err(error) if streams => {
            let help = (room.here.app.advice.error)(&error);
            return Ok(lines(&Line::Failed { what: with_causes(&error), help }).into_response());
        }
        Err(error) => return Err(error.into()),
    };
    if streams {
        return Ok(stream_of(room, answer));
    }
    let utterance = answer.utterance().map(|stored| stored.seq);
    let (text, outcome) = answer.whole().await?;
    remember(&room, utterance, outcome.report);
    if !is_off {
        return Ok(Redirect::to(&link::of("timeline", &room.scope)).into_response());
    }
    let main = html! {
        h1 { (en::OFF_RECORD_TITLE) }
        p.muted { (en::OFF_RECORD_HELP) }
        div.words.quote dir="auto" { (text) }
        p { a href=(link::of("timeline", &room.scope)) { (en::BACK_TO_TIMELINE) } }
    };
    let shell = Shell::of(Place::Timeline, en::OFF_RECORD_TITLE, &room.scope, room.title());
    Ok(layout(&room.here.visit, &shell, &main).into_response())
}

async fn begin(room: &Room, asked: &Asked, is_off: bool) -> sottovoce::Result<Answer> {
    let Room { conversation, here, scope, .. } = room;
    if let sottovoce::Scope::Named { .. } = scope
        && let Ok(open) = here.store()
    {
        // A context that is deleted, expired or full takes no more turns.
        open.open_to_talk(scope).await?;
    }
    match (asked.action.as_str(), is_off) {
        ("retry", _) => conversation.retry().await,
        (_, true) => {
            let message = conversation.message(ChatRole::User, asked.say.trim());
            conversation.ask_off_record(message).await
        }
        (_, false) => conversation.ask(asked.say.trim()).await,
    }
}

fn remember(room: &Room, utterance: Option<u64>, report: TurnReport) {
    let at = room.here.app.house.clock().now();
    room.here.app.last_turns.add(&room.scope, LastTurn { at, utterance, report });
}

fn lines(line: &Line) -> String {
    let mut text = serde_json::to_string(line).unwrap_or_default();
    text.push('\n');
    text
}

/// A turn that is being streamed. If the browser goes away, it is dropped, and what was sent is stored.
struct Running {
    room: Room,
    number: u64,
    stopped: oneshot::Receiver<usize>,
    /// Whether the browser knows the number yet.
    is_told: bool,
    answer: Option<Answer>,
}

fn stream_of(room: Room, answer: Answer) -> Response {
    let (number, stopped) = room.here.app.running.begin();
    let running = Running { room, number, stopped, is_told: false, answer: Some(answer) };
    let pieces = stream::unfold(running, |mut running| async move {
        let line = running.next().await?;
        Some((Ok::<_, std::convert::Infallible>(Bytes::from(lines(&line))), running))
    });
    ([(CONTENT_TYPE, LINES)], Body::from_stream(pieces)).into_response()
}

impl Running {
    async fn next(&mut self) -> Option<Line> {
        if !self.is_told {
            self.is_told = true;
            return Some(Line::Turn(self.number));
        }
        loop {
            let answer = self.answer.as_mut()?;
            let event = tokio::select! {
                biased;
                Ok(chars) = &mut self.stopped => return Some(self.stop(chars).await),
                event = answer.next() => event,
            };
            match event {
                Some(Ok(AnswerEvent::Text(text))) => return Some(Line::Text(text)),
                Some(Ok(AnswerEvent::Thinking)) => return Some(Line::Thinking(en::THINKING)),
                Some(Ok(AnswerEvent::LookedUp(_))) => return Some(Line::Thinking(en::LOOKED_UP)),
                Some(Ok(AnswerEvent::Done(outcome))) => {
                    self.end(outcome.report);
                    return Some(Line::Done(en::ANSWERED));
                }
                // Nothing on the page can call the functions of a host.
                Some(Ok(_)) => {}
                Some(Err(error)) => return Some(self.fail(&error)),
                None => return None,
            }
        }
    }

    async fn stop(&mut self, chars: usize) -> Line {
        let Some(answer) = self.answer.take() else { return Line::Done("") };
        let utterance = answer.utterance().map(|stored| stored.seq);
        match answer.spoken_up_to(chars).await {
            Ok(outcome) => {
                remember(&self.room, utterance, outcome.report);
                Line::Done(en::STOPPED)
            }
            Err(error) => self.fail(&error),
        }
    }

    fn end(&mut self, report: TurnReport) {
        let utterance = self.answer.take().and_then(|a| a.utterance().map(|stored| stored.seq));
        remember(&self.room, utterance, report);
    }

    fn fail(&mut self, error: &Error) -> Line {
        if let Some(answer) = self.answer.take()
            && let Some(report) = answer.report().cloned()
        {
            let utterance = answer.utterance().map(|stored| stored.seq);
            remember(&self.room, utterance, report);
        }
        Line::Failed { what: with_causes(error), help: (self.room.here.app.advice.error)(error) }
    }
}

#[derive(Deserialize)]
pub(crate) struct Stop {
    turn: u64,
    /// How many characters of the answer were shown.
    chars: usize,
}

/// Stops a turn. What was shown is kept, and marked as interrupted.
pub(crate) async fn stop(here: Here, Form(stop): Form<Stop>) -> http::StatusCode {
    match here.app.running.stop(stop.turn, stop.chars) {
        true => http::StatusCode::NO_CONTENT,
        false => http::StatusCode::GONE,
    }
}
