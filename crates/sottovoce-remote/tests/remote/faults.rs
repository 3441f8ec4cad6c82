//! The remote in memory, its faults, and what repeating does about them

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use sottovoce_remote::testing::{Faults, Faulty, MemoryRemote, remote_contract};
use sottovoce_remote::{Action, ErrorKind, Remote, RemoteError, Result, Retrying};

#[tokio::test]
async fn a_remote_in_memory_keeps_the_contract() {
    remote_contract(&MemoryRemote::new(), "folder").await.unwrap();
}

/// A remote with one broken rule.
#[derive(Debug)]
struct Broken(MemoryRemote, &'static str);

#[async_trait]
impl Remote for Broken {
    async fn put(&self, name: &str, bytes: Bytes) -> Result<()> {
        let is_there = self.0.get(name).await.is_ok_and(|found| found.is_some());
        if self.1 == "keeps the first" && is_there { Ok(()) } else { self.0.put(name, bytes).await }
    }

    async fn get(&self, name: &str) -> Result<Option<Bytes>> {
        let found = self.0.get(name).await;
        if self.1 == "cuts" {
            found.map(|found| found.map(|bytes| bytes.slice(..bytes.len().min(65_536))))
        } else {
            found
        }
    }

    async fn list(&self, folder: &str) -> Result<Vec<String>> {
        let mut found = self.0.list(folder).await?;
        match self.1 {
            "one page" => found.truncate(1_000),
            "no folders" => found.retain(|name| !name.ends_with('/')),
            _ => {}
        }
        Ok(found)
    }

    async fn delete(&self, name: &str) -> Result<()> {
        let is_there = self.0.get(name).await?.is_some();
        if self.1 == "misses" && !is_there {
            return Err(RemoteError::new(ErrorKind::Other, Action::Delete, name, "absent"));
        }
        if self.1 == "keeps" { Ok(()) } else { self.0.delete(name).await }
    }
}

#[tokio::test]
async fn the_contract_notices_each_broken_rule() {
    for broken in ["keeps the first", "cuts", "one page", "no folders", "misses", "keeps"] {
        let remote = Broken(MemoryRemote::new(), broken);
        assert!(remote_contract(&remote, "folder").await.is_err(), "{broken}");
    }
    remote_contract(&Broken(MemoryRemote::new(), "nothing"), "folder").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn lost_requests_and_replies_are_made_up_for_by_repeating() {
    for seed in 0..50 {
        let faults = Faults { lost_requests: 100, lost_replies: 100, ..Faults::default() };
        let remote = Retrying::new(Faulty::new(MemoryRemote::new(), seed, faults), "here");
        for round in 0..20 {
            let bytes = Bytes::from(vec![round; 10]);
            let name = format!("a/{round}");
            if remote.put(&name, bytes.clone()).await.is_ok() {
                let found = remote.get(&name).await;
                assert!(found.is_err() || found.unwrap() == Some(bytes), "seed {seed}");
            }
        }
    }
}

#[tokio::test]
async fn a_late_put_brings_an_older_object_back() {
    let faults = Faults { late: 1000, ..Faults::default() };
    let remote = Faulty::new(MemoryRemote::new(), 1, faults);
    remote.put("head", "old".into()).await.unwrap_err();
    remote.set_faults(Faults::default());
    remote.inner().put("head", "new".into()).await.unwrap();
    remote.settle().await.unwrap();
    assert_eq!(remote.get("head").await.unwrap().unwrap(), "old");
}

#[tokio::test]
async fn a_truncated_put_leaves_a_shorter_object_and_says_that_it_failed() {
    let faults = Faults { truncated: 1000, ..Faults::default() };
    let remote = Faulty::new(MemoryRemote::new(), 1, faults);
    remote.put("object", vec![1; 1000].into()).await.unwrap_err();
    assert!(remote.inner().get("object").await.unwrap().unwrap().len() < 1000);
}

async fn trace(seed: u64) -> Vec<String> {
    let remote = Faulty::new(MemoryRemote::new(), seed, Faults::all(100));
    let mut trace = Vec::new();
    for step in 0..200_u8 {
        let name = format!("o/{}", step % 7);
        trace.push(match step % 4 {
            0 | 1 => format!("{:?}", remote.put(&name, vec![step; 9].into()).await),
            2 => format!("{:?}", remote.get(&name).await),
            _ => format!("{:?}", remote.delete(&name).await),
        });
    }
    remote.settle().await.unwrap();
    trace.push(format!("{:?}", remote.inner().objects()));
    trace
}

#[tokio::test]
async fn a_seed_decides_the_faults() {
    assert_eq!(trace(7).await, trace(7).await);
    assert_ne!(trace(7).await, trace(8).await);
}

/// Counts the attempts, all of which fail in one way.
#[derive(Debug)]
struct Failing(AtomicU32, Option<ErrorKind>);

#[async_trait]
impl Remote for Failing {
    async fn put(&self, name: &str, _: Bytes) -> Result<()> {
        self.delete(name).await
    }

    async fn get(&self, name: &str) -> Result<Option<Bytes>> {
        self.delete(name).await.map(|()| None)
    }

    async fn list(&self, folder: &str) -> Result<Vec<String>> {
        self.delete(folder).await.map(|()| Vec::new())
    }

    async fn delete(&self, name: &str) -> Result<()> {
        self.0.fetch_add(1, Ordering::Relaxed);
        match self.1 {
            Some(kind) => Err(RemoteError::new(kind, Action::Delete, name, "it failed")),
            None => std::future::pending().await,
        }
    }
}

#[tokio::test(start_paused = true)]
async fn only_what_may_pass_is_repeated_and_not_for_ever() {
    use ErrorKind::{NoContainer, Other, Refused, TooLarge, Unreachable};
    for (kind, attempts) in
        [(Unreachable, 5), (Refused, 1), (NoContainer, 1), (TooLarge, 1), (Other, 1)]
    {
        let remote = Failing(AtomicU32::new(0), Some(kind));
        let remote = Retrying::new(remote, "here");
        assert_eq!(remote.put("a", Bytes::new()).await.unwrap_err().kind(), kind);
        remote.get("a").await.unwrap_err();
        remote.list("a").await.unwrap_err();
        remote.delete("a").await.unwrap_err();
        assert_eq!(remote.inner().0.load(Ordering::Relaxed), 4 * attempts, "{kind:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_remote_that_never_answers_ends_in_an_error_that_says_where() {
    let remote = Retrying::new(Failing(AtomicU32::new(0), None), "s3://bucket");
    let began = tokio::time::Instant::now();
    let error = remote.delete("a").await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "cannot delete s3://bucket/a: no complete answer within 60 seconds"
    );
    assert!(began.elapsed() < Duration::from_secs(360));
}
