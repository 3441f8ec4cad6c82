//! A model's answer: an iterator, an asynchronous iterator, and what interrupts it.

mod turn;

use std::sync::Arc;

use pyo3::exceptions::PyStopAsyncIteration;
use pyo3::prelude::*;

use crate::message::Message;
use crate::process::OfProcess;
use crate::report::Report;
use crate::runtime::{awaitable, block};
pub(crate) use turn::{Source, Turn};

/// A model's answer, text by text. Iterate over it with `for` or with `async for`.
///
/// Whoever stops iterating and closes or drops the answer interrupts it: the model stops, and the text that was taken
/// is stored as an interrupted answer. To ask for more after a text says that the text was spoken.
///
///     >>> answer = conversation.ask("What's the weather like?")
///     >>> for text in answer:
///     ...     print(text)
///     It is
///     fine.
///     >>> answer.text, answer.interrupted, answer.message.seq
///     ('It is fine.', False, 2)
///
/// As a context manager it is closed at the end of the block:
///
///     >>> with conversation.ask("And tomorrow?") as answer:
///     ...     for text in answer:
///     ...         break  # somebody speaks
///     >>> conversation.close()
///     >>> conversation.tail()[-1].cut_off
///     'interrupted'
#[pyclass(frozen, module = "sottovoce")]
#[derive(Debug)]
pub(crate) struct Answer(OfProcess<Arc<Turn>>);

impl From<Arc<Turn>> for Answer {
    fn from(turn: Arc<Turn>) -> Self {
        Self(OfProcess::new(turn))
    }
}

impl Answer {
    fn turn(&self) -> PyResult<&Arc<Turn>> {
        self.0.get()
    }

    /// Waits for `work`. If Ctrl-C drops it, what was taken is stored before the call returns.
    fn waited<T: Send>(
        &self,
        py: Python<'_>,
        work: impl Future<Output = PyResult<T>> + Send,
    ) -> PyResult<T> {
        let turn = self.turn()?;
        let waited = block(py, work);
        if waited.is_err() && turn.is_interrupted() {
            let _ = block(py, turn.stored());
        }
        waited
    }
}

#[pymethods]
impl Answer {
    /// The text taken so far.
    #[getter]
    fn text(&self) -> PyResult<String> {
        Ok(self.turn()?.text())
    }

    /// The utterance that is answered; `None` off the record.
    #[getter]
    fn utterance(&self) -> PyResult<Option<Message>> {
        Ok(self.turn()?.utterance.clone())
    }

    /// The stored answer; `None` before the end, if nothing was spoken, after an interruption, and off the record.
    #[getter]
    fn message(&self) -> PyResult<Option<Message>> {
        Ok(self.turn()?.outcome().and_then(|outcome| outcome.message).map(Message))
    }

    /// Whether the answer was interrupted before its end.
    #[getter]
    fn interrupted(&self) -> PyResult<bool> {
        Ok(self.turn()?.is_interrupted())
    }

    /// The figures of the turn: those of the prompt once the model was asked, all of them at the end.
    #[getter]
    fn report(&self, py: Python<'_>) -> PyResult<Option<Report>> {
        self.turn()?.report().map(|report| Report::new(py, &report)).transpose()
    }

    /// Takes the rest of the answer and returns the whole text.
    ///
    ///     >>> conversation.ask("What's the weather like?").read()
    ///     'It is fine.'
    fn read(&self, py: Python<'_>) -> PyResult<String> {
        self.waited(py, self.turn()?.read())
    }

    /// `read` for asyncio.
    fn read_async<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let turn = Arc::clone(self.turn()?);
        awaitable(py, async move { turn.read().await })
    }

    /// Interrupts the answer after its first `characters` were heard, and returns the stored message, or `None` if
    /// nothing was heard. If the whole answer is stored already, the shorter one replaces it. Another thread or task
    /// may be iterating; its loop ends.
    ///
    ///     >>> answer = conversation.ask("What's the weather like?")
    ///     >>> answer.read()
    ///     'It is fine.'
    ///     >>> answer.spoken_up_to(5).content
    ///     'It is'
    #[pyo3(signature = (characters, /))]
    fn spoken_up_to(&self, py: Python<'_>, characters: usize) -> PyResult<Option<Message>> {
        block(py, self.turn()?.spoken_up_to(characters))
    }

    /// `spoken_up_to` for asyncio.
    #[pyo3(signature = (characters, /))]
    fn spoken_up_to_async<'py>(
        &self,
        py: Python<'py>,
        characters: usize,
    ) -> PyResult<Bound<'py, PyAny>> {
        let turn = Arc::clone(self.turn()?);
        awaitable(py, async move { turn.spoken_up_to(characters).await })
    }

    /// Interrupts the answer, unless it has ended. Returns at once; the next turn and `Conversation.close` wait until
    /// the text that was taken is stored. Another thread or task may be iterating; its loop ends.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        block(py, self.turn()?.drop_answer())
    }

    fn __iter__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    fn __next__(&self, py: Python<'_>) -> PyResult<Option<String>> {
        self.waited(py, self.turn()?.next())
    }

    fn __aiter__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    fn __anext__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let turn = Arc::clone(self.turn()?);
        awaitable(
            py,
            async move { turn.next().await?.ok_or_else(|| PyStopAsyncIteration::new_err(())) },
        )
    }

    fn __enter__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    #[pyo3(signature = (*_raised))]
    fn __exit__(&self, py: Python<'_>, _raised: &Bound<'_, PyAny>) -> PyResult<()> {
        self.close(py)
    }

    fn __aenter__(slf: Py<Self>, py: Python<'_>) -> PyResult<Bound<'_, PyAny>> {
        awaitable(py, async move { Ok(slf) })
    }

    #[pyo3(signature = (*_raised))]
    fn __aexit__<'py>(
        &self,
        py: Python<'py>,
        _raised: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let turn = Arc::clone(self.turn()?);
        awaitable(py, async move { turn.drop_answer().await })
    }

    fn __repr__(&self) -> PyResult<String> {
        let turn = self.turn()?;
        let state = match (turn.is_interrupted(), turn.outcome().is_some()) {
            (true, _) => "interrupted",
            (_, true) => "complete",
            _ => "in progress",
        };
        Ok(format!("<Answer {state}, {} characters>", turn.text().chars().count()))
    }
}
