//! Rebuilds a pack that does not match its name or has duplicates.

use std::collections::BTreeMap;
use std::ops::Range;

use crate::directory::{Fill, Streamed};
use crate::error::{Error, Result};
use crate::store::folder::pack::check::PackAudit;
use crate::store::folder::pack::pack_lines::{PackLines, find};
use crate::store::folder::pack::{Line, OpenedPack, Pack, publish};
use crate::store::folder::{Folder, Opened};
use crate::store::record::layout::QUARANTINE;
use crate::store::record::name::RecordName;
use crate::store::record::name::pack_name::PackName;
use crate::store::write::compact::pack_recovery::make_durable;

/// A line's bytes in its pack.
type Span = Range<u64>;

/// Replaces a pack with a valid one of the records that open. Lines that do not open go unchanged to a file in the
/// quarantine folder. Records that are stored elsewhere too stay only there. Everything is durable and was read back
/// before the old pack is removed. Keeps the pack if nothing opens, or if another key or program may read more of it.
pub(crate) fn rebuild(folder: &Folder, name: PackName) -> Result<()> {
    let OpenedPack::Pack(pack) = Pack::open(folder, name)? else {
        return Ok(());
    };
    let Some(Sorted { mut good, rest, opens }) = sort(folder, &pack)? else {
        return Ok(());
    };
    if !opens {
        return Ok(());
    }
    let mut new = name_of(&good);
    if new == Some(name) {
        if rest.is_empty() && is_sound(folder, name)? {
            return Ok(());
        }
        // Leave out one record, so that the new pack's name differs from the old one's.
        let Some(loose) = set_loose(folder, &pack, &good)? else {
            return Ok(());
        };
        good.remove(&loose);
        new = name_of(&good);
    }
    if let Some(new) = new {
        publish(folder, &mut |sink| {
            good.values().try_for_each(|span| pack.copy(span.clone(), sink))?;
            Ok(Some(new.to_string()))
        })?;
        if !is_sound(folder, new)? {
            let path = folder.packs.path().join(new.to_string());
            return Err(Error::damaged(path, "it does not read back as written"));
        }
    }
    if !rest.is_empty() {
        keep(folder, &pack, &rest)?;
    }
    folder.packs.remove(&name.to_string())?;
    folder.packs.sync()
}

/// A pack's lines, sorted by what they are.
struct Sorted {
    /// Lines that open, each record once.
    good: BTreeMap<RecordName, Span>,
    /// Lines that do not open, in order.
    rest: Vec<Span>,
    /// Whether any line opens, including records that are stored elsewhere too.
    opens: bool,
}

/// Sorts a pack's lines. `None` if another key or program may read more of it.
fn sort(folder: &Folder, pack: &Pack) -> Result<Option<Sorted>> {
    let mut sorted = Sorted { good: BTreeMap::new(), rest: Vec::new(), opens: false };
    let elsewhere = OtherPacks::of(folder, pack.name)?;
    let mut lines = PackLines::new(pack);
    while let Some(line) = lines.next()? {
        let opened = match line.name {
            Some(name) => Some((name, folder.open_bytes(name, line.file())?)),
            None => None,
        };
        sorted.opens |= matches!(opened, Some((_, Opened::Message(_))));
        match opened {
            Some((_, Opened::Skipped(kind))) if kind.may_open_later() => return Ok(None),
            Some((name, Opened::Message(_))) => match sorted.good.get(&name) {
                _ if elsewhere.holds(name, &line)? || is_loose(folder, name, &line)? => {}
                None => {
                    sorted.good.insert(name, line.span);
                }
                Some(first) if bytes(pack, first)? == line.bytes => {}
                Some(_) => sorted.rest.push(line.span),
            },
            _ => sorted.rest.push(line.span),
        }
    }
    Ok(Some(sorted))
}

/// Other valid, durable packs that may have the same records.
struct OtherPacks(Vec<Pack>);

impl OtherPacks {
    fn of(folder: &Folder, name: PackName) -> Result<Self> {
        let mut packs = Vec::new();
        for other in folder.list()?.packs {
            let overlaps = other.first <= name.last && name.first <= other.last;
            if other != name
                && overlaps
                && is_sound(folder, other)?
                && let OpenedPack::Pack(pack) = Pack::open(folder, other)?
            {
                make_durable(folder, other)?;
                packs.push(pack);
            }
        }
        Ok(Self(packs))
    }

    /// Whether one of them has exactly this line.
    fn holds(&self, name: RecordName, line: &Line) -> Result<bool> {
        for pack in self.0.iter().filter(|pack| pack.name.covers(name)) {
            if find(pack, name)?.is_some_and(|there| there.bytes == line.bytes) {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

/// Whether the record is also durable in a file of its own.
fn is_loose(folder: &Folder, name: RecordName, line: &Line) -> Result<bool> {
    let file = name.to_string();
    let loose = match folder.directory.read(&file) {
        Err(Error::NotPlain { .. } | Error::Io { .. }) => None,
        read => read?,
    };
    let is_loose = loose.is_some_and(|bytes| bytes == line.file());
    if is_loose {
        folder.directory.flush(&file)?;
        folder.directory.sync()?;
    }
    Ok(is_loose)
}

fn name_of(good: &BTreeMap<RecordName, Span>) -> Option<PackName> {
    let mut name = None;
    good.keys().for_each(|record| PackName::add(&mut name, *record));
    name
}

pub(crate) fn is_sound(folder: &Folder, name: PackName) -> Result<bool> {
    match Pack::open(folder, name)? {
        OpenedPack::Pack(pack) => PackAudit::new(&pack).finish_valid(),
        OpenedPack::Skipped(_) | OpenedPack::Gone => Ok(false),
    }
}

/// Publishes one of the records as a file of its own, and returns which.
fn set_loose(
    folder: &Folder,
    pack: &Pack,
    good: &BTreeMap<RecordName, Span>,
) -> Result<Option<RecordName>> {
    for (name, span) in good {
        let bytes = bytes(pack, span)?;
        let file = name.to_string();
        // The line without the name and the tab.
        let record = bytes.get(file.len() + 1..).unwrap_or_default();
        let there = folder.directory.create(&file, record)?
            || folder.directory.read(&file)?.is_some_and(|there| there == record);
        if there {
            folder.directory.flush(&file)?;
            folder.directory.sync()?;
            return Ok(Some(*name));
        }
    }
    Ok(None)
}

fn bytes(pack: &Pack, span: &Span) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    pack.copy(span.clone(), &mut |more| {
        bytes.extend_from_slice(more);
        Ok(())
    })?;
    Ok(bytes)
}

/// Writes lines that do not open to a file in the quarantine folder.
fn keep(folder: &Folder, pack: &Pack, rest: &[Span]) -> Result<()> {
    let aside = folder.packs.folder(QUARANTINE);
    for number in 1..1000 {
        let fill: &mut Fill<'_> = &mut |sink| {
            rest.iter().try_for_each(|span| pack.copy(span.clone(), sink))?;
            Ok(Some(format!("{}.rest.{number}", pack.name)))
        };
        if let Streamed::Published(_) = aside.stream(fill)? {
            return aside.sync();
        }
    }
    let reason = "the quarantine folder has a thousand files of one pack already";
    Err(Error::damaged(aside.path(), reason))
}
