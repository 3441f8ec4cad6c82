//! What a view says instead of what was asked: what is wrong, where, and what to do.

use std::sync::Arc;

use axum::response::{IntoResponse, Redirect, Response};
use http::StatusCode;
use maud::{Markup, html};
use sottovoce::{Error, with_causes};
use sottovoce_net::ReadError;

use crate::english as en;
use crate::host::Advice;
use crate::html::{Shell, Visit, layout};
use crate::view::enter::passphrase_form;

/// Why a view has nothing to show.
#[derive(Debug, Clone)]
pub(crate) enum Failure {
    /// The request is refused before any page. The text is fixed.
    Plain(StatusCode, &'static str),
    /// The library returned an error.
    Library(Arc<Error>),
    /// There is no such page, conversation, message or artifact.
    NotFound(&'static str),
    /// What was typed cannot be used: what is wrong, and what to type.
    Wrong(String, &'static str),
    /// Something in an address or a form is missing, or is something else than it has to be.
    Unclear(StatusCode),
    /// The store's passphrase has to be typed first.
    PassphraseNeeded,
    /// There is no store yet.
    Nothing,
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::Library(Arc::new(error))
    }
}

impl Failure {
    pub(crate) fn wrong(what: impl Into<String>, help: &'static str) -> Self {
        Self::Wrong(what.into(), help)
    }

    /// The body of a request could not be read, or that of an answer not be held.
    pub(crate) fn unread(why: ReadError) -> Self {
        let text = match why {
            ReadError::TooLong => en::BODY_TOO_LONG,
            ReadError::TooSlow | ReadError::Incomplete => en::BODY_TOO_SLOW,
            ReadError::Busy => en::TOO_MUCH,
        };
        Self::Plain(why.status(), text)
    }

    /// The page that tells it.
    pub(crate) fn page(self, visit: &Visit, advice: &Advice) -> Response {
        let (status, title) = match &self {
            Self::Plain(status, text) => return (*status, *text).into_response(),
            Self::PassphraseNeeded => (StatusCode::UNAUTHORIZED, en::PASSPHRASE_TITLE),
            Self::Nothing => (StatusCode::OK, en::NOTHING_TITLE),
            Self::Library(error) => (status(error), en::FAILED_TITLE),
            Self::NotFound(_) => (StatusCode::NOT_FOUND, en::NOT_FOUND_TITLE),
            Self::Wrong(..) => (StatusCode::UNPROCESSABLE_ENTITY, en::WRONG_TITLE),
            Self::Unclear(status) => (*status, en::WRONG_TITLE),
        };
        let main = html! { h1 { (title) } (self.content(visit, advice)) };
        (status, layout(visit, &Shell::outside(title), &main)).into_response()
    }

    /// What is wrong and what to do, without a page around it.
    pub(crate) fn content(&self, visit: &Visit, advice: &Advice) -> Markup {
        let (what, help) = match self {
            Self::Plain(_, text) => ((*text).to_owned(), ""),
            Self::PassphraseNeeded => return passphrase_form(&visit.csrf, None),
            Self::Nothing => {
                return html! {
                    p { (en::NOTHING_YET) }
                    @if !visit.read_only {
                        form method="post" action="/begin" {
                            (visit.csrf_field())
                            p { button.primary { (en::BEGIN) } }
                            p.muted { (en::BEGIN_HELP) }
                        }
                    }
                };
            }
            Self::Library(error) => (with_causes(&**error), (advice.error)(error)),
            Self::NotFound(what) => ((*what).to_owned(), en::GO_BACK),
            Self::Wrong(what, help) => (what.clone(), *help),
            Self::Unclear(_) => (en::UNCLEAR.to_owned(), en::GO_BACK),
        };
        html! {
            div.failure role="alert" {
                p.what dir="auto" { (what) }
                @if !help.is_empty() { p { (help) } }
            }
            p { a href="/" { (en::TO_CONVERSATIONS) } " · " a href="/health" { (en::HEALTH) } }
        }
    }
}

fn status(error: &Error) -> StatusCode {
    match error {
        Error::NoSuchArtifact { .. } | Error::NoSuchSnapshot { .. } => StatusCode::NOT_FOUND,
        Error::MoreThanAnnounced | Error::Conflict | Error::TurnInProgress => StatusCode::CONFLICT,
        Error::EmptySnapshot
        | Error::TooLarge { .. }
        | Error::InvalidMessage { .. }
        | Error::HiddenMessages => StatusCode::UNPROCESSABLE_ENTITY,
        _ => StatusCode::INTERNAL_SERVER_ERROR,
    }
}

/// Carries the failure to where it is made a page.
impl IntoResponse for Failure {
    fn into_response(self) -> Response {
        if let Self::Plain(status, text) = self {
            return (status, text).into_response();
        }
        let mut response = Redirect::to("/").into_response();
        response.extensions_mut().insert(self);
        response
    }
}
