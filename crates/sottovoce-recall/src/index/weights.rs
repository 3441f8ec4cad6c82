//! How much each feature counts.

/// What each feature of a passage counts in its score, by the names that [`Why`](crate::Why) has for them. The default
/// is fitted on conversations with known answers; [`Index::min_score`](crate::Index::min_score) belongs to it.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs, reason = "`Why` describes the fields")]
#[non_exhaustive]
pub struct Weights {
    pub near: f32,
    pub sense: f32,
    pub sense_around: f32,
    pub topic: f32,
    pub speaker: f32,
    pub date: f32,
    pub me: f32,
    pub answer: f32,
    pub time_words: f32,
    pub rarity: f32,
    pub standing: f32,
}

#[cfg(feature = "vectors")]
impl Default for Weights {
    fn default() -> Self {
        Self {
            near: 4.92,
            sense: 1.81,
            sense_around: 5.8,
            topic: 2.28,
            speaker: 1.53,
            date: 5.21,
            me: 0.82,
            answer: 1.23,
            time_words: 0.25,
            rarity: 0.46,
            standing: 2.8,
        }
    }
}

#[cfg(not(feature = "vectors"))]
impl Default for Weights {
    fn default() -> Self {
        Self {
            near: 7.8,
            sense: 0.,
            sense_around: 0.,
            topic: 3.58,
            speaker: 1.55,
            date: 5.23,
            me: 0.81,
            answer: 1.22,
            time_words: 0.22,
            rarity: 0.35,
            standing: 1.46,
        }
    }
}
