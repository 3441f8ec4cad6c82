//! `sottovoce artifact add`

use std::fs::File;
use std::io::{self, IsTerminal, Read};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use sottovoce::store::{ArtifactKind, NewArtifact};

use crate::cmd::memory::artifact::source;
use crate::cmd::memory::artifact::source::{Guarded, Pump, Watch};
use crate::cmd::memory::artifact::{description, refer, report, size};
use crate::cmd::memory::stats::bytes;
use crate::exit::{Exit, Failure, Outcome};
use crate::interrupt::Interrupt;
use crate::output;
use crate::session::Session;

const AFTER_HELP: &str = "\
Examples:
  sottovoce artifact add notes.md
  sottovoce --thread 7 artifact add report.pdf --name \"The report\" --no-message
  dmesg | sottovoce artifact add - --name dmesg";

/// The longest custom kind.
const LONGEST_KIND: usize = 64;

/// Adds a file or standard input as an artifact, and a message that refers to it
#[derive(clap::Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct Args {
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
    #[arg(long, value_name = "SIZE", default_value = "1GiB", value_parser = size::parse)]
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
pub(super) fn mime_of(name: &str) -> Option<&'static str> {
    // TypeScript has the same extension as an MPEG stream, which is unlikely here.
    mime_guess::from_path(name).first_raw().filter(|guess| *guess != "video/vnd.dlna.mpeg-tts")
}

pub(crate) async fn run(session: &Session, args: Args) -> Outcome {
    let watch = Arc::new(Watch::default());
    let is_input = args.file == Path::new("-");
    let place = if is_input { "standard input".into() } else { args.file.display().to_string() };
    let opened = if is_input { standard_input(&watch)? } else { open(&args.file, &watch)? };
    let over = || {
        Failure::input(
            format!("{place} is over the limit of {}; nothing was added", bytes(args.max_size)),
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

    let config = session.config()?;
    let mut interrupt = Interrupt::listen()?;
    let store = session.store_or_make(&config).await?;
    let bar = output::progress(opened.size, "adding");
    let content = Box::new(Guarded::new(opened.content, args.max_size, &bar, &watch));
    let added = source::add(&store, new, content, &watch, &mut interrupt).await;
    bar.finish_and_clear();
    let added = match added {
        Err(_) if watch.is_over() => return Err(over()),
        Err(_) if watch.is_stopped() => {
            output::note("interrupted; nothing was added");
            return Ok(Exit::Interrupted);
        }
        added => added?,
    };
    let message = match args.no_message {
        true => None,
        false => {
            let artifact = &added.artifact;
            let text = format!("Added {}: {}", description(artifact), artifact.reference());
            refer(session, &store, &added, text, None).await?
        }
    };
    report(session, &added, message)?;
    Ok(Exit::Done)
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

fn open(file: &Path, watch: &Arc<Watch>) -> Result<Opened, Failure> {
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
}
