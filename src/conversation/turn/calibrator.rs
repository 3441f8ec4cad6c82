//! How long prompts may be, and what servers' counts have taught about measuring them.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use zeroize::Zeroizing;

use crate::context::tokens::{Calibration, TokenCount, TokenRates};
use crate::error::Result;
use crate::store::{ConversationStore, Document};

/// The rates of one conversation's models. It is kept with the conversation, because it tells which languages are
/// spoken there.
#[derive(Default)]
pub(crate) struct TokenCalibrator {
    /// As it is kept; `None` before it is read.
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
    /// The first message of the histories that the rates in use hold for.
    start: Option<u64>,
}

impl TokenCalibrator {
    /// Reads what is kept, the first time.
    pub(super) async fn read(&mut self, store: &dyn ConversationStore) {
        if self.document.is_some() {
            return;
        }
        let document = match store.read_document(Document::Calibration).await {
            Ok(Some(document)) => serde_json::from_slice(&document).ok(),
            Ok(None) => None,
            Err(error) => {
                // Prompts can do without; `verify` names what is wrong with it.
                tracing::warn!(%error, "what was learnt about the length of texts cannot be read");
                None
            }
        };
        self.document = Some(document.unwrap_or_default());
    }

    pub(super) fn rates(&mut self, model: &str) -> TokenRates {
        self.entry(model).calibration.rates().clone()
    }

    /// Takes in where the history of a prompt starts. Only where it does not start as before, a server has to read
    /// everything anew anyway, and what was learnt comes into use; true where the prompt has to be built again then.
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

    /// Takes in how many tokens a server counted, and learns from it if that is wanted; true where the server seems to
    /// have cut the prompt.
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

    /// Takes in that a prompt was longer than the window, and lets the next one begin with other rates.
    pub(super) fn too_long(&mut self, model: &str, prompt: &TokenCount, window: Option<u32>) {
        let entry = self.entry(model);
        let thought = entry.calibration.thinks(prompt);
        // All that is known of the real count is that it is no less than the window, or than was thought.
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

    /// Saves what has changed.
    pub(super) async fn save(&mut self, store: &dyn ConversationStore) {
        if let Some(document) = self.unsaved() {
            self.note_saved(store.write_document(Document::Calibration, &document).await);
        }
    }

    /// Notes what became of saving the document.
    pub(super) fn note_saved(&mut self, saved: Result<()>) {
        match saved {
            Ok(()) => self.changed = false,
            // It is tried again after the next turn.
            Err(error) => {
                tracing::warn!(%error, "what was learnt about the length of texts is not kept")
            }
        }
    }

    fn entry(&mut self, model: &str) -> &mut ModelCalibration {
        self.document.get_or_insert_default().models.entry(model.to_owned()).or_default()
    }
}
