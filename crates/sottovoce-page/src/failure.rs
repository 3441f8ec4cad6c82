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
    Library(Visit, Arc<Error>),
    /// There is no such page, conversation, message or artifact.
    NotFound(Visit, &'static str),
    /// What was typed cannot be used: what is wrong, and what to type.
    Wrong(Visit, String, &'static str),
    /// The store's passphrase has to be typed first.
    PassphraseNeeded(Visit),
    /// There is no store yet.
    Nothing(Visit),
}

impl Failure {
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
    pub(crate) fn page(self, advice: &Advice) -> Response {
        let (visit, status, title) = match &self {
            Self::Plain(status, text) => return (*status, *text).into_response(),
            Self::PassphraseNeeded(visit) => {
                (visit, StatusCode::UNAUTHORIZED, en::PASSPHRASE_TITLE)
            }
            Self::Nothing(visit) => (visit, StatusCode::OK, en::NOTHING_TITLE),
            Self::Library(visit, error) => (visit, status(error), en::FAILED_TITLE),
            Self::NotFound(visit, _) => (visit, StatusCode::NOT_FOUND, en::NOT_FOUND_TITLE),
            Self::Wrong(visit, ..) => (visit, StatusCode::UNPROCESSABLE_ENTITY, en::WRONG_TITLE),
        };
        let main = html! { h1 { (title) } (self.content(advice)) };
        (status, layout(visit, &Shell::outside(title), &main)).into_response()
    }

    /// What is wrong and what to do, without a page around it.
    pub(crate) fn content(&self, advice: &Advice) -> Markup {
        let (what, help) = match self {
            Self::Plain(_, text) => ((*text).to_owned(), ""),
            Self::PassphraseNeeded(visit) => return passphrase_form(&visit.csrf, None),
            Self::Nothing(visit) => {
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
            Self::Library(_, error) => (with_causes(&**error), (advice.error)(error)),
            Self::NotFound(_, what) => ((*what).to_owned(), en::GO_BACK),
            Self::Wrong(_, what, help) => (what.clone(), *help),
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
        Error::TooLarge { .. } | Error::InvalidMessage { .. } | Error::HiddenMessages => {
            StatusCode::UNPROCESSABLE_ENTITY
        }
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
