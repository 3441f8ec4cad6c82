//! Masking what must not be kept, before it is sealed.

use std::borrow::Cow;
use std::fmt::Debug;

use regex_lite::{Captures, Regex};

use crate::error::{Error, Result};
use crate::message::ChatMessage;

/// Changes a text before it is sealed. What is masked is never on disk, and the prompt shows the masked text too.
pub trait Redactor: Debug + Send + Sync {
    /// The text as it may be kept.
    fn redact<'a>(&self, text: &'a str) -> Cow<'a, str>;
}

/// Masks card numbers (13 to 19 digits with a valid Luhn check digit, ISO/IEC 7812-1), e-mail addresses, and
/// telephone numbers (7 to 15 digits, ITU-T E.164, in the groupings people write). Spelled-out numbers stay.
#[derive(Debug)]
pub struct ContactRedactor {
    email: Regex,
    number: Regex,
    date: Regex,
}

impl ContactRedactor {
    /// A redactor, whose patterns are fixed.
    ///
    /// # Errors
    /// [`Error::Host`] if a pattern does not compile, which its tests exclude.
    pub fn new() -> Result<Self> {
        let pattern = |text| {
            Regex::new(text)
                .map_err(|source| Error::Host { component: "redactor", source: source.into() })
        };
        Ok(Self {
            email: pattern(r"[^\s@<>,;:()\[\]]+@[A-Za-z0-9\-]+(?:\.[A-Za-z0-9\-]+)+")?,
            number: pattern(r"(?:\+|\(\+?)?[0-9](?:[ .\-/()]{0,2}[0-9]){6,}")?,
            date: pattern(
                r"^(?:[0-9]{4}[-./][0-9]{1,2}[-./][0-9]{1,2}|[0-9]{1,2}[-./][0-9]{1,2}[-./][0-9]{4})(?:[ .-][0-9]{1,2})?$",
            )?,
        })
    }

    fn mask_number(&self, text: &str) -> Option<&'static str> {
        let digits: Vec<u32> = text.chars().filter_map(|c| c.to_digit(10)).collect();
        match digits.len() {
            13..=19 if luhn(&digits) => Some("[card number]"),
            7..=15 if !self.date.is_match(text) => Some("[phone number]"),
            _ => None,
        }
    }
}

impl Redactor for ContactRedactor {
    fn redact<'a>(&self, text: &'a str) -> Cow<'a, str> {
        let without_email = self.email.replace_all(text, "[e-mail address]");
        let masked = self.number.replace_all(&without_email, |found: &Captures<'_>| {
            let number = found.get(0).map_or("", |m| m.as_str());
            self.mask_number(number).map_or_else(|| number.to_owned(), str::to_owned)
        });
        match masked {
            Cow::Owned(text) => Cow::Owned(text),
            Cow::Borrowed(_) => without_email,
        }
    }
}

/// The check digit of ISO/IEC 7812-1.
fn luhn(digits: &[u32]) -> bool {
    let sum: u32 = digits
        .iter()
        .rev()
        .enumerate()
        .map(|(place, &digit)| match (place % 2, digit) {
            (0, digit) => digit,
            (_, digit) if digit > 4 => digit * 2 - 9,
            (_, digit) => digit * 2,
        })
        .sum();
    sum.is_multiple_of(10)
}

/// Redacts a message's words and its tool calls' arguments.
pub(crate) fn redact_message(redactor: &dyn Redactor, message: &mut ChatMessage) {
    redact_text(redactor, &mut message.content);
    for call in &mut message.tool_calls {
        redact_value(redactor, &mut call.arguments);
    }
}

fn redact_value(redactor: &dyn Redactor, value: &mut serde_json::Value) {
    use serde_json::Value::{Array, Object, String};
    match value {
        String(text) => redact_text(redactor, text),
        Array(items) => items.iter_mut().for_each(|item| redact_value(redactor, item)),
        Object(fields) => fields.values_mut().for_each(|field| redact_value(redactor, field)),
        _ => {}
    }
}

fn redact_text(redactor: &dyn Redactor, text: &mut String) {
    if let Cow::Owned(redacted) = redactor.redact(text) {
        zeroize::Zeroize::zeroize(text);
        *text = redacted;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cards_addresses_and_telephone_numbers_are_masked() {
        let redactor = ContactRedactor::new().unwrap();
        for (text, masked) in [
            ("card 4111 1111 1111 1111 please", "card [card number] please"),
            ("5500-0000-0000-0004", "[card number]"),
            ("mail anna.b+x@mail.example.org now", "mail [e-mail address] now"),
            ("call +49 (170) 1234567 or 555-123-4567.", "call [phone number] or [phone number]."),
            ("(030) 123 456 78", "[phone number]"),
        ] {
            assert_eq!(redactor.redact(text), masked);
        }
    }

    #[test]
    fn dates_times_prices_and_plain_words_stay() {
        let redactor = ContactRedactor::new().unwrap();
        for text in [
            "on 2025-08-24 at 16:36:25",
            "24.08.2025",
            "2025-08-24 18",
            "it costs 1,299.95 or 42",
            "set a timer for 45 minutes @ home",
            "room 101, floor 3, 2 people",
        ] {
            assert_eq!(redactor.redact(text), text);
        }
    }
}
