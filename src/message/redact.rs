//! Redaction: masks personal data before it is sealed.

mod numbers;

use std::borrow::Cow;
use std::fmt::Debug;
use std::ops::Range;

use regex_lite::Regex;
use zeroize::{Zeroize, Zeroizing};

use crate::error::{Error, Result};
use crate::message::ChatMessage;
use numbers::{Plain, cards, phones};

/// Changes a text before it is sealed. The masked parts never reach the disk, and prompts show the masked text too.
pub trait Redactor: Debug + Send + Sync {
    /// Returns the text to store.
    fn redact<'a>(&self, text: &'a str) -> Cow<'a, str>;
}

/// Masks card numbers, e-mail addresses and telephone numbers.
///
/// - Card numbers have 13 to 19 digits and a valid check digit (ISO/IEC 7812-1), in any groups.
/// - Telephone numbers (ITU-T E.164) start with `+`, `00` or a `0` and have at least nine digits, or are written
///   555-123-4567, (555) 123 4567 or 555-1234.
///
/// Numbers spelt out in words stay, and so do telephone numbers in other forms: a bare 5551234567 may be anything. One
/// in ten long numbers has a valid check digit by chance and is masked too.
#[derive(Debug)]
pub struct ContactRedactor {
    email: Regex,
    row: Regex,
    phone: Regex,
    abroad: Regex,
    date: Regex,
}

/// A number with a country code.
const PHONE_ABROAD: &str = r"\(?(?:\+|00)[1-9](?:[ .\-/()]{0,3}[0-9]){6,14}";

const PHONE_FORMS: [&str; 3] = [
    // A number with a trunk prefix and at least nine digits.
    r"\(?0[1-9](?:[ .\-/)]{0,2}[0-9]){7,12}",
    // A North American number.
    r"(?:1[ .\-])?\(?[0-9]{3}\)?[ .\-][0-9]{3}[ .\-]?[0-9]{4}",
    r"[0-9]{3}-[0-9]{4}",
];

impl ContactRedactor {
    /// A redactor, whose patterns are fixed.
    ///
    /// # Errors
    /// [`Error::Host`] if a pattern does not compile, which its tests exclude.
    pub fn new() -> Result<Self> {
        let pattern = |text: &str| {
            Regex::new(text)
                .map_err(|source| Error::Host { component: "redactor", source: source.into() })
        };
        Ok(Self {
            email: pattern(
                r#"[^\s@<>,;:()\[\]"']+@[^\s@<>,;:()\[\]"'.]+(?:\.[^\s@<>,;:()\[\]"'.!?]+)+"#,
            )?,
            row: pattern(r"[0-9](?:[ .\-/]{0,3}[0-9]){12,}")?,
            phone: pattern(&PHONE_FORMS.join("|"))?,
            abroad: pattern(PHONE_ABROAD)?,
            date: pattern(r"^\(?[0-9]{1,4}[-./][0-9]{1,2}[-./][0-9]{1,4}(?:[ .-][0-9]{1,2})*$")?,
        })
    }
}

impl Redactor for ContactRedactor {
    fn redact<'a>(&self, text: &'a str) -> Cow<'a, str> {
        let addresses = self.email.find_iter(text).map(|found| found.range()).collect();
        let text = replace(Cow::Borrowed(text), addresses, "[e-mail address]");
        // An international number may contain digits that look like a card number.
        let found = phones(&Plain::of(&text), &self.abroad, &self.date);
        let text = replace(text, found, "[phone number]");
        let found = cards(&Plain::of(&text), &self.row);
        let text = replace(text, found, "[card number]");
        let found = phones(&Plain::of(&text), &self.phone, &self.date);
        replace(text, found, "[phone number]")
    }
}

fn replace<'a>(text: Cow<'a, str>, found: Vec<Range<usize>>, mask: &str) -> Cow<'a, str> {
    if found.is_empty() {
        return text;
    }
    let mut masked = String::with_capacity(text.len() + found.len() * mask.len());
    let mut kept = 0;
    for range in found {
        masked.push_str(text.get(kept..range.start).unwrap_or_default());
        masked.push_str(mask);
        kept = range.end;
    }
    masked.push_str(text.get(kept..).unwrap_or_default());
    if let Cow::Owned(before) = text {
        drop(Zeroizing::new(before));
    }
    Cow::Owned(masked)
}

/// Redacts a message's words and its tool calls' arguments.
pub(crate) fn redact_message(redactor: &dyn Redactor, message: &mut ChatMessage) {
    redact_text(redactor, &mut message.content);
    for call in &mut message.tool_calls {
        redact_value(redactor, &mut call.arguments);
    }
}

fn redact_value(redactor: &dyn Redactor, value: &mut serde_json::Value) {
    use serde_json::Value::{Array, Number, Object, String};
    match value {
        String(text) => redact_text(redactor, text),
        Number(number) => {
            let text = Zeroizing::new(number.to_string());
            if let Cow::Owned(masked) = redactor.redact(&text) {
                *value = String(masked);
            }
        }
        Array(items) => items.iter_mut().for_each(|item| redact_value(redactor, item)),
        Object(fields) => fields.values_mut().for_each(|field| redact_value(redactor, field)),
        _ => {}
    }
}

fn redact_text(redactor: &dyn Redactor, text: &mut String) {
    if let Cow::Owned(redacted) = redactor.redact(text) {
        text.zeroize();
        *text = redacted;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn mask(text: &str) -> String {
        ContactRedactor::new().unwrap().redact(text).into_owned()
    }

    #[test]
    fn card_numbers_are_masked_however_they_are_grouped() {
        for (text, masked) in [
            ("card 4111 1111 1111 1111 12/26", "card [card number] 12/26"),
            ("pay with 4111111111111111 123", "pay with [card number] 123"),
            ("4111–1111–1111–1111", "[card number]"),
            ("4111 - 1111 - 1111 - 1111", "[card number]"),
            ("5500-0000-0000-0004.", "[card number]."),
            ("4 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1", "[card number]"),
            ("3782 822463 10005", "[card number]"),
            ("4111.1111.1111.1111", "[card number]"),
            ("4111/1111/1111/1111", "[card number]"),
            ("6304 0000 0000 0000 000 ok", "[card number] ok"),
            ("٤١١١ ١١١١ ١١١١ ١١١١", "[card number]"),
            ("４１１１－１１１１－１１１１－１１１１", "[card number]"),
            ("4111\u{a0}1111\u{202f}1111\u{2009}1111", "[card number]"),
            ("4111 1111 1111 1111 555-123-4567", "[card number] [phone number]"),
        ] {
            assert_eq!(mask(text), masked);
        }
    }

    #[test]
    fn telephone_numbers_are_masked_as_people_write_them() {
        for (text, masked) in [
            ("555-123-4567 555-987-6543", "[phone number] [phone number]"),
            ("+49 (170) 1234567", "[phone number]"),
            ("(030) 123 456 78", "[phone number]"),
            ("0049 170 1234567", "[phone number]"),
            ("tel. 089/123456-12", "tel. [phone number]"),
            ("call 555-123-4567.", "call [phone number]."),
            ("(555) 123-4567, (555-123-4567)", "[phone number], [phone number])"),
            ("1-800-555-1234 or 555.123.4567", "[phone number] or [phone number]"),
            ("01 23 45 67 89", "[phone number]"),
            ("01701234567 on 24.08.2025", "[phone number] on 24.08.2025"),
            ("555‑1234", "[phone number]"),
            ("+49 170 1234567 10115 Berlin", "[phone number] 10115 Berlin"),
            ("0170 1234567 10115 Berlin", "[phone number] 10115 Berlin"),
            ("+491701234567 2025-08-24", "[phone number] 2025-08-24"),
        ] {
            assert_eq!(mask(text), masked);
        }
    }

    #[test]
    fn addresses_are_masked_without_the_signs_around_them() {
        for (text, masked) in [
            ("anna@müller.de", "[e-mail address]"),
            ("anna.b+x@mail.example.org now", "[e-mail address] now"),
            ("<bob@example.com>", "<[e-mail address]>"),
            ("Write to bob@example.com.", "Write to [e-mail address]."),
            ("иван@почта.рф!", "[e-mail address]!"),
        ] {
            assert_eq!(mask(text), masked);
        }
    }

    #[test]
    fn dates_times_amounts_and_other_numbers_stay() {
        for text in [
            "on 2025-08-24 at 16:36:25",
            "2025-08-24 18",
            "24.08.2025",
            "04.08.2025 16 30",
            "20250824",
            "2024-2025",
            "1990 1995 2000",
            "192.168.100.200",
            "10 000 000 euros",
            "1,299.95",
            "1234567",
            "1724517385",
            "4111 1111 1111 1112",
            "123456789012345678",
            "set a timer for 45 minutes @ home",
            "room 101, floor 3, 2 people",
        ] {
            assert_eq!(mask(text), text);
        }
    }

    #[test]
    fn tool_calls_are_masked_too() {
        let redactor = ContactRedactor::new().unwrap();
        let mut value =
            serde_json::json!({"card": 4111111111111111u64, "to": ["+49 170 1234567", 7, 0.5]});
        redact_value(&redactor, &mut value);
        let masked = serde_json::json!({"card": "[card number]", "to": ["[phone number]", 7, 0.5]});
        assert_eq!(value, masked);
    }

    proptest! {
        #[test]
        fn words_without_digits_or_addresses_stay(text in "[^0-9@\\p{Nd}]{0,80}") {
            prop_assert_eq!(mask(&text), text);
        }

        #[test]
        fn what_is_masked_once_stays_as_it_is(text in "[0-9 +()./a@-]{0,60}") {
            let once = mask(&text);
            prop_assert_eq!(mask(&once), once);
        }
    }
}
