//! The settings that devices share, field by field, and how those of another device are applied.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::error::{Error, Result};
use crate::scope::Scope;
use crate::store::folder::settings::{check_presets, has_room_for};
use crate::store::read::query::RangeQuery;
use crate::store::read::reader::Reader;
use crate::store::record::persona::{AssignedPersona, MOST_PRESETS, Preset};
use crate::store::{Cleared, ConversationStore, HiddenMessages, Profile, Retention};
use crate::transfer::exchange::{Exchange, Received};
use crate::transfer::settings;

/// What the name of a preset begins with; its id follows.
const PRESET: &str = "preset/";

/// How many numbers are read first, and at most, to find the message that was the newest when a clear was said.
const STRETCHES: (u64, u64) = (1024, 16_384);

/// How often a change of limits is tried again because the conversation has changed.
const ATTEMPTS: usize = 5;

impl Exchange {
    /// The settings that devices share, by name: `title` (not one that a model proposed), `tags`, `metadata`, `createdAt`,
    /// `retention`, `rollingWindow`, `windowSeconds`, `persona`, `cleared` (with the time `at`), and in the default
    /// conversation `preset/ID` for each preset of the store's own. What is not set is absent.
    ///
    /// # Errors
    /// [`Error::Damaged`] if the settings or the presets cannot be read.
    pub async fn settings(&self) -> Result<BTreeMap<String, Value>> {
        let profile = self.store.profile().await?;
        check_presets(&profile)?;
        if profile.is_unknown {
            let place = self.store.scope().to_string();
            let reason = "the conversation's settings cannot be read";
            return Err(Error::Damaged { place, reason });
        }
        // Each device counts the days until a persona's removal for itself.
        let persona = profile.assigned_persona.clone();
        let persona = persona.map(|assigned| AssignedPersona { over_since: None, ..assigned });
        let settings = [
            ("title", json!(profile.title.as_ref().filter(|_| !profile.title_is_proposed))),
            ("tags", json!(Some(&profile.tags).filter(|tags| !tags.is_empty()))),
            ("metadata", json!(Some(&profile.metadata).filter(|notes| !notes.is_empty()))),
            ("createdAt", json!(profile.created_at)),
            ("retention", json!(profile.retention)),
            ("rollingWindow", json!(profile.rolling_window)),
            ("windowSeconds", json!(profile.window_seconds)),
            ("persona", json!(persona)),
            ("cleared", json!(profile.cleared.map(|cleared| json!({"at": cleared.at})))),
        ];
        let set = settings.into_iter().filter(|(_, value)| !value.is_null());
        let mut settings: BTreeMap<_, _> =
            set.map(|(name, value)| (name.to_owned(), value)).collect();
        if **self.store.scope() == Scope::Default {
            let presets = profile.presets.iter();
            settings.extend(presets.map(|(id, preset)| (format!("{PRESET}{id}"), json!(preset))));
        }
        Ok(settings)
    }

    /// Applies settings other than a clear.
    pub(super) async fn receive_settings(
        &self,
        settings: BTreeMap<String, Option<Value>>,
        received: &mut Received,
    ) -> Result<()> {
        if settings.is_empty() {
            return Ok(());
        }
        let here = self.store.profile().await?;
        if settings.keys().any(|name| name.starts_with(PRESET)) {
            check_presets(&here)?;
        }
        let with_presets = **self.store.scope() == Scope::Default;
        let mut after = Profile::clone(&here);
        for (name, value) in &settings {
            if apply(&mut after, name, value.as_ref(), with_presets).is_none() {
                tracing::warn!(name, "a setting of another device was left out");
                received.left_out.insert(name.clone());
            }
        }
        let retention = after.retention;
        let change = move |profile: &mut Profile| {
            let kept = profile.retention;
            for (name, value) in &settings {
                let _ = apply(profile, name, value.as_ref(), with_presets);
            }
            profile.retention = kept;
        };
        settings::change(&self.store, change).await?;
        self.receive_retention(retention, received).await
    }

    /// Sets the limits. Messages that were hidden before are not shown again by wider ones.
    async fn receive_retention(
        &self,
        retention: Option<Retention>,
        received: &mut Received,
    ) -> Result<()> {
        for _ in 0..ATTEMPTS {
            if self.store.profile().await?.retention == retention {
                return Ok(());
            }
            let effect = self.store.limits_effect(retention).await?;
            match self.store.change_limits(retention, HiddenMessages::Delete, &effect).await {
                Err(Error::MoreThanAnnounced) => {}
                Err(error @ Error::ClockBehind { .. }) => {
                    tracing::warn!(%error, "the limits of another device were left out");
                    received.left_out.insert("retention".to_owned());
                    return Ok(());
                }
                changed => return changed.map(drop),
            }
        }
        Err(Error::MoreThanAnnounced)
    }

    /// Applies a clear, or takes it back.
    pub(super) async fn receive_clear(
        &self,
        cleared: Option<Value>,
        received: &mut Received,
    ) -> Result<()> {
        let here = self.store.profile().await?;
        let Some(cleared) = cleared else {
            if here.cleared.is_some() {
                let undo = |profile: &mut Profile| while profile.undo_clear() {};
                self.store.change_profile(Box::new(undo)).await?;
            }
            return Ok(());
        };
        let Some(at) = cleared.get("at").cloned().and_then(value::<Timestamp>) else {
            received.left_out.insert("cleared".to_owned());
            return Ok(());
        };
        // A clock that is far ahead must not hide what is said from now on.
        let at = at.min(self.store.reader().now());
        let Some(here) = here.cleared else {
            return self.clear_up_to(at, 0).await;
        };
        if here.at < at {
            return self.clear_up_to(at, here.seq).await;
        }
        if here.at == at {
            return Ok(());
        }
        // The other device clears less: it has undone a later clear, or knew nothing of it.
        let seq = self.store.read_with(move |reader| newest_own(reader, at, 0)).await?;
        let change = move |profile: &mut Profile| {
            if profile.cleared == Some(here) {
                let before = profile.cleared_before.take().filter(|before| before.at == at);
                profile.cleared = Some(before.unwrap_or(Cleared { at, seq }));
            }
        };
        self.store.change_profile(Box::new(change)).await?;
        Ok(())
    }

    /// Clears what was said up to a time. At least everything up to the number `least` was said before.
    async fn clear_up_to(&self, at: Timestamp, least: u64) -> Result<()> {
        let seq = self.store.read_with(move |reader| newest_own(reader, at, least)).await?;
        let change = move |profile: &mut Profile| {
            if profile.cleared.is_none_or(|here| here.at < at) {
                profile.clear(at, seq);
            }
        };
        self.store.change_profile(Box::new(change)).await?;
        Ok(())
    }
}

/// The highest number of a message that was said here up to a time, but `least` if it is lower.
fn newest_own(reader: &Reader, at: Timestamp, least: u64) -> Result<u64> {
    let (mut length, longest) = STRETCHES;
    let tail = reader.newest()?;
    let mut end = tail.last_seq;
    while end > least {
        let start = end.saturating_sub(length).max(least);
        let (reading, _) = reader.read_kept(&RangeQuery::Seqs(start + 1..=end))?;
        let own = reading
            .messages
            .iter()
            .filter(|stored| !stored.message.is_imported() && stored.message.timestamp <= at);
        if let Some(seq) = own.map(|stored| stored.seq).max() {
            return Ok(seq);
        }
        (end, length) = (start, (length * 2).min(longest));
    }
    Ok(least)
}

/// Applies one setting. `None` if it cannot be applied.
fn apply(
    profile: &mut Profile,
    name: &str,
    value: Option<&Value>,
    with_presets: bool,
) -> Option<()> {
    match name {
        "title" => match read(value)? {
            // Elsewhere, a title that a model proposed is none.
            None if profile.title_is_proposed => {}
            title => profile.rename(title),
        },
        "tags" => profile.tags = read(value)?.unwrap_or_default(),
        "metadata" => profile.metadata = read(value)?.unwrap_or_default(),
        "createdAt" => profile.created_at = read(value)?,
        "retention" => profile.retention = read(value)?,
        "rollingWindow" => profile.rolling_window = read(value)?,
        "windowSeconds" => profile.window_seconds = read(value)?,
        "persona" => {
            let assigned: Option<AssignedPersona> = read(value)?;
            if let Some(assigned) = &assigned {
                assigned.persona.check().ok()?;
            }
            let over_since = profile.assigned_persona.as_ref().and_then(|here| here.over_since);
            profile.assigned_persona = assigned.map(|assigned| {
                let over_since = over_since.filter(|_| assigned.deleted_at.is_some());
                AssignedPersona { over_since, ..assigned }
            });
        }
        _ => {
            let id = name.strip_prefix(PRESET).filter(|_| with_presets)?;
            let preset: Option<Preset> = read(value)?;
            let Some(preset) = preset else {
                profile.presets.remove(id);
                return Some(());
            };
            let preset = Preset { id: id.to_owned(), ..preset };
            let is_known = profile.presets.contains_key(id);
            let has_room = is_known || profile.presets.len() < MOST_PRESETS;
            if !has_room
                || Preset::canonical_id(id).ok()? != id
                || preset.check().is_err()
                || !has_room_for(profile, &preset)
            {
                return None;
            }
            profile.presets.insert(id.to_owned(), preset);
        }
    }
    Some(())
}

/// A value of that type. The inner `None` is a setting that was taken back, the outer one a value of another type.
fn read<T: DeserializeOwned>(given: Option<&Value>) -> Option<Option<T>> {
    match given {
        None => Some(None),
        Some(given) => value(given.clone()).map(Some),
    }
}

fn value<T: DeserializeOwned>(given: Value) -> Option<T> {
    serde_json::from_value(given).ok()
}
