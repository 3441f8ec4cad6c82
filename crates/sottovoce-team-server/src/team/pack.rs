//! Packs: sealed contents of older records, together in one object
//!
//! A pack is `SVPACK1\n`, then for each record its position and its length, each eight bytes with the highest first, and its sealed
//! contents. The rows of the records stay in the database, without contents.

use std::collections::BTreeMap;

use bytes::Bytes;
use tokio::sync::MutexGuard;

use crate::api::Id;
use crate::database::{Row, Value};
use crate::error::{Error, Result};
use crate::team::caller::Place;
use crate::team::conversation::HOLD;
use crate::team::object::{Object, doom, keep};
use crate::team::text::id;
use crate::team::{Team, must, step, values};

const MAGIC: &[u8] = b"SVPACK1\n";

/// The most records and bytes of a pack, and the fewest records that are worth one.
const MAX_ROWS: i64 = 1_000;
const MAX_BYTES: i64 = 4 << 20;
pub(super) const MIN_ROWS: usize = 100;
pub(super) const MIN_BYTES: i64 = MAX_BYTES / 4;

const FIND: &str = "\
SELECT object, digest, first, last FROM pack WHERE conversation = $1 AND last >= $2 AND first <= $3 ORDER BY first";
/// Of the records that are not in packs yet, those that come first and are old enough, without contents in a pack or forgotten ones.
const OLD: &str = "\
SELECT pos, sealed FROM (\
 SELECT x.*, CAST(sum(size) OVER (ORDER BY pos) AS bigint) AS total FROM (\
  SELECT pos, at, size, sealed FROM record \
  WHERE conversation = $1 AND pos > (SELECT coalesce(max(last), 0) FROM pack WHERE conversation = $1) ORDER BY pos LIMIT $2\
 ) x\
) y WHERE total - size < $3 AND at < $4 ORDER BY pos";
const ADD: &str = "INSERT INTO pack (conversation, first, last, object, digest, dirty) VALUES ($1, $2, $3, $4, $5, 0)";
/// One that was forgotten since it was read lies in the pack all the same.
const MARK: &str = "\
UPDATE pack SET dirty = 1 WHERE conversation = $1 AND first = $2 AND \
(SELECT count(*) FROM record WHERE conversation = $1 AND pos >= $2 AND pos <= $3 AND size > 0) < $4";
const TAKE_OUT: &str = "UPDATE record SET sealed = NULL WHERE conversation = $1 AND pos >= $2 AND pos <= $3 AND size > 0";
const DIRTY: &str = "SELECT conversation, first, last, object, digest FROM pack WHERE dirty = 1 AND (conversation, first) > ($1, $2) \
     ORDER BY conversation, first LIMIT 100";
const PACKED: &str =
    "SELECT pos FROM record WHERE conversation = $1 AND pos >= $2 AND pos <= $3 AND sealed IS NULL";
const REPLACE: &str = "\
UPDATE pack SET object = $4, digest = $5, dirty = 0 WHERE conversation = $1 AND first = $2 AND object = $3 RETURNING first";
const STILL: &str = "\
SELECT 1 WHERE (SELECT count(*) FROM record WHERE conversation = $1 AND pos >= $2 AND pos <= $3 AND sealed IS NULL) = $4";

impl Team {
    /// Puts the contents of packed records into their rows. Returns false if a pack was replaced meanwhile, or is lost.
    pub(super) async fn fill_from_packs(&self, place: Place, rows: &mut [Row]) -> Result<bool> {
        let is_packed = |row: &&Row| row.bytes(5).is_none();
        let (Some(first), Some(last)) = (rows.iter().find(is_packed), rows.iter().rfind(is_packed))
        else {
            return Ok(true);
        };
        let mut contents = BTreeMap::new();
        for pack in self.rows(FIND, values![place.id, first.int(0), last.int(0)]).await? {
            let Some(bytes) = self.read_object(&object(&pack, 0)?).await? else { return Ok(false) };
            contents.extend(decode(&bytes)?);
        }
        for row in rows.iter_mut().filter(|row| row.bytes(5).is_none()) {
            let Some(sealed) = contents.remove(&row.int(0)) else { return Ok(false) };
            if let Some(value) = row.0.get_mut(5) {
                *value = Value::Bytes(sealed.to_vec());
            }
        }
        Ok(true)
    }

    /// Moves the next old records of a conversation into a pack. Returns how many.
    pub(super) async fn pack(&self, conversation: Id, before: i64) -> Result<usize> {
        let mut rows = self.rows(OLD, values![conversation, MAX_ROWS, MAX_BYTES, before]).await?;
        let (Some(first), Some(last)) = (rows.first(), rows.last()) else { return Ok(0) };
        let (first, last) = (first.int(0), last.int(0));
        let is_full = rows.len() >= MIN_ROWS;
        let sealed =
            rows.iter_mut().filter_map(|row| Some((row.int(0), Bytes::from(row.take(1)?))));
        let sealed: Vec<_> = sealed.filter(|(_, sealed)| !sealed.is_empty()).collect();
        let bytes: usize = sealed.iter().map(|(_, sealed)| sealed.len()).sum();
        if !is_full && (bytes as i64) < MIN_BYTES {
            return Ok(0);
        }
        let count = sealed.len();
        let object = self.write_object(encode(sealed)).await?;
        let added = self
            .run(vec![
                must(HOLD, values![conversation], Error::NotFound { what: "conversation" }),
                keep(object.id),
                step(ADD, values![conversation, first, last, object.id, object.digest]),
                step(MARK, values![conversation, first, last, count as i64]),
                step(TAKE_OUT, values![conversation, first, last]),
            ])
            .await;
        match added {
            Ok(_) => Ok(count),
            // Another server packs this conversation.
            Err(Error::Conflict { .. } | Error::NotFound { .. }) => Ok(0),
            Err(error) => Err(error),
        }
    }

    /// Rewrites packs without the records that were forgotten, one at a time in this process. Returns how many packs. `waiting` is given
    /// up when it begins.
    pub(super) async fn rewrite_packs(&self, waiting: Option<MutexGuard<'_, ()>>) -> Result<u64> {
        let _turn = self.rewriting.1.lock().await;
        drop(waiting);
        let (mut rewritten, mut after) = (0, (Vec::new(), 0));
        loop {
            let packs = self.rows(DIRTY, values![after.0, after.1]).await?;
            let Some(last) = packs.last() else { return Ok(rewritten) };
            after = (last.bytes(0).unwrap_or_default().to_vec(), last.int(1));
            for pack in &packs {
                match self.rewrite_pack(pack).await {
                    Ok(()) => rewritten += 1,
                    // It has just changed, and its turn comes again; or it is lost, which whoever reads it is told.
                    Err(Error::Busy | Error::Damaged { .. }) => {}
                    Err(error) => return Err(error),
                }
            }
        }
    }

    async fn rewrite_pack(&self, pack: &Row) -> Result<()> {
        let (conversation, first, last): (Id, _, _) = (id(pack, 0)?, pack.int(1), pack.int(2));
        let old = object(pack, 3)?;
        // Another server may have rewritten it.
        let bytes = self.read_object(&old).await?.ok_or(Error::Busy)?;
        let rows = self.rows(PACKED, values![conversation, first, last]).await?;
        let mut contents = decode(&bytes)?;
        let kept: Vec<_> = rows
            .iter()
            .filter_map(|row| Some((row.int(0), contents.remove(&row.int(0))?)))
            .collect();
        let count = kept.len() as i64;
        let new = self.write_object(encode(kept)).await?;
        let busy = || Error::Busy;
        self.run(vec![
            must(HOLD, values![conversation], busy()),
            keep(new.id),
            // Nothing was forgotten since its rows were read.
            must(STILL, values![conversation, first, last, count], busy()),
            must(REPLACE, values![conversation, first, old.id, new.id, new.digest], busy()),
            doom(old.id, self.now()),
        ])
        .await
        .map(drop)
    }
}

pub(super) fn object(row: &Row, column: usize) -> Result<Object> {
    Ok(Object { id: id(row, column)?, digest: row.bytes(column + 1).unwrap_or_default().to_vec() })
}

fn encode(rows: Vec<(i64, Bytes)>) -> Bytes {
    let mut pack = MAGIC.to_vec();
    for (pos, sealed) in rows {
        pack.extend(pos.to_be_bytes());
        pack.extend((sealed.len() as u64).to_be_bytes());
        pack.extend(sealed);
    }
    pack.into()
}

fn decode(pack: &Bytes) -> Result<BTreeMap<i64, Bytes>> {
    let damaged = || Error::Damaged { what: "a pack of records" };
    let mut rest = pack.strip_prefix(MAGIC).ok_or_else(damaged)?;
    let mut rows = BTreeMap::new();
    while !rest.is_empty() {
        let (pos, more) = rest.split_first_chunk::<8>().ok_or_else(damaged)?;
        let (length, more) = more.split_first_chunk::<8>().ok_or_else(damaged)?;
        let length = usize::try_from(u64::from_be_bytes(*length)).map_err(|_| damaged())?;
        let sealed = more.get(..length).ok_or_else(damaged)?;
        rows.insert(i64::from_be_bytes(*pos), pack.slice_ref(sealed));
        rest = more.get(length..).unwrap_or_default();
    }
    Ok(rows)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pack_that_was_cut_or_is_something_else_is_damaged() {
        let rows = [(1, Bytes::from_static(b"one")), (7, Bytes::from_static(b"seven"))];
        let pack = encode(rows.to_vec());
        assert_eq!(decode(&pack).unwrap(), BTreeMap::from(rows));
        for end in 0..pack.len() {
            // A cut between two records cannot be told here. The digest tells.
            let is_between = end == MAGIC.len() || end == MAGIC.len() + 19;
            assert_eq!(decode(&pack.slice(..end)).is_ok(), is_between, "{end}");
        }
        let mut endless = MAGIC.to_vec();
        endless.extend([0xff; 16]);
        assert!(decode(&endless.into()).is_err());
    }
}
