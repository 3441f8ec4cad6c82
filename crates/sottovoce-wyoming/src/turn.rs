//! One turn: a transcript, and its answer in pieces.

use serde_json::{Value, json};
use sottovoce::conversation::{Answer, AnswerEvent};
use sottovoce::{ChatRole, Result, Source};

use crate::agent::Agent;
use crate::event::Event;
use crate::phrases::Trouble;
use crate::rooms::Rooms;

/// Letters of a name from outside that are stored.
const LONGEST_NAME: usize = 200;

/// A turn in progress.
pub(crate) struct Turn {
    answer: Option<Answer>,
    /// What the client said about the turn, to be sent back.
    context: Value,
    language: String,
    /// What was sent so far.
    spoken: String,
    has_begun: bool,
}

impl Turn {
    /// Stores what was said, and asks the model. Whatever goes wrong, the client gets words to speak.
    pub(crate) async fn begin(
        agent: &Agent,
        rooms: &Rooms,
        transcript: &Event,
    ) -> (Self, Vec<Event>) {
        let mut turn = Self {
            answer: None,
            context: transcript.data.get("context").cloned().unwrap_or(Value::Null),
            language: transcript.text("language").to_owned(),
            spoken: String::new(),
            has_begun: false,
        };
        if transcript.text("text").trim().is_empty() {
            let events = turn.failed(agent, Trouble::Unheard);
            return (turn, events);
        }
        match turn.ask(agent, rooms, transcript).await {
            Ok(answer) => turn.answer = Some(answer),
            Err(error) => {
                tracing::warn!(%error, "a turn failed");
                agent.conversations.metrics().failed(&error);
                let events = turn.failed(agent, Trouble::of(&error));
                return (turn, events);
            }
        }
        (turn, Vec::new())
    }

    async fn ask(&self, agent: &Agent, rooms: &Rooms, transcript: &Event) -> Result<Answer> {
        let conversation = agent.conversations.open_to_talk(rooms.of(transcript)).await?;
        let mut message =
            conversation.message(ChatRole::User, transcript.text("text").trim().to_owned());
        let named = |name: &str| {
            let value = self.context.get(name).and_then(Value::as_str)?;
            Some(value.chars().take(LONGEST_NAME).collect::<String>())
        };
        let device = named("satellite_id").or_else(|| named("device_id"));
        let language =
            (!self.language.is_empty()).then(|| self.language.chars().take(LONGEST_NAME).collect());
        for (key, value) in [("device", device), ("lang", language)] {
            message.metadata.extend(value.map(|value| (key.to_owned(), value)));
        }
        conversation.ask_message(message.else_from(Source::Spoken)).await
    }

    /// The next events to send; `None` once the turn is over.
    pub(crate) async fn next(&mut self, agent: &Agent) -> Option<Vec<Event>> {
        loop {
            return match self.answer.as_mut()?.next().await {
                Some(Ok(AnswerEvent::Text(text))) => Some(self.said(&text)),
                Some(Ok(AnswerEvent::Done(_))) | None => {
                    self.answer = None;
                    Some(self.ended())
                }
                // Nobody here runs functions of a host, and none are offered.
                Some(Ok(AnswerEvent::ToolCalls(_))) => {
                    self.answer = None;
                    Some(self.failed(agent, Trouble::Model))
                }
                Some(Ok(_)) => continue,
                Some(Err(error)) => {
                    tracing::warn!(%error, "an answer failed");
                    self.answer = None;
                    Some(self.failed(agent, Trouble::of(&error)))
                }
            };
        }
    }

    fn said(&mut self, text: &str) -> Vec<Event> {
        let mut events = Vec::new();
        if !self.has_begun {
            self.has_begun = true;
            events.push(Event::new("handled-start", json!({ "context": self.context })));
        }
        self.spoken.push_str(text);
        events.push(Event::new("handled-chunk", json!({ "text": text })));
        events
    }

    /// Without `handled`, Home Assistant waits for ever.
    fn ended(&mut self) -> Vec<Event> {
        let mut events = match self.has_begun {
            true => Vec::new(),
            false => self.said(""),
        };
        let whole = json!({ "text": self.spoken, "context": self.context });
        events.push(Event::new("handled", whole));
        events.push(Event::new("handled-stop", json!({})));
        events
    }

    /// Says what is spoken in place of the answer, or of the rest of it.
    fn failed(&mut self, agent: &Agent, trouble: Trouble) -> Vec<Event> {
        let sentence = agent.phrases.of(trouble, &self.language).to_owned();
        if !self.has_begun {
            let data = json!({ "text": sentence, "context": self.context });
            return vec![Event::new("not-handled", data)];
        }
        let mut events = self.said(&format!(" {sentence}"));
        events.extend(self.ended());
        events
    }
}
