//! `sottovoce artifact show`

use std::io::{self, IsTerminal, Read, Seek, SeekFrom, Write};

use serde::Serialize;
use sottovoce::store::{Artifact, ArtifactContents};
use zeroize::Zeroizing;

use crate::cmd::memory::artifact::{description, open, unreadable};
use crate::exit::{Exit, Failure, Outcome};
use crate::output;
use crate::session::Session;

const AFTER_HELP: &str = "\
Examples:
  sottovoce artifact show 5b1c90f2
  sottovoce artifact show artifact://5b1c90f2 --bytes 1000-1999
  sottovoce artifact show 5b1c90f2 | less";

/// The bytes of one read.
const PIECE: usize = 1 << 16;
/// The longest text for one line of JSON.
const LONGEST_JSON: u64 = 1 << 26;

/// Prints an artifact's contents; unchanged if standard output is a pipe
#[derive(clap::Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct Args {
    /// Its id or abbreviation
    pub(crate) id: String,

    /// Only these bytes, counted from 0, both ends included; `1000-` goes to the end
    #[arg(long, value_name = "FIRST-LAST", value_parser = parse_range)]
    pub(crate) bytes: Option<Bytes>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Bytes {
    first: u64,
    last: u64,
}

pub(crate) fn parse_range(text: &str) -> Result<Bytes, String> {
    let wrong = || "two numbers such as 0-999, or 1000-".to_owned();
    let (first, last) = text.split_once('-').ok_or_else(wrong)?;
    let first = first.trim().parse().map_err(|_| wrong())?;
    let last = match last.trim() {
        "" => u64::MAX,
        last => last.parse().map_err(|_| wrong())?,
    };
    if first > last { Err(wrong()) } else { Ok(Bytes { first, last }) }
}

#[derive(Serialize)]
struct Row<'a> {
    #[serde(flatten)]
    artifact: &'a Artifact,
    text: Option<&'a str>,
}

pub(crate) async fn run(session: &Session, args: Args) -> Outcome {
    let config = session.config()?;
    let mut contents = open(session, &config, &args.id).await?;
    let artifact = contents.artifact().clone();
    let Bytes { first, last } = args.bytes.unwrap_or(Bytes { first: 0, last: u64::MAX });
    if first > 0 && first >= artifact.size {
        return Err(Failure::input(
            format!(
                "the artifact has no byte {first}; it has {}",
                output::counted(artifact.size, "byte")
            ),
            "they are counted from 0",
        ));
    }
    contents.seek(SeekFrom::Start(first)).map_err(|error| unreadable(&artifact, error))?;
    let length = last.min(artifact.size.saturating_sub(1)).saturating_sub(first).saturating_add(1);
    if session.json {
        return json(contents, &artifact, length);
    }
    let is_terminal = io::stdout().is_terminal();
    if is_terminal && !artifact.is_text() {
        return Err(Failure::input(
            format!("{} is no text", description(&artifact)),
            "send it through a pipe, or write it to a file with `sottovoce artifact export`",
        ));
    }
    output::note(&format!("{}: {}", description(&artifact), artifact.reference()));
    let mut contents = contents.take(length);
    let mut piece = Zeroizing::new(vec![0; PIECE]);
    let mut shown = Shown::default();
    loop {
        let read = contents.read(&mut piece).map_err(|error| unreadable(&artifact, error))?;
        let bytes = piece.get(..read).unwrap_or_default();
        match is_terminal {
            true => shown.write(bytes)?,
            false => output::bytes(bytes)?,
        }
        if read == 0 {
            return Ok(Exit::Done);
        }
    }
}

fn json(contents: ArtifactContents, artifact: &Artifact, length: u64) -> Outcome {
    if artifact.is_text() && length > LONGEST_JSON {
        return Err(Failure::input(
            "it is too long for one line of JSON",
            "name a part of it with --bytes",
        ));
    }
    if !artifact.is_text() {
        output::json(&Row { artifact, text: None })?;
        return Ok(Exit::Done);
    }
    let room = usize::try_from(length).unwrap_or(0);
    let mut text = Zeroizing::new(Vec::with_capacity(room.saturating_add(1)));
    contents.take(length).read_to_end(&mut text).map_err(|error| unreadable(artifact, error))?;
    output::json(&Row { artifact, text: Some(&String::from_utf8_lossy(&text)) })?;
    Ok(Exit::Done)
}

/// Writes text to a terminal without control characters, even if pieces split a character.
#[derive(Default)]
struct Shown {
    /// The first bytes of a character whose rest is in the next piece.
    begun: Zeroizing<Vec<u8>>,
}

impl Shown {
    /// An empty piece is the end.
    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        let text = self.take(bytes);
        let mut out = io::stdout().lock();
        out.write_all(output::printable(&text).as_bytes())?;
        out.flush()
    }

    fn take(&mut self, bytes: &[u8]) -> Zeroizing<String> {
        self.begun.extend_from_slice(bytes);
        let whole = match str::from_utf8(&self.begun) {
            Err(error) if error.error_len().is_none() && !bytes.is_empty() => error.valid_up_to(),
            _ => self.begun.len(),
        };
        let text = String::from_utf8_lossy(self.begun.get(..whole).unwrap_or_default());
        let text = Zeroizing::new(text.into_owned());
        self.begun.drain(..whole);
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_of_bytes_has_a_beginning_and_perhaps_an_end() {
        assert_eq!(parse_range("0-999"), Ok(Bytes { first: 0, last: 999 }));
        assert_eq!(parse_range("7-7"), Ok(Bytes { first: 7, last: 7 }));
        assert_eq!(parse_range("1000-"), Ok(Bytes { first: 1000, last: u64::MAX }));
        for wrong in ["", "-", "5", "-5", "9-3", "a-b", "1-2-3", "0x1-2"] {
            assert!(parse_range(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_character_that_is_cut_in_two_is_shown_whole() {
        let text = "Grüße 👩";
        for size in 1..text.len() {
            let mut shown = Shown::default();
            let mut all = String::new();
            for piece in text.as_bytes().chunks(size).chain([&b""[..]]) {
                all.push_str(&shown.take(piece));
            }
            assert_eq!(all, text, "by {size}");
        }
        let mut shown = Shown::default();
        assert_eq!((shown.take(b"a\xc3").as_str(), shown.take(b"").as_str()), ("a", "\u{fffd}"));
    }
}
