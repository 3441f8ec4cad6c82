//! Random secrets, compared in constant time.

use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use sottovoce_net::same;
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
        same(self.0.as_bytes(), shown.as_bytes())
    }
}

impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Secret")
    }
}
