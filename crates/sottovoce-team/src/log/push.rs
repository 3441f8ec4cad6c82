//! Appends what is new here to a conversation's log

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;
use sottovoce::exchange::{Exchange, Origin, Position, Stretch};
use sottovoce::store::Artifact;
use sottovoce_sync::values::{self, ARTIFACT};
use sottovoce_sync::{Problem, SyncProgress, SyncReport, SyncResult};
use sottovoce_team_api::{Append, Appended, Kind, MAX_RECORDS, NewRecord, Page, Rid, Sealed};

use reqwest::Method;

use crate::error::TeamResult;
use crate::log::contents::{Contents, What, new_rid};
use crate::log::settings::{self, digest};
use crate::log::{Log, note_problem};
use crate::state::{Known, Shared};

/// The most bytes of sealed contents of one request, which takes a third more in base64.
const FULL: usize = 4 << 20;

/// Records that are to be appended by one request.
#[derive(Default)]
struct Batch {
    records: Vec<NewRecord>,
    bytes: usize,
    /// The highest number that they use.
    n: u64,
}

impl Log<'_> {
    /// Appends what is new. Saves nothing: what was appended and is not noted is read back with the next pull.
    pub(crate) async fn push(
        &self,
        called: &str,
        shared: &mut Shared,
        report: &mut SyncReport,
        progress: &(dyn Fn(SyncProgress) + Send + Sync),
    ) -> TeamResult<()> {
        let position = self.exchange.position().await?;
        let mut writing = Writing { log: self, called, batch: Batch::default(), published: 0 };
        if position == shared.own.position && shared.own.untold.is_empty() {
            return writing.end(shared).await;
        }
        self.check_restored(shared, position).await?;
        writing.forgotten(shared, report).await?;
        writing.messages(shared, report, progress).await?;
        writing.settings(shared, report).await?;
        writing.end(shared).await?;
        shared.own.position = position;
        Ok(())
    }

    /// Begins again if the conversation is not the one that was appended: it was restored from an older copy, or forgotten
    /// completely and begun anew. The server has a record once, however often it is appended.
    async fn check_restored(&self, shared: &mut Shared, position: Position) -> TeamResult<()> {
        let own = &mut shared.own;
        let is_shorter = position.last_seq < own.seq;
        let is_another = match own.origin {
            Some(_) if !is_shorter => {
                let now = self.exchange.message_origin(own.seq).await?;
                now.is_some() && now != own.origin
            }
            _ => false,
        };
        if is_shorter || is_another {
            (own.seq, own.origin) = (0, None);
        }
        Ok(())
    }

    /// Appends forgettings of what the log has of a conversation that was forgotten completely. The store has no list of its
    /// messages any more, but one of all messages of such conversations.
    pub(crate) async fn push_removal(
        &self,
        called: &str,
        shared: &mut Shared,
        listed: &BTreeSet<Origin>,
        report: &mut SyncReport,
    ) -> TeamResult<()> {
        let mut names: BTreeMap<Rid, Origin> = BTreeMap::new();
        for origin in listed.difference(&shared.own.forgotten) {
            names.insert(self.keys.rid(*origin)?, *origin);
        }
        let (mut after, mut found) = (0, Vec::new());
        while !names.is_empty() {
            let page: Page = self.server.get(&format!("{}?after={after}", self.path())).await?;
            let Some(last) = page.records.last().map(|record| record.pos) else { break };
            if last <= after {
                break;
            }
            found.extend(page.records.iter().filter_map(|record| names.remove(&record.rid)));
            after = last;
        }
        let mut writing = Writing { log: self, called, batch: Batch::default(), published: 0 };
        writing.forget(shared, found, report).await?;
        writing.flush(shared).await
    }
}

/// What is being appended.
struct Writing<'a, 'b> {
    log: &'a Log<'b>,
    called: &'a str,
    batch: Batch,
    /// How many messages the server did not have before.
    published: usize,
}

impl Writing<'_, '_> {
    fn exchange(&self) -> &Exchange {
        self.log.exchange
    }

    async fn forgotten(&mut self, shared: &mut Shared, report: &mut SyncReport) -> TeamResult<()> {
        let mut forgotten = self.exchange().forgotten().await?;
        forgotten.extend(shared.own.untold.iter().copied());
        let new = forgotten.difference(&shared.own.forgotten).copied().collect();
        self.forget(shared, new, report).await?;
        shared.own.untold.clear();
        Ok(())
    }

    async fn forget(
        &mut self,
        shared: &mut Shared,
        forgotten: Vec<Origin>,
        report: &mut SyncReport,
    ) -> TeamResult<()> {
        for messages in forgotten.chunks(MAX_RECORDS) {
            let rids = messages.iter().map(|origin| self.log.keys.rid(*origin));
            let rids: Vec<Rid> = rids.collect::<SyncResult<_>>()?;
            let what = What::Forgot { messages: messages.to_vec(), records: Vec::new() };
            // The names of one request have a limit too.
            self.flush(shared).await?;
            self.add(shared, new_rid()?, Kind::Forgetting, rids, what).await?;
            self.flush(shared).await?;
            shared.own.forgotten.extend(messages);
            report.forgotten += messages.len();
        }
        Ok(())
    }

    async fn messages(
        &mut self,
        shared: &mut Shared,
        report: &mut SyncReport,
        progress: &(dyn Fn(SyncProgress) + Send + Sync),
    ) -> TeamResult<()> {
        loop {
            let Stretch { messages, read_to, last_seq, .. } =
                self.exchange().messages(shared.own.seq).await?;
            for message in messages.into_iter().map(|read| read.message) {
                if shared.own.heard.contains(&message.origin) {
                    continue;
                }
                let rid = self.log.keys.rid(message.origin)?;
                let what = What::Said(Box::new(message));
                if !self.add(shared, rid, Kind::Message, Vec::new(), what).await? {
                    let reason = "a message of a mebibyte or more is too long to be shared; it stays on this device";
                    note_problem(report, shared, reason);
                }
                progress(SyncProgress::Publishing { done: report.published + self.published });
            }
            self.flush(shared).await?;
            report.published += std::mem::take(&mut self.published);
            shared.own.seq = read_to;
            shared.own.origin = self.exchange().message_origin(read_to).await?;
            if read_to >= last_seq {
                shared.own.heard.clear();
                return Ok(());
            }
        }
    }

    async fn settings(&mut self, shared: &mut Shared, report: &mut SyncReport) -> TeamResult<()> {
        let values = settings::shared(self.exchange()).await?;
        let mut names: BTreeSet<String> = values.keys().cloned().collect();
        names.extend(shared.settings.keys().cloned());
        let null = digest("", &Value::Null);
        for name in names {
            let id = name.strip_prefix(ARTIFACT);
            if id.is_some_and(|id| shared.artifacts.contains_key(id)) {
                continue;
            }
            let mut value = values.get(&name).cloned().unwrap_or(Value::Null);
            let now = digest(&name, &value);
            let known = shared.settings.get(&name).cloned();
            let before = known.as_ref().map_or(null.as_str(), |known| &known.digest);
            let is_known = before == now
                || values::is_deleted_for_ever(&name) && known.is_some() && before == null;
            if is_known && known.as_ref().is_none_or(|known| !known.is_lost) {
                continue;
            }
            let edition = known.as_ref().map_or(0, |known| known.edition);
            let edition = edition.saturating_add(u64::from(before != now));
            if id.is_some()
                && let Ok(artifact) = serde_json::from_value::<Artifact>(value.clone())
            {
                match self.log.upload(artifact).await? {
                    Some(pieces) => {
                        value = values::to_value(&pieces)?;
                        shared.pieces.insert(pieces.artifact.id.clone(), pieces.pieces);
                    }
                    None => continue,
                }
            }
            let is_deleted = value.is_null();
            let (rid, what) = (new_rid()?, What::Set { name: name.clone(), value, edition });
            if !self.add(shared, rid, Kind::Setting, Vec::new(), what).await? {
                report.problems.push(Problem::UnknownSetting);
                continue;
            }
            if let Some(known) = known {
                // The older value is to leave the server.
                let what = What::Forgot { messages: Vec::new(), records: vec![known.rid] };
                self.add(shared, new_rid()?, Kind::Forgetting, vec![known.rid], what).await?;
            }
            let pieces = id.filter(|_| is_deleted).and_then(|id| shared.pieces.remove(id));
            for piece in pieces.into_iter().flatten() {
                self.log.server.delete(&self.log.piece_path(piece)).await?;
            }
            shared.settings.insert(name, Known { digest: now, rid, edition, is_lost: false });
        }
        Ok(())
    }

    /// Adds a record to the request. Returns `false` if it is too long.
    async fn add(
        &mut self,
        shared: &mut Shared,
        rid: Rid,
        kind: Kind,
        forgets: Vec<Rid>,
        what: What,
    ) -> TeamResult<bool> {
        let n = self.batch.n.max(shared.own.n) + 1;
        let (writer, by) = (shared.own.writer, self.called.to_owned());
        let contents = Contents { device: self.log.device, writer, n, by, what };
        let Some(sealed) = self.log.keys.seal(rid, &contents)? else { return Ok(false) };
        self.batch.n = n;
        self.batch.bytes += sealed.len();
        self.batch.records.push(NewRecord { rid, kind, sealed: Sealed::from(sealed), forgets });
        // Half of the limit, since a forgetting of an older setting names a record as well.
        if self.batch.records.len() >= MAX_RECORDS / 2 || self.batch.bytes >= FULL {
            self.flush(shared).await?;
        }
        Ok(true)
    }

    /// Appends the records that were added. The server takes all of them or none.
    async fn flush(&mut self, shared: &mut Shared) -> TeamResult<()> {
        let Batch { records, n, .. } = std::mem::take(&mut self.batch);
        if records.is_empty() {
            return Ok(());
        }
        let path = format!("{}/messages", self.log.path());
        let request = Append { records };
        let appended: Appended = self.log.server.put(Method::POST, &path, &request).await?;
        // The numbers of records that the log has already belong to none.
        let repeated = appended.positions.iter().filter(|at| **at <= shared.read).count();
        // It may be any number, if another program writes for this device.
        shared.own.void = shared.own.void.saturating_add(repeated as u64);
        let mut positions = request.records.iter().zip(appended.positions);
        let is_new =
            |(record, at): &(&NewRecord, u64)| record.kind == Kind::Message && *at > shared.read;
        self.published += positions.clone().filter(is_new).count();
        if let Some((record, at)) = positions.next_back()
            && at > shared.read
        {
            shared.own.expected.insert(at, (record.rid, None));
        }
        shared.own.n = n;
        shared.last = appended.last.max(shared.last);
        Ok(())
    }

    /// Appends what is left, and then tells how many numbers belong to no record: a store that is removed or lost could not tell it
    /// later. It has a record of its own, which stays when messages and values are forgotten.
    async fn end(&mut self, shared: &mut Shared) -> TeamResult<()> {
        self.flush(shared).await?;
        let void = shared.own.void;
        if void > shared.seen.void(self.log.device) {
            self.add(shared, new_rid()?, Kind::Setting, Vec::new(), What::Void(void)).await?;
        }
        self.flush(shared).await
    }
}
