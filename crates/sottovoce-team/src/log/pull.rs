//! Reads what a conversation's log has after the last position, and stores it here

use std::collections::BTreeMap;

use serde_json::Value;
use sottovoce::exchange::{Incoming, Origin, SharedMessage, SharedSnapshot};
use sottovoce::{ChatRole, Source};
use sottovoce_sync::values::{self, ARTIFACT, SNAPSHOT};
use sottovoce_sync::{Problem, SyncProgress, SyncReport};
use sottovoce_team_api::{Page, Record};

use crate::error::TeamResult;
use crate::log::contents::{ArtifactPieces, Contents, What, new_id};
use crate::log::settings::{self, digest};
use crate::log::{Log, note_problem};
use crate::state::{Known, Shared};

/// How many records are stored at a time.
const STRETCH: usize = 16_384;

/// What is reported of a server that lost what it had.
pub(crate) const OLDER: &str =
    "the server has an older state than before; what it lacks is published again";

/// What a stretch of the log says.
#[derive(Default)]
struct News {
    incoming: Incoming,
    /// The last value of each setting, and what is known of it.
    set: BTreeMap<String, (Value, Known)>,
    /// Whether a record of this store was emptied: its number cannot be read any more.
    is_own_emptied: bool,
    /// Whether a record is not where it was, or where the server said it is.
    is_lost: bool,
}

impl Log<'_> {
    /// Reads up to a stretch of the log and stores it. Returns whether there is more.
    pub(crate) async fn pull(
        &self,
        shared: &mut Shared,
        report: &mut SyncReport,
        progress: &(dyn Fn(SyncProgress) + Send + Sync),
    ) -> TeamResult<bool> {
        let (mut news, mut records) = (News::default(), 0);
        let (mut is_more, mut has_begun_again) = (true, false);
        while is_more && records < STRETCH {
            // The last one that was read comes too: whether it is still the same.
            let after = shared.read.saturating_sub(1);
            let path = format!("{}/changes?after={after}", self.path());
            let page: Page = self.server.get(&path).await?;
            let mut listed = page.records.into_iter();
            if shared.read > 0 {
                let found = listed.next().filter(|record| record.pos == shared.read);
                let found = found.map(|record| (record.rid, record.at));
                if page.last < shared.read || shared.at.is_some() && found != shared.at {
                    note_problem(report, shared, OLDER);
                    if has_begun_again {
                        is_more = false;
                        break;
                    }
                    has_begun_again = true;
                    shared.begin_again_newer();
                    continue;
                }
                shared.at = found;
            }
            let before = shared.read;
            for record in listed {
                if record.pos != shared.read + 1 {
                    note_problem(report, shared, "the server leaves records out");
                    break;
                }
                records += 1;
                self.note(record, shared, &mut news, report)?;
            }
            shared.last = page.last;
            is_more = shared.read < page.last && shared.read > before;
        }
        let (is_own_emptied, is_lost) = (news.is_own_emptied, news.is_lost);
        self.apply(shared, news, report).await?;
        progress(SyncProgress::Receiving { done: shared.read, total: shared.last });
        // Another life of this store, or an attempt whose answer was lost, has used these numbers, or may have.
        if is_own_emptied || shared.seen.newest(self.device, shared.own.writer) > shared.own.n {
            (shared.own.writer, shared.own.n) = (new_id()?, 0);
        }
        if is_lost || !is_more && !shared.own.expected.is_empty() {
            note_problem(report, shared, OLDER);
            shared.begin_again_newer();
            return Ok(true);
        }
        if !is_more {
            // What does not open is there, though its number is not known.
            if shared.unopened.is_none() {
                let own = &mut shared.own;
                own.void = shared.seen.missing(self.device, own.writer, own.n);
            }
            note_withheld(shared, report);
        }
        Ok(is_more)
    }

    /// Has read again what the server served wrongly, once it may be right: a record that did not open as soon as it opens, and
    /// everything if records are missing, with the next exchange and then ever more rarely.
    pub(crate) async fn ask_again(&self, shared: &mut Shared) {
        if let Some((at, seen)) = shared.unopened.clone() {
            let path = format!("{}/changes?after={}&limit=1", self.path(), at.saturating_sub(1));
            // What fails here fails again when the log is read.
            let Ok(Page { records, .. }) = self.server.get(&path).await else { return };
            let opens = |record: &Record| {
                let sealed = record.sealed.as_ref();
                sealed.is_none_or(|text| self.keys.open(record.rid, text.as_bytes()).is_some())
            };
            if records.first().is_some_and(opens) {
                shared.unopened = None;
                shared.read_again(at, seen);
            }
        } else if shared.seen.is_whole() {
            shared.lacking = 0;
        } else {
            shared.lacking += 1;
            if shared.lacking.is_power_of_two() {
                shared.begin_again();
            }
        }
    }

    /// Notes one record.
    fn note(
        &self,
        record: Record,
        shared: &mut Shared,
        news: &mut News,
        report: &mut SyncReport,
    ) -> TeamResult<()> {
        (shared.read, shared.at) = (record.pos, Some((record.rid, record.at)));
        if let Some((rid, at)) = shared.own.expected.remove(&record.pos) {
            news.is_lost |= rid != record.rid || at.is_some_and(|at| at != record.at);
        }
        let Some(sealed) = record.sealed else {
            shared.seen.note_emptied(record.device, record.rid);
            news.is_own_emptied |= record.device == self.device;
            return Ok(());
        };
        let Some(contents) = self.keys.open(record.rid, sealed.as_bytes()) else {
            if shared.unopened.is_none() {
                shared.unopened = Some((record.pos, shared.seen.clone()));
            }
            return Ok(());
        };
        let Contents { device, writer, n, by, what } = contents;
        if device != record.device || !shared.seen.note(device, writer, n) {
            let reason = "the server repeats records, changes their order, or names another device";
            note_problem(report, shared, reason);
            // Two copies of one store may have used the same number. Words and forgettings count once, however often they come.
            if !matches!(what, What::Said(_) | What::Forgot { .. }) {
                return Ok(());
            }
        }
        match what {
            What::Said(mut message) => {
                // A message's record has the name that follows from it, so that forgetting it empties that record.
                if self.keys.rid(message.origin)? != record.rid {
                    note_problem(report, shared, "a record has another message's name");
                    return Ok(());
                }
                if shared.own.untold.contains(&message.origin) {
                    return Ok(());
                }
                if writer != shared.own.writer || record.device != self.device {
                    name_speaker(&mut message, by);
                }
                news.incoming.messages.push(*message);
            }
            What::Set { name, value, edition } if settings::is_shared(&name) => {
                let digest = digest(&name, &value);
                let known = Known { digest, rid: record.rid, edition, is_lost: false };
                news.set.insert(name, (value, known));
            }
            What::Forgot { messages, records } => {
                for origin in &messages {
                    shared.seen.explain([self.keys.rid(*origin)?]);
                }
                shared.seen.explain(records);
                news.incoming.forgotten.extend(messages);
            }
            What::Void(void) => shared.seen.note_void(device, void),
            What::Set { .. } => {}
        }
        Ok(())
    }

    async fn apply(
        &self,
        shared: &mut Shared,
        news: News,
        report: &mut SyncReport,
    ) -> TeamResult<()> {
        let News { mut incoming, set, .. } = news;
        shared.own.forgotten.extend(incoming.forgotten.iter().copied());
        let before = self.exchange.position().await?;
        let taken = match set.is_empty() {
            true => BTreeMap::new(),
            false => self.sort_settings(shared, set, &mut incoming, report).await?,
        };
        if incoming == Incoming::default() && taken.is_empty() {
            return Ok(());
        }
        let heard: Vec<Origin> = incoming.messages.iter().map(|message| message.origin).collect();
        let received = self.exchange.receive(incoming).await?;
        report.received += received.taken;
        report.removed += received.removed;
        if !received.left_out.is_empty() {
            report.problems.push(Problem::UnknownSetting);
        }
        if !taken.is_empty() {
            let values = settings::shared(self.exchange).await?;
            for (name, known) in taken {
                let id = name.strip_prefix(SNAPSHOT);
                // Its messages are not here. That it is not here either does not mean that it was deleted.
                if id.is_some_and(|id| received.incomplete.contains(id)) {
                    continue;
                }
                let id = name.strip_prefix(ARTIFACT);
                let waiting = id.and_then(|id| shared.artifacts.get(id));
                let digest = match waiting.map(values::to_value).transpose()? {
                    Some(value) => digest(&name, &value),
                    None => digest(&name, values.get(&name).unwrap_or(&Value::Null)),
                };
                shared.settings.insert(name, Known { digest, ..known });
            }
        }
        // The log has these messages. If all others here were looked at, they need not be read to find that out.
        let after = self.exchange.position().await?.last_seq;
        let are_all = shared.own.seq >= before.last_seq
            && received.removed == 0
            && after - before.last_seq == received.taken as u64;
        if are_all {
            shared.own.seq = after;
            shared.own.origin = self.exchange.message_origin(after).await?;
        } else {
            shared.own.heard.extend(heard);
        }
        Ok(())
    }

    /// Adds the settings to what is to be stored, except for those that were changed here since and are about to be
    /// appended. Returns the others.
    async fn sort_settings(
        &self,
        shared: &mut Shared,
        set: BTreeMap<String, (Value, Known)>,
        incoming: &mut Incoming,
        report: &mut SyncReport,
    ) -> TeamResult<BTreeMap<String, Known>> {
        let here = settings::shared(self.exchange).await?;
        let mut taken = BTreeMap::new();
        let mut deleted = Vec::new();
        let null = digest("", &Value::Null);
        for (name, (value, there)) in set {
            let now = digest(&name, here.get(&name).unwrap_or(&Value::Null));
            let known = shared.settings.get(&name).cloned();
            let (before, edition, is_lost) = match &known {
                Some(known) => (&known.digest, known.edition, known.is_lost),
                None => (&null, 0, false),
            };
            let is_waiting =
                name.strip_prefix(ARTIFACT).is_some_and(|id| shared.artifacts.contains_key(id));
            let is_newer = *before != now || is_lost && edition >= there.edition;
            let is_changed = !is_waiting && is_newer;
            let is_gone = values::is_deleted_for_ever(&name) && known.is_some() && *before == null;
            if is_gone && !is_lost && !value.is_null() {
                continue;
            }
            if is_changed && !(values::is_deleted_for_ever(&name) && value.is_null()) {
                // The value here is the newer one. It is appended next, unless both are equal.
                if let Some(id) = name.strip_prefix(ARTIFACT)
                    && let Ok(there) = serde_json::from_value::<ArtifactPieces>(value.clone())
                {
                    shared.pieces.entry(id.to_owned()).or_insert(there.pieces);
                }
                let is_lost = is_lost && there.digest != now;
                let digest = if there.digest == now { now } else { before.clone() };
                let edition = edition.max(there.edition);
                shared.settings.insert(name, Known { digest, edition, is_lost, ..there });
                continue;
            }
            let value = (!value.is_null()).then_some(value);
            if let Some(id) = name.strip_prefix(ARTIFACT) {
                let pieces = value.map(serde_json::from_value::<ArtifactPieces>).transpose();
                match pieces {
                    Ok(Some(pieces)) if pieces.artifact.id == id => {
                        shared.pieces.insert(id.to_owned(), pieces.pieces.clone());
                        if !here.contains_key(&name) {
                            shared.artifacts.insert(id.to_owned(), pieces);
                        }
                    }
                    Ok(None) => {
                        shared.artifacts.remove(id);
                        deleted.push(id.to_owned());
                    }
                    _ => {
                        report.problems.push(Problem::UnknownSetting);
                        continue;
                    }
                }
            } else if let Some(id) = name.strip_prefix(SNAPSHOT) {
                match value.map(serde_json::from_value::<SharedSnapshot>).transpose() {
                    Ok(snapshot) => drop(incoming.snapshots.insert(id.to_owned(), snapshot)),
                    Err(_) => {
                        report.problems.push(Problem::UnknownSetting);
                        continue;
                    }
                }
            } else {
                incoming.settings.insert(name.clone(), value);
            }
            taken.insert(name, there);
        }
        if !deleted.is_empty() {
            self.exchange.delete_artifacts(&deleted).await?;
        }
        Ok(taken)
    }
}

/// Notes which member the words come from, whatever they say. Who said something is shown to the model, unless the message
/// says it.
fn name_speaker(message: &mut SharedMessage, by: String) {
    message.message = message.message.clone().from_source(Source::Member, &by);
    let metadata = &mut message.message.metadata;
    if message.message.role == ChatRole::User && !by.is_empty() && !metadata.contains_key("speaker")
    {
        metadata.insert("speaker".to_owned(), by);
    }
}

fn note_withheld(shared: &Shared, report: &mut SyncReport) {
    if shared.unopened.is_some() {
        let reason =
            "a record was changed, or sealed with a key that is not here: ask for a new link";
        note_problem(report, shared, reason);
    } else if shared.seen.withheld() > 0 {
        note_problem(report, shared, "the server holds back records of a member");
    }
    // What did not open may tell why.
    if shared.unopened.is_none() && shared.seen.unexplained() > 0 {
        let reason = "the server emptied records though no member asked for it";
        note_problem(report, shared, reason);
    }
}
