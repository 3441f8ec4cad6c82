//! A remote on a server: S3, Azure, Google Cloud Storage or WebDAV, through the crate `object_store`

mod answer;
pub(crate) mod buckets;
mod connector;
mod services;
pub(crate) mod webdav;

use std::fmt;
use std::sync::Arc;

use ::object_store::list::{PaginatedListOptions, PaginatedListStore};
use ::object_store::path::Path;
use ::object_store::{ObjectStore, ObjectStoreExt};
use async_trait::async_trait;
use bytes::{Bytes, BytesMut};
use futures_util::StreamExt;

use crate::error::{Action, ErrorKind, RemoteError};
use crate::name::{self, Names};
use crate::remote::{MAX_NAMES, Remote, Result};
use answer::Failure;

/// The most pages of a listing. Servers fill a page with up to a thousand names, but may also return empty ones.
const MAX_PAGES: usize = MAX_NAMES / 100;

/// How a service lists a folder.
enum Listing {
    /// Page by page, so that it can be given up.
    Pages(Arc<dyn PaginatedListStore>),
    /// In one answer, whose paths start with that of the address.
    Whole { base: Path },
}

pub(crate) struct Server {
    store: Arc<dyn ObjectStore>,
    listing: Listing,
    prefix: Path,
    /// The address without credentials.
    place: String,
}

impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The stores inside know the credentials.
        f.debug_tuple("Server").field(&self.place).finish()
    }
}

impl Server {
    fn path(&self, action: Action, name: &str) -> Result<Path> {
        name::check(action, &self.place, name)?;
        Ok(name.split('/').filter(|part| !part.is_empty()).fold(self.prefix.clone(), Path::join))
    }

    fn error(&self, action: Action, name: &str, failure: Failure) -> RemoteError {
        RemoteError::new(failure.kind, action, name::place(&self.place, name), failure.reason)
    }

    fn failed(&self, action: Action, name: &str, error: &::object_store::Error) -> RemoteError {
        self.error(action, name, answer::failure(error))
    }

    /// Fails if something is absent because the folder of the address is. A WebDAV server does not say so; the others do.
    async fn check_container(&self, action: Action, name: &str) -> Result<()> {
        if matches!(self.listing, Listing::Pages(_)) {
            return Ok(());
        }
        match self.store.list_with_delimiter(None).await {
            Ok(_) => Ok(()),
            Err(error) if answer::is_absent(&error) => {
                let reason = "the folder of the address does not exist".to_owned();
                Err(self.error(action, name, Failure { kind: ErrorKind::NoContainer, reason }))
            }
            Err(error) => Err(self.failed(action, name, &error)),
        }
    }

    async fn read(&self, name: &str) -> Result<Option<Bytes>> {
        let path = self.path(Action::Get, name)?;
        let found = match self.store.get(&path).await {
            Ok(found) => found,
            Err(error) if answer::is_absent(&error) => {
                return self.check_container(Action::Get, name).await.map(|()| None);
            }
            Err(error) => return Err(self.failed(Action::Get, name, &error)),
        };
        let place = name::place(&self.place, name);
        let size = found.meta.size;
        name::check_size(Action::Get, &place, size)?;
        // The size is what the server claims, so nothing is reserved for it.
        let mut bytes = BytesMut::new();
        let mut pieces = found.into_stream();
        while let Some(piece) = pieces.next().await {
            let piece = piece.map_err(|error| self.failed(Action::Get, name, &error))?;
            name::check_size(Action::Get, &place, (bytes.len() + piece.len()) as u64)?;
            bytes.extend_from_slice(&piece);
        }
        if bytes.len() as u64 != size {
            let reason = "the answer is not as long as the server said".to_owned();
            let failure = Failure { kind: ErrorKind::Unreachable, reason };
            return Err(self.error(Action::Get, name, failure));
        }
        Ok(Some(bytes.freeze()))
    }

    async fn pages(
        &self,
        store: &Arc<dyn PaginatedListStore>,
        folder: &Path,
        names: &mut Names<'_>,
    ) -> Result<(), Failure> {
        let prefix = match folder.as_ref() {
            "" => None,
            path => Some(format!("{path}/")),
        };
        let mut page_token = None;
        for _ in 0..MAX_PAGES {
            let options = PaginatedListOptions {
                delimiter: Some("/".into()),
                page_token,
                ..PaginatedListOptions::default()
            };
            let page = store.list_paginated(prefix.as_deref(), options).await;
            let page = page.map_err(|error| answer::failure(&error))?;
            add(names, folder, page.result.objects.iter().map(|object| &object.location), false)?;
            add(names, folder, page.result.common_prefixes.iter(), true)?;
            page_token = page.page_token;
            if page_token.is_none() {
                return Ok(());
            }
        }
        let reason = format!("there are more than {MAX_PAGES} pages");
        Err(Failure { kind: ErrorKind::TooLarge, reason })
    }
}

/// Adds the paths that are directly inside a folder.
fn add<'a>(
    names: &mut Names<'_>,
    folder: &Path,
    paths: impl Iterator<Item = &'a Path>,
    are_folders: bool,
) -> Result<(), Failure> {
    for path in paths {
        let mut below = path.prefix_match(folder).into_iter().flatten();
        let part = below.next();
        // What lies elsewhere counts too.
        let part = part.as_ref().filter(|_| below.next().is_none());
        let added = names.add(part.map_or("", AsRef::as_ref), are_folders);
        added.map_err(|error| Failure { kind: error.kind(), reason: error.reason().to_owned() })?;
    }
    Ok(())
}

#[async_trait]
impl Remote for Server {
    async fn put(&self, name: &str, bytes: Bytes) -> Result<()> {
        let path = self.path(Action::Put, name)?;
        name::check_size(Action::Put, &name::place(&self.place, name), bytes.len() as u64)?;
        let Err(error) = self.store.put(&path, bytes.into()).await else { return Ok(()) };
        let mut failure = answer::failure(&error);
        if answer::is_absent(&error) {
            self.check_container(Action::Put, name).await?;
            match self.listing {
                Listing::Pages(_) => failure.kind = ErrorKind::NoContainer,
                Listing::Whole { .. } => {
                    failure.reason = "the server creates no folder for it".to_owned();
                }
            }
        }
        Err(self.error(Action::Put, name, failure))
    }

    async fn get(&self, name: &str) -> Result<Option<Bytes>> {
        self.read(name).await
    }

    async fn list(&self, folder: &str) -> Result<Vec<String>> {
        let path = self.path(Action::List, folder)?;
        let place = name::place(&self.place, folder);
        let mut names = Names::new(&place);
        let listed = match &self.listing {
            Listing::Pages(store) => self.pages(store, &path, &mut names).await,
            Listing::Whole { base } => {
                let path = Some(path).filter(|path| !path.is_root());
                match self.store.list_with_delimiter(path.as_ref()).await {
                    Ok(found) => {
                        let folder =
                            path.iter().flat_map(Path::parts).fold(base.clone(), Path::join);
                        let objects = found.objects.iter().map(|object| &object.location);
                        add(&mut names, &folder, objects, false).and_then(|()| {
                            add(&mut names, &folder, found.common_prefixes.iter(), true)
                        })
                    }
                    Err(error) if answer::is_absent(&error) => {
                        self.check_container(Action::List, folder).await?;
                        Ok(())
                    }
                    Err(error) => Err(answer::failure(&error)),
                }
            }
        };
        listed.map_err(|failure| self.error(Action::List, folder, failure))?;
        Ok(names.finish())
    }

    async fn delete(&self, name: &str) -> Result<()> {
        let path = self.path(Action::Delete, name)?;
        match self.store.delete(&path).await {
            Ok(()) => Ok(()),
            Err(error) if answer::is_absent(&error) => {
                self.check_container(Action::Delete, name).await
            }
            Err(error) => Err(self.failed(Action::Delete, name, &error)),
        }
    }
}
