//! Rates: how often a member, an organisation or an address may ask, and how much an organisation stores

use std::collections::HashMap;
use std::hash::Hash;
use std::net::IpAddr;
use std::sync::Mutex;
use std::time::Duration;

use sottovoce_net::lock;
use tokio::time::Instant;

use crate::api::Id;
use crate::error::{Error, Result};
use crate::server::limits::{Limits, Rate};
use crate::team::{Caller, Team};

/// The most buckets in memory. Full ones are then dropped.
const BUCKETS: usize = 100_000;

/// How long a sum of stored bytes is believed.
const BELIEVED: Duration = Duration::from_secs(10);

/// What has been used of each rate.
#[derive(Debug)]
pub(super) struct Rates {
    limits: Limits,
    members: Buckets<Id>,
    bytes: Buckets<Id>,
    orgs: Buckets<Id>,
    strangers: Buckets<IpAddr>,
    stored: Mutex<HashMap<Id, (Instant, u64)>>,
}

#[derive(Debug)]
struct Buckets<K>(Rate, Mutex<HashMap<K, Bucket>>);

#[derive(Debug, Clone, Copy)]
struct Bucket {
    left: f64,
    at: Instant,
}

impl<K: Hash + Eq> Buckets<K> {
    fn new(rate: Rate) -> Self {
        Self(rate, Mutex::default())
    }

    /// Uses this much, or tells whose requests these are and after how many seconds it is there.
    fn take(&self, who: &'static str, key: K, much: f64) -> Result<()> {
        let now = Instant::now();
        let mut buckets = lock(&self.1);
        if buckets.len() >= BUCKETS {
            buckets.retain(|_, bucket| self.filled(*bucket, now) < self.0.burst);
        }
        let full = Bucket { left: self.0.burst, at: now };
        let bucket = buckets.entry(key).or_insert(full);
        *bucket = Bucket { left: self.filled(*bucket, now), at: now };
        // More than fits into a bucket is allowed once it is full.
        let needed = much.clamp(1.0, self.0.burst.max(1.0));
        if bucket.left < needed {
            let seconds = ((needed - bucket.left) / self.0.per_second).ceil().max(1.0) as u64;
            return Err(Error::TooMany { who, seconds });
        }
        bucket.left -= much;
        Ok(())
    }

    fn filled(&self, bucket: Bucket, now: Instant) -> f64 {
        let seconds = now.saturating_duration_since(bucket.at).as_secs_f64();
        (bucket.left + seconds * self.0.per_second).min(self.0.burst)
    }
}

impl Rates {
    pub(super) fn new(limits: Limits) -> Self {
        Self {
            limits,
            members: Buckets::new(limits.member_requests),
            bytes: Buckets::new(limits.member_bytes),
            orgs: Buckets::new(limits.org_requests),
            strangers: Buckets::new(limits.strangers),
            stored: Mutex::default(),
        }
    }

    /// Counts a request without a valid token or invitation. Refuses one too many.
    pub(super) fn count_stranger(&self, address: IpAddr) -> Result<()> {
        self.strangers.take("this address", address, 1.0)
    }

    pub(super) fn count_request(&self, caller: &Caller) -> Result<()> {
        self.members.take("this member", caller.member, 1.0)?;
        self.orgs.take("this organisation", caller.org, 1.0)
    }

    /// Counts bytes to store, which must fit into what the organisation may store.
    pub(super) async fn count_bytes(
        &self,
        team: &Team,
        caller: &Caller,
        bytes: usize,
    ) -> Result<()> {
        self.bytes.take("this member", caller.member, bytes as f64)?;
        let known = lock(&self.stored).get(&caller.org).copied();
        let stored = match known {
            Some((at, stored)) if at.elapsed() < BELIEVED => stored,
            _ => {
                let stored = team.stored_bytes(caller.org).await?;
                let mut all = lock(&self.stored);
                all.retain(|_, (at, _)| at.elapsed() < BELIEVED);
                all.insert(caller.org, (Instant::now(), stored));
                stored
            }
        };
        let stored = stored.saturating_add(bytes as u64);
        if stored > team.quota() {
            return Err(Error::Quota);
        }
        if let Some((_, known)) = lock(&self.stored).get_mut(&caller.org) {
            *known = known.saturating_add(bytes as u64);
        }
        Ok(())
    }

    pub(super) fn limits(&self) -> &Limits {
        &self.limits
    }
}
