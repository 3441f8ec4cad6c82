//! Your data: what is stored, where, for how long, who could read it, which copies exist, and that the seal holds.

use axum::response::Response;
use maud::html;

use crate::english as en;
use crate::failure::Failure;
use crate::host::CheckState;
use crate::html::{Place, Shell};
use crate::later;
use crate::room::Here;

pub(crate) async fn show(here: Here) -> Result<Response, Failure> {
    let (open, facts) = (here.store()?, here.app.facts.clone());
    let first = html! { h1 { (en::YOUR_DATA) } p.muted { (en::DATA_INTRO) " " a href="/knows" { (en::KNOWS_TITLE) } } };
    // Every conversation is looked at.
    let rest = async move {
        let facts = match facts {
            Some(facts) => facts(open).await,
            None => Vec::new(),
        };
        Ok(html! {
            dl.facts.data {
                @for fact in &facts {
                    div.warn[fact.state != CheckState::Good] {
                        dt { (fact.about) }
                        dd {
                            p dir="auto" { (fact.what) }
                            @if let Some(commands) = &fact.advice { pre tabindex="0" { (commands) } }
                        }
                    }
                }
            }
        })
    };
    later::page(&here, &Shell::at(Place::Data, en::YOUR_DATA), first, rest).await
}
