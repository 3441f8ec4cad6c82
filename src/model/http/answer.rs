//! A server's HTTP answer, before it is parsed.

use std::sync::Arc;

use reqwest::{Body, Request, Response};
use serde::de::DeserializeOwned;
use tokio::time::timeout;
use zeroize::Zeroizing;

use super::client::HttpClient;
use super::reason;
use crate::error::{AnswerLimit, Error, ModelFailure, Result};
use crate::model::limits::ReplyMeter;

/// The largest answer that is read as a whole, in bytes.
const WHOLE: usize = 64 << 20;
/// The largest error body in bytes.
const COMPLAINT: usize = 64 << 10;

/// An answer whose head has arrived.
pub(crate) struct Answer {
    client: Arc<HttpClient>,
    /// Kept for the model's name in it. It shares its bytes with the sent request.
    request: Request,
    response: Response,
}

impl Answer {
    pub(super) fn new(client: Arc<HttpClient>, request: Request, response: Response) -> Self {
        Self { client, request, response }
    }

    /// Starts to measure this answer.
    pub(super) fn meter(&self) -> ReplyMeter {
        ReplyMeter::new(self.client.limits)
    }

    /// Waits for more bytes; `None` at the end.
    pub(super) async fn more(&mut self) -> Result<Option<impl AsRef<[u8]> + use<>>> {
        match timeout(self.client.silence, self.response.chunk()).await {
            Err(_) => Err(self.client.timed_out()),
            Ok(Err(_)) => Err(self.broke_off("the connection was cut")),
            Ok(Ok(bytes)) => Ok(bytes),
        }
    }

    /// Reads and parses the whole body.
    pub(crate) async fn json<T: DeserializeOwned>(mut self) -> Result<T> {
        let mut body = Vec::new();
        let meter = self.meter();
        while let Some(bytes) =
            meter.within(self.more()).await.map_err(|limit| self.too_much(limit))??
        {
            body.extend_from_slice(bytes.as_ref());
            if body.len() > WHOLE {
                return Err(self.unintelligible("it is longer than 64 MiB"));
            }
        }
        serde_json::from_slice(&body)
            .map_err(|_| self.unintelligible("it is not the expected JSON"))
    }

    /// The error for a status other than success.
    pub(super) async fn refusal(mut self) -> Error {
        let mut body = Zeroizing::new(Vec::new());
        let meter = self.meter();
        // If the connection breaks, the part of the reason that arrived is enough.
        while body.len() < COMPLAINT
            && let Ok(Ok(Some(bytes))) = meter.within(self.more()).await
        {
            body.extend_from_slice(bytes.as_ref());
        }
        let complaint = reason::complaint(&body);
        let status = self.response.status();
        let text = complaint.as_deref().unwrap_or_default();
        self.fail(match status.as_u16() {
            400 | 404 if reason::speaks_of_absence(text) => {
                ModelFailure::NoSuchModel { model: self.model() }
            }
            404 | 405 if complaint.is_none() => {
                ModelFailure::Unintelligible { reason: "it does not know the path of the request" }
            }
            400 if reason::speaks_of_length(text) => ModelFailure::PromptTooLong,
            status @ 300..=399 => {
                let reason = "it redirects to another address, which is not followed".into();
                ModelFailure::Refused { status, reason }
            }
            status => ModelFailure::Refused { status, reason: reason::shown(text, &self.model()) },
        })
    }

    /// The error for an error message in the middle of an answer.
    pub(super) fn complaint(&self, text: &str) -> Error {
        let shown = reason::shown(text, &self.model());
        self.broke_off(format!("the server met an error: {shown}"))
    }

    pub(super) fn broke_off(&self, reason: impl Into<String>) -> Error {
        self.fail(ModelFailure::BrokeOff { reason: reason.into() })
    }

    /// The error for a limit that was exceeded.
    pub(super) fn too_much(&self, limit: AnswerLimit) -> Error {
        self.fail(ModelFailure::TooMuch { limit })
    }

    pub(super) fn unintelligible(&self, reason: &'static str) -> Error {
        self.fail(ModelFailure::Unintelligible { reason })
    }

    /// The error for a model that runs elsewhere.
    pub(super) fn cloud(&self) -> Error {
        self.fail(ModelFailure::Cloud { model: self.model() })
    }

    pub(super) fn address(&self) -> &str {
        self.client.shown()
    }

    /// The body of the request.
    pub(super) fn request(&self) -> Option<&str> {
        self.request.body().and_then(Body::as_bytes).and_then(|body| str::from_utf8(body).ok())
    }

    fn fail(&self, failure: ModelFailure) -> Error {
        self.client.fail(failure)
    }

    /// The name of the requested model.
    fn model(&self) -> String {
        reason::model(self.request.body().and_then(Body::as_bytes).unwrap_or_default())
    }
}
