//! What people and machines are shown.

use std::borrow::Cow;
use std::io::{self, Write};
use std::time::Duration;

use anstyle::{AnsiColor, Style};
use indicatif::{ProgressBar, ProgressStyle};
use serde::Serialize;
use sottovoce::{ChatMessage, Finding, ModelRequest, StoredMessage};

pub(crate) const DIM: Style = Style::new().dimmed();
pub(crate) const BOLD: Style = Style::new().bold();
pub(crate) const GOOD: Style = AnsiColor::Green.on_default();
pub(crate) const WARN: Style = AnsiColor::Yellow.on_default();
pub(crate) const BAD: Style = AnsiColor::Red.on_default().bold();

/// How many findings are listed before the rest is counted.
const LISTED: usize = 5;

/// Writes one line to standard output.
pub(crate) fn line(text: impl AsRef<str>) -> io::Result<()> {
    writeln!(anstream::stdout(), "{}", text.as_ref())
}

/// Writes one JSON object as a line.
pub(crate) fn json(value: &impl Serialize) -> io::Result<()> {
    let mut out = io::stdout().lock();
    serde_json::to_writer(&mut out, value)?;
    out.write_all(b"\n")?;
    out.flush()
}

pub(crate) fn error(what: &str, help: &str) {
    let _ = writeln!(anstream::stderr(), "{BAD}error:{BAD:#} {what}\n{BOLD}help:{BOLD:#} {help}");
}

pub(crate) fn warning(what: &str) {
    let _ = writeln!(anstream::stderr(), "{WARN}warning:{WARN:#} {what}");
}

pub(crate) fn note(what: &str) {
    let _ = writeln!(anstream::stderr(), "{DIM}{what}{DIM:#}");
}

/// Says what a read had to pass over.
pub(crate) fn skipped(findings: &[Finding]) {
    for finding in findings.iter().take(LISTED) {
        warning(&finding.to_string());
    }
    if let Some(more) = findings.len().checked_sub(LISTED).filter(|more| *more > 0) {
        warning(&format!("and {more} more; `sottovoce verify` lists them all"));
    }
}

/// A stored message as machines read it: the record's fields, and its number.
#[derive(Serialize)]
struct Row<'a> {
    id: u64,
    #[serde(flatten)]
    message: &'a ChatMessage,
}

/// Writes one stored message, for machines or for people.
pub(crate) fn message(stored: &StoredMessage, as_json: bool) -> io::Result<()> {
    let message = &stored.message;
    if as_json {
        return json(&Row { id: stored.seq, message });
    }
    let minutes = message.offset_minutes.unwrap_or(0);
    let offset =
        jiff::tz::Offset::from_seconds(i32::from(minutes) * 60).unwrap_or(jiff::tz::Offset::UTC);
    let time = offset.to_datetime(message.timestamp).strftime("%Y-%m-%d %H:%M").to_string();
    let role = message.role.as_str();
    let speaker = message.speaker().map(|name| format!("{}: ", printable(name)));
    line(format!(
        "{DIM}{:>6}  {time}{DIM:#}  {BOLD}{role:<9}{BOLD:#}  {}{}",
        stored.seq,
        speaker.unwrap_or_default(),
        printable(&message.content).replace('\n', "\n        "),
    ))
}

/// Writes a request's JSON, laid out for reading.
pub(crate) fn request(request: &ModelRequest) -> io::Result<()> {
    let mut laid_out = Vec::new();
    serde_transcode::transcode(
        &mut serde_json::Deserializer::from_str(&request.body),
        &mut serde_json::Serializer::pretty(&mut laid_out),
    )?;
    line(String::from_utf8_lossy(&laid_out))
}

/// The text without what could steer a terminal.
pub(crate) fn printable(text: &str) -> Cow<'_, str> {
    let steers = |c: char| c.is_control() && c != '\n' && c != '\t';
    if !text.contains(steers) {
        return Cow::Borrowed(text);
    }
    text.chars().map(|c| if steers(c) { '\u{fffd}' } else { c }).collect::<String>().into()
}

/// A bar on standard error, if that is a terminal; a spinner where the end is not known.
pub(crate) fn progress(total: Option<u64>, what: &'static str) -> ProgressBar {
    let (bar, template) = match total {
        Some(total) => (ProgressBar::new(total), "{msg} {wide_bar} {percent}% {eta}"),
        None => (ProgressBar::new_spinner(), "{msg} {spinner} {elapsed}"),
    };
    if let Ok(style) = ProgressStyle::with_template(template) {
        bar.set_style(style);
    }
    bar.set_message(what);
    bar.enable_steady_tick(Duration::from_millis(200));
    bar
}
