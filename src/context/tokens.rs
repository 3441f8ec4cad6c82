//! Estimates of the tokens of a text, before any model was asked.

mod calibration;
pub(crate) mod count;

use serde::{Deserialize, Serialize};

pub(crate) use calibration::Calibration;
pub(crate) use count::TokenCount;

use crate::message::ChatMessage;

/// Rates in thousandths of a token per character, by script.
///
/// The defaults come from the tokenizer of Llama 3 (128,000 tokens) on a few everyday sentences, rounded up, because
/// smaller vocabularies need more tokens. English alone would cost 225.
///
/// In JSON it is an object of these names. A missing name has its default.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct TokenRates {
    /// Latin letters, and ASCII other than digits.
    latin: u32,
    /// Digits.
    digit: u32,
    /// Cyrillic, Greek and Arabic.
    alphabetic: u32,
    /// Scripts that common vocabularies cover poorly: Hebrew, Indic, Thai and other syllabic ones.
    syllabic: u32,
    /// Chinese characters and kana.
    han: u32,
    /// Hangul.
    hangul: u32,
    /// Everything else: emoji and rare scripts, which tokenizers encode byte by byte.
    other: u32,
}

impl Default for TokenRates {
    fn default() -> Self {
        Self {
            latin: 310,
            digit: 560,
            alphabetic: 450,
            syllabic: 970,
            han: 800,
            hangul: 700,
            other: 2_300,
        }
    }
}

impl TokenRates {
    /// The tokens of a count. Rounds up once, so that several counts added together cost no more than each one alone.
    pub(crate) fn tokens(&self, count: &TokenCount) -> usize {
        let thousandths = count
            .by_script
            .into_iter()
            .zip(self.by_script())
            .fold(0_u64, |sum, (characters, rate)| {
                sum.saturating_add(characters.saturating_mul(rate.into()))
            });
        let tokens = count.fixed.saturating_add(thousandths.div_ceil(1000));
        usize::try_from(tokens).unwrap_or(usize::MAX)
    }

    /// The tokens of a text, rounded up.
    pub fn estimate(&self, text: &str) -> usize {
        let mut count = TokenCount::default();
        count.add_text(text);
        self.tokens(&count)
    }

    /// The tokens of a message as a chat renders it, with its time and role.
    pub(crate) fn estimate_message(&self, message: &ChatMessage) -> usize {
        let mut count = TokenCount::default();
        count.add_message(message);
        self.tokens(&count)
    }

    fn by_script(&self) -> [u32; 7] {
        let Self { latin, digit, alphabetic, syllabic, han, hangul, other } = *self;
        [latin, digit, alphabetic, syllabic, han, hangul, other]
    }

    fn from_scripts([latin, digit, alphabetic, syllabic, han, hangul, other]: [u32; 7]) -> Self {
        Self { latin, digit, alphabetic, syllabic, han, hangul, other }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::ChatRole;

    /// Sentences with their token counts by the tokenizer of Llama 3.
    const COUNTED: [(&str, usize); 7] = [
        ("What's the weather like tomorrow? Could you remind me to buy some milk?", 16),
        (
            "Wie wird das Wetter morgen? Erinnere mich bitte daran, Milch, Eier und Brot zu kaufen, wenn ich das Büro verlasse. Ich glaube, meine Schwester kommt am Samstag zum Abendessen.",
            53,
        ),
        (
            "Какая завтра погода? Напомни мне купить молоко, яйца и хлеб, когда я выйду из офиса. Думаю, в субботу к нам на ужин придёт сестра.",
            52,
        ),
        (
            "מה יהיה מזג האוויר מחר? תזכיר לי לקנות חלב, ביצים ולחם כשאצא מהמשרד. אני חושב שאחותי תבוא לארוחת ערב בשבת.",
            102,
        ),
        (
            "明天的天气怎么样？我离开办公室的时候提醒我买牛奶、鸡蛋和面包。我想我姐姐星期六会来吃晚饭，所以我们需要比平时多买一点。",
            47,
        ),
        (
            "내일 날씨가 어때요? 사무실을 나갈 때 우유, 달걀, 빵을 사라고 알려 주세요. 토요일에 누나가 저녁을 먹으러 올 것 같아요.",
            48,
        ),
        ("2025-08-24 16:36:25 1234567890 42.195 +49 170 1234567", 29),
    ];

    #[test]
    fn estimates_are_no_more_than_half_over_and_a_fifth_under_the_count() {
        let rates = TokenRates::default();
        for (text, counted) in COUNTED {
            let estimate = rates.estimate(text);
            assert!(
                (counted * 8 / 10..=counted * 3 / 2).contains(&estimate),
                "{estimate} for {counted}: {text}"
            );
        }
    }

    #[test]
    fn a_message_costs_its_words_its_wrapping_its_stamp_and_its_speaker() {
        let rates = TokenRates::default();
        let at = "2025-08-24T16:36:25Z".parse().unwrap();
        let words = "What's the weather like tomorrow?";
        let cost = |role| rates.estimate_message(&ChatMessage::at(role, words, at));
        assert_eq!(cost(ChatRole::User), 5 + 10 + rates.estimate(words));
        assert_eq!(cost(ChatRole::Assistant), 5 + rates.estimate(words));
        let spoken = ChatMessage::at(ChatRole::User, words, at).with_metadata("speaker", "Ada");
        assert_eq!(
            rates.estimate_message(&spoken),
            5 + 10 + 1 + rates.estimate(&format!("Ada{words}"))
        );
    }

    #[test]
    fn counts_added_together_are_priced_as_one_and_round_up_once() {
        let rates = TokenRates::default();
        let (mut whole, mut each) = (TokenCount::default(), 0);
        for (text, _) in COUNTED {
            let mut part = TokenCount::default();
            part.add_text(text);
            part.add_fixed(3);
            each += rates.tokens(&part);
            whole.add_text(text);
        }
        whole.add_fixed(21);
        let together = rates.tokens(&whole);
        assert!((each - 6..=each).contains(&together), "{together} for {each}");
    }

    #[test]
    fn absurd_rates_and_counts_do_not_overflow() {
        let rates = TokenRates::from_scripts([u32::MAX; 7]);
        let mut count = TokenCount { by_script: [u64::MAX; 7], fixed: 0 };
        count.add_fixed(u64::MAX);
        assert_eq!(rates.tokens(&count), usize::MAX);
    }

    #[test]
    fn rates_come_back_from_json_and_missing_ones_are_the_defaults() {
        let rates = TokenRates { latin: 1, ..TokenRates::default() };
        let json = serde_json::to_string(&rates).unwrap();
        assert!(json.starts_with(r#"{"latin":1,"digit":560,"#), "{json}");
        assert_eq!(serde_json::from_str::<TokenRates>(&json).unwrap(), rates);
        let sparse = r#"{"latin":1,"invented":2}"#;
        assert_eq!(serde_json::from_str::<TokenRates>(sparse).unwrap(), rates);
    }
}
