//! Finds out what this device has to publish

use std::ops::RangeInclusive;

use serde_json::Value;
use sottovoce::Scope;
use sottovoce::exchange::{Exchange, Origin, Position, Stretch, StretchMessage};

use crate::device::round::Round;
use crate::device::state::{Covered, Has, Published};
use crate::device::{Device, Heard};
use crate::error::SyncResult;
use crate::report::SyncReport;
use crate::stream::change::{Batch, Register, Said};
use crate::values::{self, ARTIFACT};

/// A number for the last time that a conversation was forgotten completely; 0 for never.
pub(super) fn removal(last: Option<u64>) -> u64 {
    last.map_or(0, |last| last + 1)
}

impl Device {
    /// Collects what was not published yet.
    pub(super) async fn collect(&mut self, report: &mut SyncReport) -> SyncResult<Round> {
        let mut round = Round::default();
        let scopes = self.shared_scopes().await?;
        self.collect_removed(&mut round).await?;
        for scope in scopes {
            if round.is_full() {
                round.is_cut = true;
                break;
            }
            let exchange = self.exchange(&scope).await?;
            let position = exchange.position().await?;
            let text = scope.to_string();
            let known = round.scopes.get(&text).or_else(|| self.state.own.scopes.get(&text));
            if known.map(|known| known.position).unwrap_or_default() == position {
                continue;
            }
            let is_first = known.is_none();
            let mut published = known.cloned().unwrap_or_default();
            if is_first {
                // What was forgotten before anything was published is nobody's concern.
                published.removed = removal(self.removed_at(&scope).await?);
                published.scrubbed = published.removed;
            }
            self.collect_forgotten(&scope, &exchange, &mut published, &mut round).await?;
            let is_all =
                self.collect_messages(&scope, &exchange, &mut published, &mut round).await?;
            self.collect_settings(&exchange, &mut published, &mut round, report).await?;
            match is_all {
                true => published.position = position,
                false => round.is_cut = true,
            }
            round.scopes.insert(text, published);
        }
        Ok(round)
    }

    async fn collect_forgotten(
        &self,
        scope: &Scope,
        exchange: &Exchange,
        published: &mut Published,
        round: &mut Round,
    ) -> SyncResult<()> {
        let forgotten = exchange.forgotten().await?;
        let mut batch = Batch::new(0, scope);
        batch.gone = forgotten.difference(&published.gone.0).copied().collect();
        published.gone.0.extend(forgotten);
        let erased: Vec<(u64, u64)> = exchange
            .forgotten_numbers()
            .await?
            .into_iter()
            .map(RangeInclusive::into_inner)
            .collect();
        if published.erased != erased {
            published.has = Has::default();
        }
        let new = erased.iter().filter(|range| !published.erased.contains(range));
        let new: Vec<_> = new.map(|(first, last)| *first..=*last).collect();
        if !new.is_empty() {
            round.erased.entry(scope.to_string()).or_default().extend(new);
        }
        published.erased = erased;
        round.push(batch, Covered::default());
        Ok(())
    }

    /// Whether all messages were collected.
    async fn collect_messages(
        &self,
        scope: &Scope,
        exchange: &Exchange,
        published: &mut Published,
        round: &mut Round,
    ) -> SyncResult<bool> {
        let begun = self.state.begun.as_ref();
        let begun = begun.map(|lasts| lasts.get(&scope.to_string()).copied().unwrap_or(0));
        let is_in = |messages: &Heard, origin: &Origin| {
            messages.get(scope).is_some_and(|messages| messages.contains(origin))
        };
        let is_new = |seq: u64, was_received: bool, origin: &Origin| match begun {
            Some(last) if seq <= last || is_in(&self.inherited, origin) => {
                !is_in(&self.heard, origin)
            }
            _ => !was_received,
        };
        loop {
            if round.is_full() {
                return Ok(false);
            }
            let stretch = exchange.messages(published.has.upto.min(published.seq)).await?;
            let Stretch { messages, read_to, last_seq, is_limited } = stretch;
            let (mut batch, mut covered, mut bytes) = (Batch::new(0, scope), Covered::default(), 0);
            for StretchMessage { seq, is_received, message } in messages {
                published.has.add(seq, message.origin);
                if seq <= published.seq || !is_new(seq, is_received, &message.origin) {
                    continue;
                }
                bytes += message.message.content.len() + 256;
                covered.add(seq);
                batch.said.push(Said::new(scope, seq, message));
                // A batch should be a small part of a segment.
                if bytes > 1 << 20 {
                    round.push(std::mem::replace(&mut batch, Batch::new(0, scope)), covered);
                    (covered, bytes) = (Covered::default(), 0);
                }
            }
            round.push(batch, covered);
            published.has.is_limited |= is_limited;
            published.has.upto = published.has.upto.max(read_to);
            published.seq = published.seq.max(read_to);
            published.origin = exchange.message_origin(published.seq).await?;
            if read_to >= last_seq {
                return Ok(true);
            }
        }
    }

    async fn collect_settings(
        &mut self,
        exchange: &Exchange,
        published: &mut Published,
        round: &mut Round,
        report: &mut SyncReport,
    ) -> SyncResult<()> {
        let scope = exchange.store().scope();
        let values = values::values(exchange).await?;
        self.stamp_changes(scope, &values);
        let text = scope.to_string();
        let registers = self.state.registers.get(&text).cloned().unwrap_or_default();
        let mut batch = Batch::new(0, scope);
        for (name, known) in registers {
            let before = published.stamps.get(&name).copied();
            if before.is_some_and(|before| before != known.stamp) {
                // The older value is to leave the stream.
                round.purged.insert(text.clone());
                published.stamps.remove(&name);
            }
            if !known.own || before == Some(known.stamp) {
                continue;
            }
            let Some(mut value) = self.state.to_publish(&text, &name, &values) else { continue };
            if let Some(id) = name.strip_prefix(ARTIFACT) {
                match serde_json::from_value(value) {
                    Ok(artifact) => {
                        let Some((contents, pieces)) =
                            self.upload(exchange, artifact, report).await?
                        else {
                            continue;
                        };
                        round.pieces.insert(id.to_owned(), pieces);
                        value = values::to_value(&contents)?;
                    }
                    Err(_) => value = Value::Null,
                }
            }
            published.stamps.insert(name.clone(), known.stamp);
            batch.set.insert(name, Register { stamp: known.stamp, value });
        }
        for id in self.state.own.pieces.keys() {
            let name = format!("{ARTIFACT}{id}");
            if values.get(&name).is_some_and(Value::is_null) {
                round.dropped.push(id.clone());
            }
        }
        let covered = Covered { seqs: None, set: !batch.set.is_empty() };
        round.push(batch, covered);
        Ok(())
    }

    /// Collects conversations that were forgotten completely.
    async fn collect_removed(&mut self, round: &mut Round) -> SyncResult<()> {
        let root = Exchange::new(self.root.clone());
        let known = self.state.own.scopes.get(&Scope::Default.to_string());
        let before = known.map(|known| known.position).unwrap_or_default();
        if before != Position::default() && before == root.position().await? {
            return Ok(());
        }
        let scopes = self.state.own.scopes.clone();
        for (text, published) in &scopes {
            let Ok(scope) = text.parse::<Scope>() else { continue };
            let removed = removal(root.removed_at(&scope).await?);
            if removed <= published.scrubbed {
                continue;
            }
            let forgotten = root.forgotten_with(&scope).await?;
            let mut batch = Batch::new(0, &scope);
            batch.gone = forgotten.difference(&published.gone.0).copied().collect();
            batch.removed = true;
            let mut published = published.clone();
            // One that was begun anew counts from the start.
            published.position = Position::default();
            published.has = Has { upto: published.seq, ..Has::default() };
            published.gone.0.extend(batch.gone.iter().copied());
            if removed > published.removed {
                // Its settings went with it, but for what came since, even if the conversation is not shared any more.
                let values = values::values(&self.exchange(&scope).await?).await?;
                self.stamp_changes(&scope, &values);
                for (name, register) in self.state.registers.get(text).into_iter().flatten() {
                    if register.own && !values.contains_key(name) {
                        published.stamps.insert(name.clone(), register.stamp);
                        let null = Register { stamp: register.stamp, value: Value::Null };
                        batch.set.insert(name.clone(), null);
                    }
                }
                let covered = Covered { seqs: None, set: !batch.set.is_empty() };
                round.push(batch, covered);
            }
            (published.removed, published.scrubbed) = (removed, removed);
            round.erased.insert(text.clone(), vec![1..=removed]);
            round.removed.insert(text.clone());
            round.scopes.insert(text.clone(), published);
        }
        Ok(())
    }
}
