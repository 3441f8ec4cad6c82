//! Reads messages from JSON lines. Errors name the line and the field, never the content.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read};

use jiff::{Timestamp, Zoned};
use serde_json::{Map, Value};
use sottovoce::{ChatMessage, ChatRole, Clock, ToolCall};
use zeroize::Zeroizing;

use crate::exit::Failure;

/// The most bytes of lines in one group, plus at most one line.
const MOST_BYTES: u64 = 1 << 20;

/// Messages that were read together, each with its line number.
#[derive(Default)]
pub(super) struct Rows {
    pub(super) messages: Vec<(usize, ChatMessage)>,
    /// The total length of their lines.
    pub(super) bytes: u64,
}

impl Rows {
    /// Puts messages without a thread into this one.
    pub(super) fn in_thread(mut self, thread: Option<&str>) -> Self {
        for (_, message) in &mut self.messages {
            if message.thread_id.is_none() {
                message.thread_id = thread.map(str::to_owned);
            }
        }
        self
    }
}

/// Reads all messages and passes them on in groups of at most `most`; a group is smaller if the next line is not
/// available yet. Stops at an invalid line, and when the receiver is gone.
pub(super) fn read(
    input: impl Read,
    most: usize,
    clock: &dyn Clock,
    mut give: impl FnMut(Result<Rows, Failure>) -> bool,
) {
    let mut lines = Lines::new(input);
    let mut rows = Rows::default();
    while let Some(line) = lines.next() {
        let parsed = line.and_then(|line| {
            rows.bytes += line.text.len() as u64;
            let message = parse(&line.text, line.number, &clock.now())?;
            Ok(message.map(|message| (line.number, message)))
        });
        match parsed {
            Ok(message) => rows.messages.extend(message),
            Err(refused) => {
                let _ = give(Ok(rows)) && give(Err(refused));
                return;
            }
        }
        let full = rows.messages.len() >= most || rows.bytes >= MOST_BYTES;
        if (full || !lines.is_next_here()) && !give(Ok(std::mem::take(&mut rows))) {
            return;
        }
    }
}

/// The longest line in bytes. No message that a store accepts needs more.
const LONGEST: u64 = 16 << 20;

/// The bytes of one read.
const CHUNK: usize = 1 << 18;

/// A line with its number, from 1.
pub(super) struct Line {
    pub(super) number: usize,
    pub(super) text: Zeroizing<String>,
}

pub(super) struct Lines<R> {
    input: BufReader<R>,
    number: usize,
}

impl<R: Read> Lines<R> {
    pub(super) fn new(input: R) -> Self {
        Self { input: BufReader::with_capacity(CHUNK, input), number: 0 }
    }

    /// Whether the next line is available without waiting.
    pub(super) fn is_next_here(&self) -> bool {
        self.input.buffer().contains(&b'\n')
    }
}

impl<R: Read> Iterator for Lines<R> {
    type Item = Result<Line, Failure>;

    fn next(&mut self) -> Option<Self::Item> {
        self.number += 1;
        let number = self.number;
        let mut bytes = Zeroizing::new(Vec::new());
        match self.input.by_ref().take(LONGEST + 1).read_until(b'\n', &mut bytes) {
            Err(error) => return Some(Err(error.into())),
            Ok(0) => return None,
            Ok(_) => {}
        }
        if bytes.len() as u64 > LONGEST && !bytes.ends_with(b"\n") {
            return Some(Err(refused(number, "longer than 16 MiB")));
        }
        Some(match String::from_utf8(std::mem::take(&mut *bytes)) {
            Ok(text) => Ok(Line { number, text: Zeroizing::new(text) }),
            Err(error) => {
                let column = error.utf8_error().valid_up_to() + 1;
                drop(Zeroizing::new(error.into_bytes()));
                Err(refused(number, &format!("not UTF-8 (at byte {column})")))
            }
        })
    }
}

const FIELDS: [&str; 11] = [
    "seq",
    "id",
    "role",
    "content",
    "timestampUtc",
    "source",
    "metadata",
    "toolCalls",
    "toolCallId",
    "threadId",
    "offsetMinutes",
];

/// Parses the message of a line. Its time is `now` if the line has none. Returns `None` for a blank line.
pub(super) fn parse(
    line: &str,
    number: usize,
    now: &Zoned,
) -> Result<Option<ChatMessage>, Failure> {
    let line = if number == 1 { line.trim_start_matches('\u{feff}') } else { line };
    if line.trim().is_empty() {
        return Ok(None);
    }
    message(line, now).map(Some).map_err(|what| refused(number, &what))
}

/// The error for a line that cannot be stored.
pub(super) fn refused(number: usize, what: &str) -> Failure {
    Failure::input(
        format!("line {number}: {what}"),
        "correct the line and send it and what follows again",
    )
}

fn message(line: &str, now: &Zoned) -> Result<ChatMessage, String> {
    let mut fields: Map<String, Value> = serde_json::from_str(line)
        .map_err(|error| format!("not a JSON object (at column {})", error.column()))?;
    if let Some(unknown) = fields.keys().find(|name| !FIELDS.contains(&name.as_str())) {
        return Err(format!("there is no field {unknown:?}; there are {}", FIELDS.join(", ")));
    }
    let role: ChatRole = text(&mut fields, "role")?
        .ok_or("\"role\" is missing")?
        .parse()
        .map_err(|_| "\"role\" must be user, assistant, system or tool")?;
    let content = text(&mut fields, "content")?.ok_or("\"content\" is missing")?;
    let mut message = match text(&mut fields, "timestampUtc")? {
        Some(time) => {
            let time: Timestamp =
                time.parse().map_err(|_| "\"timestampUtc\" must be like 2025-08-24T16:36:25Z")?;
            ChatMessage::at(role, content, time)
        }
        None => ChatMessage::new(role, content, now),
    };
    message.tool_call_id = text(&mut fields, "toolCallId")?;
    message.thread_id = text(&mut fields, "threadId")?;
    message.metadata =
        take::<Option<BTreeMap<String, String>>>(&mut fields, "metadata", "an object of texts")?
            .flatten()
            .unwrap_or_default();
    message.tool_calls =
        take::<Vec<ToolCall>>(&mut fields, "toolCalls", "an array of {id, name, arguments}")?
            .unwrap_or_default();
    if let Some(offset) = take(&mut fields, "offsetMinutes", "a whole number of minutes")? {
        message.offset_minutes = offset;
    }
    Ok(message)
}

fn text(fields: &mut Map<String, Value>, name: &str) -> Result<Option<String>, String> {
    match fields.remove(name) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text)),
        Some(_) => Err(format!("{name:?} must be a text")),
    }
}

fn take<T: serde::de::DeserializeOwned>(
    fields: &mut Map<String, Value>,
    name: &str,
    expected: &str,
) -> Result<Option<T>, String> {
    let value = fields.remove(name);
    value
        .map(|value| {
            serde_json::from_value(value).map_err(|_| format!("{name:?} must be {expected}"))
        })
        .transpose()
}

#[cfg(test)]
mod tests {
    use sottovoce::SystemClock;

    use super::*;

    /// The sizes of the groups that were passed on, and the number of refusals.
    fn given(input: impl Read, most: usize) -> (Vec<usize>, usize) {
        let (mut counts, mut refusals) = (Vec::new(), 0);
        read(input, most, &SystemClock, |rows| {
            match rows {
                Ok(rows) => counts.push(rows.messages.len()),
                Err(_) => refusals += 1,
            }
            true
        });
        (counts, refusals)
    }

    const LINE: &str = "{\"role\":\"user\",\"content\":\"x\"}\n";

    #[test]
    fn what_comes_together_is_given_away_together_and_nothing_waits_for_what_is_not_here() {
        assert_eq!(given(LINE.repeat(5).as_bytes(), 2), (vec![2, 2, 1], 0));
        let slowly = LINE.repeat(2);
        let (first, second) = slowly.split_at(LINE.len() + 3);
        assert_eq!(given(first.as_bytes().chain(second.as_bytes()), 9), (vec![1, 1], 0));
    }

    #[test]
    fn what_was_read_before_a_refused_line_is_given_away_first() {
        let input = format!("{LINE}\n{LINE}nonsense\n{LINE}");
        assert_eq!(given(input.as_bytes(), 9), (vec![2], 1));
    }

    fn what(item: Option<Result<Line, Failure>>) -> String {
        match item {
            Some(Err(Failure::Input { what, .. })) => what,
            _ => panic!("not refused"),
        }
    }

    #[test]
    fn lines_are_numbered_and_the_last_needs_no_end() {
        let lines: Vec<_> = Lines::new(&b"a\n\nb"[..])
            .map(|line| line.map(|line| (line.number, line.text.to_string())).ok().unwrap())
            .collect();
        assert_eq!(lines, [(1, "a\n".to_owned()), (2, "\n".to_owned()), (3, "b".to_owned())]);
    }

    #[test]
    fn what_is_no_text_is_named() {
        let mut lines = Lines::new(&b"a\nb\xffc\n"[..]);
        assert!(lines.next().unwrap().is_ok());
        assert_eq!(what(lines.next()), "line 2: not UTF-8 (at byte 2)");
    }

    #[test]
    fn a_line_without_end_is_given_up() {
        assert_eq!(what(Lines::new(std::io::repeat(b'a')).next()), "line 1: longer than 16 MiB");
    }

    fn now() -> Zoned {
        "2025-08-24T18:36+02:00[Europe/Berlin]".parse().unwrap()
    }

    #[test]
    fn what_tail_prints_can_be_appended_again() {
        let line = r#"{"seq":7,"role":"Assistant","content":"x","timestampUtc":"2023-05-08T13:56:20.000Z","metadata":{"a":"b"},"toolCalls":[{"id":"1","name":"f","arguments":{}}],"toolCallId":"2","threadId":"t","offsetMinutes":60}"#;
        let message = parse(line, 1, &now()).unwrap().unwrap();
        assert_eq!(
            format!(
                r#"{{"seq":7,{}"#,
                &serde_json::to_string(&message).unwrap().replacen('{', "", 1)
            ),
            line
        );
    }

    #[test]
    fn what_is_left_out_gets_a_sensible_value() {
        let message =
            parse(r#"{"role":"user","content":"x","metadata":null}"#, 1, &now()).unwrap().unwrap();
        assert_eq!(message.timestamp, now().timestamp());
        assert_eq!(message.offset_minutes, Some(120));
        assert!(parse("  ", 1, &now()).unwrap().is_none());
    }

    #[test]
    fn complaints_name_line_and_field_but_no_words() {
        for (line, part) in [
            (r#"{"role":"user","content":{"canary":1}}"#, "content"),
            (r#"{"role":"canary","content":"x"}"#, "role"),
            (r#"{"role":"user"}"#, "content"),
            (r#"{"role":"user","content":"x","timestampUtc":"canary"}"#, "timestampUtc"),
            (r#"{"role":"user","content":"x","metadata":{"a":["canary"]}}"#, "metadata"),
            (r#"{"role":"user","content":"x","contents":"canary"}"#, "contents"),
            (r#"{"role":"user","content":"\ud800 canary"}"#, "JSON"),
            (r#"["user","canary"]"#, "JSON"),
            (r#"{"role":"user","content":"canary""#, "JSON"),
        ] {
            let Err(Failure::Input { what, .. }) = parse(line, 12, &now()) else {
                panic!("{line}");
            };
            assert!(what.contains("line 12") && what.contains(part), "{what}");
            assert!(!what.contains("canary"), "{what}");
        }
    }
}
