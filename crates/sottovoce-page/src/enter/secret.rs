//! Random secrets, compared in constant time.

use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use subtle::ConstantTimeEq;
use zeroize::Zeroizing;

/// 256 random bits as text for addresses, cookies and forms.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Secret(Zeroizing<String>);

impl Secret {
    pub(super) fn new() -> Result<Self, getrandom::Error> {
        let mut bytes = Zeroizing::new([0; 32]);
        getrandom::fill(&mut *bytes)?;
        Ok(Self(Zeroizing::new(BASE64_URL_SAFE_NO_PAD.encode(*bytes))))
    }

    pub(super) fn text(&self) -> &str {
        &self.0
    }

    pub(super) fn is(&self, shown: &str) -> bool {
        same(&self.0, shown)
    }
}

/// Whether two secrets are the same, in a time that does not tell how much of them is.
pub(super) fn same(secret: &str, shown: &str) -> bool {
    secret.as_bytes().ct_eq(shown.as_bytes()).into()
}

impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Secret")
    }
}
