//! Applies what another device has published to the conversations of this store

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;
use sottovoce::Scope;
use sottovoce::exchange::{Exchange, Incoming, Origin, SharedSnapshot};

use crate::device::Device;
use crate::device::collect::removal;
use crate::device::selection::Selection;
use crate::device::state::Known;
use crate::error::{SyncResult, off_thread};
use crate::id::Id;
use crate::report::{Problem, SyncReport};
use crate::stream::change::{Batch, Contents, Register};
use crate::values::{self, ARTIFACT, SNAPSHOT, digest};

/// What batches say about one conversation.
#[derive(Default)]
struct News {
    incoming: Incoming,
    removed: bool,
    set: BTreeMap<String, Register>,
}

/// What is new in each conversation, in an order in which it can be applied: what follows the removal of a conversation
/// belongs to one that was begun anew.
#[derive(Default)]
struct Sorted {
    news: Vec<(Scope, News)>,
    /// Whether some conversation's name cannot be read.
    are_unknown: bool,
    /// Whether some conversations are not shared here.
    are_left_out: bool,
}

fn sort_by_conversation(batches: Vec<Batch>, selection: &Selection) -> Sorted {
    let mut sorted = Sorted::default();
    let mut news: BTreeMap<Scope, News> = BTreeMap::new();
    for batch in batches {
        let scope = match batch.scope.parse::<Scope>() {
            Ok(scope) if selection.includes(&scope) => scope,
            Ok(_) => {
                sorted.are_left_out = true;
                continue;
            }
            Err(_) => {
                sorted.are_unknown = true;
                continue;
            }
        };
        if news.get(&scope).is_some_and(|news| news.removed) {
            sorted.news.extend(news.remove_entry(&scope));
        }
        let found = news.entry(scope.clone()).or_default();
        found.incoming.forgotten.extend(batch.gone);
        found.removed |= batch.removed;
        for (name, register) in batch.set {
            let newest = found.set.get(&name);
            if newest.is_none_or(|newest| newest.stamp <= register.stamp) {
                found.set.insert(name, register);
            }
        }
        let said = batch.said.into_iter().filter_map(|said| said.shared(&scope));
        found.incoming.messages.extend(said);
    }
    sorted.news.extend(news);
    sorted
}

impl Device {
    pub(super) async fn apply(
        &mut self,
        device: Id,
        batches: Vec<Batch>,
        report: &mut SyncReport,
    ) -> SyncResult<()> {
        let selection = self.state.selection.clone();
        let sorted = move || sort_by_conversation(batches, &selection);
        let Sorted { news, are_unknown, are_left_out } = off_thread(sorted).await?;
        // It alone may have what was said in a conversation that is not shared any more.
        if are_left_out && self.keep_stream(device) {
            self.state.own.kept.insert(device);
        }
        if are_unknown {
            report.problems.push(Problem::UnknownScope);
        }
        for (scope, news) in news {
            self.apply_to(device, &scope, news, report).await?;
        }
        Ok(())
    }

    async fn apply_to(
        &mut self,
        device: Id,
        scope: &Scope,
        news: News,
        report: &mut SyncReport,
    ) -> SyncResult<()> {
        let News { mut incoming, removed, set } = news;
        if self.state.begun.is_some() {
            let place = match self.state.own.replaces.contains(&device) {
                true => &mut self.inherited,
                false => &mut self.heard,
            };
            let origins = place.entry(scope.clone()).or_default();
            origins.extend(incoming.messages.iter().map(|message| message.origin));
        }
        self.state.own.learn_scope(scope);
        let exchange = self.exchange(scope).await?;
        let mut artifacts = Vec::new();
        let won = self.winners(scope, &exchange, set).await?;
        for (name, register) in &won {
            let value = (!register.value.is_null()).then(|| register.value.clone());
            if let Some(id) = name.strip_prefix(ARTIFACT) {
                artifacts.push((id.to_owned(), value));
            } else if let Some(id) = name.strip_prefix(SNAPSHOT) {
                let snapshot = value.map(serde_json::from_value::<SharedSnapshot>).transpose();
                match snapshot {
                    Ok(snapshot) => drop(incoming.snapshots.insert(id.to_owned(), snapshot)),
                    Err(_) => report.problems.push(Problem::UnknownSetting),
                }
            } else {
                incoming.settings.insert(name.clone(), value);
            }
        }
        let forgotten = incoming.forgotten.clone();
        let said: Vec<Origin> = incoming.messages.iter().map(|message| message.origin).collect();
        let snapshots = incoming.snapshots.clone();
        let received = exchange.receive(incoming).await?;
        self.note_forgotten(scope, &forgotten);
        let is_again = received.forgotten > 0 && self.forget_again(scope, &exchange, said).await?;
        let text = scope.to_string();
        let waiting = self.state.waiting.entry(text).or_default();
        for (id, snapshot) in snapshots {
            match snapshot.filter(|_| received.incomplete.contains(&id)) {
                Some(snapshot) => drop(waiting.insert(id, snapshot)),
                None => drop(waiting.remove(&id)),
            }
        }
        report.received += received.taken;
        report.removed += received.removed;
        for (id, value) in artifacts {
            self.apply_artifact(&exchange, &id, value, report).await?;
        }
        self.note_applied(device, scope, &exchange, won).await?;
        if removed || is_again {
            self.remove(scope, &exchange).await?;
        }
        Ok(())
    }

    /// Removes a conversation that was forgotten completely elsewhere, if nothing is left in it.
    async fn remove(&mut self, scope: &Scope, exchange: &Exchange) -> SyncResult<()> {
        let text = scope.to_string();
        let forgotten = exchange.forgotten().await?;
        let root = Exchange::new(self.root.clone());
        let before = removal(root.removed_at(scope).await?);
        let published = self.state.own.scopes.get(&text).cloned().unwrap_or_default();
        let is_told = before <= published.removed && forgotten.is_subset(&published.gone.0);
        let has_more = !values::values(exchange).await?.is_empty();
        if has_more || !exchange.store().clone().remove_forgotten().await? {
            return Ok(());
        }
        // Otherwise this device publishes the removal too, and with it what it alone has forgotten.
        if is_told {
            let removed = root.removed_at(scope).await?;
            let published = self.state.own.scopes.entry(text).or_default();
            published.removed = removal(removed);
        }
        Ok(())
    }

    /// Notes messages as forgotten in this conversation that were forgotten with the whole of it: whoever says them anew, from a backup, is to hear of it. Returns whether there were any.
    async fn forget_again(
        &self,
        scope: &Scope,
        exchange: &Exchange,
        said: Vec<Origin>,
    ) -> SyncResult<bool> {
        let listed = exchange.forgotten_with(scope).await?;
        let known = exchange.forgotten().await?;
        let told = self.state.own.scopes.get(&scope.to_string()).map(|published| &published.gone.0);
        let is_told = |origin: &Origin| told.is_some_and(|told| told.contains(origin));
        let is_untold = |o: &Origin| listed.contains(o) && !known.contains(o) && !is_told(o);
        let forgotten: BTreeSet<Origin> = said.into_iter().filter(is_untold).collect();
        let is_any = !forgotten.is_empty();
        if is_any {
            exchange.receive(Incoming { forgotten, ..Incoming::default() }).await?;
        }
        Ok(is_any)
    }

    /// Notes that another device publishes these forgettings, so that this one need not.
    fn note_forgotten(&mut self, scope: &Scope, forgotten: &BTreeSet<Origin>) {
        if self.state.begun.is_none() && !forgotten.is_empty() {
            let published = self.state.own.scopes.entry(scope.to_string()).or_default();
            published.gone.0.extend(forgotten);
        }
    }

    /// Saves the snapshots whose messages were not here when they arrived, if they are now.
    pub(super) async fn fill_waiting(&mut self) -> SyncResult<()> {
        let waiting = std::mem::take(&mut self.state.waiting);
        for (text, snapshots) in waiting {
            let Ok(scope) = text.parse::<Scope>() else { continue };
            let exchange = self.exchange(&scope).await?;
            let names: Vec<String> = snapshots.keys().map(|id| format!("{SNAPSHOT}{id}")).collect();
            let given = snapshots.clone().into_iter().map(|(id, snapshot)| (id, Some(snapshot)));
            let incoming = Incoming { snapshots: given.collect(), ..Incoming::default() };
            let received = exchange.receive(incoming).await?;
            self.note_values(&scope, &exchange, names).await?;
            let mut left = snapshots;
            left.retain(|id, _| received.incomplete.contains(id));
            if !left.is_empty() {
                self.state.waiting.insert(text, left);
            }
        }
        Ok(())
    }

    /// The registers with values that are newer than those here.
    async fn winners(
        &mut self,
        scope: &Scope,
        exchange: &Exchange,
        mut set: BTreeMap<String, Register>,
    ) -> SyncResult<BTreeMap<String, Register>> {
        if set.is_empty() {
            return Ok(set);
        }
        // What was changed here and not published yet competes too.
        self.stamp_changes(scope, &values::values(exchange).await?);
        for register in set.values() {
            self.state.stamp = self.state.stamp.max(register.stamp);
        }
        let no_registers = BTreeMap::new();
        let registers = self.state.registers.get(&scope.to_string()).unwrap_or(&no_registers);
        let arriving = |name: &str| self.state.is_arriving(&scope.to_string(), name);
        set.retain(|name, register| {
            let Some(known) = registers.get(name) else { return true };
            if values::is_deleted_for_ever(name) {
                let is_deleted = known.digest == digest(&Value::Null);
                // Whatever the stamps are: the id stands for nothing else, and a store does not take it back.
                if is_deleted || register.value.is_null() {
                    return !is_deleted;
                }
                // Another device may have what has not arrived.
                if known.stamp == register.stamp && arriving(name) {
                    return true;
                }
            }
            let theirs = (register.stamp, digest(compared(name, &register.value)));
            theirs > (known.stamp, known.digest.clone())
        });
        Ok(set)
    }

    /// Notes the new values as known, in the form that this store gives them.
    async fn note_applied(
        &mut self,
        device: Id,
        scope: &Scope,
        exchange: &Exchange,
        won: BTreeMap<String, Register>,
    ) -> SyncResult<()> {
        if won.is_empty() {
            return Ok(());
        }
        let registers = self.state.registers.entry(scope.to_string()).or_default();
        for (name, register) in &won {
            let before = registers.get(name).map_or(0, |known| known.stamp);
            let digest = digest(compared(name, &register.value));
            let is_late = register.value.is_null() && register.stamp <= before;
            let known = if is_late {
                // It did not know of the value here, which is to leave the streams too.
                self.state.stamp += 1;
                Known { stamp: self.state.stamp, digest, own: true }
            } else {
                let own = self.state.own.replaces.contains(&device);
                Known { stamp: register.stamp, digest, own }
            };
            registers.insert(name.clone(), known);
        }
        self.note_values(scope, exchange, won.into_keys()).await
    }

    /// Notes the values that registers have here now, so that they do not count as changed by this device.
    pub(super) async fn note_values(
        &mut self,
        scope: &Scope,
        exchange: &Exchange,
        names: impl IntoIterator<Item = String>,
    ) -> SyncResult<()> {
        let values = values::values(exchange).await?;
        let text = scope.to_string();
        for name in names {
            let value = values.get(&name);
            // What is arriving counts as the value that it will have: if it is deleted then, or was since it arrived, that is a
            // change.
            let is_deleted = value.is_some_and(Value::is_null);
            if is_deleted || value.is_none() && self.state.is_arriving(&text, &name) {
                continue;
            }
            if let Some(known) = self.state.registers.get_mut(&text).and_then(|r| r.get_mut(&name))
            {
                known.digest = digest(value.unwrap_or(&Value::Null));
            }
        }
        Ok(())
    }

    async fn apply_artifact(
        &mut self,
        exchange: &Exchange,
        id: &str,
        value: Option<Value>,
        report: &mut SyncReport,
    ) -> SyncResult<()> {
        let Some(value) = value else {
            if let Some(wanted) = self.state.wanted.get_mut(&exchange.store().scope().to_string()) {
                wanted.remove(id);
            }
            return Ok(exchange.delete_artifacts(&[id.to_owned()]).await?);
        };
        let Ok(contents) = serde_json::from_value::<Contents>(value) else {
            report.problems.push(Problem::UnknownSetting);
            return Ok(());
        };
        match contents.artifact.id == id {
            true => self.fetch(exchange, contents, report).await,
            false => Ok(()),
        }
    }
}

/// The part of a register's value that devices compare: of an artifact, not where its contents are.
pub(super) fn compared<'a>(name: &str, value: &'a Value) -> &'a Value {
    match name.starts_with(ARTIFACT) {
        true => value.get("artifact").unwrap_or(&Value::Null),
        false => value,
    }
}
