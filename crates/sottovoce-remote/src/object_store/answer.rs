//! What an answer other than a success means, and what an error of `object_store` means

use std::error::Error as StdError;
use std::fmt;

use ::object_store::client::{HttpError, HttpErrorKind};
use http::{Method, StatusCode};

use crate::error::ErrorKind;

/// The longest reason that is taken from another error, in characters.
const LONGEST: usize = 200;

/// Why an operation failed.
#[derive(Debug)]
pub(super) struct Failure {
    pub(super) kind: ErrorKind,
    pub(super) reason: String,
}

/// An answer other than a success. Of its body it keeps the code alone: the rest may repeat what was sent.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) method: Method,
    pub(super) status: StatusCode,
    pub(super) code: Option<String>,
}

/// An answer whose body exceeds the limit.
#[derive(Debug, thiserror::Error)]
#[error("the answer is too long")]
pub(super) struct TooLong;

/// An answer that did not come in time.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(super) struct Late(pub(super) &'static str);

impl StdError for Answer {}

impl fmt::Display for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the server answered {}", self.status.as_u16())?;
        match &self.code {
            Some(code) => write!(f, " {code}"),
            None => self.status.canonical_reason().map_or(Ok(()), |reason| write!(f, " {reason}")),
        }
    }
}

impl Answer {
    fn has_code(&self, codes: &[&str]) -> bool {
        self.code.as_deref().is_some_and(|code| codes.contains(&code))
    }

    fn kind(&self) -> ErrorKind {
        let refused = ["AuthorizationHeaderMalformed", "ExpiredToken", "InvalidToken"];
        match self.status.as_u16() {
            401 | 403 | 407 => ErrorKind::Refused,
            400 if self.has_code(&["RequestTimeout"]) => ErrorKind::Unreachable,
            // Of a server that hands out tokens.
            400 if self.method == Method::POST || self.has_code(&refused) => ErrorKind::Refused,
            404 if self.has_code(&["NoSuchBucket", "ContainerNotFound"]) => ErrorKind::NoContainer,
            413 => ErrorKind::TooLarge,
            408 | 409 | 423 | 425 | 429 | 500 | 502 | 503 | 504 => ErrorKind::Unreachable,
            _ => ErrorKind::Other,
        }
    }

    fn failure(&self) -> Failure {
        let reason = if self.status.is_redirection() {
            format!("{self}, which leads to another place; correct the address or the region")
        } else {
            self.to_string()
        };
        Failure { kind: self.kind(), reason }
    }
}

/// The code in the body of an answer of S3, Azure or Google.
pub(super) fn code(body: &[u8]) -> Option<String> {
    let text = str::from_utf8(body).ok()?;
    let (code, _) = text.split_once("<Code>")?.1.split_once("</Code>")?;
    checked_code(code)
}

/// The code, unless it has another form than those of the services.
pub(super) fn checked_code(code: &str) -> Option<String> {
    let is_code =
        (1..=64).contains(&code.len()) && code.bytes().all(|byte| byte.is_ascii_alphanumeric());
    is_code.then(|| code.to_owned())
}

/// An error and what caused it.
fn causes<'a>(
    error: &'a (dyn StdError + 'static),
) -> impl Iterator<Item = &'a (dyn StdError + 'static)> {
    std::iter::successors(Some(error), |error| (**error).source())
}

fn find<'a, T: StdError + 'static>(error: &'a (dyn StdError + 'static)) -> Option<&'a T> {
    causes(error).find_map(|cause| cause.downcast_ref())
}

/// Whether an object or a folder is absent, and its container was not said to be.
pub(super) fn is_absent(error: &::object_store::Error) -> bool {
    match find::<Answer>(error) {
        Some(answer) => answer.status == StatusCode::NOT_FOUND && answer.kind() == ErrorKind::Other,
        // A WebDAV server that has no folder to put an object into answers with a conflict as well.
        None => matches!(
            error,
            ::object_store::Error::NotFound { .. } | ::object_store::Error::AlreadyExists { .. }
        ),
    }
}

/// What an error means. Its own text may contain an address with a signature, and what a server sent.
pub(super) fn failure(error: &::object_store::Error) -> Failure {
    if let Some(answer) = find::<Answer>(error) {
        return answer.failure();
    }
    if find::<TooLong>(error).is_some() {
        return Failure { kind: ErrorKind::TooLarge, reason: TooLong.to_string() };
    }
    let Some(http) = find::<HttpError>(error) else {
        let reason = match error {
            ::object_store::Error::NotFound { .. }
            | ::object_store::Error::AlreadyExists { .. } => {
                "the folder of the address does not exist"
            }
            _ => "the answer is not one of the expected protocol",
        };
        return Failure { kind: ErrorKind::Other, reason: reason.to_owned() };
    };
    let what = match http.kind() {
        HttpErrorKind::Connect => "no connection",
        HttpErrorKind::Timeout => "no answer in time",
        _ => "the connection failed",
    };
    let deepest = causes(http).last().map(ToString::to_string).unwrap_or_default();
    let deepest: String = deepest.chars().filter(|c| !c.is_control()).take(LONGEST).collect();
    Failure { kind: ErrorKind::Unreachable, reason: format!("{what}: {deepest}") }
}
