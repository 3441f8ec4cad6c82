//! The pages of those who are not let in: who was never, and who was idle too long.

use maud::{Markup, html};

use crate::english as en;
use crate::html::{Shell, Visit, layout};

fn outside() -> Visit {
    Visit { csrf: String::new(), read_only: false }
}

/// The page of a browser that has no cookie of this run.
pub(crate) fn closed(has_token: bool, wrong: Option<&str>) -> Markup {
    let main = html! {
        h1 { (en::CLOSED_TITLE) }
        @if let Some(wrong) = wrong { p.failure role="alert" { (wrong) } }
        p { (en::CLOSED) }
        @if has_token { (token_form(None)) }
    };
    layout(&outside(), &Shell::outside(en::CLOSED_TITLE), &main)
}

/// The page between a link and the first view.
pub(crate) fn entered() -> Markup {
    let main = html! {
        h1 { (en::ENTERED_TITLE) }
        p { a href="/" { (en::TO_CONVERSATIONS) } }
    };
    layout(&outside(), &Shell::outside(en::ENTERED_TITLE), &main)
}

/// The page of a browser that was idle too long.
pub(crate) fn locked(
    csrf: &str,
    has_passphrase: bool,
    has_token: bool,
    wrong: Option<String>,
) -> Markup {
    let main = html! {
        h1 { (en::LOCKED_TITLE) }
        @if has_passphrase {
            (passphrase_form(csrf, wrong.as_deref()))
        } @else {
            @if let Some(wrong) = wrong { p.failure role="alert" { (wrong) } }
            @if has_token { (token_form(Some(csrf))) } @else { p { (en::LOCKED) } }
        }
    };
    layout(&outside(), &Shell::outside(en::LOCKED_TITLE), &main)
}

fn token_form(csrf: Option<&str>) -> Markup {
    html! {
        form.narrow method="post" action="/unlock" {
            @if let Some(csrf) = csrf { input type="hidden" name="csrf" value=(csrf); }
            label { (en::TOKEN) input type="password" name="token" autocomplete="current-password" required; }
            button.primary { (en::UNLOCK) }
        }
    }
}

/// Asks for the store's passphrase.
pub(crate) fn passphrase_form(csrf: &str, wrong: Option<&str>) -> Markup {
    html! {
        @if let Some(wrong) = wrong { p.failure role="alert" { (wrong) } }
        p { (en::PASSPHRASE_WHY) }
        form.narrow method="post" action="/unlock" {
            input type="hidden" name="csrf" value=(csrf);
            label { (en::PASSPHRASE) input type="password" name="passphrase" autocomplete="current-password" required autofocus; }
            button.primary { (en::UNLOCK) }
        }
    }
}
