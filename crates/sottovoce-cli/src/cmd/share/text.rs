//! Codes and links, as they are given and put into files.

use std::io::{Read, Write};
use std::path::Path;

use sottovoce::Config;
use zeroize::Zeroizing;

use crate::exit::Failure;
use crate::private_file::PrivateFile;

/// A text of at most so many bytes; what follows is left. `place` and `help` are for the error.
pub(super) fn limited(
    from: impl Read,
    longest: u64,
    place: &str,
    help: &'static str,
) -> Result<Zeroizing<String>, Failure> {
    // Of full size, so that no copy stays behind a growing one.
    let mut text = Zeroizing::new(String::with_capacity(usize::try_from(longest).unwrap_or(0)));
    from.take(longest)
        .read_to_string(&mut text)
        .map_err(|error| Failure::input(format!("{place}: {error}"), help))?;
    Ok(text)
}

/// Writes one line as a new file that only its owner can read.
pub(super) fn write(place: &Path, line: &str, config: &Config) -> Result<(), Failure> {
    let mut new = PrivateFile::begin(place, false, config)?;
    // Not as one text, since that copy would not be wiped.
    let written = new.file.write_all(line.as_bytes()).and_then(|()| new.file.write_all(b"\n"));
    written.map_err(|error| new.unwritable(&error))?;
    new.end()
}
