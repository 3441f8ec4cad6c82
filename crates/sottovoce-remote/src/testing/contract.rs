//! The rules that every remote keeps, as a suite for a remote's own tests

use bytes::Bytes;

use crate::error::ErrorKind;
use crate::remote::{MAX_OBJECT, Remote, Result};

/// Checks the rules of [`Remote`] in a folder of a remote that nobody else uses, and leaves no object there.
///
/// # Errors
/// A sentence that names the first rule that the remote violates, and what was found.
pub async fn remote_contract(remote: &dyn Remote, folder: &str) -> std::result::Result<(), String> {
    let suite = Suite { remote, folder };
    suite.objects().await?;
    suite.sizes().await?;
    suite.listings().await?;
    suite.names().await?;
    suite.many().await
}

/// The first rule that is violated.
type Outcome = std::result::Result<(), String>;

struct Suite<'a> {
    remote: &'a dyn Remote,
    folder: &'a str,
}

impl Suite<'_> {
    fn name(&self, name: &str) -> String {
        format!("{}/{name}", self.folder)
    }

    async fn put(&self, name: &str, bytes: impl Into<Bytes>) -> Outcome {
        self.remote.put(&self.name(name), bytes.into()).await.map_err(text)
    }

    async fn has(&self, rule: &str, name: &str, wanted: Option<&[u8]>) -> Outcome {
        let found = self.remote.get(&self.name(name)).await.map_err(text)?;
        let shown = |bytes: Option<&[u8]>| bytes.map(|bytes| format!("{} bytes", bytes.len()));
        if found.as_deref() == wanted {
            return Ok(());
        }
        let (found, wanted) = (shown(found.as_deref()), shown(wanted));
        Err(format!("{rule}: {name} is {found:?} instead of {wanted:?}"))
    }

    async fn lists(&self, rule: &str, folder: &str, wanted: &[&str]) -> Outcome {
        let found = self.remote.list(&self.name(folder)).await.map_err(text)?;
        same(rule, &found, wanted)
    }

    async fn delete(&self, name: &str) -> Outcome {
        self.remote.delete(&self.name(name)).await.map_err(text)
    }

    async fn objects(&self) -> Outcome {
        self.has("an object that was never written is absent", "h/a.0", None).await?;
        self.delete("h/a.0")
            .await
            .map_err(|error| format!("what is absent can be deleted: {error}"))?;
        self.put("h/a.0", "first").await?;
        self.has("an object is read as it was written", "h/a.0", Some(b"first")).await?;
        self.put("h/a.0", "other").await?;
        self.has(
            "a second put replaces the first, also one of equal size",
            "h/a.0",
            Some(b"other"),
        )
        .await?;
        self.put("h/a.0", "other").await?;
        self.has("a put can be repeated", "h/a.0", Some(b"other")).await?;
        self.has("one object's name is not the start of another's", "h/a", None).await?;
        self.delete("h/a.0").await?;
        self.has("a deleted object is absent", "h/a.0", None).await?;
        self.delete("h/a.0").await.map_err(|error| format!("a delete can be repeated: {error}"))
    }

    async fn sizes(&self) -> Outcome {
        let every_byte: Vec<u8> = (0..=255).cycle().take(70_000).collect();
        for (name, bytes) in
            [("s/empty", Vec::new()), ("s/binary", every_byte), ("s/largest", vec![7; MAX_OBJECT])]
        {
            self.put(name, bytes.clone()).await?;
            self.has("objects of all sizes are read as they were written", name, Some(&bytes))
                .await?;
            self.delete(name).await?;
        }
        let result = self.remote.put(&self.name("s/over"), vec![0; MAX_OBJECT + 1].into()).await;
        fails("an object of more than 16 MiB is refused", ErrorKind::TooLarge, &result)?;
        self.has("what was refused is not there", "s/over", None).await
    }

    async fn listings(&self) -> Outcome {
        self.lists("a folder that does not exist is empty", "none", &[]).await?;
        for name in ["l/b", "l/a.1", "l/c/inner", "l/c/d/deep", "lx/beside"] {
            self.put(name, "x").await?;
        }
        self.lists(
            "a listing has one level, sorted, folders with a slash",
            "l",
            &["a.1", "b", "c/"],
        )
        .await?;
        self.lists("a folder inside is listed in the same way", "l/c", &["d/", "inner"]).await?;
        for name in ["l/b", "l/a.1", "l/c/inner", "l/c/d/deep", "lx/beside"] {
            self.delete(name).await?;
        }
        let left = self.remote.list(&self.name("l")).await.map_err(text)?;
        let objects: Vec<&String> = left.iter().filter(|name| !name.ends_with('/')).collect();
        same("deleted objects are not listed", &objects, &[] as &[&str])
    }

    async fn names(&self) -> Outcome {
        let long = format!("{}/{}", self.folder, "x".repeat(129));
        for name in [
            "",
            "/",
            "../a",
            "a/../../b",
            "a//b",
            "/a",
            "a/",
            ".a",
            "a b",
            "ä",
            "a\n",
            "a%2e",
            "a?b",
            "a#b",
            &long,
        ] {
            let rule = &format!("the name {name:?} is refused");
            fails(rule, ErrorKind::Other, &self.remote.put(name, Bytes::new()).await)?;
            fails(rule, ErrorKind::Other, &self.remote.get(name).await)?;
            fails(rule, ErrorKind::Other, &self.remote.delete(name).await)?;
            if !name.is_empty() {
                fails(rule, ErrorKind::Other, &self.remote.list(name).await)?;
            }
        }
        let longest = format!("n/{}", "x".repeat(128));
        self.put(&longest, "x").await?;
        self.has("a part of a name may have 128 characters", &longest, Some(b"x")).await?;
        self.delete(&longest).await
    }

    /// More names than a page of most services has.
    async fn many(&self) -> Outcome {
        let names: Vec<String> = (0..1_100).map(|n| format!("{n:032x}")).collect();
        for group in names.chunks(20) {
            let puts = group.iter().map(|name| self.put_at(format!("m/{name}")));
            futures_util::future::try_join_all(puts).await?;
        }
        let found = self.remote.list(&self.name("m")).await.map_err(text)?;
        if found != names {
            return Err(format!(
                "a listing of {} names has all of them: {}",
                names.len(),
                found.len()
            ));
        }
        for group in names.chunks(20) {
            let deletes = group.iter().map(|name| self.delete_at(format!("m/{name}")));
            futures_util::future::try_join_all(deletes).await?;
        }
        self.lists("a folder without objects is empty", "m", &[]).await
    }

    async fn put_at(&self, name: String) -> Outcome {
        self.put(&name, "x").await
    }

    async fn delete_at(&self, name: String) -> Outcome {
        self.delete(&name).await
    }
}

fn text(error: crate::RemoteError) -> String {
    error.to_string()
}

fn same<A: std::fmt::Debug + PartialEq<B>, B: std::fmt::Debug>(
    rule: &str,
    found: &[A],
    wanted: &[B],
) -> Outcome {
    if found.len() == wanted.len() && found.iter().zip(wanted).all(|(a, b)| a == b) {
        return Ok(());
    }
    Err(format!("{rule}: {found:?} instead of {wanted:?}"))
}

fn fails<T>(rule: &str, kind: ErrorKind, result: &Result<T>) -> Outcome {
    match result {
        Err(error) if error.kind() == kind => Ok(()),
        Err(error) => Err(format!("{rule}: the error is {:?}: {error}", error.kind())),
        Ok(_) => Err(format!("{rule}: it was accepted")),
    }
}
