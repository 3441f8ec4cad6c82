//! A conversation as Python sees it: each method for threads, and its twin for asyncio.

mod open;

use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::sync::Arc;

use jiff::Zoned;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyRange, PyTuple};

use crate::answer::Answer;
use crate::error::{invalid, raise};
use crate::message::{Details, Message, Recalled, tool_call};
use crate::process::OfProcess;
use crate::prompt::Rendered;
use crate::runtime::{awaitable, block};
use crate::store::OpenStore;
pub(crate) use open::OpenConversation;

/// One conversation of a store: a person's, a room's, or a thread of one.
///
/// A host whose model the store is configured for calls `ask`. A host with a model of its own calls `hear`, sends the prompt
/// to its model, and calls `keep`. Methods that end in `_async` do the same for asyncio. Whatever returns without an
/// exception is durable.
///
///     >>> prompt = conversation.hear("My sister's name is Ada.")
///     >>> conversation.keep("I'll remember that.").seq
///     2
///     >>> [message.content for message in conversation.tail()]
///     ["My sister's name is Ada.", "I'll remember that."]
#[pyclass(frozen, module = "sottovoce")]
#[derive(Debug)]
pub(crate) struct Conversation {
    open: OfProcess<Arc<OpenConversation>>,
    /// Keeps the store open.
    _store: OfProcess<Arc<OpenStore>>,
}

impl Conversation {
    pub(crate) fn new(open: Arc<OpenConversation>, store: Arc<OpenStore>) -> Self {
        Self { open: OfProcess::new(open), _store: OfProcess::new(store) }
    }

    /// The open conversation, unless its store was closed.
    fn open(&self) -> PyResult<Arc<OpenConversation>> {
        let open = self.open.get()?;
        open.check_open()?;
        Ok(Arc::clone(open))
    }
}

#[pymethods]
impl Conversation {
    /// The scope, such as `dm/ann`.
    #[getter]
    fn scope(&self) -> PyResult<String> {
        Ok(self.open.get()?.inner.store().scope().to_string())
    }

    /// The thread, or `None`.
    #[getter]
    fn thread(&self) -> PyResult<Option<String>> {
        Ok(self.open.get()?.thread.clone())
    }

    /// Stores an utterance, and returns the prompt for answering it: for a host that asks a model itself. `speaker` is
    /// shown to the model. `metadata` may hold `confidence`, 0 to 1, `device`, `lang` and the host's own.
    ///
    ///     >>> prompt = conversation.hear("What goes with leeks?", speaker="Ben")
    ///     >>> prompt.messages[-1]["role"]
    ///     'user'
    #[pyo3(signature = (text, *, speaker = None, metadata = None))]
    fn hear(
        &self,
        py: Python<'_>,
        text: String,
        speaker: Option<String>,
        metadata: Option<BTreeMap<String, String>>,
    ) -> PyResult<Rendered> {
        block(py, self.open()?.hear(text, Details { speaker, metadata, ..Details::default() }))
    }

    /// `hear` for asyncio.
    #[pyo3(signature = (text, *, speaker = None, metadata = None))]
    fn hear_async<'py>(
        &self,
        py: Python<'py>,
        text: String,
        speaker: Option<String>,
        metadata: Option<BTreeMap<String, String>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let details = Details { speaker, metadata, ..Details::default() };
        awaitable(py, self.open()?.hear(text, details))
    }

    /// Stores the answer of the host's own model to what was heard last, or `to` an utterance, for a host that answers
    /// several at once: a prompt has its `utterance`. If it was interrupted, `spoken_up_to` says after
    /// how many characters, or `interrupted` says that `reply` is all that was spoken. Returns the stored message, or
    /// `None` if nothing was spoken. Raises `ForgottenError` if the utterance was forgotten meanwhile.
    ///
    ///     >>> prompt = conversation.hear("What goes with leeks?")
    ///     >>> message = conversation.keep("Potatoes, and a little cream.", spoken_up_to=8)
    ///     >>> message.content, message.cut_off
    ///     ('Potatoes', 'interrupted')
    #[pyo3(signature = (reply, *, spoken_up_to = None, interrupted = false, to = None))]
    fn keep(
        &self,
        py: Python<'_>,
        reply: String,
        spoken_up_to: Option<usize>,
        interrupted: bool,
        to: Option<Bound<'_, Message>>,
    ) -> PyResult<Option<Message>> {
        let to = to.map(|to| to.get().clone());
        block(py, self.open()?.keep(reply, spoken_up_to, interrupted, to))
    }

    /// `keep` for asyncio.
    #[pyo3(signature = (reply, *, spoken_up_to = None, interrupted = false, to = None))]
    fn keep_async<'py>(
        &self,
        py: Python<'py>,
        reply: String,
        spoken_up_to: Option<usize>,
        interrupted: bool,
        to: Option<Bound<'py, Message>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let to = to.map(|to| to.get().clone());
        awaitable(py, self.open()?.keep(reply, spoken_up_to, interrupted, to))
    }

    /// The prompt that `ask` would send for an utterance. Stores nothing.
    ///
    ///     >>> for entry in conversation.prompt("What goes with leeks?").receipt.entries:
    ///     ...     print(entry.seq, entry.why, entry.outcome)
    #[pyo3(signature = (text, *, speaker = None, metadata = None))]
    fn prompt(
        &self,
        py: Python<'_>,
        text: String,
        speaker: Option<String>,
        metadata: Option<BTreeMap<String, String>>,
    ) -> PyResult<Rendered> {
        block(py, self.open()?.prompt(text, Details { speaker, metadata, ..Details::default() }))
    }

    /// `prompt` for asyncio.
    #[pyo3(signature = (text, *, speaker = None, metadata = None))]
    fn prompt_async<'py>(
        &self,
        py: Python<'py>,
        text: String,
        speaker: Option<String>,
        metadata: Option<BTreeMap<String, String>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let details = Details { speaker, metadata, ..Details::default() };
        awaitable(py, self.open()?.prompt(text, details))
    }

    /// Stores a message without asking anybody: an announcement, a tool's result, or what another program has heard.
    /// `time` is an aware `datetime`, the current time without it. Values of `metadata` are texts, so other values go in as
    /// JSON.
    ///
    ///     >>> item = {"type": "reasoning", "summary": []}
    ///     >>> message = conversation.append("assistant", "", metadata={"item": json.dumps(item)})
    ///     >>> json.loads(conversation.get(message.seq).metadata["item"]) == item
    ///     True
    #[pyo3(signature = (role, content, *, speaker = None, metadata = None, time = None, tool_calls = None, tool_call_id = None))]
    #[expect(clippy::too_many_arguments, reason = "they are keywords")]
    fn append(
        &self,
        py: Python<'_>,
        role: &str,
        content: String,
        speaker: Option<String>,
        metadata: Option<BTreeMap<String, String>>,
        time: Option<Zoned>,
        tool_calls: Option<Vec<Bound<'_, PyDict>>>,
        tool_call_id: Option<String>,
    ) -> PyResult<Message> {
        let tool_calls = tool_calls.iter().flatten().map(tool_call).collect::<PyResult<_>>()?;
        let details = Details { speaker, metadata, time, tool_calls, tool_call_id };
        let role = role.parse().map_err(raise)?;
        block(py, self.open()?.append(role, content, details))
    }

    /// `append` for asyncio.
    #[pyo3(signature = (role, content, *, speaker = None, metadata = None, time = None, tool_calls = None, tool_call_id = None))]
    #[expect(clippy::too_many_arguments, reason = "they are keywords")]
    fn append_async<'py>(
        &self,
        py: Python<'py>,
        role: &str,
        content: String,
        speaker: Option<String>,
        metadata: Option<BTreeMap<String, String>>,
        time: Option<Zoned>,
        tool_calls: Option<Vec<Bound<'py, PyDict>>>,
        tool_call_id: Option<String>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let tool_calls = tool_calls.iter().flatten().map(tool_call).collect::<PyResult<_>>()?;
        let details = Details { speaker, metadata, time, tool_calls, tool_call_id };
        let role = role.parse().map_err(raise)?;
        awaitable(py, self.open()?.append(role, content, details))
    }

    /// The message with this number; `None` if there is none, or none any more.
    #[pyo3(signature = (seq, /))]
    fn get(&self, py: Python<'_>, seq: u64) -> PyResult<Option<Message>> {
        block(py, self.open()?.get(seq))
    }

    /// `get` for asyncio.
    #[pyo3(signature = (seq, /))]
    fn get_async<'py>(&self, py: Python<'py>, seq: u64) -> PyResult<Bound<'py, PyAny>> {
        awaitable(py, self.open()?.get(seq))
    }

    /// The newest `n` messages of the conversation's thread, oldest first.
    #[pyo3(signature = (n = 20))]
    fn tail(&self, py: Python<'_>, n: usize) -> PyResult<Vec<Message>> {
        block(py, self.open()?.tail(n))
    }

    /// `tail` for asyncio.
    #[pyo3(signature = (n = 20))]
    fn tail_async<'py>(&self, py: Python<'py>, n: usize) -> PyResult<Bound<'py, PyAny>> {
        awaitable(py, self.open()?.tail(n))
    }

    /// The newest `n` messages that hold these words exactly, newest first: in a conversation with a thread, of the
    /// thread, otherwise of all threads. Knows phrases in quotes, `recip*`, `from:me`, `speaker:ann`, `after:2025-05` and
    /// `before:`.
    ///
    ///     >>> message = conversation.append("user", "Leek soup on Thursday.")
    ///     >>> [found.content for found in conversation.search("leek from:me")]
    ///     ['Leek soup on Thursday.']
    #[pyo3(signature = (words, n = 10))]
    fn search(&self, py: Python<'_>, words: String, n: usize) -> PyResult<Vec<Message>> {
        block(py, self.open()?.search(words, n))
    }

    /// `search` for asyncio.
    #[pyo3(signature = (words, n = 10))]
    fn search_async<'py>(
        &self,
        py: Python<'py>,
        words: String,
        n: usize,
    ) -> PyResult<Bound<'py, PyAny>> {
        awaitable(py, self.open()?.search(words, n))
    }

    /// The `n` messages that fit a question best, best first, in other words too. No model is asked.
    ///
    ///     >>> message = conversation.append("user", "Leek soup on Thursday.")
    ///     >>> conversation.recall("When do we have soup?")[0].message.seq
    ///     1
    #[pyo3(signature = (question, n = 5))]
    fn recall(&self, py: Python<'_>, question: String, n: usize) -> PyResult<Vec<Recalled>> {
        block(py, self.open()?.recall(question, n))
    }

    /// `recall` for asyncio.
    #[pyo3(signature = (question, n = 5))]
    fn recall_async<'py>(
        &self,
        py: Python<'py>,
        question: String,
        n: usize,
    ) -> PyResult<Bound<'py, PyAny>> {
        awaitable(py, self.open()?.recall(question, n))
    }

    /// Deletes messages for ever by number, each an `int` or a `range`, with everything derived from them. Returns the
    /// numbers that were deleted.
    ///
    ///     >>> messages = [conversation.append("user", text) for text in ("one", "two", "three")]
    ///     >>> conversation.forget(1, range(3, 9))
    ///     [1, 3]
    #[pyo3(signature = (*numbers))]
    fn forget(&self, py: Python<'_>, numbers: &Bound<'_, PyTuple>) -> PyResult<Vec<u64>> {
        block(py, self.open()?.forget(ranges(numbers)?))
    }

    /// `forget` for asyncio.
    #[pyo3(signature = (*numbers))]
    fn forget_async<'py>(
        &self,
        py: Python<'py>,
        numbers: &Bound<'py, PyTuple>,
    ) -> PyResult<Bound<'py, PyAny>> {
        awaitable(py, self.open()?.forget(ranges(numbers)?))
    }

    /// Deletes all messages of all threads for ever. Returns the numbers that were deleted.
    fn forget_all(&self, py: Python<'_>) -> PyResult<Vec<u64>> {
        block(py, self.open()?.forget_all())
    }

    /// `forget_all` for asyncio.
    fn forget_all_async<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        awaitable(py, self.open()?.forget_all())
    }

    /// Loads the model and lets it read the beginning of the next prompt, so that the answer begins sooner. Call it at
    /// the wake word.
    fn prepare(&self, py: Python<'_>) -> PyResult<()> {
        block(py, self.open()?.prepare())
    }

    /// `prepare` for asyncio.
    fn prepare_async<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        awaitable(py, self.open()?.prepare())
    }

    /// Stores an utterance and asks the model. Returns once the utterance is durable; errors of the model come from the
    /// answer, and `retry` asks again. `sentences` makes the texts of the answer whole sentences, for a voice. With
    /// `off_record`, neither the utterance nor the answer is stored.
    ///
    ///     >>> for text in conversation.ask("What's the weather like?", sentences=True):
    ///     ...     print(text)
    ///     It is fine.
    #[pyo3(signature = (text, *, speaker = None, metadata = None, sentences = false, off_record = false))]
    fn ask(
        &self,
        py: Python<'_>,
        text: String,
        speaker: Option<String>,
        metadata: Option<BTreeMap<String, String>>,
        sentences: bool,
        off_record: bool,
    ) -> PyResult<Answer> {
        let details = Details { speaker, metadata, ..Details::default() };
        block(py, self.open()?.ask(text, details, sentences, off_record))
    }

    /// `ask` for asyncio.
    #[pyo3(signature = (text, *, speaker = None, metadata = None, sentences = false, off_record = false))]
    fn ask_async<'py>(
        &self,
        py: Python<'py>,
        text: String,
        speaker: Option<String>,
        metadata: Option<BTreeMap<String, String>>,
        sentences: bool,
        off_record: bool,
    ) -> PyResult<Bound<'py, PyAny>> {
        let details = Details { speaker, metadata, ..Details::default() };
        awaitable(py, self.open()?.ask(text, details, sentences, off_record))
    }

    /// Asks again about the last utterance if it has no whole answer, without storing it twice. Raises `InvalidError` if
    /// every utterance has one.
    #[pyo3(signature = (*, sentences = false))]
    fn retry(&self, py: Python<'_>, sentences: bool) -> PyResult<Answer> {
        block(py, self.open()?.retry(sentences))
    }

    /// `retry` for asyncio.
    #[pyo3(signature = (*, sentences = false))]
    fn retry_async<'py>(&self, py: Python<'py>, sentences: bool) -> PyResult<Bound<'py, PyAny>> {
        awaitable(py, self.open()?.retry(sentences))
    }

    /// Interrupts the answer in progress, and waits until what was spoken of it is stored. The conversation can go on.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        block(py, self.open()?.close())
    }

    /// `close` for asyncio.
    fn close_async<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        awaitable(py, self.open()?.close())
    }

    fn __repr__(&self) -> PyResult<String> {
        Ok(match self.thread()? {
            Some(thread) => format!("<Conversation {} thread={thread:?}>", self.scope()?),
            None => format!("<Conversation {}>", self.scope()?),
        })
    }
}

/// Numbers and ranges of numbers.
fn ranges(numbers: &Bound<'_, PyTuple>) -> PyResult<Vec<RangeInclusive<u64>>> {
    let mut ranges = Vec::new();
    for item in numbers {
        let Ok(range) = item.cast::<PyRange>() else {
            let seq: u64 = item.extract()?;
            ranges.push(seq..=seq);
            continue;
        };
        let field = |name: &str| range.getattr(name)?.extract::<i64>();
        if field("step")? != 1 {
            return Err(invalid("a range of numbers has a step", "give a range without a step"));
        }
        let number = |at: i64| u64::try_from(at).map_err(|_| invalid("a number is negative", ""));
        let (start, stop) = (number(field("start")?)?, number(field("stop")?)?);
        if start < stop {
            ranges.push(start..=stop - 1);
        }
    }
    Ok(ranges)
}
