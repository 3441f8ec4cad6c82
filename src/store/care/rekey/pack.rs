//! Reseals a pack's records under the writing key.

use crate::crypto::AssociatedData;
use crate::error::Result;
use crate::store::care::rekey::reseal::{ResealOutcome, Resealed, misread};
use crate::store::folder::pack::pack_lines::PackLines;
use crate::store::folder::pack::{Line, OpenedPack, Pack};
use crate::store::record::finding::Finding;
use crate::store::record::name::pack_name::PackName;
use crate::store::write::committer::Committer;

/// Reseals a pack under the writing key. The new pack has the same name and, since plaintexts keep their length, the
/// same line offsets. It is durable and was read back line by line before it replaces the old one. Its name is
/// durable once the folder is synced. Lines that do not open stay unchanged and are added to `left`.
pub(crate) fn reseal(
    committer: &Committer<'_>,
    name: PackName,
    left: &mut Vec<Finding>,
) -> Result<ResealOutcome> {
    let old = match Pack::open(committer.folder, name)? {
        OpenedPack::Pack(pack) => pack,
        OpenedPack::Skipped(kind) => return Ok(ResealOutcome::Left(kind)),
        OpenedPack::Gone => return Ok(ResealOutcome::Gone),
    };
    if !has_old_lines(committer, &old, left)? {
        return Ok(ResealOutcome::Already);
    }
    let packs = &*committer.folder.packs;
    let text = name.to_string();
    let good = packs.replace_verified(
        &text,
        &mut |sink| {
            let mut lines = PackLines::new(&old);
            while let Some(line) = lines.next()? {
                match reseal_line(committer, &line)? {
                    Resealed::Anew(new) => {
                        sink(line.bytes.get(..=line.tab).unwrap_or_default())?;
                        sink(&new)?;
                    }
                    Resealed::Already | Resealed::Left(_) => old.copy(line.span, sink)?,
                }
            }
            Ok(())
        },
        &mut |written| {
            let new = Pack { name, source: written, path: old.path.clone() };
            is_the_same(committer, &new, &old)
        },
    )?;
    if good { Ok(ResealOutcome::Anew) } else { Err(misread(packs.path().join(text))) }
}

/// Whether any line is sealed under another key than the writing key. Adds unreadable lines to `left`.
fn has_old_lines(committer: &Committer<'_>, pack: &Pack, left: &mut Vec<Finding>) -> Result<bool> {
    let (mut lines, mut unopened) = (PackLines::new(pack), Vec::new());
    while let Some(line) = lines.next()? {
        match reseal_line(committer, &line)? {
            Resealed::Anew(_) => return Ok(true),
            Resealed::Already => {}
            Resealed::Left(kind) => {
                let place = line
                    .name
                    .map_or_else(|| pack.name.place(), |record| pack.name.place_of(record));
                unopened.push(kind.in_file(place));
            }
        }
    }
    left.append(&mut unopened);
    Ok(false)
}

fn reseal_line(committer: &Committer<'_>, line: &Line) -> Result<Resealed> {
    let name = line.name.map(|name| name.to_string()).unwrap_or_default();
    committer.reseal(&AssociatedData::record(&committer.folder.scope.parts(), &name), line.file())
}

/// Whether each line of the new pack has the same plaintext as the old one, or the same bytes if the old one does not
/// open.
fn is_the_same(committer: &Committer<'_>, new: &Pack, old: &Pack) -> Result<bool> {
    let (mut new_lines, mut old_lines) = (PackLines::new(new), PackLines::new(old));
    loop {
        let (new_line, old_line) = match (new_lines.next()?, old_lines.next()?) {
            (None, None) => return Ok(true),
            (Some(new_line), Some(old_line)) => (new_line, old_line),
            _ => return Ok(false),
        };
        let same = match (new_line.name, reseal_line(committer, &old_line)?) {
            (Some(name), Resealed::Anew(_)) if Some(name) == old_line.name => {
                let (scope, name) = (committer.folder.scope.parts(), name.to_string());
                let associated = AssociatedData::record(&scope, &name);
                committer.says_the_same(&associated, new_line.file(), old_line.file())?
            }
            (_, Resealed::Anew(_)) => false,
            _ => new_line.span == old_line.span && same_bytes(new, old, &new_line)?,
        };
        if !same {
            return Ok(false);
        }
    }
}

/// Whether both packs have the same bytes at this line.
fn same_bytes(new: &Pack, old: &Pack, line: &Line) -> Result<bool> {
    let (mut same, mut at) = (true, line.span.start);
    let mut expected = Vec::new();
    new.copy(line.span.clone(), &mut |bytes| {
        expected.resize(bytes.len(), 0);
        let read = old.read_at(at, &mut expected)?;
        at += bytes.len() as u64;
        same &= read == bytes.len() && expected == bytes;
        Ok(())
    })?;
    Ok(same && at == line.span.end)
}
