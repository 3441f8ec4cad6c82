//! One turn with the model, which several threads and tasks may take texts from or interrupt.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use pyo3::PyResult;
use sottovoce::conversation::{TurnOutcome, TurnReport};
use sottovoce::{Answer, AnswerEvent, Conversation, Result, Sentences};
use tokio_util::sync::CancellationToken;

use crate::error::{invalid, raise};
use crate::message::Message;
use crate::store::OpenStore;

/// How long an interrupted call waits until what was taken is stored.
const PATIENCE: Duration = Duration::from_secs(2);

/// The library's answer, in pieces as the server sends them or in sentences.
pub(crate) enum Source {
    Pieces(Answer),
    Sentences(Sentences),
}

impl Source {
    pub(crate) fn new(answer: Answer, sentences: bool) -> Self {
        if sentences { Self::Sentences(answer.sentences()) } else { Self::Pieces(answer) }
    }

    async fn next(&mut self) -> Option<Result<AnswerEvent>> {
        match self {
            Self::Pieces(answer) => answer.next().await,
            Self::Sentences(sentences) => sentences.next().await,
        }
    }

    async fn spoken_up_to(self, characters: usize) -> Result<TurnOutcome> {
        match self {
            Self::Pieces(answer) => answer.spoken_up_to(characters).await,
            Self::Sentences(sentences) => sentences.spoken_up_to(characters).await,
        }
    }

    fn answer(&self) -> &Answer {
        match self {
            Self::Pieces(answer) => answer,
            Self::Sentences(sentences) => sentences.answer(),
        }
    }
}

/// One turn with the model.
pub(crate) struct Turn {
    pub(crate) utterance: Option<Message>,
    /// Locked by whoever takes the next text. Empty once the turn was closed.
    source: tokio::sync::Mutex<Option<Source>>,
    /// Ends the wait for the next text.
    stopped: CancellationToken,
    progress: Mutex<Progress>,
    conversation: Conversation,
    /// Keeps the store open, so that the end of the program finds it.
    _store: Arc<OpenStore>,
}

/// What has come of a turn.
#[derive(Default)]
struct Progress {
    text: String,
    outcome: Option<TurnOutcome>,
    report: Option<TurnReport>,
    failed: bool,
    /// Whether less was heard than the model said.
    shortened: bool,
}

impl Turn {
    pub(crate) fn new(source: Source, conversation: Conversation, store: Arc<OpenStore>) -> Self {
        Self {
            utterance: source.answer().utterance().cloned().map(Message),
            source: tokio::sync::Mutex::new(Some(source)),
            stopped: CancellationToken::new(),
            progress: Mutex::default(),
            conversation,
            _store: store,
        }
    }

    /// The next text; `None` at the end, and once the turn was stopped. If the future is dropped, as Ctrl-C and a
    /// cancelled task do, the answer is interrupted.
    pub(crate) async fn next(&self) -> PyResult<Option<String>> {
        let source = tokio::select! {
            biased;
            () = self.stopped.cancelled() => return Ok(None),
            source = self.source.lock() => source,
        };
        let mut hold = Hold { source, turn: self, is_abandoned: true };
        let taken = self.take(&mut hold).await;
        hold.is_abandoned = false;
        taken
    }

    async fn take(&self, hold: &mut Hold<'_>) -> PyResult<Option<String>> {
        let Some(source) = hold.source.as_mut() else { return Ok(None) };
        loop {
            let event = tokio::select! {
                biased;
                () = self.stopped.cancelled() => return Ok(None),
                event = source.next() => event,
            };
            let mut progress = self.progress();
            match event {
                Some(Ok(AnswerEvent::Text(text))) => {
                    progress.text.push_str(&text);
                    return Ok(Some(text));
                }
                Some(Ok(AnswerEvent::Done(outcome))) => {
                    progress.report = Some(outcome.report.clone());
                    progress.outcome = Some(*outcome);
                    return Ok(None);
                }
                Some(Ok(_)) => {}
                Some(Err(error)) => {
                    progress.failed = true;
                    progress.report = source.answer().report().cloned();
                    return Err(raise(error));
                }
                None => return Ok(None),
            }
        }
    }

    /// Takes the rest, and returns the whole text.
    pub(crate) async fn read(&self) -> PyResult<String> {
        while self.next().await?.is_some() {}
        Ok(self.text())
    }

    /// Ends every wait for the next text.
    fn stop(&self) {
        self.stopped.cancel();
    }

    /// Drops the library's answer, which interrupts it unless it has ended.
    pub(crate) async fn drop_answer(&self) -> PyResult<()> {
        self.stop();
        let source = self.source.lock().await.take();
        self.note_report(source.as_ref());
        Ok(())
    }

    /// Waits until what was taken of an interrupted answer is stored.
    pub(crate) async fn stored(&self) -> PyResult<()> {
        let _ = tokio::time::timeout(PATIENCE, self.conversation.close()).await;
        Ok(())
    }

    pub(crate) async fn spoken_up_to(&self, characters: usize) -> PyResult<Option<Message>> {
        self.stop();
        let Some(source) = self.source.lock().await.take() else {
            return Err(invalid(
                "the answer was closed already",
                "call spoken_up_to instead of close",
            ));
        };
        self.note_report(Some(&source));
        let outcome = source.spoken_up_to(characters).await.map_err(raise)?;
        let mut progress = self.progress();
        let cut_off = outcome.message.as_ref().map(|stored| stored.message.cut_off());
        progress.shortened = cut_off.is_none_or(|why| why == Some("interrupted"));
        let message = outcome.message.clone().map(Message);
        progress.outcome = Some(outcome);
        Ok(message)
    }

    pub(crate) fn text(&self) -> String {
        self.progress().text.clone()
    }

    pub(crate) fn outcome(&self) -> Option<TurnOutcome> {
        self.progress().outcome.clone()
    }

    pub(crate) fn report(&self) -> Option<TurnReport> {
        if let Ok(source) = self.source.try_lock() {
            self.note_report(source.as_ref());
        }
        self.progress().report.clone()
    }

    /// Whether the turn ended before the model's answer did.
    pub(crate) fn is_interrupted(&self) -> bool {
        let progress = self.progress();
        match progress.outcome {
            Some(_) => progress.shortened,
            None => self.stopped.is_cancelled() && !progress.failed,
        }
    }

    fn note_report(&self, source: Option<&Source>) {
        if let Some(report) = source.and_then(|source| source.answer().report()) {
            self.progress().report = Some(report.clone());
        }
    }

    fn progress(&self) -> MutexGuard<'_, Progress> {
        self.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Holds the answer while somebody waits for the next text.
struct Hold<'a> {
    source: tokio::sync::MutexGuard<'a, Option<Source>>,
    turn: &'a Turn,
    is_abandoned: bool,
}

impl Drop for Hold<'_> {
    fn drop(&mut self) {
        if self.is_abandoned {
            self.turn.stop();
            self.turn.note_report(self.source.take().as_ref());
        }
    }
}

impl fmt::Debug for Turn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Turn").field("utterance", &self.utterance).finish_non_exhaustive()
    }
}
