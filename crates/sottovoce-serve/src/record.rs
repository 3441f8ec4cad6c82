//! Records an answer while it passes.

use std::sync::Arc;
use std::time::{Duration, Instant};

use sottovoce::conversation::{ErrorKind, HostTurn, Metrics, TurnEnd};
use sottovoce::model::without_thoughts;
use sottovoce::{ChatRole, Error, StoredMessage};

use crate::answer::{End, PassedAnswer};
use crate::open_scope::OpenScope;

/// The metadata key of an incomplete answer.
const CUT_OFF: &str = "cutOff";

/// Where an answer belongs.
pub(crate) struct Recorder {
    pub(crate) scope: Arc<OpenScope>,
    pub(crate) session: u64,
    pub(crate) utterance: Arc<StoredMessage>,
    pub(crate) answer: PassedAnswer,
    /// How long the model server may be silent before other turns of the conversation stop waiting.
    pub(crate) silence: Duration,
    /// How long an answer may take before they do.
    pub(crate) longest: Duration,
    pub(crate) progress: Progress,
}

/// How far the recording of a turn is.
pub(crate) struct Progress {
    begun: Instant,
    /// Makes other turns of the conversation wait, until the answer is stored or takes too long. Threads of clients do not
    /// wait for others.
    turn: Option<HostTurn>,
    /// Since when they wait.
    since: Instant,
    first_word: Option<Duration>,
    is_stored: bool,
    /// How it ended, once that is known.
    end: Option<TurnEnd>,
    metrics: Arc<Metrics>,
}

impl Progress {
    pub(crate) fn begin(begun: Instant, turn: Option<HostTurn>, metrics: &Arc<Metrics>) -> Self {
        let (since, metrics) = (Instant::now(), Arc::clone(metrics));
        Self { begun, turn, since, first_word: None, is_stored: false, end: None, metrics }
    }
}

/// Why an answer ended before its last part came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Broken {
    /// The client left, or this server stops.
    Interrupted,
    /// The model server broke off.
    Failed,
}

impl Recorder {
    /// Notes why there is no answer.
    pub(crate) async fn failed(&self, kind: ErrorKind) {
        self.progress.metrics.failed(kind);
        self.tried(None).await;
    }

    /// Notes that this try to answer the utterance ended, and the id that the server gave to the answer.
    async fn tried(&self, id: Option<String>) {
        let mut sessions = self.scope.sessions.lock().await;
        let id = id.map(|id| sessions.digest(&id));
        if let Some(turn) = sessions.turn(self.session, self.utterance.seq) {
            turn.tried(self.scope.store.clock().now().timestamp(), id);
        }
    }

    /// Until when other turns of the conversation wait, if nothing comes for `limit`; `None` if none waits.
    pub(crate) fn holds_until(&self, limit: Duration) -> Option<Instant> {
        let progress = &self.progress;
        let until = (Instant::now() + limit).min(progress.since + self.longest);
        progress.turn.as_ref().map(|_| until)
    }

    /// Lets other turns of the conversation begin. The answer is recorded all the same.
    pub(crate) fn give_way(&mut self) {
        if let Some(turn) = self.progress.turn.take() {
            tracing::info!("an answer takes long, and other turns do not wait for it any more");
            turn.end();
        }
    }

    /// Reads a piece of the answer, and stores the answer if this was the last one. Returns `false` if it goes on for too
    /// long without an end of a line.
    #[must_use]
    pub(crate) async fn push(&mut self, piece: &[u8]) -> bool {
        let is_within = self.answer.push(piece);
        if !self.answer.text.is_empty() {
            let begun = self.progress.begun;
            self.progress.first_word.get_or_insert_with(|| begun.elapsed());
        }
        if self.answer.end.is_some() {
            self.store(None).await;
        }
        is_within
    }

    /// Stores the answer after its last piece, or what came of it. Does nothing if it is stored.
    pub(crate) async fn finish(&mut self, broken: Option<Broken>) {
        // The model may have said that it stops before the client left.
        self.answer.finish();
        let is_open = self.answer.end.is_none();
        self.store(broken.or(is_open.then_some(Broken::Failed))).await;
    }

    async fn store(&mut self, broken: Option<Broken>) {
        self.store_answer(broken).await;
        if let Some(turn) = self.progress.turn.take() {
            turn.end();
            if let Some(idle) = self.scope.idle {
                self.scope.conversation.summarize_if_filled_after(idle);
            }
        }
    }

    async fn store_answer(&mut self, broken: Option<Broken>) {
        if std::mem::replace(&mut self.progress.is_stored, true) {
            return;
        }
        let id = self.answer.id.take();
        self.tried(id).await;
        let cut = match (self.answer.end, broken) {
            (Some(End::Whole), _) => None,
            (Some(End::Length), _) => Some("length"),
            (Some(End::Failed), _) | (None, Some(Broken::Failed)) => Some("failed"),
            (None, _) => Some("interrupted"),
        };
        self.progress.end = Some(match cut {
            None | Some("length") => TurnEnd::Whole,
            Some("interrupted") => TurnEnd::Interrupted,
            Some(_) => TurnEnd::Failed,
        });
        // The client returns calls together with their results.
        let is_calling = self.answer.has_calls && cut.is_none();
        let words = without_thoughts(&self.answer.text);
        if is_calling || words.trim().is_empty() {
            return;
        }
        let answer = self.scope.conversation.message(ChatRole::Assistant, words);
        let mut answer = answer.in_turn_of(&self.utterance.message);
        if let Some(cut) = cut {
            answer = answer.with_metadata(CUT_OFF, cut);
        }
        match self.scope.conversation.store_answer(&self.utterance, answer).await {
            Ok(stored) => {
                let mut sessions = self.scope.sessions.lock().await;
                let digest = sessions.answer_digest(&self.answer.text);
                let turn = sessions.turn(self.session, self.utterance.seq);
                let replaced = turn.map(|turn| turn.answered(digest, stored.seq, cut.is_none()));
                drop(sessions);
                self.scope.hide(replaced.unwrap_or_default()).await;
            }
            // The answer goes with its utterance.
            Err(Error::UtteranceForgotten) => {}
            Err(error) => {
                tracing::warn!(%error, "an answer could not be stored");
                self.progress.metrics.failed(&error);
            }
        }
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        let Progress { metrics, first_word, end, .. } = &self.progress;
        // Without an end, the model server refused the request.
        metrics.turn(end.unwrap_or(TurnEnd::Failed));
        if let Some(after) = first_word {
            metrics.first_word(*after);
        }
        let answer = &self.answer;
        metrics.tokens(answer.prompt_tokens, answer.cached_tokens);
    }
}
