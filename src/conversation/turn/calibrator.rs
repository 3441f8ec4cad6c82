//! Prompt length: the token rates of a conversation's models, learnt from servers' counts.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use zeroize::Zeroizing;

use crate::context::tokens::{Calibration, TokenCount, TokenRates};
use crate::error::Result;
use crate::store::{ConversationStore, Document};

/// The token rates of one conversation's models. They are stored with the conversation, because they depend on the
/// languages spoken in it.
#[derive(Default)]
pub(crate) struct TokenCalibrator {
    /// The stored document; `None` until it is read.
    document: Option<CalibrationDocument>,
    changed: bool,
}

#[derive(Default, Serialize, Deserialize)]
#[serde(default)]
struct CalibrationDocument {
    models: BTreeMap<String, ModelCalibration>,
}

#[derive(Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct ModelCalibration {
    #[serde(flatten)]
    calibration: Calibration,
    /// The number of the first message of the history for which the rates in use were adopted.
    start: Option<u64>,
}

impl TokenCalibrator {
    /// Reads the stored document the first time.
    pub(super) async fn read(&mut self, store: &dyn ConversationStore) {
        if self.document.is_some() {
            return;
        }
        let document = match store.read_document(Document::Calibration).await {
            Ok(Some(document)) => serde_json::from_slice(&document).ok(),
            Ok(None) => None,
            Err(error) => {
                // Prompts work without it; `verify` reports what is wrong.
                tracing::warn!(%error, "what was learnt about the length of texts cannot be read");
                None
            }
        };
        self.document = Some(document.unwrap_or_default());
    }

    pub(super) fn rates(&mut self, model: &str) -> TokenRates {
        self.entry(model).calibration.rates().clone()
    }

    /// Notes where the history of a prompt starts. If the start has moved, a server reads everything again anyway, so
    /// the learnt rates come into use. Returns true if the prompt must be built again.
    pub(super) fn starts(&mut self, model: &str, start: Option<u64>) -> bool {
        let start = start.unwrap_or(0);
        let entry = self.entry(model);
        if entry.start == Some(start) {
            return false;
        }
        entry.start = Some(start);
        let adopted = entry.calibration.adopt();
        self.changed |= entry.calibration.has_learnt();
        adopted
    }

    /// Notes the start of a prompt that was built again.
    pub(super) fn started(&mut self, model: &str, start: Option<u64>) {
        self.entry(model).start = Some(start.unwrap_or(0));
    }

    /// Takes a server's count, and learns from it if `learn` is set. Returns true if the server seems to have cut the
    /// prompt.
    pub(super) fn take_in(
        &mut self,
        model: &str,
        prompt: &TokenCount,
        counted: u64,
        window: Option<u32>,
        teaches: bool,
    ) -> bool {
        let cut = self.entry(model).calibration.is_cut(prompt, counted, window);
        if cut && teaches {
            self.too_long(model, prompt, window);
        } else if teaches {
            self.changed |= self.entry(model).calibration.learn(prompt, counted);
        }
        cut
    }

    /// Notes that a prompt was longer than the window, and lets the next one begin with other rates.
    pub(super) fn too_long(&mut self, model: &str, prompt: &TokenCount, window: Option<u32>) {
        let entry = self.entry(model);
        let thought = entry.calibration.thinks(prompt);
        // The real count is known only to be at least the window, or the estimate.
        let least = window.map_or(thought + thought / 4, u64::from);
        if thought < least {
            entry.calibration.learn(prompt, least);
        }
        entry.start = None;
        self.changed = true;
    }

    /// The document to be saved; `None` if nothing has changed.
    pub(super) fn unsaved(&self) -> Option<Zeroizing<Vec<u8>>> {
        let document = self.document.as_ref().filter(|_| self.changed)?;
        serde_json::to_vec(document).ok().map(Zeroizing::new)
    }

    /// Saves the document if it has changed.
    pub(super) async fn save(&mut self, store: &dyn ConversationStore) {
        if let Some(document) = self.unsaved() {
            self.note_saved(store.write_document(Document::Calibration, &document).await);
        }
    }

    /// Notes the result of saving the document.
    pub(super) fn note_saved(&mut self, saved: Result<()>) {
        match saved {
            Ok(()) => self.changed = false,
            // The next turn tries again.
            Err(error) => {
                tracing::warn!(%error, "what was learnt about the length of texts is not kept")
            }
        }
    }

    fn entry(&mut self, model: &str) -> &mut ModelCalibration {
        self.document.get_or_insert_default().models.entry(model.to_owned()).or_default()
    }
}
