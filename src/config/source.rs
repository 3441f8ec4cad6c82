//! The sources of a key: settings, file descriptors and credentials.

use std::ffi::OsString;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use zeroize::Zeroizing;

use super::setting::ConfiguredKey;
use crate::crypto::EncryptionKey;
use crate::error::{Error, Result};

/// The longest text read as a key, in bytes.
const LONGEST: usize = 1 << 16;

/// The default name of the systemd credential.
const CREDENTIAL: &str = "sottovoce.key";

/// The environment variable with the folder of a unit's systemd credentials.
const CREDENTIALS: &str = "CREDENTIALS_DIRECTORY";

/// Parses a key from a text: 64 hexadecimal digits, or a passphrase, with at most one line ending.
///
/// # Errors
/// [`Error::EmptyPassphrase`] and [`Error::PlaceholderKey`].
pub(super) fn key_of_text(text: &Zeroizing<String>) -> Result<EncryptionKey> {
    if let Some(key) = EncryptionKey::from_hex(text) {
        return Ok(key);
    }
    EncryptionKey::from_passphrase(one_line(text).to_owned())
}

/// Reads the text of an open file descriptor to its end. A pipe can be read only once.
///
/// # Errors
/// [`Error::Config`] if the descriptor is not open, the content is not text, or it exceeds 64 KiB.
pub fn read_fd(fd: u32) -> Result<Zeroizing<String>> {
    read(Path::new(&format!("/dev/fd/{fd}")))
        .map_err(|reason| Error::Config { place: format!("file descriptor {fd}"), reason })
}

pub(super) fn one_line(text: &str) -> &str {
    let text = text.strip_suffix('\n').unwrap_or(text);
    text.strip_suffix('\r').unwrap_or(text)
}

pub(super) fn read(path: &Path) -> Result<Zeroizing<String>, String> {
    // One buffer of full size, so that no copy stays behind a growing one.
    let mut bytes = Zeroizing::new(vec![0; LONGEST + 1]);
    let (mut file, mut length) = (File::open(path).map_err(unreadable)?, 0);
    while let Some(rest) = bytes.get_mut(length..).filter(|rest| !rest.is_empty()) {
        match file.read(rest) {
            Ok(0) => break,
            Ok(more) => length += more,
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(error) => return Err(unreadable(error)),
        }
    }
    if length > LONGEST {
        return Err("is over 64 KiB, so it is not a key".to_owned());
    }
    let text = str::from_utf8(bytes.get(..length).unwrap_or_default());
    Ok(Zeroizing::new(text.map_err(|_| "is not UTF-8, so it is not a key")?.to_owned()))
}

#[allow(clippy::needless_pass_by_value, reason = "as map_err hands it over")]
fn unreadable(error: std::io::Error) -> String {
    format!("could not be read: {error}")
}

/// The keys that a configuration gives, each with its setting and origin.
#[derive(Default)]
pub(super) struct Sources {
    pub(super) secret: Option<(Zeroizing<String>, String)>,
    pub(super) passphrase: Option<(Zeroizing<String>, String)>,
    pub(super) fd: Option<(u32, String)>,
    pub(super) credential: Option<(String, String)>,
    pub(super) file: Option<String>,
    pub(super) credentials_folder: Option<OsString>,
}

impl Sources {
    /// Returns the configured key. More than one is an error.
    pub(super) fn resolve(self) -> Result<ConfiguredKey> {
        let mut secret = None;
        let mut is_placeholder = false;
        if let Some((text, origin)) = &self.secret {
            match EncryptionKey::from_secret(text) {
                Ok(key) => secret = Some((key, text.chars().count() < 20, origin)),
                Err(Error::PlaceholderKey) => is_placeholder = true,
                Err(error) => return Err(error),
            }
        }
        let folder = self.credentials_folder.as_ref().map(PathBuf::from);
        let credential = match (&self.credential, &folder) {
            (Some((name, _)), _)
                if name.is_empty() || name.starts_with('.') || name.contains('/') =>
            {
                return Err(wrong("Context.KeyCredential", "must be a name without a folder"));
            }
            (Some((name, origin)), Some(folder)) => Some((folder.join(name), origin.as_str())),
            (Some(_), None) => {
                return Err(wrong(
                    "Context.KeyCredential",
                    "needs CREDENTIALS_DIRECTORY in the environment, as systemd sets it",
                ));
            }
            (None, Some(folder)) => Some((folder.join(CREDENTIAL), CREDENTIALS))
                .filter(|(path, _)| path.symlink_metadata().is_ok()),
            (None, None) => None,
        };
        let given = [
            ("Context.EncryptionKey", secret.as_ref().map(|(_, _, origin)| origin.as_str())),
            ("Context.Passphrase", self.passphrase.as_ref().map(|(_, origin)| origin.as_str())),
            ("Context.KeyFd", self.fd.as_ref().map(|(_, origin)| origin.as_str())),
            ("Context.KeyCredential", credential.as_ref().map(|(_, origin)| *origin)),
            ("Context.KeyFile", self.file.as_deref()),
        ];
        let mut given = given.into_iter().filter_map(|(name, origin)| Some((name, origin?)));
        if let (Some((first, its)), Some((second, place))) = (given.next(), given.next()) {
            let reason =
                format!("{second} gives a key, and so does {first} ({its}); keep one of them");
            return Err(Error::Config { place: place.to_owned(), reason });
        }
        drop(given);
        let of_text = |text: &Zeroizing<String>, from: String| {
            let key = key_of_text(text)?;
            let short = key.needs_salt() && is_short(one_line(text));
            Ok(ConfiguredKey::Secret { key: Arc::new(key), short, from })
        };
        if let Some((key, short, _)) = secret {
            let from = "Context.EncryptionKey".to_owned();
            return Ok(ConfiguredKey::Secret { key: Arc::new(key), short, from });
        }
        if let Some((text, _)) = self.passphrase {
            let (short, from) = (is_short(&text), "Context.Passphrase".to_owned());
            let key = Arc::new(EncryptionKey::from_passphrase(text)?);
            return Ok(ConfiguredKey::Secret { key, short, from });
        }
        if let Some((fd, _)) = self.fd {
            return of_text(&read_fd(fd)?, format!("Context.KeyFd ({fd})"));
        }
        if let Some((path, _)) = credential {
            let text = read(&path)
                .map_err(|reason| Error::Config { place: path.display().to_string(), reason })?;
            return of_text(&text, format!("the credential {}", path.display()));
        }
        Ok(if is_placeholder { ConfiguredKey::Placeholder } else { ConfiguredKey::Absent })
    }
}

/// Whether a passphrase could be guessed although each guess is slow.
fn is_short(passphrase: &str) -> bool {
    passphrase.chars().count() < 12
}

fn wrong(place: &str, reason: &str) -> Error {
    Error::Config { place: place.to_owned(), reason: reason.to_owned() }
}
