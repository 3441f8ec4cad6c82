//! Prompts and their receipts.

use pyo3::prelude::*;
use pyo3::types::PyList;
use sottovoce::model::PromptRenderer;
use sottovoce::prompt as library;

use crate::message::{Message, from_json};

/// A prompt for the host's own model, and its receipt. `messages` is what Ollama's and OpenAI's chats take.
///
///     >>> prompt = conversation.hear("What goes with leeks?")
///     >>> [message["role"] for message in prompt.messages]
///     ['system', 'user']
///     >>> prompt.receipt.used_tokens > 0
///     True
#[pyclass(frozen, get_all, module = "sottovoce")]
#[derive(Debug)]
pub(crate) struct Prompt {
    /// The messages, each a dictionary with `role` and `content`, in the form of the configured server's protocol.
    messages: Py<PyList>,
    /// What is in the prompt, what is not, and why.
    receipt: Py<Receipt>,
    /// The utterance as it is stored; `None` if nothing was stored.
    utterance: Option<Message>,
}

/// A prompt that is not Python's yet, because making it so needs Python.
pub(crate) struct Rendered {
    body: String,
    receipt: library::Receipt,
    utterance: Option<Message>,
}

impl Rendered {
    pub(crate) fn new(
        renderer: &dyn PromptRenderer,
        prompt: &library::Prompt,
        receipt: library::Receipt,
        utterance: Option<Message>,
    ) -> Self {
        Self { body: renderer.render(prompt).body, receipt, utterance }
    }
}

impl<'py> IntoPyObject<'py> for Rendered {
    type Target = Prompt;
    type Output = Bound<'py, Prompt>;
    type Error = PyErr;

    fn into_pyobject(self, py: Python<'py>) -> PyResult<Self::Output> {
        let body = from_json(py, &self.body)?;
        let messages = body.get_item("messages")?.cast_into::<PyList>()?;
        let receipt = Py::new(py, Receipt::from(&self.receipt))?;
        let prompt = Prompt { messages: messages.unbind(), receipt, utterance: self.utterance };
        Bound::new(py, prompt)
    }
}

#[pymethods]
impl Prompt {
    fn __repr__(&self, py: Python<'_>) -> String {
        let messages = self.messages.bind(py).len();
        format!("<Prompt {messages} messages, {} tokens>", self.receipt.get().used_tokens)
    }
}

/// The receipt of a prompt: numbers and reasons, never words. Tokens are estimates.
#[pyclass(frozen, get_all, module = "sottovoce")]
#[derive(Debug)]
pub(crate) struct Receipt {
    /// Tokens of the system prompt.
    system_tokens: usize,
    /// Tokens of the utterance.
    user_tokens: usize,
    /// Tokens of the whole prompt.
    used_tokens: usize,
    /// The most tokens that the prompt may take; `None` without a limit.
    budget_tokens: Option<usize>,
    /// Every message that was offered for the prompt, in its order.
    entries: Vec<ReceiptEntry>,
    /// What could not be read.
    skipped: Vec<String>,
    /// What failed and is missing in the prompt.
    failed: Vec<String>,
}

/// A message that was offered for a prompt.
#[pyclass(frozen, get_all, from_py_object, module = "sottovoce")]
#[derive(Debug, Clone)]
pub(crate) struct ReceiptEntry {
    /// Its number; `None` if it is not a stored message.
    seq: Option<u64>,
    /// Its role.
    role: &'static str,
    /// Its place: `stable`, `history` or `newestTurn`.
    placement: String,
    /// Its tokens.
    tokens: usize,
    /// Why it was offered.
    why: String,
    /// Whether it is in the prompt.
    included: bool,
    /// `included`, or why it is not in the prompt: `duplicate`, `theUtterance`, `otherScope`, `beforeStart`, `cleared`,
    /// `pruned`, `lowConfidence`, `overBudget` or `tooLong`.
    outcome: String,
}

impl From<&library::Receipt> for Receipt {
    fn from(receipt: &library::Receipt) -> Self {
        Self {
            system_tokens: receipt.system_tokens,
            user_tokens: receipt.user_tokens,
            used_tokens: receipt.used_tokens,
            budget_tokens: receipt.budget_tokens,
            entries: receipt.entries.iter().map(ReceiptEntry::from).collect(),
            skipped: receipt.skipped.iter().map(ToString::to_string).collect(),
            failed: receipt.failed.clone(),
        }
    }
}

impl From<&library::ReceiptEntry> for ReceiptEntry {
    fn from(entry: &library::ReceiptEntry) -> Self {
        Self {
            seq: entry.seq,
            role: entry.role.as_str(),
            placement: name(&entry.placement),
            tokens: entry.tokens,
            why: entry.why.clone(),
            included: entry.outcome == library::EntryOutcome::Included,
            outcome: name(&entry.outcome),
        }
    }
}

/// A value's name in JSON.
fn name(value: &impl serde::Serialize) -> String {
    let json = serde_json::to_value(value).unwrap_or_default();
    json.as_str().unwrap_or_default().to_owned()
}

#[pymethods]
impl Receipt {
    fn __repr__(&self) -> String {
        let included = self.entries.iter().filter(|entry| entry.included).count();
        let offered = self.entries.len();
        format!("<Receipt {} tokens, {included} of {offered} messages>", self.used_tokens)
    }
}

#[pymethods]
impl ReceiptEntry {
    fn __repr__(&self) -> String {
        format!("<ReceiptEntry {} {}: {}>", self.role, self.tokens, self.outcome)
    }
}
