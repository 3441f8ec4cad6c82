//! Admission: what a client must show.

use std::sync::Arc;

use http::HeaderMap;
use http::header::AUTHORIZATION;
use subtle::ConstantTimeEq;
use zeroize::Zeroizing;

/// How clients may connect.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct Admission {
    /// The token that each request must show as `Authorization: Bearer …`. Required for addresses that other machines
    /// can reach.
    pub token: Option<Token>,
    /// Host names that clients may use for this machine, besides those of loopback.
    pub hosts: Vec<String>,
}

impl Admission {
    /// Admission with this token, or without one.
    pub fn new(token: Option<Zeroizing<String>>) -> Self {
        Self { token: token.map(|token| Token(Arc::new(token))), hosts: Vec::new() }
    }

    /// Allows these host names too.
    #[must_use]
    pub fn hosts(self, hosts: Vec<String>) -> Self {
        Self { hosts, ..self }
    }

    /// Whether a token is set but empty.
    pub(super) fn has_empty_token(&self) -> bool {
        self.token.as_ref().is_some_and(|Token(token)| token.trim().is_empty())
    }

    pub(super) fn admits(&self, headers: &HeaderMap) -> bool {
        let Some(Token(token)) = &self.token else { return true };
        if self.has_empty_token() {
            return false;
        }
        let shown = headers.get(AUTHORIZATION).and_then(|value| value.to_str().ok());
        let shown = shown.and_then(|value| value.split_once(' '));
        shown.is_some_and(|(scheme, shown)| {
            scheme.eq_ignore_ascii_case("bearer")
                && bool::from(shown.trim().as_bytes().ct_eq(token.as_bytes()))
        })
    }
}

/// A bearer token. `Debug` does not show it.
#[derive(Clone)]
pub struct Token(Arc<Zeroizing<String>>);

impl std::fmt::Debug for Token {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Token(redacted)")
    }
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    #[test]
    fn only_the_very_token_is_let_in_and_no_debug_output_shows_it() {
        let admission = Admission::new(Some(Zeroizing::new("open sesame".to_owned())));
        let shown = |value: &'static str| {
            let mut headers = HeaderMap::new();
            headers.insert(AUTHORIZATION, HeaderValue::from_static(value));
            admission.admits(&headers)
        };
        assert!(shown("Bearer open sesame") && shown("bearer open sesame"));
        for wrong in
            ["Bearer open sesam", "Bearer open sesame2", "Basic open sesame", "open sesame", ""]
        {
            assert!(!shown(wrong), "{wrong}");
        }
        assert!(!admission.admits(&HeaderMap::new()));
        assert!(Admission::default().admits(&HeaderMap::new()));
        assert!(!format!("{admission:?}").contains("sesame"));
    }
}
