//! Credentials for servers, from the environment, an open file descriptor or a file that nobody else can read

use std::collections::BTreeMap;
use std::fmt;
use std::fs::File;
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use zeroize::Zeroizing;

use crate::address::other;
use crate::error::RemoteError;
use crate::remote::Result;

/// The most bytes of a file with credentials.
const LONGEST: usize = 1 << 16;

/// What a server must be told to let this device in, by the names that other programs use in the environment. [`ADDRESSES`](crate::ADDRESSES)
/// lists those of each remote; a team's server has `DATABASE_URL` and `OPERATOR_TOKEN` for itself.
///
/// `Debug` shows the names alone.
#[derive(Clone, Default)]
pub struct Credentials {
    values: BTreeMap<String, Zeroizing<String>>,
}

impl Credentials {
    /// Those of the environment. There may be none.
    #[must_use]
    pub fn from_environment() -> Self {
        let text = |(name, value): (std::ffi::OsString, std::ffi::OsString)| {
            Some((name.into_string().ok()?, Zeroizing::new(value.into_string().ok()?)))
        };
        Self { values: std::env::vars_os().filter_map(text).collect() }
    }

    /// Those of an open file descriptor, read to its end: lines of `NAME=value`, empty lines, and comments after `#` at
    /// the start of a line. At most 64 KiB.
    ///
    /// # Errors
    /// [`RemoteError`] if the descriptor cannot be read, or a line has another form.
    pub fn from_fd(fd: u32) -> Result<Self> {
        let place = format!("credentials of file descriptor {fd}");
        let file = File::open(format!("/dev/fd/{fd}"));
        Self::parse(&place, &read(&place, file.map_err(|error| io_error(&place, &error))?)?)
    }

    /// Those of a file, in the same form. Nobody but its owner may have rights to it (mode 0600 or 0400).
    ///
    /// # Errors
    /// [`RemoteError`] if the file cannot be read, others have rights to it, or a line has another form.
    pub fn from_file(path: &Path) -> Result<Self> {
        let place = format!("credentials {}", path.display());
        let file = File::open(path).map_err(|error| io_error(&place, &error))?;
        let mode = file.metadata().map_err(|error| io_error(&place, &error))?.mode();
        if mode & 0o077 != 0 {
            return Err(other(
                &place,
                "others have rights to this file; take them away with chmod 600",
            ));
        }
        Self::parse(&place, &read(&place, file)?)
    }

    fn parse(place: &str, text: &str) -> Result<Self> {
        let mut values = BTreeMap::new();
        for (number, line) in (1..).zip(text.lines()) {
            if line.trim().is_empty() || line.starts_with('#') {
                continue;
            }
            let Some((name, value)) = line.split_once('=') else {
                return Err(other(place, &format!("line {number} is not of the form NAME=value")));
            };
            values.insert(name.trim().to_owned(), Zeroizing::new(value.trim().to_owned()));
        }
        Ok(Self { values })
    }

    /// The first value of these names. An empty one counts as none.
    #[must_use]
    pub fn get(&self, names: &[&str]) -> Option<&str> {
        let value = |name: &&str| self.values.get(*name).map(|value| value.as_str());
        names.iter().filter_map(value).find(|value| !value.is_empty())
    }
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.values.keys()).finish()
    }
}

fn read(place: &str, mut file: File) -> Result<Zeroizing<String>> {
    // One buffer of full size, so that no copy stays behind a growing one.
    let mut bytes = Zeroizing::new(vec![0; LONGEST + 1]);
    let mut length = 0;
    while let Some(rest) = bytes.get_mut(length..).filter(|rest| !rest.is_empty()) {
        match file.read(rest) {
            Ok(0) => break,
            Ok(more) => length += more,
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(error) => return Err(io_error(place, &error)),
        }
    }
    if length > LONGEST {
        return Err(other(place, "there are more than 64 KiB"));
    }
    let text = str::from_utf8(bytes.get(..length).unwrap_or_default());
    Ok(Zeroizing::new(text.map_err(|_| other(place, "the text is not UTF-8"))?.to_owned()))
}

fn io_error(place: &str, error: &std::io::Error) -> RemoteError {
    other(place, &error.to_string())
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::os::fd::AsRawFd;
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn a_file_that_others_can_read_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("credentials");
        std::fs::write(&path, "# mine\n\nWEBDAV_PASSWORD=a=b \n").unwrap();
        for (mode, accepted) in [(0o600, true), (0o400, true), (0o640, false), (0o604, false)] {
            std::fs::set_permissions(&path, PermissionsExt::from_mode(mode)).unwrap();
            let read = Credentials::from_file(&path);
            assert_eq!(read.is_ok(), accepted, "{mode:o}");
            if let Ok(read) = read {
                assert_eq!(read.get(&["WEBDAV_PASSWORD"]), Some("a=b"));
            }
        }
    }

    #[test]
    fn neither_debug_nor_errors_show_a_value() {
        let read = Credentials::parse("here", "WEBDAV_PASSWORD=hunter2").unwrap();
        assert_eq!(format!("{read:?}"), r#"{"WEBDAV_PASSWORD"}"#);
        let error = Credentials::parse("here", "A=1\nhunter2").unwrap_err();
        assert!(error.to_string().contains("line 2") && !error.to_string().contains("hunter2"));
    }

    #[test]
    fn a_file_descriptor_is_read() {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(b"AWS_REGION=here").unwrap();
        let read = Credentials::from_fd(file.as_raw_fd().try_into().unwrap()).unwrap();
        assert_eq!(read.get(&["AWS_DEFAULT_REGION", "AWS_REGION"]), Some("here"));
    }
}
