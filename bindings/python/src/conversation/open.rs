//! An open conversation: what its methods do, as futures.

use std::fmt;
use std::ops::RangeInclusive;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use pyo3::PyResult;
use sottovoce::context::recall::{NotUnderstood, RecallQuery, SearchQuery};
use sottovoce::model::PromptRenderer;
use sottovoce::{ChatMessage, ChatRole, Clock, Result, SystemClock};

use crate::answer::{Answer, Source, Turn};
use crate::error::{closed, invalid, raise};
use crate::message::{Details, Message, Recalled};
use crate::prompt::Rendered;
use crate::store::OpenStore;

/// An open conversation.
pub(crate) struct OpenConversation {
    pub(crate) inner: sottovoce::Conversation,
    pub(crate) thread: Option<String>,
    renderer: Box<dyn PromptRenderer>,
    store: Weak<OpenStore>,
    /// The turns whose answers Python may still hold.
    turns: Mutex<Vec<Weak<Turn>>>,
}

impl OpenConversation {
    pub(crate) fn new(
        inner: sottovoce::Conversation,
        thread: Option<String>,
        renderer: Box<dyn PromptRenderer>,
        store: Weak<OpenStore>,
    ) -> Self {
        Self { inner, thread, renderer, store, turns: Mutex::default() }
    }

    pub(crate) fn check_open(&self) -> PyResult<()> {
        self.store()?.check_open()
    }

    fn store(&self) -> PyResult<Arc<OpenStore>> {
        self.store.upgrade().ok_or_else(closed)
    }

    fn message(&self, role: ChatRole, text: String, details: Details) -> PyResult<ChatMessage> {
        details.add_to(self.inner.message(role, text))
    }

    pub(crate) async fn hear(
        self: Arc<Self>,
        text: String,
        details: Details,
    ) -> PyResult<Rendered> {
        let message = self.message(ChatRole::User, text, details)?;
        let turn = self.inner.prepare_turn_for(message).await.map_err(raise)?;
        let utterance = Some(Message(turn.message));
        Ok(Rendered::new(&*self.renderer, &turn.prompt, turn.receipt, utterance))
    }

    pub(crate) async fn keep(
        self: Arc<Self>,
        reply: String,
        spoken_up_to: Option<usize>,
        interrupted: bool,
        to: Option<Message>,
    ) -> PyResult<Option<Message>> {
        let spoken = spoken_up_to.and_then(|characters| reply.char_indices().nth(characters));
        let spoken = spoken.and_then(|(end, _)| reply.get(..end));
        let is_cut = interrupted || spoken.is_some();
        let words = spoken.unwrap_or(&reply);
        let kept = match to {
            Some(_) if is_cut && words.trim().is_empty() => Ok(None),
            Some(to) => {
                let mut answer = self.inner.message(ChatRole::Assistant, words);
                if is_cut {
                    answer = answer.with_metadata("cutOff", "interrupted");
                }
                self.inner.store_answer(&to.0, answer).await.map(Some)
            }
            None if is_cut => self.inner.store_cut_off_reply(words).await,
            None => self.inner.store_reply(words).await.map(Some),
        };
        Ok(kept.map_err(raise)?.map(Message))
    }

    pub(crate) async fn prompt(
        self: Arc<Self>,
        text: String,
        details: Details,
    ) -> PyResult<Rendered> {
        let message = self.message(ChatRole::User, text, details)?;
        let (prompt, receipt) = self.inner.prompt(message).await.map_err(raise)?;
        Ok(Rendered::new(&*self.renderer, &prompt, receipt, None))
    }

    pub(crate) async fn append(
        self: Arc<Self>,
        role: ChatRole,
        content: String,
        details: Details,
    ) -> PyResult<Message> {
        let message = self.message(role, content, details)?;
        self.inner.store().append_message(message).await.map(Message).map_err(raise)
    }

    pub(crate) async fn get(self: Arc<Self>, seq: u64) -> PyResult<Option<Message>> {
        let read = self.inner.store().read_seqs(seq..=seq).await.map_err(raise)?;
        Ok(read.messages.into_iter().find(|stored| stored.seq == seq).map(Message))
    }

    /// The newest `n` messages of the thread. Those of other threads may lie between them, so it reads further back until
    /// it has enough.
    pub(crate) async fn tail(self: Arc<Self>, n: usize) -> PyResult<Vec<Message>> {
        let mut reach = n;
        loop {
            let read = self.inner.store().read_tail(reach).await.map_err(raise)?;
            let is_all = read.messages.len() < reach;
            let mut own = read.messages;
            own.retain(|stored| stored.message.thread_id == self.thread);
            if own.len() >= n || is_all {
                return Ok(own
                    .split_off(own.len().saturating_sub(n))
                    .into_iter()
                    .map(Message)
                    .collect());
            }
            reach = reach.saturating_mul(4);
        }
    }

    pub(crate) async fn search(self: Arc<Self>, words: String, n: usize) -> PyResult<Vec<Message>> {
        let query = SearchQuery::parse(&words)
            .map_err(|unknown| invalid(unknown.to_string(), NotUnderstood::HELP))?;
        let thread = self.thread.as_deref();
        let found = self.inner.index().search(&query, thread, n).await.map_err(raise)?;
        Ok(found.hits.into_iter().map(Message).collect())
    }

    pub(crate) async fn recall(
        self: Arc<Self>,
        question: String,
        n: usize,
    ) -> PyResult<Vec<Recalled>> {
        let query = RecallQuery::new(&question, SystemClock.now(), n);
        let thread = self.thread.as_deref();
        let found = self.inner.index().find_in(&query, thread).await.map_err(raise)?;
        Ok(found.hits.into_iter().map(Recalled::from).collect())
    }

    pub(crate) async fn forget(
        self: Arc<Self>,
        numbers: Vec<RangeInclusive<u64>>,
    ) -> PyResult<Vec<u64>> {
        Ok(self.inner.forget(&numbers).await.map_err(raise)?.removed)
    }

    pub(crate) async fn forget_all(self: Arc<Self>) -> PyResult<Vec<u64>> {
        Ok(self.inner.forget_all().await.map_err(raise)?.removed)
    }

    pub(crate) async fn prepare(self: Arc<Self>) -> PyResult<()> {
        self.inner.warm_up().await.map_err(raise)
    }

    pub(crate) async fn ask(
        self: Arc<Self>,
        text: String,
        details: Details,
        sentences: bool,
        off_record: bool,
    ) -> PyResult<Answer> {
        let message = self.message(ChatRole::User, text, details)?;
        let answer = match off_record {
            true => self.inner.ask_off_record(message).await,
            false => self.inner.ask_message(message).await,
        };
        self.answer(answer, sentences)
    }

    pub(crate) async fn retry(self: Arc<Self>, sentences: bool) -> PyResult<Answer> {
        let answer = self.inner.retry().await;
        self.answer(answer, sentences)
    }

    fn answer(&self, answer: Result<sottovoce::Answer>, sentences: bool) -> PyResult<Answer> {
        let source = Source::new(answer.map_err(raise)?, sentences);
        let turn = Arc::new(Turn::new(source, self.inner.clone(), self.store()?));
        let mut turns = self.turns.lock().unwrap_or_else(PoisonError::into_inner);
        turns.retain(|turn| turn.strong_count() > 0);
        turns.push(Arc::downgrade(&turn));
        drop(turns);
        // If the store was closed meanwhile, nobody else will end the turn.
        self.check_open()?;
        Ok(Answer::from(turn))
    }

    /// Interrupts the answers in progress, and waits until what was spoken is stored.
    pub(crate) async fn close(self: Arc<Self>) -> PyResult<()> {
        let turns = std::mem::take(&mut *self.turns.lock().unwrap_or_else(PoisonError::into_inner));
        for turn in turns.iter().filter_map(Weak::upgrade) {
            turn.drop_answer().await?;
        }
        self.inner.close().await.map_err(raise)
    }
}

impl fmt::Debug for OpenConversation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OpenConversation").finish_non_exhaustive()
    }
}
