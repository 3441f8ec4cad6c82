//! Pages that several callers ask for at the same time, such as all who wait for a record: one statement reads them

use std::collections::HashMap;
use std::sync::{Mutex, Weak};

use bytes::Bytes;
use sottovoce_net::lock;

use crate::api::Id;
use crate::error::{Error, Result};
use crate::server::query::Query;
use crate::team::{Permit, Team};

/// A conversation, its last position, after which position to read, and how many records.
type Question = (Id, i64, i64, i64);

/// The pages that are being read, as JSON.
#[derive(Debug, Default)]
pub(super) struct Pages(Mutex<HashMap<Question, Weak<tokio::sync::Mutex<Option<Bytes>>>>>);

impl Pages {
    /// The page. Each caller's right is looked up by itself, and not before the records were read.
    pub(super) async fn read(&self, team: &Team, permit: &Permit, query: Query) -> Result<Bytes> {
        let place = permit.place()?;
        let reading = {
            let mut all = lock(&self.0);
            all.retain(|_, page| page.strong_count() > 0);
            let page = all.entry((place.id, place.last, query.after, query.limit)).or_default();
            let reading = page.upgrade().unwrap_or_default();
            *page = std::sync::Arc::downgrade(&reading);
            reading
        };
        let mut page = reading.lock().await;
        if let Some(read) = page.clone() {
            drop(page);
            return team.renew(permit).await.map(|_| read);
        }
        // The statement asks for this caller's right.
        let read = team.page(permit, query.after, query.limit).await?;
        let read = serde_json::to_vec(&read).map_err(|_| Error::Unavailable)?;
        Ok(page.insert(read.into()).clone())
    }
}
