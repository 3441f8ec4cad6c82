//! What a server sends back, before it is understood.

use std::sync::Arc;

use reqwest::{Body, Request, Response};
use serde::de::DeserializeOwned;
use tokio::time::timeout;

use super::buffer::Buffer;
use super::reason;
use super::wire::Wire;
use crate::error::{Error, ModelFailure, Result};

/// The most bytes of an answer that is read as a whole.
const WHOLE: usize = 64 << 20;
/// The most bytes of an error.
const COMPLAINT: usize = 64 << 10;

/// An answer whose head has come.
pub(super) struct Answer {
    wire: Arc<Wire>,
    /// Kept for what an error's reason must not repeat. Its bytes are those that were sent, not a copy.
    request: Request,
    response: Response,
}

impl Answer {
    pub(super) fn new(wire: Arc<Wire>, request: Request, response: Response) -> Self {
        Self { wire, request, response }
    }

    /// Waits for more bytes; `false` at the end.
    pub(super) async fn more(&mut self, to: &mut Buffer) -> Result<bool> {
        match timeout(self.wire.silence(), self.response.chunk()).await {
            Err(_) => Err(self.wire.timed_out()),
            Ok(Err(_)) => Err(self.broke_off("the connection was cut")),
            Ok(Ok(None)) => Ok(false),
            Ok(Ok(Some(chunk))) => {
                to.push(&chunk);
                Ok(true)
            }
        }
    }

    /// The whole of it.
    pub(super) async fn json<T: DeserializeOwned>(mut self) -> Result<T> {
        let mut buffer = Buffer::default();
        while self.more(&mut buffer).await? {
            if buffer.len() > WHOLE {
                return Err(self.unintelligible("it is longer than 64 MiB"));
            }
        }
        serde_json::from_slice(buffer.rest())
            .map_err(|_| self.unintelligible("it is not the JSON that Ollama sends"))
    }

    /// The error that a status other than success stands for.
    pub(super) async fn refusal(mut self) -> Error {
        let mut buffer = Buffer::default();
        // What was heard of the reason before the connection broke is enough.
        while buffer.len() < COMPLAINT && matches!(self.more(&mut buffer).await, Ok(true)) {}
        let complaint = reason::complaint(buffer.rest());
        let status = self.response.status();
        let text = complaint.as_deref().unwrap_or_default();
        self.fail(match status.as_u16() {
            404 if text.contains("not found") => {
                ModelFailure::NoSuchModel { model: reason::model(self.sent()) }
            }
            404 | 405 if complaint.is_none() => {
                ModelFailure::Unintelligible { reason: "it does not know Ollama's paths" }
            }
            400 if reason::speaks_of_length(text) => ModelFailure::PromptTooLong,
            status @ 300..=399 => {
                let reason = "it points to another address, which is not followed".into();
                ModelFailure::Refused { status, reason }
            }
            status => ModelFailure::Refused { status, reason: reason::shown(text, self.sent()) },
        })
    }

    /// The error that a complaint in the middle of an answer stands for.
    pub(super) fn complaint(&self, text: &str) -> Error {
        self.broke_off(reason::shown(text, self.sent()))
    }

    pub(super) fn broke_off(&self, reason: impl Into<String>) -> Error {
        self.fail(ModelFailure::BrokeOff { reason: reason.into() })
    }

    pub(super) fn unintelligible(&self, reason: &'static str) -> Error {
        self.fail(ModelFailure::Unintelligible { reason })
    }

    /// The model that was asked, runs elsewhere.
    pub(super) fn cloud(&self) -> Error {
        self.fail(ModelFailure::Cloud { model: reason::model(self.sent()) })
    }

    pub(super) fn address(&self) -> &str {
        self.wire.shown()
    }

    fn fail(&self, failure: ModelFailure) -> Error {
        self.wire.fail(failure)
    }

    fn sent(&self) -> &[u8] {
        self.request.body().and_then(Body::as_bytes).unwrap_or_default()
    }
}
