//! Reads the data exports of ChatGPT and of Claude, and files of chat completions.

mod completion;
mod export;

use std::path::PathBuf;

use serde::Deserialize;
use serde_json::value::RawValue;
use sottovoce::Result;
use sottovoce::admin::Progress;
use sottovoce::import::RefusalReason::{self, Corrupt};
use sottovoce::import::{ImportedConversation, ImportedConversations};

use crate::claude;
use crate::export::{Item, read};
use crate::fields::json;
use crate::reader::Reader;
use crate::system::{CLAUDE, OPENAI};

/// Reads what ChatGPT, Claude and OpenAI's programs write. Files are held in memory one at a time; one over 1 GiB is refused.
///
/// **ChatGPT's data export**: the zip, the file `conversations.json`, or the folder that holds it or its numbered parts.
/// Each conversation becomes [`Scope::Named`](sottovoce::Scope::Named) with its id. Of its branches, the one that ChatGPT
/// shows is imported, or, if the export does not say which, the newest.
///
/// **Claude's data export**: the same of Claude. The branch of the last message is imported.
///
/// **Chat completions**: a file with `{"messages":[…]}`, or with one such object per line, as for fine-tuning. Each
/// object becomes [`Scope::Named`](sottovoce::Scope::Named) with the file's name without its extension, the second
/// one with `-2` after it, and so on. These messages have no times: the first gets the time of the file's last
/// change, and each further one a millisecond more.
#[derive(Debug)]
pub struct ChatExport {
    path: PathBuf,
    system: &'static str,
}

/// The fields that tell the formats apart.
#[derive(Deserialize)]
struct Fields<'a> {
    #[serde(borrow)]
    mapping: Option<&'a RawValue>,
    #[serde(borrow)]
    messages: Option<&'a RawValue>,
    #[serde(borrow)]
    chat_messages: Option<&'a RawValue>,
}

impl ChatExport {
    /// The file, or the zip or the folder of ChatGPT's export.
    pub fn openai(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into(), system: OPENAI }
    }

    /// The file, or the zip or the folder of Claude's export.
    pub fn claude(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into(), system: CLAUDE }
    }
}

impl Reader for ChatExport {
    type Output = ImportedConversations;

    fn read_blocking(self, progress: &dyn Fn(Progress)) -> Result<ImportedConversations> {
        read(&self.path, self.system, progress, conversation)
    }
}

fn conversation(item: &Item<'_>) -> Result<ImportedConversation, RefusalReason> {
    let fields: Fields<'_> = json::object(item.json, "its fields are not those of a conversation")?;
    match (fields.mapping, fields.messages) {
        _ if fields.chat_messages.is_some() => claude::read(item),
        (Some(_), _) => export::read(item),
        (None, Some(messages)) => {
            let id = match item.number {
                1 => item.stem.to_owned(),
                more => format!("{}-{more}", item.stem),
            };
            completion::read(messages, &id, &item.place, item.modified)
        }
        (None, None) => Err(Corrupt("it has neither `mapping` nor `messages` nor `chat_messages`")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::export::take;
    use jiff::Timestamp;
    use proptest::prelude::*;

    const EXPORT: &str = r#"[{"id":"a","title":"t","create_time":1.5,"current_node":"c","mapping":{"r":{"id":"r","parent":null,"message":null},"c":{"id":"c","parent":"r","message":{"id":"m","author":{"role":"user","name":null},"create_time":2.5,"content":{"content_type":"text","parts":["x",{"text":"y"}]},"metadata":{}}}}}]"#;
    const LINES: &str = r#"{"messages":[{"role":"developer","content":[{"type":"text","text":"x"}]},{"role":"assistant","content":null,"tool_calls":[{"id":"c","function":{"name":"f","arguments":"{}"}}]}]}
{"messages":[]}"#;

    fn all(bytes: &[u8]) -> Result<ImportedConversations, RefusalReason> {
        let mut found = ImportedConversations::new(OPENAI);
        let at = Timestamp::UNIX_EPOCH;
        take(bytes, "x.jsonl", at, &|_| {}, conversation, &mut found).map(|()| found)
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic(
            is_export in any::<bool>(),
            at in 0..LINES.len(),
            with in prop::collection::vec(any::<u8>(), 0..6),
        ) {
            let mut bytes = if is_export { EXPORT } else { LINES }.as_bytes().to_vec();
            bytes.splice(at..=at, with);
            let _ = all(&bytes);
            let _ = all(bytes.get(..at).unwrap());
        }
    }

    #[test]
    fn the_format_of_a_file_is_detected_from_its_contents() {
        for (text, conversations, refused) in [
            (EXPORT, 1, 0),
            (EXPORT.get(1..EXPORT.len() - 1).unwrap(), 1, 0),
            (LINES, 2, 0),
            (LINES.lines().next().unwrap(), 1, 0),
            ("[]", 0, 0),
            ("[{}, 1]", 0, 2),
            ("{\n \"messages\": []\n}", 1, 0),
            ("{\"messages\":[]}\nnonsense\n\n{\"messages\":[]}\r\n", 2, 1),
        ] {
            let found = all(text.as_bytes()).unwrap();
            assert_eq!((found.conversations.len(), found.refused.len()), (conversations, refused));
        }
        for wrong in ["", "null", "{", "[{}", "[{},", "x\ny", "{\"a\":\n1"] {
            assert!(all(wrong.as_bytes()).is_err(), "{wrong}");
        }
    }
}
