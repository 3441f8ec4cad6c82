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
            sense: 8.,
            around: 3.,
            tells: 2.,
            topic: 2.3,
            speaker: 1.5,
            person: 0.5,
            date: 5.2,
        }
    }
}
