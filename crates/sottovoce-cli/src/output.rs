//! Output for people and programs.

pub(crate) mod pager;
pub(crate) mod table;
pub(crate) mod waiting;
pub(crate) mod wrap;

use std::borrow::Cow;
use std::collections::HashSet;
use std::io::{self, IsTerminal, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anstyle::{AnsiColor, Style};
use indicatif::{ProgressBar, ProgressStyle};
use jiff::Timestamp;
use jiff::tz::TimeZone;
use serde::Serialize;
use serde_json::value::RawValue;
use sottovoce::admin::Progress;
use sottovoce::model::ModelRequest;
use sottovoce::store::Finding;
use sottovoce::{AnswerEvent, ChatMessage, StoredMessage, with_causes};

use crate::advice;
use crate::exit::Failure;
use wrap::{Wrap, columns, wrapped};

pub(crate) const DIM: Style = Style::new().dimmed();
pub(crate) const BOLD: Style = Style::new().bold();
pub(crate) const GOOD: Style = AnsiColor::Green.on_default();
pub(crate) const WARN: Style = AnsiColor::Yellow.on_default();
pub(crate) const BAD: Style = AnsiColor::Red.on_default().bold();

/// How many lines of a message are shown on a terminal.
const LINES: usize = 40;
/// The column at which a message's further lines begin.
const BELOW: usize = 8;
/// Whether long messages are shown whole.
pub(crate) static FULL: AtomicBool = AtomicBool::new(false);

/// How many findings are listed. The others are counted.
const LISTED: usize = 5;

/// Writes one line to standard output.
pub(crate) fn line(text: impl AsRef<str>) -> io::Result<()> {
    writeln!(anstream::stdout(), "{}", wrapped(text.as_ref(), io::stdout(), 0))
}

/// Writes a piece of an answer as it arrives.
pub(crate) fn piece(wrap: &mut Wrap, piece: &AnswerEvent) -> io::Result<()> {
    let AnswerEvent::Text(text) = piece else { return Ok(()) };
    let mut out = anstream::stdout();
    write!(out, "{}", wrap.push(&printable(text)))?;
    out.flush()
}

/// Writes bytes unchanged to standard output.
pub(crate) fn bytes(bytes: &[u8]) -> io::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(bytes)?;
    out.flush()
}

/// Writes one JSON object as a line.
pub(crate) fn json(value: &impl Serialize) -> io::Result<()> {
    json_text(&serde_json::to_string(value)?)
}

/// A JSON object with its fields in this order.
#[derive(Debug, Default)]
pub(crate) struct Object(String);

impl Object {
    pub(crate) fn and(mut self, name: &str, value: &(impl Serialize + ?Sized)) -> Self {
        // Nothing that commands show fails to be JSON.
        let value = serde_json::to_string(value).unwrap_or_else(|_| "null".to_owned());
        let comma = if self.0.is_empty() { "" } else { "," };
        self.0.push_str(&format!("{comma}\"{name}\":{value}"));
        self
    }

    /// The field, if there is a value.
    pub(crate) fn maybe(self, name: &str, value: Option<impl Serialize>) -> Self {
        match value {
            Some(value) => self.and(name, &value),
            None => self,
        }
    }

    /// All fields of another object.
    pub(crate) fn all_of(mut self, value: &impl Serialize) -> Self {
        let object = serde_json::to_string(value).unwrap_or_default();
        let fields = object.strip_prefix('{').and_then(|fields| fields.strip_suffix('}'));
        let fields = fields.filter(|fields| !fields.is_empty()).unwrap_or_default();
        let comma = if self.0.is_empty() || fields.is_empty() { "" } else { "," };
        self.0.push_str(&format!("{comma}{fields}"));
        self
    }
}

impl Serialize for Object {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let object = RawValue::from_string(format!("{{{}}}", self.0));
        object.map_err(serde::ser::Error::custom)?.serialize(serializer)
    }
}

/// An [`Object`] of names and values.
macro_rules! object {
    ($($name:literal: $value:expr),* $(,)?) => {
        $crate::output::Object::default()$(.and($name, &$value))*
    };
}
pub(crate) use object;

/// Writes JSON and a line end. On a terminal, characters that it might obey are escaped.
pub(crate) fn json_text(text: &str) -> io::Result<()> {
    let text = if io::stdout().is_terminal() { escaped(text) } else { Cow::Borrowed(text) };
    bytes(format!("{text}\n").as_bytes())
}

/// JSON that is embedded unchanged in other JSON.
pub(crate) fn raw_json(text: String) -> io::Result<Box<RawValue>> {
    Ok(RawValue::from_string(text)?)
}

/// Reports on standard error, in one line each, what is wrong and what to do.
pub(crate) fn failure(failure: &Failure) {
    match failure {
        _ if failure.is_broken_pipe() => {}
        Failure::Library(cause) => error(&with_causes(cause), advice::help(cause)),
        #[cfg(feature = "share")]
        Failure::Sync(cause) => error(&with_causes(cause), advice::sync_help(cause)),
        #[cfg(feature = "share")]
        Failure::Team(cause) => error(&with_causes(cause), advice::team_help(cause)),
        Failure::Nothing { folder } => {
            note(&format!("nothing is remembered yet in {}", folder.display()));
        }
        Failure::Interrupted("") => {}
        Failure::Interrupted(kept) => note(&format!("interrupted; {kept}")),
        Failure::Io(cause) => error(&cause.to_string(), "check the terminal or the pipe"),
        Failure::Input { what, help } | Failure::NotFound { what, help } => error(what, help),
    }
}

pub(crate) fn error(what: &str, help: &str) {
    let what = printable(what);
    remark(&format!("{BAD}error:{BAD:#} {what}\n{BOLD}help:{BOLD:#} {help}"), 2);
}

pub(crate) fn warning(what: &str) {
    remark(&format!("{WARN}warning:{WARN:#} {}", printable(what)), 2);
}

pub(crate) fn note(what: &str) {
    remark(&format!("{DIM}{what}{DIM:#}"), 0);
}

/// Writes lines to standard error.
pub(crate) fn remark(text: &str, hang: usize) {
    let _ = writeln!(anstream::stderr(), "{}", wrapped(text, io::stderr(), hang));
}

/// Reports what a read had to skip.
pub(crate) fn skipped(findings: &[Finding]) {
    for finding in findings.iter().take(LISTED) {
        warning(&finding.to_string());
    }
    if let Some(more) = findings.len().checked_sub(LISTED).filter(|more| *more > 0) {
        warning(&format!("and {more} more; `sottovoce verify` lists them all"));
    }
}

/// Lists findings, with the advice for each kind once.
pub(crate) fn findings(findings: &[Finding]) -> io::Result<()> {
    let mut helped = HashSet::new();
    for finding in findings {
        let style = if finding.kind.is_problem() { BAD } else { WARN };
        line(format!(
            "{style}{}{style:#}  {}",
            finding.kind.code(),
            printable(&finding.to_string())
        ))?;
        let help = advice::advice(finding);
        if helped.insert(help) {
            line(format!("    {DIM}→ {help}{DIM:#}"))?;
        }
    }
    Ok(())
}

/// Asks a question on standard error. Only a yes confirms.
pub(crate) fn confirmed(question: &str) -> io::Result<bool> {
    let answer = answer(&format!("{question} [y/N]"))?;
    Ok(matches!(answer.as_str(), "y" | "yes"))
}

/// Asks on standard error. Returns the line that is typed, in lower case.
pub(crate) fn answer(question: &str) -> io::Result<String> {
    let question = wrapped(question, io::stderr(), 0);
    let mut out = anstream::stderr();
    write!(out, "{BOLD}{question}{BOLD:#} ")?;
    out.flush()?;
    let mut answer = String::new();
    io::stdin().read_line(&mut answer)?;
    Ok(answer.trim().to_lowercase())
}

/// The record's fields and its number. `append` accepts such lines.
pub(crate) fn message_row(seq: u64, message: &ChatMessage) -> Object {
    let calls = Some(&message.tool_calls).filter(|calls| !calls.is_empty());
    let metadata = Some(&message.metadata).filter(|metadata| !metadata.is_empty());
    let row = object!(
        "seq": seq, "role": message.role.as_str(), "content": message.content,
        "timestampUtc": message.timestamp, "source": message.source_in_words(),
        "metadata": metadata,
    );
    row.maybe("toolCalls", calls)
        .maybe("toolCallId", message.tool_call_id.as_ref())
        .maybe("threadId", message.thread_id.as_ref())
        .maybe("offsetMinutes", message.offset_minutes)
}

/// Writes one stored message as JSON or text.
pub(crate) fn message(stored: &StoredMessage, as_json: bool) -> io::Result<()> {
    match as_json {
        true => json(&message_row(stored.seq, &stored.message)),
        false => said(stored.seq, &stored.message),
    }
}

/// Writes a message as text.
pub(crate) fn said(seq: u64, message: &ChatMessage) -> io::Result<()> {
    excerpt(seq, message, &printable(&message.content))
}

/// Writes a message as text with these words of it, which are printable.
pub(crate) fn excerpt(seq: u64, message: &ChatMessage, words: &str) -> io::Result<()> {
    let time = minute(message.said_at());
    let role = message.role.as_str();
    let speaker = message.speaker().map(|name| format!("{}: ", one_line(name)));
    let restored = message.restored_from().map(|_| format!(" {DIM}(restored){DIM:#}"));
    let thread = message.thread_id.as_deref().map(|id| format!("{DIM}[{}]{DIM:#} ", one_line(id)));
    let marks = [message.cut_off(), message.aside().and(Some("aside"))];
    let marks = marks.into_iter().flatten().map(|why| format!(" {DIM}({}){DIM:#}", printable(why)));
    let calls: Vec<String> = message.tool_calls.iter().map(|call| one_line(&call.name)).collect();
    let space = if message.content.is_empty() { "" } else { " " };
    let called = format!("{space}{DIM}(calls {}){DIM:#}", calls.join(", "));
    let whole = format!(
        "{DIM}{:>6}  {time}{DIM:#}  {BOLD}{role:<9}{BOLD:#}  {}{}{}{}{}{}",
        seq,
        thread.unwrap_or_default(),
        speaker.unwrap_or_default(),
        words.replace('\n', "\n        "),
        if calls.is_empty() { "" } else { &called },
        marks.collect::<String>(),
        restored.unwrap_or_default(),
    );
    let shown = wrapped(&whole, io::stdout(), BELOW);
    let more = shown.lines().count().saturating_sub(LINES);
    if more == 0 || columns(io::stdout()).is_none() || FULL.load(Ordering::Relaxed) {
        return writeln!(anstream::stdout(), "{shown}");
    }
    let first: Vec<&str> = shown.lines().take(LINES).collect();
    line(first.join("\n"))?;
    let lines = counted(more as u64, "more line");
    line(format!("{:BELOW$}{DIM}… and {lines}; --full shows them{DIM:#}", ""))
}

/// Writes a request's JSON, indented.
pub(crate) fn request(request: &ModelRequest) -> io::Result<()> {
    let mut laid_out = Vec::new();
    serde_transcode::transcode(
        &mut serde_json::Deserializer::from_str(&request.body),
        &mut serde_json::Serializer::pretty(&mut laid_out),
    )?;
    json_text(&String::from_utf8_lossy(&laid_out))
}

/// A number with thousands separators.
pub(crate) fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// "1 message", "2 messages".
pub(crate) fn messages(number: usize) -> String {
    counted(number as u64, "message")
}

/// "1 file", "2 files", for words with a regular plural.
pub(crate) fn counted(number: u64, what: &str) -> String {
    format!("{number} {what}{}", if number == 1 { "" } else { "s" })
}

/// A local time with its zone: "2026-11-26 21:05 CET".
pub(crate) fn moment(at: Timestamp) -> String {
    local(at, "%Y-%m-%d %H:%M %Z")
}

/// A local time without its zone, for columns whose heads name it.
pub(crate) fn minute(at: Timestamp) -> String {
    local(at, "%Y-%m-%d %H:%M")
}

/// The head of a column of times, with their zone now.
pub(crate) fn head(name: &str, now: Timestamp) -> String {
    format!("{name} ({})", local(now, "%Z"))
}

/// The local day of a time.
pub(crate) fn day(at: Timestamp) -> String {
    local(at, "%Y-%m-%d")
}

fn local(at: Timestamp, format: &str) -> String {
    at.to_zoned(TimeZone::system()).strftime(format).to_string()
}

/// "512 B", "1.5 KiB", "3.2 MiB".
pub(crate) fn byte_size(bytes: u64) -> String {
    indicatif::BinaryBytes(bytes).to_string()
}

/// Seconds in the largest units that fit exactly or nearly: "24 h", "90 min", "26 h 3 min".
pub(crate) fn duration(seconds: u64) -> String {
    let (days, hours, minutes) = (seconds / 86_400, seconds / 3600 % 24, seconds / 60 % 60);
    let parts = [(days, "d"), (hours, "h"), (minutes, "min"), (seconds % 60, "s")];
    let shown: Vec<String> = parts
        .into_iter()
        .filter(|(number, _)| *number > 0)
        .take(2)
        .map(|(number, unit)| format!("{number} {unit}"))
        .collect();
    if shown.is_empty() { "0 s".to_owned() } else { shown.join(" ") }
}

/// The address without user name and password.
pub(crate) fn without_login(url: &str) -> Cow<'_, str> {
    let (scheme, rest) = url
        .split_once("://")
        .map_or(("", url), |(_, rest)| (url.strip_suffix(rest).unwrap_or_default(), rest));
    let (authority, path) = rest.split_at(rest.find(['/', '?', '#']).unwrap_or(rest.len()));
    match authority.rsplit_once('@') {
        Some((_, host)) => format!("{scheme}(hidden)@{host}{path}").into(),
        None => Cow::Borrowed(url),
    }
}

/// Whether a terminal may obey the character although JSON allows it unescaped: C1 control characters, and those that
/// change the writing direction.
fn is_sly(c: char) -> bool {
    matches!(c, '\u{7f}'..='\u{9f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// JSON in which such characters are escaped. They occur only in strings.
fn escaped(json: &str) -> Cow<'_, str> {
    if !json.contains(is_sly) {
        return Cow::Borrowed(json);
    }
    let mut escaped = String::with_capacity(json.len() + 16);
    for c in json.chars() {
        if is_sly(c) {
            escaped.push_str(&format!("\\u{:04x}", u32::from(c)));
        } else {
            escaped.push(c);
        }
    }
    escaped.into()
}

/// The text without characters that could control a terminal.
pub(crate) fn printable(text: &str) -> Cow<'_, str> {
    let steers = |c: char| is_sly(c) || (c.is_control() && c != '\n' && c != '\t');
    if !text.contains(steers) {
        return Cow::Borrowed(text);
    }
    text.chars().map(|c| if steers(c) { '\u{fffd}' } else { c }).collect::<String>().into()
}

/// The text without line breaks and without characters that could control a terminal.
pub(crate) fn one_line(text: &str) -> String {
    printable(text).replace(|c: char| c.is_control(), " ")
}

/// Whether the terminal can do nothing but print, so that it has neither a line editor nor a pager.
pub(crate) fn is_dumb() -> bool {
    let dumb = ["dumb", "cons25", "emacs"];
    std::env::var("TERM").is_ok_and(|name| dumb.contains(&&*name.to_lowercase()))
}

/// A progress bar on standard error if that is a terminal; a spinner if the total is unknown. It is cleared when it is
/// dropped.
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

/// Runs work with a progress bar.
pub(crate) async fn with_bar<T>(
    total: Option<u64>,
    what: &'static str,
    work: impl AsyncFnOnce(&ProgressBar) -> T,
) -> T {
    let bar = progress(total, what);
    let done = work(&bar).await;
    bar.finish_and_clear();
    done
}

/// What moves a progress bar.
pub(crate) fn moving(bar: &ProgressBar) -> impl Fn(Progress) + Send + Sync + use<> {
    let bar = bar.clone();
    move |progress| {
        bar.set_length(progress.total as u64);
        bar.set_position(progress.done as u64);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_on_a_terminal_means_the_same_and_steers_nothing() {
        let text = "a\u{1b}b\u{7f}c\u{9b}d\u{202e}e\u{2069}f é 👩";
        let json = serde_json::to_string(text).unwrap();
        let shown = escaped(&json);
        assert!(!shown.contains(|c: char| c.is_control() || is_sly(c)), "{shown:?}");
        assert_eq!(serde_json::from_str::<String>(&shown).unwrap(), text);
    }

    #[test]
    fn people_see_no_character_that_steers() {
        assert_eq!(
            printable("a\u{9b}b\u{202e}c\u{2066}d\u{1b}e\tf\n"),
            "a\u{fffd}b\u{fffd}c\u{fffd}d\u{fffd}e\tf\n"
        );
    }

    #[test]
    fn an_address_is_shown_without_its_login() {
        for (url, shown) in [
            ("http://127.0.0.1:11434", "http://127.0.0.1:11434"),
            ("http://anna:pass@host:1/a@b?c", "http://(hidden)@host:1/a@b?c"),
            ("https://anna:p@ss@host", "https://(hidden)@host"),
            ("anna:pass@host", "(hidden)@host"),
            ("http://host/a@b", "http://host/a@b"),
        ] {
            assert_eq!(without_login(url), shown);
        }
    }
}
