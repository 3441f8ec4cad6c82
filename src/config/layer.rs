//! One source of settings, checked before it is merged with the others.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::File;
use std::io::Read;
use std::path::Path;

use config::{ConfigError, Map, Source};
use serde_json::Value::{self, Bool, Null, Number, Object};
use zeroize::Zeroizing;

use super::comments::without_comments;
use super::key::{Key, Kind};
use super::sections::keys;
use super::setting::{Secret, Setting};
use crate::error::{Error, Result};

const PREFIX: &str = "SOTTOVOCE__";

/// The largest settings file in bytes.
const LARGEST: u64 = 1 << 20;

/// A section name with at most this many wrong letters counts as a misspelling of a known one.
const SLIPS: usize = 2;

/// The checked settings of one source. Secrets are kept apart, so that they never enter the merged configuration.
#[derive(Debug, Clone, Default)]
pub(super) struct Layer {
    /// Values by path. A secret is shown as redacted.
    values: BTreeMap<&'static str, Value>,
    /// Secrets by path. A null hides the secret of an earlier layer.
    pub(super) secrets: BTreeMap<&'static str, Option<Secret>>,
    /// The file or variable.
    origin: String,
}

impl Source for Layer {
    fn clone_into_box(&self) -> Box<dyn Source + Send + Sync> {
        Box::new(self.clone())
    }

    fn collect(&self) -> Result<Map<String, config::Value>, ConfigError> {
        let value = |(path, value): (&&str, &Value)| {
            let value = serde_json::from_value(value.clone());
            let value = value.map_err(|error| ConfigError::Foreign(Box::new(error)))?;
            Ok(((*path).to_owned(), value))
        };
        self.values.iter().map(value).collect()
    }
}

impl Layer {
    fn of(origin: &str) -> Self {
        Self { origin: origin.to_owned(), ..Self::default() }
    }

    pub(super) fn defaults() -> Result<Self> {
        let mut layer = Self::of("default");
        keys().try_for_each(|key| layer.put(key, key.default_value(), None))?;
        Ok(layer)
    }

    pub(super) fn from_file(path: &Path) -> Result<Self> {
        let place = path.display().to_string();
        let wrong = |reason: String| Error::Config { place: place.clone(), reason };
        let mut bytes = Zeroizing::new(Vec::new());
        File::open(path)
            .and_then(|file| file.take(LARGEST + 1).read_to_end(&mut bytes))
            .map_err(|error| wrong(format!("could not be read: {error}")))?;
        if bytes.len() as u64 > LARGEST {
            return Err(wrong("is over 1 MiB, too large for a settings file".to_owned()));
        }
        // Editors of some systems write a byte order mark.
        let json = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&bytes);
        let json = Zeroizing::new(without_comments(json));
        let parsed: Value =
            serde_json::from_slice(&json).map_err(|error| wrong(format!("not JSON: {error}")))?;
        let base = std::path::absolute(path)
            .map_err(|error| wrong(format!("its folder cannot be determined: {error}")))?;
        let mut layer = Self::of(&place);
        for (section, fields) in object(parsed, || wrong("must be a JSON object".to_owned()))? {
            let is_ours = keys().any(|key| key.section() == section);
            if !is_ours && !is_meant(&section, &fields) {
                // Other programs keep their settings in the same file.
                continue;
            }
            if !keys().any(|key| key.section().eq_ignore_ascii_case(&section)) {
                return Err(wrong(unknown(&section, keys().map(Key::section))));
            }
            let not_a_section = || wrong(format!("{section} must be an object"));
            layer.put_fields(&section, object(fields, not_a_section)?, base.parent())?;
        }
        Ok(layer)
    }

    /// Adds the fields of a section, in any letter case, as other readers of such files take them.
    fn put_fields(
        &mut self,
        section: &str,
        fields: serde_json::Map<String, Value>,
        base: Option<&Path>,
    ) -> Result<()> {
        let place = self.origin.clone();
        let wrong = |reason| Error::Config { place: place.clone(), reason };
        for (name, value) in fields {
            let path = format!("{section}.{name}");
            let value = match value {
                Object(inner) if keys().any(|key| is_within(key.path, &path)) => {
                    self.put_fields(&path, inner, base)?;
                    continue;
                }
                value => value,
            };
            let key = find(&path).map_err(wrong)?;
            if matches!(key.kind, Kind::Token) && !value.is_null() {
                return Err(wrong(no_place_for_a_token(key)));
            }
            if self.values.contains_key(key.path) {
                return Err(wrong(format!("{} is given twice", key.path)));
            }
            self.put(key, value, base)?;
        }
        Ok(())
    }

    /// A setting that somebody gives as text, checked.
    pub(super) fn checked(path: &str, text: &str) -> Result<Setting> {
        let place = "the command line";
        let wrong = |reason| Error::Config { place: place.to_owned(), reason };
        let key = find(path).map_err(wrong)?;
        let text = Zeroizing::new(text.to_owned());
        match key.kind {
            Kind::Token => return Err(wrong(no_place_for_a_token(key))),
            Kind::Secret => {
                let reason = "is a secret, which shells keep; write it into the file yourself";
                return Err(wrong(format!("{} {reason}", key.path)));
            }
            _ => {}
        }
        let value = match &**text {
            "null" if key.is_optional => Null,
            _ => Self::from_variable(key, place, text)?.values.remove(key.path).unwrap_or_default(),
        };
        Ok(Setting { key: key.path, value, origin: place.to_owned() })
    }

    /// Reads the file in the current folder, which another person may have written.
    pub(super) fn from_local_file(path: &Path) -> Result<Self> {
        // Reading a pipe would block until its writer writes.
        if path.metadata().is_ok_and(|found| !found.is_file()) {
            let reason = "is not a file".to_owned();
            return Err(Error::Config { place: path.display().to_string(), reason });
        }
        Self::from_file(path)
    }

    /// Removes the settings that only trusted layers may set. Returns those that would have changed something: they
    /// differ from the default and the layers below, and no layer above sets them.
    pub(super) fn leave_out(&mut self, below: &[Self], above: &[Self]) -> Vec<Setting> {
        let mut left_out = Vec::new();
        for key in keys().filter(|key| !key.is_open) {
            let (value, secret) = (self.values.remove(key.path), self.secrets.remove(key.path));
            let Some(value) = value else { continue };
            let set = |layer: &&Self| layer.values.contains_key(key.path);
            let is_same = |layer: &Self| {
                layer.values.get(key.path) == Some(&value)
                    && layer.secrets.get(key.path) == secret.as_ref()
            };
            let is_default = below.first().is_some_and(is_same);
            let is_set_below = below.iter().rev().find(set).is_some_and(is_same);
            if !is_default && !is_set_below && !above.iter().any(|layer| set(&layer)) {
                left_out.push(Setting { key: key.path, value, origin: self.origin.clone() });
            }
        }
        left_out
    }

    /// Makes one layer for each variable, so that each setting has its own origin.
    pub(super) fn from_environment(
        variables: impl IntoIterator<Item = (OsString, OsString)>,
    ) -> Result<Vec<Self>> {
        let mut found: Vec<(&Key, String, Zeroizing<String>)> = Vec::new();
        for (name, value) in variables {
            let Some(name) = name.to_str() else { continue };
            let prefix = name.get(..PREFIX.len()).unwrap_or_default();
            if !prefix.eq_ignore_ascii_case(PREFIX) {
                continue;
            }
            let wrong = |reason| Error::Config { place: name.to_owned(), reason };
            let path = name.get(PREFIX.len()..).unwrap_or_default().replace("__", ".");
            let key = find(&path).map_err(wrong)?;
            let value = value
                .into_string()
                .map(Zeroizing::new)
                .map_err(|_| wrong("is not UTF-8".to_owned()))?;
            let other = found.iter().find(|(known, _, _)| known.path == key.path);
            if let Some((_, other, _)) = other.filter(|(_, _, known)| *known != value) {
                return Err(wrong(format!("{other} sets the same key to another value")));
            }
            found.push((key, name.to_owned(), value));
        }
        found.into_iter().map(|(key, name, value)| Self::from_variable(key, &name, value)).collect()
    }

    fn from_variable(key: &Key, name: &str, text: Zeroizing<String>) -> Result<Self> {
        let value = match key.kind {
            _ if text.is_empty() && key.is_optional && !key.is_closing => Null,
            Kind::Secret | Kind::Token => Value::String((*text).clone()),
            Kind::Text | Kind::Time | Kind::Choice(_) | Kind::Path => {
                Value::String((*text).clone())
            }
            Kind::Flag => text.to_ascii_lowercase().parse::<bool>().map_or(Null, Into::into),
            Kind::Count { .. } => text.parse::<u64>().map_or(Null, Into::into),
            Kind::Number { .. } => text.parse::<f64>().map_or(Null, Into::into),
        };
        if value.is_null() && !text.is_empty() {
            return Err(mismatch(key, name));
        }
        let mut layer = Self::of(name);
        layer.put(key, value, None)?;
        Ok(layer)
    }

    /// Checks a value and adds it. A relative path is relative to `base`.
    fn put(&mut self, key: &Key, value: Value, base: Option<&Path>) -> Result<()> {
        let value = match (key.kind, value) {
            (Kind::Secret | Kind::Token, Value::String(secret)) => {
                self.secrets.insert(key.path, Some(Secret(Zeroizing::new(secret))));
                // The origin is shown, and nothing of the secret.
                "(redacted)".into()
            }
            (_, Null) if key.is_optional => {
                if key.is_secret() {
                    self.secrets.insert(key.path, None);
                }
                Null
            }
            (Kind::Flag, flag @ Bool(_)) => flag,
            (Kind::Text | Kind::Time, text @ Value::String(_)) => text,
            (Kind::Time, Number(seconds)) => Value::String(seconds.to_string()),
            (Kind::Choice(words), Value::String(given)) => {
                let word = words.iter().find(|word| given.eq_ignore_ascii_case(word));
                (*word.ok_or_else(|| mismatch(key, &self.origin))?).into()
            }
            (Kind::Path, Value::String(path))
                if path.is_empty() || path.starts_with(['~', '$']) =>
            {
                let home = std::env::var("HOME").unwrap_or_else(|_| "/home/ann".to_owned());
                let given = path.strip_prefix('~').or_else(|| path.strip_prefix("$HOME"));
                let whole =
                    given.map_or_else(|| format!("{home}/…"), |rest| format!("{home}{rest}"));
                return Err(Error::Config {
                    place: self.origin.clone(),
                    reason: format!(
                        "{} must be a whole path such as {whole:?}: no shell reads it",
                        key.path
                    ),
                });
            }
            (Kind::Path, Value::String(path)) => {
                let path = base.map_or_else(|| path.clone().into(), |base| base.join(&path));
                Value::String(path.display().to_string())
            }
            (Kind::Count { most }, Number(number)) => match number.as_u64() {
                Some(count) if count <= most => count.into(),
                _ => return Err(mismatch(key, &self.origin)),
            },
            (Kind::Number { most }, Number(number)) => match number.as_f64() {
                Some(number) if (0.0..=most).contains(&number) => number.into(),
                _ => return Err(mismatch(key, &self.origin)),
            },
            _ => return Err(mismatch(key, &self.origin)),
        };
        self.values.insert(key.path, value);
        Ok(())
    }
}

/// The value of a setting in the last layer that sets it, with its origin. Secrets are redacted.
pub(super) fn setting(key: &Key, layers: &[Layer]) -> Setting {
    let set = |layer: &&Layer| layer.values.contains_key(key.path);
    let last = layers.iter().rev().find(set);
    let value = last.and_then(|layer| layer.values.get(key.path)).cloned().unwrap_or_default();
    let origin = last.map_or_else(|| "default".to_owned(), |layer| layer.origin.clone());
    Setting { key: key.path, value, origin }
}

/// The setting of that name, in any letter case.
fn find(path: &str) -> Result<&'static Key, String> {
    let found = keys().find(|key| key.path.eq_ignore_ascii_case(path));
    found.ok_or_else(|| unknown(path, keys().map(|key| key.path)))
}

/// Whether a setting belongs to a section within a section.
fn is_within(setting: &str, section: &str) -> bool {
    setting.get(..section.len()).is_some_and(|begin| begin.eq_ignore_ascii_case(section))
        && setting.as_bytes().get(section.len()) == Some(&b'.')
}

fn object(value: Value, error: impl Fn() -> Error) -> Result<serde_json::Map<String, Value>> {
    match value {
        Object(fields) => Ok(fields),
        _ => Err(error()),
    }
}

/// Whether a section with another name is meant for a known one: the names are similar, and it has one of that section's
/// settings.
fn is_meant(section: &str, fields: &Value) -> bool {
    let is_near = |key: &&Key| {
        let (ours, given) = (key.section().to_lowercase(), section.to_lowercase());
        ours == given || (ours.len() > 3 && strsim::damerau_levenshtein(&ours, &given) <= SLIPS)
    };
    let has = |key: &Key| {
        let name = key.path.split('.').nth(1).unwrap_or_default();
        fields.as_object().is_some_and(|all| all.keys().any(|it| it.eq_ignore_ascii_case(name)))
    };
    keys().filter(is_near).any(has)
}

fn no_place_for_a_token(key: &Key) -> String {
    let variable = key.path.to_uppercase().replace('.', "__");
    format!(
        "{0} is not read from a settings file; put it into a file of its own and name that in {0}File, or into the \
         environment variable {PREFIX}{variable}",
        key.path
    )
}

fn mismatch(key: &Key, place: &str) -> Error {
    Error::Config {
        place: place.to_owned(),
        reason: format!("{} must be {}", key.path, key.expects()),
    }
}

fn unknown(given: &str, known: impl Iterator<Item = &'static str>) -> String {
    let distance = |candidate: &str| {
        strsim::damerau_levenshtein(&candidate.to_lowercase(), &given.to_lowercase())
    };
    // A part of a name, such as `Url`, may look more like another short name.
    let part = given.rsplit('.').next().unwrap_or_default().to_lowercase();
    let is_part = |candidate: &str| candidate.to_lowercase().ends_with(&part);
    let nearest = known
        .min_by_key(|candidate| (!is_part(candidate), distance(candidate)))
        .unwrap_or_default();
    format!("there is no setting {given:?}; the nearest is {nearest:?}")
}
