//! A kind of machine that a release is for.

use crate::task::Result;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Target {
    X86_64,
    Aarch64,
}

impl Target {
    pub(crate) const ALL: [Self; 2] = [Self::X86_64, Self::Aarch64];

    pub(crate) fn named(name: &str) -> Result<Self> {
        Self::ALL
            .into_iter()
            .find(|target| target.name() == name)
            .ok_or_else(|| format!("no such target: {name}; there are x86_64 and aarch64").into())
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::X86_64 => "x86_64",
            Self::Aarch64 => "aarch64",
        }
    }

    pub(crate) fn triple(self) -> &'static str {
        match self {
            Self::X86_64 => "x86_64-unknown-linux-musl",
            Self::Aarch64 => "aarch64-unknown-linux-musl",
        }
    }

    /// What Debian and OCI call it.
    pub(crate) fn architecture(self) -> &'static str {
        match self {
            Self::X86_64 => "amd64",
            Self::Aarch64 => "arm64",
        }
    }
}
