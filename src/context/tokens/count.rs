//! A prompt's characters by script, counted before any rate is known.

use crate::message::{ChatMessage, ChatRole};

/// Characters by script, and fixed tokens.
///
/// `TokenRates::tokens` turns it into tokens. Other rates can be applied later
/// without the texts. It holds no words.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct TokenCount {
    /// In the order of the fields of [`TokenRates`](crate::context::TokenRates).
    pub(super) by_script: [u64; 7],
    /// Tokens that do not depend on the text.
    pub(super) fixed: u64,
}

/// The tokens that a chat template adds to each message. Llama 3 and ChatML add five.
const WRAPPING: u64 = 5;
/// The tokens of the time before a user's message: seven by the tokenizer of Llama 3, ten if a tokenizer splits
/// digits.
const STAMP: u64 = 10;

impl TokenCount {
    /// Adds a text's characters.
    pub(crate) fn add_text(&mut self, text: &str) {
        for c in text.chars() {
            if let Some(count) = self.by_script.get_mut(script(c)) {
                *count += 1;
            }
        }
    }

    /// Adds a message as a chat renders it, with its time and role.
    pub(crate) fn add_message(&mut self, message: &ChatMessage) {
        self.fixed += WRAPPING;
        self.fixed += match message.role {
            ChatRole::User | ChatRole::System => STAMP,
            ChatRole::Assistant | ChatRole::Tool => 0,
        };
        if let Some(speaker) = message.speaker() {
            self.add_text(speaker);
            self.fixed += 1;
        }
        for call in &message.tool_calls {
            self.fixed += WRAPPING;
            self.add_text(&call.name);
            self.add_text(&call.arguments.to_string());
        }
        self.add_text(&message.content);
    }

    /// Adds tokens that do not depend on the text, such as a list marker.
    pub(crate) fn add_fixed(&mut self, tokens: u64) {
        self.fixed = self.fixed.saturating_add(tokens);
    }
}

/// Where [`by_script`](TokenCount::by_script) counts a character.
fn script(c: char) -> usize {
    match c {
        '0'..='9' => 1,
        '\0'..='\u{24f}' | '\u{1e00}'..='\u{1eff}' | '\u{2010}'..='\u{2027}' => 0,
        '\u{300}'..='\u{36f}' => 0,
        '\u{370}'..='\u{52f}' | '\u{600}'..='\u{6ff}' => 2,
        '\u{590}'..='\u{5ff}' | '\u{900}'..='\u{109f}' | '\u{1780}'..='\u{17ff}' => 3,
        '\u{ac00}'..='\u{d7a3}' => 5,
        '\u{3000}'..='\u{30ff}' | '\u{3400}'..='\u{9fff}' | '\u{ff00}'..='\u{ffef}' => 4,
        _ => 6,
    }
}
