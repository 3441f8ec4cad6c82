//! Making a sound pack of one that is not what its name says, or that holds what is elsewhere too.

use std::collections::BTreeMap;
use std::ops::Range;

use crate::blob::{Fill, Streamed};
use crate::error::{Error, Result};
use crate::store::compact::recover::make_durable;
use crate::store::folder::{Folder, Opened};
use crate::store::pack::check::PackAudit;
use crate::store::pack::lines::Lines;
use crate::store::pack::merge::find;
use crate::store::pack::{Line, OpenedPack, Pack, publish};
use crate::store::record::layout::QUARANTINE;
use crate::store::record::name::RecordName;
use crate::store::record::pack_name::PackName;

/// Where a line lies in its pack.
type Span = Range<u64>;

/// Puts a sound pack of the records that open in place of another one. What does not open goes, to the byte, to a file
/// in the quarantine folder; records that lie elsewhere too stay there only. Everything is durable and has been
/// read again before the old pack goes. Where nothing opens, or another key or program may open more, it stays.
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
        // One record less, so that the new pack's name is not the old one's.
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
            let place = folder.packs.path().join(new.to_string()).display().to_string();
            return Err(Error::Damaged { place, reason: "it does not read as it was written" });
        }
    }
    if !rest.is_empty() {
        keep(folder, &pack, &rest)?;
    }
    folder.packs.remove(&name.to_string())?;
    folder.packs.sync()
}

/// A pack's lines.
struct Sorted {
    /// Those that open, each record once.
    good: BTreeMap<RecordName, Span>,
    /// Those that do not, in their order.
    rest: Vec<Span>,
    /// Whether any opens, be it elsewhere too.
    opens: bool,
}

/// `None` where someone else may be able to read more of it.
fn sort(folder: &Folder, pack: &Pack) -> Result<Option<Sorted>> {
    let mut sorted = Sorted { good: BTreeMap::new(), rest: Vec::new(), opens: false };
    let elsewhere = OtherPacks::of(folder, pack.name)?;
    let mut lines = Lines::new(pack);
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

/// The other packs that are sound and durable, and may hold the same records.
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

    /// Whether one of them has the very line.
    fn holds(&self, name: RecordName, line: &Line) -> Result<bool> {
        for pack in self.0.iter().filter(|pack| pack.name.covers(name)) {
            if find(pack, name)?.is_some_and(|there| there.bytes == line.bytes) {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

/// Whether the record is durable in a file of its own too.
fn is_loose(folder: &Folder, name: RecordName, line: &Line) -> Result<bool> {
    let file = name.to_string();
    let loose = match folder.blobs.read(&file) {
        Err(Error::NotPlain { .. } | Error::Io { .. }) => None,
        read => read?,
    };
    let is_loose = loose.is_some_and(|bytes| bytes == line.file());
    if is_loose {
        folder.blobs.flush(&file)?;
        folder.blobs.sync()?;
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

/// Publishes one of the records as a file of its own; which.
fn set_loose(
    folder: &Folder,
    pack: &Pack,
    good: &BTreeMap<RecordName, Span>,
) -> Result<Option<RecordName>> {
    for (name, span) in good {
        let bytes = bytes(pack, span)?;
        let file = name.to_string();
        // The line without the name and the tab before it.
        let record = bytes.get(file.len() + 1..).unwrap_or_default();
        let there = folder.blobs.create(&file, record)?
            || folder.blobs.read(&file)?.is_some_and(|there| there == record);
        if there {
            folder.blobs.flush(&file)?;
            folder.blobs.sync()?;
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

/// Keeps lines that do not open in a file beside the pack.
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
    Err(Error::Damaged {
        place: aside.path().display().to_string(),
        reason: "it holds a thousand rests of one pack already",
    })
}
