//! A prompt's characters by script, counted before any rate is known.

use std::ops::AddAssign;

use crate::message::{ChatMessage, ChatRole};

/// Characters by script, and fixed tokens.
///
/// [`TokenRates::tokens`](crate::context::TokenRates::tokens) turns it into tokens. Other rates can be applied later
/// without the texts. It holds no words.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TokenCount {
    latin: u64,
    digit: u64,
    alphabetic: u64,
    syllabic: u64,
    han: u64,
    hangul: u64,
    other: u64,
    fixed: u64,
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
            *self.script(c) += 1;
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

    /// Tokens that do not depend on the text.
    pub fn fixed(&self) -> u64 {
        self.fixed
    }

    /// The characters by script, in the order of the fields of [`TokenRates`](crate::context::TokenRates).
    pub(super) fn by_script(&self) -> [u64; 7] {
        let Self { latin, digit, alphabetic, syllabic, han, hangul, other, fixed: _ } = *self;
        [latin, digit, alphabetic, syllabic, han, hangul, other]
    }

    fn script(&mut self, c: char) -> &mut u64 {
        match c {
            '0'..='9' => &mut self.digit,
            '\0'..='\u{24f}' | '\u{1e00}'..='\u{1eff}' | '\u{2010}'..='\u{2027}' => &mut self.latin,
            '\u{300}'..='\u{36f}' => &mut self.latin,
            '\u{370}'..='\u{52f}' | '\u{600}'..='\u{6ff}' => &mut self.alphabetic,
            '\u{590}'..='\u{5ff}' | '\u{900}'..='\u{109f}' | '\u{1780}'..='\u{17ff}' => {
                &mut self.syllabic
            }
            '\u{ac00}'..='\u{d7a3}' => &mut self.hangul,
            '\u{3000}'..='\u{30ff}' | '\u{3400}'..='\u{9fff}' | '\u{ff00}'..='\u{ffef}' => {
                &mut self.han
            }
            _ => &mut self.other,
        }
    }
}

impl AddAssign for TokenCount {
    fn add_assign(&mut self, more: Self) {
        self.latin = self.latin.saturating_add(more.latin);
        self.digit = self.digit.saturating_add(more.digit);
        self.alphabetic = self.alphabetic.saturating_add(more.alphabetic);
        self.syllabic = self.syllabic.saturating_add(more.syllabic);
        self.han = self.han.saturating_add(more.han);
        self.hangul = self.hangul.saturating_add(more.hangul);
        self.other = self.other.saturating_add(more.other);
        self.add_fixed(more.fixed);
    }
}
