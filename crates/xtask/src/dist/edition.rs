//! How much of the program a release has.

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Edition {
    /// Everything.
    Whole,
    /// Store, prompt, turn, and recall by words alone: no servers, no sync and no teams.
    Small,
}

impl Edition {
    /// The beginning of its files' names.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Whole => "sottovoce",
            Self::Small => "sottovoce-small",
        }
    }

    /// What cargo is told.
    pub(crate) fn features(self) -> &'static [&'static str] {
        match self {
            Self::Whole => &["--features", "full"],
            Self::Small => &["--no-default-features"],
        }
    }

    /// The largest binary in bytes.
    pub(crate) fn limit(self) -> usize {
        match self {
            Self::Whole => 60_000_000,
            Self::Small => 8_400_000,
        }
    }
}
