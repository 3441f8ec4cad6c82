//! Pages that several callers ask for at the same time, such as all who wait for a record: one statement reads them

use std::collections::HashMap;
use std::sync::{Arc, Mutex, Weak};

use bytes::Bytes;
use sottovoce_net::lock;
use tokio::sync::OnceCell;

use crate::api::Id;
use crate::error::{Error, Result};
use crate::server::query::Query;
use crate::team::{Permit, Team};

/// A conversation, its last position, after which position to read, and how many records.
type Question = (Id, i64, i64, i64);

/// The pages that are being read, as JSON. There is none if that failed.
#[derive(Debug, Default)]
pub(super) struct Pages(Mutex<HashMap<Question, Weak<OnceCell<Option<Bytes>>>>>);

impl Pages {
    /// The page. What it shows was there when the caller's right was last looked up, or before.
    pub(super) async fn read(&self, team: &Team, permit: &Permit, query: Query) -> Result<Bytes> {
        let place = permit.place()?;
        let question = (place.id, place.last, query.after, query.limit);
        let reading = {
            let mut all = lock(&self.0);
            all.retain(|_, page| page.strong_count() > 0);
            all.get(&question).and_then(Weak::upgrade).unwrap_or_else(|| {
                let new = Arc::default();
                all.insert(question, Arc::downgrade(&new));
                new
            })
        };
        let mut own = None;
        let read = async || {
            own = Some(page(team, permit, query).await);
            own.as_ref()?.as_ref().ok().cloned()
        };
        let shared = reading.get_or_init(read).await.clone();
        match (own, shared) {
            (Some(own), _) => own,
            (None, Some(page)) => team.renew(permit).await.map(|_| page),
            (None, None) => page(team, permit, query).await,
        }
    }
}

async fn page(team: &Team, permit: &Permit, query: Query) -> Result<Bytes> {
    let page = team.page(permit, query.after, query.limit).await?;
    serde_json::to_vec(&page).map(Bytes::from).map_err(|_| Error::Unavailable)
}
