//! Calibration: learns token rates from the counts of a model server.

use serde::{Deserialize, Serialize};

use super::{TokenCount, TokenRates};

/// The part of an error that one prompt corrects. With a half, a few prompts suffice, and a count that is off by 3 %
/// moves the rates by 1.5 %.
const STEP: f64 = 0.5;
/// How much the fixed tokens damp the learning. They are estimates too. If they outweigh the words, their error must
/// not change the rates of the words.
const DOUBT: f64 = 2.0;
/// Shorter prompts teach nothing: the tokens of the chat template outweigh those of the words.
const LEAST: u64 = 50;
/// Rates stay between a quarter of the defaults and this many times the defaults. No known tokenizer lies outside.
const RANGE: u32 = 4;
/// The number of prompts after which the rates count as learnt. Five halvings leave 3 % of an error.
const SAMPLES: u32 = 5;
/// The safety margin in percent that is added when learnt rates come into use. A rate that is too low costs the start
/// of a prompt, one that is too high costs a message or two.
const MARGIN: u64 = 5;
/// A change of a prompt's estimate is worth saving beyond this many percent.
const WORTH_KEEPING: usize = 2;

/// What one model's token counts have taught, for one conversation.
///
/// It is a least-mean-squares filter (Widrow and Hoff, Adaptive switching circuits, 1960), normalised and regularised
/// as in Haykin, Adaptive Filter Theory. Its inputs are the current costs of each script; its weights are the
/// relative changes of the rates. It uses only addition, multiplication, division and rounding of IEEE 754 doubles,
/// so that every machine learns the same.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(from = "Kept", into = "Kept")]
pub(crate) struct Calibration {
    used: TokenRates,
    learned: TokenRates,
    samples: u32,
    /// The learnt rates when saving them was last worthwhile.
    kept: TokenRates,
}

/// The stored form of a calibration.
#[derive(Serialize, Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct Kept {
    used: TokenRates,
    learned: TokenRates,
    samples: u32,
}

/// Calibrations are equal if their stored forms are equal.
impl PartialEq for Calibration {
    fn eq(&self, other: &Self) -> bool {
        (&self.used, &self.learned, self.samples) == (&other.used, &other.learned, other.samples)
    }
}

impl From<Kept> for Calibration {
    fn from(Kept { used, learned, samples }: Kept) -> Self {
        let learned = each(&learned, |rate| rate);
        Self { used: each(&used, |rate| rate), kept: learned.clone(), learned, samples }
    }
}

impl From<Calibration> for Kept {
    fn from(Calibration { used, learned, samples, kept: _ }: Calibration) -> Self {
        Self { used, learned, samples }
    }
}

impl Calibration {
    /// The rates in use: thousandths of a token per character.
    pub(crate) fn rates(&self) -> &TokenRates {
        &self.used
    }

    /// Whether any prompt has changed the rates.
    pub(crate) fn has_learnt(&self) -> bool {
        self.samples > 0
    }

    /// The expected tokens of a prompt, without the safety margin.
    pub(crate) fn thinks(&self, prompt: &TokenCount) -> u64 {
        price(&self.learned, prompt)
    }

    /// Learns from the server's count for a prompt that it read completely; check [`is_cut`](Self::is_cut) first.
    /// Returns true if the result is worth saving: the prompt's estimate has moved by more than 2 % since the last
    /// true, or the rates now count as learnt.
    ///
    /// Prompts under 50 tokens teach nothing. Neither do counts under a quarter or over four times the default
    /// estimate: some servers count only the tokens that were not cached.
    pub(crate) fn learn(&mut self, prompt: &TokenCount, counted: u64) -> bool {
        let default = price(&TokenRates::default(), prompt);
        let possible = default / u64::from(RANGE)..=default.saturating_mul(RANGE.into());
        if counted < LEAST || !possible.contains(&counted) {
            return false;
        }
        let shares = prompt
            .by_script
            .into_iter()
            .zip(self.learned.by_script())
            .map(|(characters, rate)| characters as f64 * f64::from(rate) / 1000.0);
        let sum: f64 = shares.clone().sum();
        if sum <= 0.0 {
            return false;
        }
        let fixed = prompt.fixed as f64;
        let doubt = fixed / DOUBT;
        let squares = shares.clone().fold(doubt * doubt, |squares, share| squares + share * share);
        let error = counted as f64 - fixed - sum;
        let mut changes = shares.map(|share| 1.0 + STEP * error * share / squares);
        self.learned = each(&self.learned, |rate| {
            let learnt = f64::from(rate) * changes.next().unwrap_or(1.0);
            // Out of range saturates; the range is clamped afterwards.
            learnt.round() as u32
        });
        self.samples = self.samples.saturating_add(1);
        let (before, now) = (self.kept.tokens(prompt), self.learned.tokens(prompt));
        let is_worth_keeping = self.samples == SAMPLES
            || now.abs_diff(before).saturating_mul(100) > before.saturating_mul(WORTH_KEEPING);
        if is_worth_keeping {
            self.kept = self.learned.clone();
        }
        is_worth_keeping
    }

    /// Puts the learnt rates into use, with a margin of 5 %. Returns true if the rates changed. Call it only when a
    /// block of history is dropped anyway, because other rates may move the start of the prompt.
    pub(crate) fn adopt(&mut self) -> bool {
        if self.samples == 0 {
            return false;
        }
        let used = each(&self.learned, |rate| {
            let safe = (u64::from(rate) * (100 + MARGIN)).div_ceil(100);
            u32::try_from(safe).unwrap_or(u32::MAX)
        });
        let changed = used != self.used;
        self.used = used;
        changed
    }

    /// Whether the server seems to have read less than the whole prompt. `counted` is the server's count, `window`
    /// the model's window.
    ///
    /// Ollama does not report a cut. It drops whole messages, oldest first, until the rest fits. It then cuts what is
    /// still too long to the window (older versions), or to its first 4 tokens and half of the remaining window. A
    /// prompt therefore counts as cut if:
    ///
    /// - the count fills the window except for at most one token, which would leave no room for an answer;
    /// - the count is within 8 of window / 2 + 2, and the estimate exceeds the window. Even default rates are not
    ///   wrong by a factor of two;
    /// - five prompts have been learnt from, the estimate is at least 90 % of the window, and more than 15 % of it
    ///   are missing. Learnt rates are off by some percent, and dropped messages seldom take less;
    /// - the window is unknown, five prompts have been learnt from, and more than half is missing.
    ///
    /// One short message dropped from a prompt that was only slightly too long goes unnoticed.
    pub(crate) fn is_cut(&self, prompt: &TokenCount, counted: u64, window: Option<u32>) -> bool {
        let thought = self.thinks(prompt);
        let is_learnt = self.samples >= SAMPLES;
        let is_under = |percent: u64| {
            is_learnt && counted.saturating_mul(100) < thought.saturating_mul(percent)
        };
        let Some(window) = window.map(u64::from) else {
            return is_under(50);
        };
        let is_full = counted.saturating_add(1) >= window;
        let is_halved = counted.abs_diff(window / 2 + 2) <= 8 && thought > window;
        let is_long = thought.saturating_mul(10) >= window.saturating_mul(9);
        is_full || is_halved || is_long && is_under(85)
    }
}

fn price(rates: &TokenRates, prompt: &TokenCount) -> u64 {
    u64::try_from(rates.tokens(prompt)).unwrap_or(u64::MAX)
}

/// Applies `change` to each rate in the order of the scripts, and clamps the results to the range.
fn each(rates: &TokenRates, mut change: impl FnMut(u32) -> u32) -> TokenRates {
    let default = TokenRates::default().by_script();
    let mut changed = rates.by_script();
    for (rate, default) in changed.iter_mut().zip(default) {
        *rate = change(*rate).clamp(default / RANGE, default.saturating_mul(RANGE));
    }
    TokenRates::from_scripts(changed)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A simulated tokenizer, mix of scripts and variation of prompts.
    #[derive(Debug, Clone)]
    struct World {
        /// Percent of the default rates.
        truth: [u32; 7],
        /// Characters of each script in a thousand.
        mix: [u64; 7],
        prompts: Vec<Said>,
    }

    #[derive(Debug, Clone)]
    struct Said {
        thousands: u64,
        fixed: u64,
        /// Variation of the mix in percent.
        jitter: [u64; 7],
        /// Noise in thousandths of the true count.
        noise: u64,
    }

    impl World {
        fn count(&self, said: &Said) -> TokenCount {
            let texts = ["a", "7", "ж", "ש", "字", "한", "🙂"];
            let mut count = TokenCount::default();
            for ((text, mix), jitter) in texts.iter().zip(self.mix).zip(said.jitter) {
                let characters = mix * jitter * said.thousands / 1000;
                count.add_text(&text.repeat(usize::try_from(characters).unwrap()));
            }
            count.add_fixed(said.fixed);
            count
        }

        /// What the tokenizer counts.
        fn tokens(&self, said: &Said) -> u64 {
            let mut rates = TokenRates::default().by_script();
            for (rate, percent) in rates.iter_mut().zip(self.truth) {
                *rate = *rate * percent / 100;
            }
            price(&TokenRates::from_scripts(rates), &self.count(said)) * said.noise / 1000
        }

        fn learnt_from(&self, prompts: &[Said]) -> Calibration {
            let mut calibration = Calibration::default();
            for said in prompts {
                calibration.learn(&self.count(said), self.tokens(said));
            }
            calibration
        }
    }

    /// A main script, some digits, a little of everything.
    fn mix() -> impl Strategy<Value = [u64; 7]> {
        (0..7usize, 0..60u64, prop::array::uniform7(0..12u64)).prop_map(|(main, digits, some)| {
            let mut mix = some;
            mix[1] += digits;
            mix[main] = 1000 - mix.iter().sum::<u64>();
            mix
        })
    }

    fn said() -> impl Strategy<Value = Said> {
        (2..20u64, 20..400u64, prop::array::uniform7(60..=140u64), 970..=1030u64)
            .prop_map(|(thousands, fixed, jitter, noise)| Said { thousands, fixed, jitter, noise })
    }

    fn world(prompts: usize) -> impl Strategy<Value = World> {
        (prop::array::uniform7(60..=140u32), mix(), prop::collection::vec(said(), prompts))
            .prop_map(|(truth, mix, prompts)| World { truth, mix, prompts })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn after_thirty_prompts_estimates_are_at_most_3_percent_under_and_15_over(
            world in world(40),
        ) {
            let (before, after) = world.prompts.split_at(30);
            let mut calibration = world.learnt_from(before);
            prop_assert!(calibration.adopt());
            for said in after {
                let estimate = price(calibration.rates(), &world.count(said));
                let truth = world.tokens(&Said { noise: 1000, ..said.clone() });
                prop_assert!(
                    (truth * 97 / 100..=truth * 115 / 100).contains(&estimate),
                    "{estimate} for {truth}"
                );
            }
        }

        #[test]
        fn no_whole_prompt_is_taken_for_cut_whatever_the_window(world in world(40)) {
            let (before, after) = world.prompts.split_at(30);
            let calibration = world.learnt_from(before);
            for said in after {
                let (prompt, counted) = (world.count(said), world.tokens(said));
                prop_assert!(!calibration.is_cut(&prompt, counted, None));
                let halved = (counted - 2) * 2;
                let more = [2, 3, 8, 50].map(|more| counted + more);
                let times = [105, 110, 150, 300].map(|percent| counted * percent / 100 + 2);
                for window in more.into_iter().chain(times).chain(halved - 9..=halved + 9) {
                    let window = u32::try_from(window).unwrap();
                    prop_assert!(
                        !calibration.is_cut(&prompt, counted, Some(window)),
                        "{counted} of {window}"
                    );
                    // Before anything was learnt, no prompt counts as cut.
                    prop_assert!(!Calibration::default().is_cut(&prompt, counted, Some(window)));
                }
            }
        }

        #[test]
        fn a_prompt_that_the_server_cut_is_noticed(world in world(40), over in 108..400u64) {
            let (before, after) = world.prompts.split_at(30);
            let calibration = world.learnt_from(before);
            for said in after {
                let (prompt, whole) = (world.count(said), world.tokens(said));
                let window = u32::try_from(whole * 100 / over).unwrap();
                prop_assume!(window > 40);
                let halves = (window - 4) / 2;
                for left in [window, window - 1, 4 + halves, 4 + window.div_ceil(2) - 2] {
                    prop_assert!(
                        calibration.is_cut(&prompt, left.into(), Some(window)),
                        "{left} left of {whole} in {window}"
                    );
                }
                // The server drops whole messages, at least a quarter of the prompt.
                let left = (whole * 3 / 4).min(window.into());
                prop_assert!(calibration.is_cut(&prompt, left, Some(window)));
                prop_assert!(calibration.is_cut(&prompt, whole * 2 / 5, None));
            }
        }

        #[test]
        fn rates_stay_in_their_range_and_nothing_overflows_whatever_is_counted(
            world in world(20),
            counts in prop::collection::vec(
                prop_oneof![any::<u64>(), 0..9000u64, Just(0), Just(u64::MAX)], 20),
        ) {
            let mut calibration = Calibration::default();
            for (said, counted) in world.prompts.iter().zip(counts) {
                let prompt = world.count(said);
                calibration.is_cut(&prompt, counted, None);
                calibration.is_cut(&prompt, counted, Some(u32::MAX));
                calibration.is_cut(&prompt, counted, Some(0));
                calibration.learn(&prompt, counted);
                calibration.adopt();
                for rates in [&calibration.learned, &calibration.used] {
                    let ranges = TokenRates::default().by_script();
                    for (rate, default) in rates.by_script().into_iter().zip(ranges) {
                        prop_assert!((default / 4..=default * 4).contains(&rate));
                    }
                }
            }
        }

        #[test]
        fn a_calibration_comes_back_from_json_and_goes_on_the_same(world in world(12)) {
            let (before, after) = world.prompts.split_at(6);
            let mut calibration = world.learnt_from(before);
            calibration.adopt();
            let json = serde_json::to_vec(&calibration).unwrap();
            let mut read: Calibration = serde_json::from_slice(&json).unwrap();
            prop_assert_eq!(&read, &calibration);
            for said in after {
                for calibration in [&mut read, &mut calibration] {
                    calibration.learn(&world.count(said), world.tokens(said));
                }
            }
            prop_assert_eq!(read, calibration);
        }
    }

    fn latin(characters: usize) -> TokenCount {
        let mut count = TokenCount::default();
        count.add_text(&"a".repeat(characters));
        count
    }

    #[test]
    fn every_machine_learns_the_same_numbers() {
        let mut prompt = latin(900);
        prompt.add_text("слово и ещё слово, 12345");
        prompt.add_fixed(60);
        let mut calibration = Calibration::default();
        for counted in [300, 310, 295, 305] {
            calibration.learn(&prompt, counted);
        }
        assert!(calibration.adopt());
        assert_eq!(
            serde_json::to_string(&calibration).unwrap(),
            concat!(
                r#"{"used":{"latin":276,"digit":588,"alphabetic":471,"syllabic":1019,"han":840,"#,
                r#""hangul":735,"other":2415},"learned":{"latin":262,"digit":560,"alphabetic":448,"#,
                r#""syllabic":970,"han":800,"hangul":700,"other":2300},"samples":4}"#
            )
        );
    }

    #[test]
    fn a_filled_or_halved_window_is_noticed_before_anything_is_learnt() {
        let calibration = Calibration::default();
        let is_cut = |prompt, counted| calibration.is_cut(&prompt, counted, Some(4096));
        // The default estimate is 6,200 tokens.
        for counted in [4095, 4096, 2042, 2050, 2058] {
            assert!(is_cut(latin(20_000), counted), "{counted}");
        }
        for counted in [4094, 3000, 2041, 2059, 500] {
            assert!(!is_cut(latin(20_000), counted), "{counted}");
        }
        assert!(
            !is_cut(latin(10_000), 2050),
            "a prompt that fits may well take half of the window"
        );
        assert!(!calibration.is_cut(&latin(20_000), 500, None));
    }

    #[test]
    fn nothing_is_adopted_that_was_not_learnt() {
        let mut calibration = Calibration::default();
        assert!(!calibration.adopt());
        assert_eq!(calibration.rates(), &TokenRates::default());
        calibration.learn(&latin(1000), 200);
        assert_eq!(calibration.rates(), &TokenRates::default(), "not before it is asked for");
        assert!(calibration.adopt());
        // Half of the way from 310 to 200, plus 5 %.
        assert_eq!(calibration.rates().latin, 268);
        assert!(!calibration.adopt());
    }

    #[test]
    fn what_cannot_be_the_count_of_the_prompt_teaches_nothing() {
        let mut wrapping = TokenCount::default();
        wrapping.add_fixed(500);
        for (prompt, counted) in [
            (latin(1000), 0),
            (latin(1000), 76),
            (latin(1000), 1241),
            (latin(1000), u64::MAX),
            (latin(150), 49),
            (latin(0), 60),
            (wrapping, 400),
        ] {
            let mut calibration = Calibration::default();
            assert!(!calibration.learn(&prompt, counted), "{counted}");
            assert_eq!(calibration, Calibration::default(), "{counted}");
        }
    }

    #[test]
    fn keeping_is_worth_while_after_a_change_and_once_it_may_be_relied_upon() {
        let mut calibration = Calibration::default();
        let mut teach = |counted| calibration.learn(&latin(10_000), counted);
        // The default estimate is 3,100; each step goes half of the way.
        assert!([2000, 2000, 2000, 2000, 2000].map(&mut teach).iter().all(|worth| *worth));
        assert!([2000, 2000, 2010, 1990].map(&mut teach).iter().all(|worth| !worth));
        assert!(teach(2200));
        // Small steps add up.
        assert!([2150, 2200, 2260, 2320].map(&mut teach).iter().any(|worth| *worth));
    }

    #[test]
    fn a_calibration_of_another_version_is_read_as_far_as_it_is_understood() {
        let read: Calibration =
            serde_json::from_str(r#"{"learned":{"latin":0,"han":4294967295},"later":[1]}"#)
                .unwrap();
        let default = TokenRates::default();
        assert_eq!((read.samples, read.rates()), (0, &default));
        assert_eq!((read.learned.latin, read.learned.han), (default.latin / 4, default.han * 4));
    }
}
