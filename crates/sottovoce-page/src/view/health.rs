//! Health: the checks of the set-up, and of every file, with what to do about each finding.

use std::sync::Arc;

use axum::response::{IntoResponse, Redirect, Response};
use http::StatusCode;
use maud::{Markup, html};
use sottovoce::admin::Report;

use crate::deed::Verified;
use crate::english as en;
use crate::failure::Failure;
use crate::host::{Check, CheckState};
use crate::html::{BESIDE, Place, ROOM, Shell, brief, counted, fitting, one_line};
use crate::later;
use crate::room::Here;

/// The most bytes of a check and of its advice.
const CHECK: usize = 2000;

/// The checks of the set-up need no open store: a damaged one, or one under another key, gets its page too.
pub(crate) async fn show(here: Here) -> Result<Response, Failure> {
    let verified = here.app.verifying.now();
    let mut shell = Shell::at(Place::Health, en::HEALTH);
    shell.refresh = verified.running.is_some();
    let looking = here.clone();
    // One of the checks asks the model server.
    let rest = async move {
        let checks = match &looking.app.checks {
            Some(checks) => checks().await,
            None => Vec::new(),
        };
        Ok(content(&looking, &checks, &verified))
    };
    later::page(&here, &shell, html! { h1 { (en::HEALTH) } }, rest).await
}

fn content(here: &Here, checks: &[Check], verified: &Verified) -> Markup {
    let set_up = fitting(3 * BESIDE, checks, line);
    // What is wrong comes first, so that it fits.
    let is_sound =
        |result: &Result<_, _>| result.as_ref().is_ok_and(|report: &Arc<Report>| report.is_sound());
    let mut results: Vec<_> = verified.results.iter().collect();
    results.sort_by_key(|(_, result)| is_sound(result));
    let results = fitting(ROOM, results, |(scope, result)| {
        html! {
            section.verified {
                h3 { bdi { (one_line(&en::scope_name(scope))) } }
                @match result {
                    Ok(report) => (sound(here, report)),
                    Err(error) => p.failure { (error) },
                }
            }
        }
    });
    let left: Vec<_> = verified.results.iter().filter(|(_, result)| !is_sound(result)).collect();
    let wrong_left = left.len().saturating_sub(results.shown.len()) as u64;
    html! {
        @if !checks.is_empty() {
            h2 { (en::SET_UP) }
            ul.checks { @for check in &set_up.shown { (check) } }
            @if set_up.left > 0 { p.muted { (en::and_more(set_up.left)) } }
        }
        h2 { (en::EVERY_FILE) }
        p { (en::VERIFY_INTRO) }
        (progress_of(verified))
        @if verified.running.is_none() {
            form method="post" action="/verify" {
                (here.visit.csrf_field())
                button.primary { (en::VERIFY) }
            }
        }
        @if let Some(ended) = &verified.ended { p.muted { (en::VERIFIED_AT) " " (ended.strftime("%-d %B %Y, %H:%M")) } }
        @for conversation in &results.shown { (conversation) }
        @if results.left > 0 { p.notice { (en::not_shown(&counted(results.left, en::CONVERSATIONS_COUNTED), wrong_left)) } }
    }
}

fn line(check: &Check) -> Markup {
    let (class, word) = match check.state {
        CheckState::Good => ("good", en::GOOD),
        CheckState::Warn => ("warn", en::WARN),
        CheckState::Bad => ("bad", en::BAD),
    };
    html! {
        li class=(class) {
            span.state { (word) } " " strong { (check.about) } " " span dir="auto" { (brief(&check.what, CHECK)) }
            @if let Some(advice) = &check.advice { pre.advice tabindex="0" { (brief(advice, CHECK)) } }
        }
    }
}

fn progress_of(verified: &Verified) -> Markup {
    html! {
        div #progress data-refresh=[verified.running.is_some().then_some("")] {
            @if let Some((scope, (done, total))) = &verified.running {
                label { (en::VERIFYING) " " bdi { (one_line(&en::scope_name(scope))) }
                    progress max=((*total).max(1)) value=(done) {}
                }
            }
        }
    }
}

fn sound(here: &Here, report: &Report) -> Markup {
    let findings = fitting(BESIDE, &report.findings, |finding| {
        html! {
            li class=(if finding.kind.is_problem() { "bad" } else { "warn" }) {
                span.state { (if finding.kind.is_problem() { en::BAD } else { en::WARN }) } " "
                span dir="auto" { (finding) }
                p.advice { ((here.app.advice.finding)(finding)) }
            }
        }
    });
    html! {
        p {
            @if report.is_sound() { span.good { (en::SOUND) } } @else { span.bad { (en::NOT_SOUND) } }
            " " (counted(report.messages as u64, en::MESSAGES)) ", " (counted(report.forgotten, en::NUMBERS_GONE)) "."
        }
        @if !findings.shown.is_empty() { ul.checks { @for finding in &findings.shown { (finding) } } }
        @if findings.left > 0 { p.muted { (en::and_more(findings.left)) } }
    }
}

/// How far the check of every file is.
pub(crate) async fn progress(here: Here) -> Response {
    let verified = here.app.verifying.now();
    match verified.running {
        Some(_) => progress_of(&verified).into_response(),
        None => StatusCode::RESET_CONTENT.into_response(),
    }
}

/// Begins to check every file of the store.
pub(crate) async fn verify(here: Here) -> Result<Redirect, Failure> {
    here.app.verifying.begin(here.store()?, here.scopes()?);
    Ok(Redirect::to("/health"))
}
