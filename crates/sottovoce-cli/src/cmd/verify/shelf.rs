//! The file of an inventory. An existing file is replaced only if it is an inventory.

use std::fs::{File, Metadata};
use std::io::{self, Read, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags};
use sottovoce::Config;
use sottovoce::admin::{Inventory, StoreInventory};

use crate::exit::Failure;
use crate::output;
use crate::private_file::{PrivateFile, unwritable};

/// The largest inventory in bytes: more than tens of millions of messages need.
const LONGEST: u64 = 1 << 28;

pub(super) struct Shelf {
    /// The path as given.
    pub(super) file: PathBuf,
    /// Its folder without links, and its name there.
    folder: PathBuf,
    place: PathBuf,
}

impl Shelf {
    /// Checks that writing there loses nothing of value. Changes nothing.
    pub(super) fn new(file: PathBuf, config: &Config) -> Result<Self, Failure> {
        let folder = match file.parent() {
            Some(parent) if parent != Path::new("") => parent,
            _ => Path::new("."),
        };
        let folder = folder.canonicalize().map_err(|error| unwritable(&file, &error))?;
        let name = file.file_name().ok_or_else(|| {
            Failure::input(format!("{} names no file", file.display()), "name a file")
        })?;
        let place = folder.join(name);
        let shelf = Self { file, folder, place };
        shelf.stands_apart(config)?;
        shelf.holds_nothing_else()?;
        Ok(shelf)
    }

    /// Refuses folders that belong to the store or are searched for the key.
    fn stands_apart(&self, config: &Config) -> Result<(), Failure> {
        let refused = |what: &str| {
            Err(Failure::input(
                format!("{} is in {what}", self.file.display()),
                "name a file elsewhere, best on another machine's disk",
            ))
        };
        if self.is_below(&config.storage_root()?) {
            return refused("the store's own folder");
        }
        let of_user = sottovoce::config::config_folder().ok();
        if of_user.is_some_and(|folder| self.is_below(&folder)) {
            return refused("the configuration folder");
        }
        // These files may lie in any folder, so only their own folder is refused, not those below it.
        let folder_of = |file: &Option<PathBuf>| {
            let file = std::path::absolute(file.as_ref()?).ok()?;
            file.parent().map(Path::to_owned)
        };
        let (settings, local) = (folder_of(&config.file), folder_of(&config.local_file));
        let key_file = config.key_file()?;
        let real = key_file.canonicalize().ok().and_then(|file| file.parent().map(Path::to_owned));
        let beside = [Some(config.salt_folder()?), real, settings, local];
        if beside.into_iter().flatten().any(|folder| is_same(&self.folder, &folder)) {
            return refused("the folder of the key file or the configuration");
        }
        Ok(())
    }

    fn is_below(&self, folder: &Path) -> bool {
        self.folder.ancestors().any(|above| is_same(above, folder))
    }

    /// Refuses an existing entry unless it is an inventory. Follows no links, and opens only files.
    fn holds_nothing_else(&self) -> Result<(), Failure> {
        let refused = |what: &str| {
            Failure::input(
                format!("{} {what}; it stays as it is", self.file.display()),
                "name a file that is new, or that `verify --save` has written",
            )
        };
        match self.place.symlink_metadata() {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(error) => return Err(unwritable(&self.file, &error)),
            Ok(there) if !there.is_file() => return Err(refused("is not a regular file")),
            Ok(_) => {}
        }
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let opened = rustix::fs::open(&self.place, flags, Mode::empty()).map_err(io::Error::from);
        let mut json = Vec::new();
        let read = opened.and_then(|fd| File::from(fd).take(LONGEST).read_to_end(&mut json));
        read.map_err(|error| unwritable(&self.file, &error))?;
        let is_inventory =
            Inventory::from_json(&json, "").is_ok() || StoreInventory::from_json(&json, "").is_ok();
        if is_inventory { Ok(()) } else { Err(refused("exists and is not an inventory")) }
    }

    /// Writes the inventory atomically, and replaces an earlier one.
    pub(super) fn put(&self, json: &str) -> Result<(), Failure> {
        // A check takes time. Another file may have appeared there.
        self.holds_nothing_else()?;
        let mut new = PrivateFile::begin_at(&self.file, &self.place)?;
        new.file.write_all(json.as_bytes()).map_err(|error| new.unwritable(&error))?;
        new.end()?;
        output::note(&format!(
            "keep {} where nobody who could restore an old copy of the store can write",
            self.file.display()
        ));
        Ok(())
    }
}

/// Whether both paths lead to the same folder.
fn is_same(one: &Path, other: &Path) -> bool {
    let key = |there: Metadata| (there.dev(), there.ino());
    match (one.metadata(), other.metadata()) {
        (Ok(one), Ok(other)) => key(one) == key(other),
        _ => false,
    }
}
