//! Personas: who the model is in a conversation, and the presets that they are made from.

mod assignment;
mod built_in;
mod preset;

use std::ops::RangeInclusive;

use serde::{Deserialize, Serialize};
use zeroize::Zeroize;

use crate::error::{PersonaFailure, Result};
use crate::message::texts;
pub use assignment::AssignedPersona;
pub use preset::Preset;
pub(crate) use preset::{MOST_PRESETS, in_force};

/// A persona: who the model is, and how it speaks. `Debug` shows no words.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[non_exhaustive]
pub struct Persona {
    /// The system prompt, which starts every prompt: at most 65,536 bytes, and not blank.
    pub system_prompt: String,
    /// The behaviour, which follows the system prompt: at most 16,384 bytes, may be empty.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub personality: String,
    /// The sampling temperature, 0 to 1.
    pub temperature: f64,
    /// The most tokens of an answer, 1 to 1,048,576.
    pub max_tokens: u32,
    /// The most estimated tokens of history in a prompt: 1,000 to 16,777,216.
    pub max_history_tokens: u32,
    /// After how many days without an interaction a context expires, 1 to 36,500.
    pub expiry_days: u32,
}

/// The most bytes of a system prompt.
const LONGEST_SYSTEM_PROMPT: usize = 64 << 10;
/// The most bytes of a personality.
const LONGEST_PERSONALITY: usize = 16 << 10;

impl Persona {
    /// The limits of [`max_tokens`](Self::max_tokens).
    pub const MAX_TOKENS: RangeInclusive<u32> = 1..=1 << 20;
    /// The limits of [`max_history_tokens`](Self::max_history_tokens).
    pub const MAX_HISTORY_TOKENS: RangeInclusive<u32> = 1000..=1 << 24;
    /// The limits of [`expiry_days`](Self::expiry_days).
    pub const EXPIRY_DAYS: RangeInclusive<u32> = 1..=36_500;

    /// Whether its conversation never expires: its [`expiry_days`](Self::expiry_days) are the most there are.
    pub fn is_lasting(&self) -> bool {
        self.expiry_days == *Self::EXPIRY_DAYS.end()
    }

    /// A persona with this system prompt and default values: temperature 0.7, answers of at most 1,000 tokens, 15,000
    /// tokens of history, which suits a window of 16,384 tokens, and expiry after 7 days.
    pub fn new(system_prompt: impl Into<String>) -> Self {
        Self {
            system_prompt: system_prompt.into(),
            personality: String::new(),
            temperature: 0.7,
            max_tokens: 1000,
            max_history_tokens: 15_000,
            expiry_days: 7,
        }
    }

    /// Sets the behaviour.
    #[must_use]
    pub fn personality(mut self, personality: impl Into<String>) -> Self {
        self.personality = personality.into();
        self
    }

    /// The text for the model: the system prompt, then the behaviour if `with_personality` is set and there is one.
    pub fn told(&self, with_personality: bool) -> String {
        let system = &self.system_prompt;
        match self.personality.trim() {
            personality if with_personality && !personality.is_empty() => {
                format!("{system}\n\n{}{personality}", texts::PERSONALITY)
            }
            _ => system.clone(),
        }
    }

    /// Checks that every field is within its limits.
    ///
    /// # Errors
    /// [`PersonaFailure::Invalid`] names the first field that is not.
    pub fn check(&self) -> Result<()> {
        let text = |field, text: &str, most: usize| {
            within(text.len() <= most, field, || {
                format!("has {} bytes; the limit is {most}", text.len())
            })
        };
        let number = |field, number: u32, limits: RangeInclusive<u32>| {
            within(limits.contains(&number), field, || {
                format!("{number} is not from {} to {}", limits.start(), limits.end())
            })
        };
        within(!self.system_prompt.trim().is_empty(), "systemPrompt", || "is blank".to_owned())?;
        text("systemPrompt", &self.system_prompt, LONGEST_SYSTEM_PROMPT)?;
        text("personality", &self.personality, LONGEST_PERSONALITY)?;
        within((0.0..=1.0).contains(&self.temperature), "temperature", || {
            format!("{} is not from 0 to 1", self.temperature)
        })?;
        number("maxTokens", self.max_tokens, Self::MAX_TOKENS)?;
        number("maxHistoryTokens", self.max_history_tokens, Self::MAX_HISTORY_TOKENS)?;
        number("expiryDays", self.expiry_days, Self::EXPIRY_DAYS)
    }
}

/// Fails if a field's value is outside its limits.
pub(crate) fn within(
    is_within: bool,
    field: &'static str,
    reason: impl FnOnce() -> String,
) -> Result<()> {
    match is_within {
        true => Ok(()),
        false => Err(PersonaFailure::Invalid { field, reason: reason() }.into()),
    }
}

/// The most bytes of a name.
pub(crate) const LONGEST_NAME: usize = 200;

/// Fails if a name is blank, too long or has several lines.
pub(crate) fn check_name(name: &str) -> Result<()> {
    const LONGEST: usize = LONGEST_NAME;
    within(!name.trim().is_empty(), "name", || "is blank".to_owned())?;
    within(name.len() <= LONGEST, "name", || {
        format!("has {} bytes; the limit is {LONGEST}", name.len())
    })?;
    within(!name.chars().any(char::is_control), "name", || "holds control characters".to_owned())
}

/// The beginning of a text with at most `most` bytes.
pub(crate) fn cut(text: &str, most: usize) -> &str {
    let end = (0..=most.min(text.len())).rev().find(|end| text.is_char_boundary(*end));
    end.and_then(|end| text.get(..end)).unwrap_or_default()
}

debug_shows!(Persona: temperature, max_tokens, max_history_tokens, expiry_days);

impl Drop for Persona {
    fn drop(&mut self) {
        self.system_prompt.zeroize();
        self.personality.zeroize();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Error;

    #[test]
    fn figures_outside_their_limits_are_refused_by_name_and_those_at_the_limits_are_not() {
        let persona = || Persona::new("Be brief.");
        type Change = fn(&mut Persona);
        let good: [Change; 6] = [
            |p| p.temperature = 0.0,
            |p| p.temperature = 1.0,
            |p| p.max_tokens = 1,
            |p| p.max_history_tokens = 1000,
            |p| p.expiry_days = 36_500,
            |p| p.personality = "x".repeat(LONGEST_PERSONALITY),
        ];
        for change in good {
            let mut persona = persona();
            change(&mut persona);
            persona.check().unwrap();
        }
        let bad: [(Change, &str); 8] = [
            (|p| p.temperature = 1.01, "temperature"),
            (|p| p.temperature = -0.1, "temperature"),
            (|p| p.temperature = f64::NAN, "temperature"),
            (|p| p.max_tokens = 0, "maxTokens"),
            (|p| p.max_history_tokens = 999, "maxHistoryTokens"),
            (|p| p.expiry_days = 0, "expiryDays"),
            (|p| p.system_prompt = " \n".to_owned(), "systemPrompt"),
            (|p| p.system_prompt = "x".repeat(LONGEST_SYSTEM_PROMPT + 1), "systemPrompt"),
        ];
        for (change, named) in bad {
            let mut persona = persona();
            change(&mut persona);
            let error = persona.check().unwrap_err();
            assert!(
                matches!(error, Error::Persona(PersonaFailure::Invalid { field, .. }) if field == named)
            );
        }
    }

    #[test]
    fn the_personality_stands_behind_the_system_prompt_where_it_is_wanted() {
        let persona = Persona::new("You are Mira.").personality("Warm and brief");
        assert_eq!(persona.told(true), "You are Mira.\n\nPersonality: Warm and brief");
        assert_eq!(persona.told(false), "You are Mira.");
        assert_eq!(Persona::new("You are Mira.").personality(" ").told(true), "You are Mira.");
        assert!(!format!("{persona:?}").contains("Mira"));
    }
}
