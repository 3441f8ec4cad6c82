//! How much each feature counts.

/// What each feature of a passage counts in its score, by the names that [`Why`](crate::Why) has for them. The default
/// is fitted on several sets of conversations with known answers.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs, reason = "`Why` describes the fields")]
#[non_exhaustive]
pub struct Weights {
    pub near: f32,
    pub sense: f32,
    pub around: f32,
    pub tells: f32,
    pub topic: f32,
    pub speaker: f32,
    pub person: f32,
    pub date: f32,
}

impl Default for Weights {
    fn default() -> Self {
        Self {
            near: 5.,
            sense: 20.,
            around: 2.,
            tells: 2.5,
            topic: 6.,
            speaker: 1.3,
            person: 2.5,
            date: 4.5,
        }
    }
}

impl Weights {
    /// What counts if the question has no meaning, as in an edition without the encoder.
    pub(super) fn of_words() -> Self {
        Self {
            near: 7.8,
            sense: 0.,
            around: 0.,
            tells: 0.,
            topic: 3.6,
            speaker: 1.5,
            person: 0.8,
            date: 5.2,
        }
    }
}
