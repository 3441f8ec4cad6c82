//! Messages as Python sees them, and messages that Python makes.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Zoned;
use jiff::tz::{Offset, TimeZone};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use sottovoce::context::recall::RecallHit;
use sottovoce::{ChatMessage, Source, StoredMessage, ToolCall};

use crate::error::invalid;

/// A stored message. Its number, `seq`, stands for it in `Conversation.get` and `Conversation.forget`.
///
/// `repr` and log lines show its shape and never its words.
///
///     >>> message = conversation.append("user", "Tea at four.", metadata={"device": "kitchen"})
///     >>> message.role, message.content, message.metadata
///     ('user', 'Tea at four.', {'device': 'kitchen'})
#[pyclass(frozen, module = "sottovoce")]
#[derive(Debug, Clone)]
pub(crate) struct Message(pub(crate) Arc<StoredMessage>);

#[pymethods]
impl Message {
    /// The number in the conversation, from 1. A number is never given twice.
    #[getter]
    fn seq(&self) -> u64 {
        self.0.seq
    }

    /// `user`, `assistant`, `system` or `tool`.
    #[getter]
    fn role(&self) -> &'static str {
        self.0.message.role.as_str()
    }

    /// The words.
    #[getter]
    fn content(&self) -> &str {
        &self.0.message.content
    }

    /// When it was said, with the speaker's offset from UTC if that is known, to the microsecond.
    #[getter]
    fn time(&self) -> Zoned {
        let minutes = i32::from(self.0.message.offset_minutes.unwrap_or(0));
        let offset = Offset::from_seconds(minutes * 60).unwrap_or(Offset::UTC);
        self.0.message.timestamp.to_zoned(TimeZone::fixed(offset))
    }

    /// The thread in the conversation, or `None`.
    #[getter]
    fn thread(&self) -> Option<&str> {
        self.0.message.thread_id.as_deref()
    }

    /// The metadata, a new dictionary each time.
    #[getter]
    fn metadata(&self) -> BTreeMap<String, String> {
        self.0.message.metadata.clone()
    }

    /// Who said it, if the host has said so.
    #[getter]
    fn speaker(&self) -> Option<&str> {
        self.0.message.speaker()
    }

    /// Why an answer is incomplete: `interrupted`, `failed` or `length`; `None` if it is complete.
    #[getter]
    fn cut_off(&self) -> Option<&str> {
        self.0.message.cut_off()
    }

    /// The functions that an assistant's message calls, each with `id`, `name` and `arguments`.
    #[getter]
    fn tool_calls<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyDict>>> {
        let calls = self.0.message.tool_calls.iter();
        calls
            .map(|call| {
                let dict = PyDict::new(py);
                dict.set_item("id", &call.id)?;
                dict.set_item("name", &call.name)?;
                dict.set_item("arguments", from_json(py, &call.arguments.to_string())?)?;
                Ok(dict)
            })
            .collect()
    }

    /// The call that a tool's message answers, or `None`.
    #[getter]
    fn tool_call_id(&self) -> Option<&str> {
        self.0.message.tool_call_id.as_deref()
    }

    fn __repr__(&self) -> String {
        let characters = self.0.message.content.chars().count();
        format!("<Message {} {}, {characters} characters>", self.seq(), self.role())
    }
}

/// A message that fits a question, as `Conversation.recall` finds it.
#[pyclass(frozen, get_all, module = "sottovoce")]
#[derive(Debug)]
pub(crate) struct Recalled {
    /// The message.
    message: Message,
    /// How well it fits. Scores of different questions may be compared.
    score: f32,
    /// The question's words that stand in it or near it.
    words: Vec<String>,
}

impl From<RecallHit> for Recalled {
    fn from(found: RecallHit) -> Self {
        let words = found.hit.why.words.iter().map(|(word, _)| word.clone()).collect();
        Self { message: Message(found.stored), score: found.hit.score, words }
    }
}

#[pymethods]
impl Recalled {
    fn __repr__(&self) -> String {
        format!("<Recalled {} score={:.2}>", self.message.seq(), self.score)
    }
}

/// What a caller may say of a message besides its words.
#[derive(Default)]
pub(crate) struct Details {
    pub(crate) speaker: Option<String>,
    pub(crate) metadata: Option<BTreeMap<String, String>>,
    pub(crate) time: Option<Zoned>,
    pub(crate) tool_calls: Vec<ToolCall>,
    pub(crate) tool_call_id: Option<String>,
}

impl Details {
    /// Adds them to a message.
    pub(crate) fn add_to(self, mut message: ChatMessage) -> PyResult<ChatMessage> {
        message.metadata.extend(self.metadata.unwrap_or_default());
        if let Some(speaker) = self.speaker {
            message.metadata.insert("speaker".to_owned(), speaker);
        }
        if let Some(time) = self.time {
            message.timestamp = time.timestamp();
            message.offset_minutes = Some(
                i16::try_from(time.offset().seconds() / 60)
                    .map_err(|_| invalid("the time's offset is too large", "correct it"))?,
            );
        }
        message.tool_calls = self.tool_calls;
        message.tool_call_id = self.tool_call_id;
        Ok(message.else_from(Source::Typed))
    }
}

/// A function call in a dictionary with `id`, `name` and `arguments`.
pub(crate) fn tool_call(call: &Bound<'_, PyDict>) -> PyResult<ToolCall> {
    let json: String = call.py().import("json")?.call_method1("dumps", (call,))?.extract()?;
    serde_json::from_str(&json).map_err(|_| {
        invalid("a call of a function cannot be stored", "give it `id`, `name` and `arguments`")
    })
}

/// Python's form of a JSON text.
pub(crate) fn from_json<'py>(py: Python<'py>, json: &str) -> PyResult<Bound<'py, PyAny>> {
    py.import("json")?.call_method1("loads", (json,))
}
