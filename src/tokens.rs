//! How many tokens a text will take, before any model has been asked.

use crate::message::{ChatMessage, ChatRole};

/// Thousandths of a token that one character costs, by script.
///
/// The default is the count of a few everyday sentences by the tokenizer of Llama 3 (128,000 tokens), rounded up:
/// smaller vocabularies need more. English alone would cost 225.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TokenRates {
    /// Latin letters, and ASCII other than digits.
    pub latin: u32,
    /// Digits.
    pub digit: u32,
    /// Cyrillic, Greek and Arabic.
    pub alphabetic: u32,
    /// Scripts that common vocabularies know little of: Hebrew, Indic, Thai and other syllabic ones.
    pub syllabic: u32,
    /// Chinese characters and kana.
    pub han: u32,
    /// Hangul.
    pub hangul: u32,
    /// Everything else: emoji and rare scripts, which are spelt out byte by byte.
    pub other: u32,
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

/// What a chat template wraps around each message: Llama 3 and ChatML take five.
const WRAPPING: usize = 5;
/// What the time in front of a user's message takes.
const STAMP: usize = 18;

impl TokenRates {
    /// Tokens of a text, rounded up.
    pub fn estimate(&self, text: &str) -> usize {
        let thousandths: u64 = text.chars().map(|c| u64::from(self.rate(c))).sum();
        usize::try_from(thousandths.div_ceil(1000)).unwrap_or(usize::MAX)
    }

    /// Tokens of a message as a chat renders it, with its time and role.
    pub fn estimate_message(&self, message: &ChatMessage) -> usize {
        let calls: usize = message
            .tool_calls
            .iter()
            .map(|call| {
                WRAPPING + self.estimate(&call.name) + self.estimate(&call.arguments.to_string())
            })
            .sum();
        let stamp = match message.role {
            ChatRole::User | ChatRole::System => STAMP,
            ChatRole::Assistant | ChatRole::Tool => 0,
        };
        let speaker = message.speaker().map_or(0, |speaker| self.estimate(speaker) + 1);
        WRAPPING + stamp + speaker + calls + self.estimate(&message.content)
    }

    fn rate(&self, c: char) -> u32 {
        match c {
            '0'..='9' => self.digit,
            '\0'..='\u{24f}' | '\u{1e00}'..='\u{1eff}' | '\u{2010}'..='\u{2027}' => self.latin,
            '\u{300}'..='\u{36f}' => self.latin,
            '\u{370}'..='\u{52f}' | '\u{600}'..='\u{6ff}' => self.alphabetic,
            '\u{590}'..='\u{5ff}' | '\u{900}'..='\u{109f}' | '\u{1780}'..='\u{17ff}' => {
                self.syllabic
            }
            '\u{ac00}'..='\u{d7a3}' => self.hangul,
            '\u{3000}'..='\u{30ff}' | '\u{3400}'..='\u{9fff}' | '\u{ff00}'..='\u{ffef}' => self.han,
            _ => self.other,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sentences and their count by the tokenizer of Llama 3.
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
}
