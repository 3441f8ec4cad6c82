//! Records: appended, read, forgotten

use std::collections::BTreeSet;

use crate::api::{
    Action, Append, Appended, Kind, Level, MAX_RECORDS, MAX_SEALED, NewRecord, Page, Record, Rid,
    Sealed,
};
use crate::database::{RecordBatch, RecordRow, Row, Step, Value};
use crate::error::{Error, Result};
use crate::team::caller::{Permit, Place, audit, permitted};
use crate::team::text::{Stored, id};
use crate::team::{Team, time, values};

/// The most bytes of one page, unless its first record is longer.
const PAGE: i64 = 4 << 20;

/// How often a page is read again whose packs were replaced meanwhile.
const ATTEMPTS: usize = 3;

const READ: &str = concat!(
    "SELECT pos, at, kind, rid, device, sealed, forgets FROM (\
      SELECT x.*, CAST(sum(size + coalesce(length(forgets), 0)) OVER (ORDER BY pos) AS bigint) AS total FROM (\
       SELECT * FROM record WHERE conversation = $2 AND pos > $6 AND ",
    permitted!(),
    " ORDER BY pos LIMIT $7\
      ) x\
     ) y WHERE total - size - coalesce(length(forgets), 0) < $8 ORDER BY pos"
);

/// A pack that holds a forgotten record is rewritten.
const DIRTY: &str = "\
UPDATE pack SET dirty = 1 WHERE conversation = $1 AND EXISTS (\
 SELECT 1 FROM record r WHERE r.conversation = $1 AND r.rid IN_LIST($2) AND r.sealed IS NULL \
 AND r.pos >= pack.first AND r.pos <= pack.last)";
const UNCOUNT: &str = "\
UPDATE conversation SET bytes = bytes - (\
 SELECT coalesce(sum(size), 0) FROM record WHERE conversation = $1 AND rid IN_LIST($2) AND kind <> $3) WHERE id = $1";
const EMPTY: &str = "\
UPDATE record SET sealed = $4, size = 0 WHERE conversation = $1 AND rid IN_LIST($2) AND kind <> $3 AND size > 0";
const NUMBER: &str = "UPDATE org SET audited = audited + 1 WHERE id = $1";

impl Team {
    /// Appends records, and forgets those that they name.
    pub(crate) async fn append(&self, permit: &Permit, request: Append) -> Result<Appended> {
        let (caller, place) = (&permit.caller, permit.place()?);
        check(&request.records)?;
        let own: BTreeSet<Rid> = request.records.iter().map(|record| record.rid).collect();
        let forgotten: BTreeSet<Rid> =
            request.records.iter().flat_map(|record| record.forgets.iter().copied()).collect();
        // An empty row of each record that is forgotten before it arrived keeps it away.
        let empty = forgotten.difference(&own).map(|rid| row(*rid, Kind::Message, Vec::new(), &[]));
        let mut records: Vec<RecordRow> = empty.collect();
        let before = records.len();
        records.extend(request.records.into_iter().map(|record| {
            row(record.rid, record.kind, record.sealed.into_bytes(), &record.forgets)
        }));
        let batch = RecordBatch {
            token: caller.sha256.clone(),
            level: Level::Write.number(),
            conversation: place.id.as_bytes().to_vec(),
            device: caller.device.as_bytes().to_vec(),
            at: self.now(),
            records,
        };
        let steps = match forgotten.is_empty() {
            true => Vec::new(),
            false => self.forgetting(permit, place, forgotten),
        };
        let Some(appended) = self.database.append(&batch, &steps).await? else {
            return Err(self.gone(permit).await);
        };
        let positions =
            appended.positions.into_iter().skip(before).map(i64::unsigned_abs).collect();
        Ok(Appended { positions, last: appended.last.unsigned_abs() })
    }

    fn forgetting(&self, permit: &Permit, place: Place, forgotten: BTreeSet<Rid>) -> Vec<Step> {
        let list = Value::List(forgotten.into_iter().map(|rid| rid.as_bytes().to_vec()).collect());
        let kind = Kind::Forgetting.number();
        let step = |sql, values| Step { sql, values, must: false };
        let caller = &permit.caller;
        let (audit, _) =
            audit(caller.org, self.now(), caller.member, Action::Forget, place.id, None);
        vec![
            step(DIRTY, values![place.id, list.clone()]),
            step(UNCOUNT, values![place.id, list.clone(), kind]),
            step(EMPTY, values![place.id, list, kind, Vec::new()]),
            step(NUMBER, values![caller.org]),
            audit,
        ]
    }

    /// Reads the records after a position. Those in packs are in their place.
    pub(crate) async fn page(&self, permit: &Permit, after: i64, limit: i64) -> Result<Page> {
        let place = permit.place()?;
        for _ in 0..ATTEMPTS {
            let mut rows = self.read(permit, READ, values![after, limit, PAGE]).await?;
            if !self.fill_from_packs(place, &mut rows).await? {
                continue;
            }
            let records: Vec<Record> = rows.iter_mut().map(record).collect::<Result<_>>()?;
            let end = records.last().map_or(0, |record| record.pos);
            return Ok(Page { records, last: end.max(place.last.unsigned_abs()) });
        }
        Err(Error::Damaged { what: "a pack of records" })
    }
}

fn row(rid: Rid, kind: Kind, sealed: Vec<u8>, forgets: &[Rid]) -> RecordRow {
    let forgets =
        (!forgets.is_empty()).then(|| forgets.iter().flat_map(Rid::as_bytes).copied().collect());
    RecordRow { rid: rid.as_bytes().to_vec(), kind: kind.number(), sealed, forgets }
}

fn record(row: &mut Row) -> Result<Record> {
    let forgets = row.take(6).unwrap_or_default();
    Ok(Record {
        pos: row.int(0).unsigned_abs(),
        at: time(row.int(1)),
        kind: Kind::read(row, 2)?,
        rid: id(row, 3)?,
        device: id(row, 4)?,
        sealed: row.take(5).filter(|sealed| !sealed.is_empty()).map(Sealed::from),
        forgets: forgets.chunks_exact(32).filter_map(Rid::from_slice).collect(),
    })
}

fn check(records: &[NewRecord]) -> Result<()> {
    let wrong = |what: &str| Err(Error::Invalid { what: what.to_owned() });
    if records.is_empty() {
        return wrong("there are no records");
    }
    if records.len() > MAX_RECORDS {
        return Err(Error::TooLarge { what: "the records of a request", most: MAX_RECORDS });
    }
    if records.iter().map(|record| record.forgets.len()).sum::<usize>() > MAX_RECORDS {
        return Err(Error::TooLarge { what: "the forgettings of a request", most: MAX_RECORDS });
    }
    let mut seen = BTreeSet::new();
    for record in records {
        if record.sealed.len() > MAX_SEALED {
            return Err(Error::TooLarge {
                what: "the sealed contents of a record",
                most: MAX_SEALED,
            });
        }
        match record.kind {
            Kind::Forgetting if record.forgets.is_empty() => {
                return wrong("a forgetting must name records");
            }
            Kind::Message | Kind::Setting if !record.forgets.is_empty() => {
                return wrong("only a forgetting names records to forget");
            }
            Kind::Message | Kind::Setting if record.sealed.is_empty() => {
                return wrong("a record must have contents");
            }
            _ => {}
        }
        if !seen.insert(record.rid) {
            return Err(Error::Conflict { what: "a record occurs twice in the request" });
        }
    }
    Ok(())
}
