//! `sottovoce artifact add`, `show` and `export`: the bytes of artifacts

use std::fs::File;
use std::io::{self, IsTerminal, Read, Seek, SeekFrom, Write};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use sottovoce::store::{Artifact, ArtifactContents, ArtifactKind, ArtifactStore, NewArtifact};
use zeroize::Zeroizing;

use crate::cmd::artifact::source::{Guarded, Pump, Watch};
use crate::cmd::artifact::{about, announce, description, open, unreadable};
use crate::exit::{Exit, Failure, Outcome};
use crate::interrupt::Interrupt;
use crate::output::{self, Object, byte_size, object};
use crate::private_file::{self, PrivateFile};
use crate::session::Session;

const ADD_HELP: &str = "\
Examples:
  sottovoce artifact add notes.md
  sottovoce --thread 7 artifact add report.pdf --name \"The report\" --no-message
  dmesg | sottovoce artifact add - --name dmesg";

/// The longest custom kind.
const LONGEST_KIND: usize = 64;

/// Adds a file or standard input as an artifact, and a message that refers to it
#[derive(clap::Args)]
#[command(after_help = ADD_HELP)]
pub(crate) struct AddArgs {
    /// The file; `-` reads standard input
    file: PathBuf,

    /// Its name, instead of the file's path
    #[arg(long, value_name = "NAME")]
    name: Option<String>,

    /// Its kind: file, folder, search-result, command-output, tool-result, or a word of your own; file unless given,
    /// and command-output for standard input
    #[arg(long = "type", value_name = "TYPE", value_parser = parse_kind)]
    kind: Option<ArtifactKind>,

    /// The media type of its contents, such as text/x-rust; detected from the name and the bytes unless given
    #[arg(long = "mime", value_name = "TYPE", value_parser = parse_mime)]
    mime_type: Option<String>,

    /// Refuses more bytes than this
    #[arg(long, value_name = "SIZE", default_value = "1GiB", value_parser = parse_size)]
    max_size: u64,

    /// Does not append a message that refers to it
    #[arg(long)]
    no_message: bool,
}

fn parse_kind(text: &str) -> Result<ArtifactKind, String> {
    let name = text.trim().to_lowercase().replace('-', "_");
    let is_word = name.chars().all(|c| c.is_alphanumeric() || c == '_');
    if name.is_empty() || name.len() > LONGEST_KIND || !is_word {
        return Err("one word, such as file, command-output or image".to_owned());
    }
    Ok(ArtifactKind::from(name))
}

fn parse_mime(text: &str) -> Result<String, String> {
    let is_plain = text.chars().all(|c| c.is_ascii_graphic() || c == ' ');
    match text.split_once('/') {
        Some((kind, rest)) if is_plain && !kind.is_empty() && !rest.is_empty() => {
            Ok(text.to_owned())
        }
        _ => Err("a type such as text/plain or image/png".to_owned()),
    }
}

/// The media type for a file extension.
pub(crate) fn mime_of(name: &str) -> Option<&'static str> {
    // TypeScript has the same extension as an MPEG stream, which is unlikely here.
    mime_guess::from_path(name).first_raw().filter(|guess| *guess != "video/vnd.dlna.mpeg-tts")
}

pub(crate) async fn add(session: &Session, args: AddArgs) -> Outcome {
    let watch = Arc::new(Watch::default());
    let is_input = args.file == Path::new("-");
    let place = if is_input { "standard input".into() } else { args.file.display().to_string() };
    let opened = if is_input { standard_input(&watch)? } else { open_input(&args.file, &watch)? };
    let over = || {
        Failure::input(
            format!("{place} is over the limit of {}; nothing was added", byte_size(args.max_size)),
            "say --max-size if it is to be kept all the same",
        )
    };
    if opened.size.is_some_and(|size| size > args.max_size) {
        return Err(over());
    }
    let name = output::one_line(args.name.as_deref().unwrap_or(&place));
    let usual = if is_input { ArtifactKind::CommandOutput } else { ArtifactKind::File };
    let mut new = NewArtifact::new(args.kind.unwrap_or(usual), name.as_str());
    if let Some(mime_type) = args.mime_type.as_deref().or_else(|| mime_of(&name)) {
        new = new.mime_type(mime_type);
    }

    let mut interrupt = Interrupt::listen()?;
    let store = session.store_or_make().await?;
    let bar = output::progress(opened.size, "adding");
    let content = Box::new(Guarded::new(opened.content, args.max_size, &bar, &watch));
    // A signal stops reading, and then nothing is stored.
    let added = interrupt.or_stop(|| watch.stop(), store.add_artifact(new, content)).await;
    bar.finish_and_clear();
    let added = match added {
        Err(_) if watch.is_over() => return Err(over()),
        Err(_) if watch.is_stopped() => {
            output::note("interrupted; nothing was added");
            return Ok(Exit::Interrupted);
        }
        added => added?,
    };
    let text = (!args.no_message).then(|| about(&added.artifact));
    announce(session, &store, &added, text, None, Object::default()).await
}

/// The opened input, and its length if that is known.
struct Opened {
    content: Box<dyn Read + Send>,
    size: Option<u64>,
}

fn standard_input(watch: &Arc<Watch>) -> Result<Opened, Failure> {
    let input = io::stdin();
    if input.is_terminal() {
        output::note("reading standard input; end with Ctrl-D");
    }
    let input = File::from(input.as_fd().try_clone_to_owned()?);
    Ok(Opened { content: Box::new(Pump::new(move || Ok(input), watch)), size: None })
}

fn open_input(file: &Path, watch: &Arc<Watch>) -> Result<Opened, Failure> {
    let wrong = |error: &io::Error| {
        Failure::input(format!("{}: {error}", file.display()), "name a file that can be read")
    };
    let about = file.metadata().map_err(|error| wrong(&error))?;
    if about.is_dir() {
        return Err(Failure::input(
            format!("{} is a folder", file.display()),
            "`sottovoce artifact add-folder` adds what is in it",
        ));
    }
    if about.is_file() {
        let opened = File::open(file).map_err(|error| wrong(&error))?;
        let size = opened.metadata().map_err(|error| wrong(&error))?.len();
        return Ok(Opened { content: Box::new(opened), size: Some(size) });
    }
    // Opening a pipe waits for a writer.
    let file = file.to_owned();
    Ok(Opened { content: Box::new(Pump::new(move || File::open(file), watch)), size: None })
}

const EXPORT_HELP: &str = "\
Examples:
  sottovoce artifact export 5b1c90f2 report.pdf
  sottovoce artifact export 5b1c90f2 - --yes | tar -t";

/// The bytes of one read.
const PIECE: usize = 1 << 16;

/// Writes an artifact as plain text to a new file that only its owner can read
///
/// Only the file's mode protects the copy, so the command asks for confirmation. It never overwrites a file.
#[derive(clap::Args)]
#[command(after_help = EXPORT_HELP)]
pub(crate) struct ExportArgs {
    /// Its id or abbreviation
    id: String,

    /// The new file; `-` writes to standard output
    file: PathBuf,

    /// Does not ask
    #[arg(long, short)]
    yes: bool,
}

pub(crate) async fn export(session: &Session, args: ExportArgs) -> Outcome {
    let contents = open(session, &args.id).await?;
    let artifact = contents.artifact().clone();
    let is_output = args.file == Path::new("-");
    if !is_output {
        private_file::check(&args.file, session)?;
    }
    let deed = "write an artifact in the clear, where the key does not protect it";
    let question = "Write it in the clear? Whoever gets the copy can read it without the key.";
    let show = async || {
        output::note(&description(&artifact));
        Ok(())
    };
    if !session.agrees(args.yes, deed, question, "nothing was written", show).await? {
        return Ok(Exit::Done);
    }
    // Listen only now: Ctrl-C at the question must end the program.
    let mut interrupt = Interrupt::listen()?;
    let file = match is_output {
        true => None,
        false => Some(PrivateFile::begin(&args.file, session)?),
    };
    let watch = Arc::new(Watch::default());
    let bar = output::progress(Some(artifact.size), "exporting");
    let (source, id) = (Guarded::new(contents, u64::MAX, &bar, &watch), artifact.id.clone());
    let writing = tokio::task::spawn_blocking(move || write(source, file, &artifact));
    let written = interrupt.or_stop(|| watch.stop(), writing).await;
    bar.finish_and_clear();
    let size = match written.map_err(io::Error::other)? {
        Err(_) if watch.is_stopped() => {
            output::note("interrupted; no file was left");
            return Ok(Exit::Interrupted);
        }
        size => size?,
    };
    if !is_output {
        let file = args.file.display();
        session.tell(object!("id": id, "file": args.file, "size": size), || {
            format!("wrote {} in the clear to {file}", output::counted(size, "byte"))
        })?;
    }
    Ok(Exit::Done)
}

/// Writes the artifact to the file or standard output. Returns its size in bytes.
fn write(
    mut source: Guarded<ArtifactContents>,
    mut file: Option<PrivateFile>,
    artifact: &Artifact,
) -> Result<u64, Failure> {
    let mut piece = Zeroizing::new(vec![0; PIECE]);
    let mut written = 0;
    loop {
        let read = source.read(&mut piece).map_err(|error| unreadable(artifact, error))?;
        let bytes = piece.get(..read).unwrap_or_default();
        if bytes.is_empty() {
            break;
        }
        match &mut file {
            Some(to) => to.file.write_all(bytes).map_err(|error| to.unwritable(&error))?,
            None => output::bytes(bytes)?,
        }
        written += read as u64;
    }
    match file {
        Some(file) => file.end()?,
        None => io::stdout().flush()?,
    }
    Ok(written)
}

const SHOW_HELP: &str = "\
Examples:
  sottovoce artifact show 5b1c90f2
  sottovoce artifact show artifact://5b1c90f2 --bytes 1000-1999
  sottovoce artifact show 5b1c90f2 | less";

/// The longest text for one line of JSON.
const LONGEST_JSON: u64 = 1 << 26;

/// Prints an artifact's contents; unchanged if standard output is a pipe
#[derive(clap::Args)]
#[command(after_help = SHOW_HELP)]
pub(crate) struct ShowArgs {
    /// Its id or abbreviation
    pub(crate) id: String,

    /// Only these bytes, counted from 0, both ends included; `1000-` goes to the end
    #[arg(long, value_name = "FIRST-LAST", value_parser = parse_bytes)]
    pub(crate) bytes: Option<Bytes>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Bytes {
    first: u64,
    last: u64,
}

pub(crate) fn parse_bytes(text: &str) -> Result<Bytes, String> {
    let wrong = || "two numbers such as 0-999, or 1000-".to_owned();
    let (first, last) = text.split_once('-').ok_or_else(wrong)?;
    let first = first.trim().parse().map_err(|_| wrong())?;
    let last = match last.trim() {
        "" => u64::MAX,
        last => last.parse().map_err(|_| wrong())?,
    };
    if first > last { Err(wrong()) } else { Ok(Bytes { first, last }) }
}

pub(crate) async fn show(session: &Session, args: ShowArgs) -> Outcome {
    let mut contents = open(session, &args.id).await?;
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
    let row = Object::default().all_of(artifact);
    if !artifact.is_text() {
        output::json(&row.and("text", &None::<&str>))?;
        return Ok(Exit::Done);
    }
    let room = usize::try_from(length).unwrap_or(0);
    let mut text = Zeroizing::new(Vec::with_capacity(room.saturating_add(1)));
    contents.take(length).read_to_end(&mut text).map_err(|error| unreadable(artifact, error))?;
    output::json(&row.and("text", &String::from_utf8_lossy(&text)))?;
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

/// Parses a number of bytes with an optional unit: 4096, 64K, 1MiB, 2GB.
fn parse_size(text: &str) -> Result<u64, String> {
    let wrong = || "a number of bytes, such as 4096, 64K, 1MiB or 2GB".to_owned();
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit = text.get(digits.len()..).unwrap_or_default().to_ascii_lowercase();
    let each: u64 = match unit.as_str() {
        "" | "b" => 1,
        "k" | "kib" => 1 << 10,
        "m" | "mib" => 1 << 20,
        "g" | "gib" => 1 << 30,
        "kb" => 1_000,
        "mb" => 1_000_000,
        "gb" => 1_000_000_000,
        _ => return Err(wrong()),
    };
    let number: u64 = digits.trim().parse().map_err(|_| wrong())?;
    number.checked_mul(each).filter(|bytes| *bytes > 0).ok_or_else(wrong)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_type_is_one_of_those_that_are_known_or_a_word() {
        assert_eq!(parse_kind("Search-Result"), Ok(ArtifactKind::SearchResult));
        assert_eq!(parse_kind("tool_result"), Ok(ArtifactKind::ToolResult));
        assert_eq!(parse_kind("image"), Ok(ArtifactKind::Other("image".to_owned())));
        for wrong in ["", " ", "two words", "a\nb", "a/b", &"x".repeat(65)] {
            assert!(parse_kind(wrong).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn a_name_tells_what_is_in_a_file_unless_it_may_be_a_program() {
        assert_eq!(mime_of("src/main.rs"), Some("text/x-rust"));
        assert_eq!(mime_of("a/logo.PNG"), Some("image/png"));
        assert_eq!((mime_of("app.ts"), mime_of("README"), mime_of("-")), (None, None, None));
    }

    #[test]
    fn a_range_of_bytes_has_a_beginning_and_perhaps_an_end() {
        assert_eq!(parse_bytes("0-999"), Ok(Bytes { first: 0, last: 999 }));
        assert_eq!(parse_bytes("7-7"), Ok(Bytes { first: 7, last: 7 }));
        assert_eq!(parse_bytes("1000-"), Ok(Bytes { first: 1000, last: u64::MAX }));
        for wrong in ["", "-", "5", "-5", "9-3", "a-b", "1-2-3", "0x1-2"] {
            assert!(parse_bytes(wrong).is_err(), "{wrong}");
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

    #[test]
    fn sizes_are_understood_with_and_without_units() {
        for (text, bytes) in
            [("4096", 4096), ("64K", 65_536), ("1MiB", 1 << 20), ("2gb", 2_000_000_000), ("7 B", 7)]
        {
            assert_eq!(parse_size(text), Ok(bytes), "{text}");
        }
        for wrong in ["", "K", "0", "-1", "1.5M", "1T", "18446744073709551615K"] {
            assert!(parse_size(wrong).is_err(), "{wrong}");
        }
    }
}
