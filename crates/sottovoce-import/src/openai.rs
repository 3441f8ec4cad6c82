//! Reads ChatGPT's data export, and files of chat completions.

mod completion;
mod export;
mod item;
mod location;
mod words;

use std::path::PathBuf;

use jiff::Timestamp;
use serde::Deserialize;
use serde_json::value::RawValue;
use sottovoce::admin::Progress;
use sottovoce::import::RefusalReason::{self, Corrupt, NotPlain};
use sottovoce::import::{ImportedConversation, ImportedConversations, Refusal};
use sottovoce::{Error, Result};
use zeroize::Zeroizing;

use self::item::{Item, items};
use crate::fields::json;
use crate::reader::{Reader, each};
use crate::system::OPENAI;
use location::Location;

/// Reads what OpenAI's programs write. Files are held in memory one at a time; one over 1 GiB is refused.
///
/// **ChatGPT's data export**: the file `conversations.json`, or the folder that holds it or its numbered parts. Each
/// conversation becomes [`Scope::Named`](sottovoce::Scope::Named) with its id. Of its branches, the one that ChatGPT
/// shows is imported.
///
/// **Chat completions**: a file with `{"messages":[…]}`, or with one such object per line, as for fine-tuning. Each
/// object becomes [`Scope::Named`](sottovoce::Scope::Named) with the file's name without its extension, the second
/// one with `-2` after it, and so on. These messages have no times: the first gets the time of the file's last
/// change, and each further one a millisecond more.
#[derive(Debug)]
pub struct OpenAiExport {
    path: PathBuf,
}

/// The fields that tell the two formats apart.
#[derive(Deserialize)]
struct Fields<'a> {
    #[serde(borrow)]
    mapping: Option<&'a RawValue>,
    #[serde(borrow)]
    messages: Option<&'a RawValue>,
}

impl OpenAiExport {
    /// The file, or the folder of an export.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into() }
    }
}

impl Reader for OpenAiExport {
    type Output = ImportedConversations;

    fn read_blocking(self, progress: &dyn Fn(Progress)) -> Result<ImportedConversations> {
        let place = Location::of(&self.path)?;
        let mut found = ImportedConversations::new(OPENAI);
        for file in &place.files {
            let read = place.read(file)?.and_then(|(bytes, modified)| {
                self::file(&bytes, file, modified, progress, &mut found)
            });
            match read {
                Ok(()) => {}
                Err(Corrupt(reason) | NotPlain(reason)) if place.files.len() == 1 => {
                    return Err(Error::NotImportable { path: self.path.clone(), reason });
                }
                Err(reason) => found.refused.push(Refusal::new(file, reason)),
            }
        }
        Ok(found.sorted())
    }
}

/// Reads a file of either format.
fn file(
    bytes: &Zeroizing<Vec<u8>>,
    file: &str,
    modified: Timestamp,
    progress: &dyn Fn(Progress),
    found: &mut ImportedConversations,
) -> Result<(), RefusalReason> {
    let items = items(json::text(bytes)?, file)?;
    let stem = file.rsplit_once('.').map_or(file, |(stem, _)| stem);
    each(&items, progress, |item| {
        match conversation(item, stem, modified) {
            Ok(conversation) => found.conversations.push(conversation),
            Err(reason) => found.refused.push(Refusal::new(&item.place, reason)),
        }
        Ok(())
    })
}

fn conversation(
    item: &Item<'_>,
    stem: &str,
    modified: Timestamp,
) -> Result<ImportedConversation, RefusalReason> {
    let fields: Fields<'_> = json::object(item.json, "its fields are not those of a conversation")?;
    match (fields.mapping, fields.messages) {
        (Some(_), _) => export::read(item),
        (None, Some(messages)) => {
            let id = match item.number {
                1 => stem.to_owned(),
                more => format!("{stem}-{more}"),
            };
            completion::read(messages, &id, &item.place, modified)
        }
        (None, None) => Err(Corrupt("it has neither `mapping` nor `messages`")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const EXPORT: &str = r#"[{"id":"a","title":"t","create_time":1.5,"current_node":"c","mapping":{"r":{"id":"r","parent":null,"message":null},"c":{"id":"c","parent":"r","message":{"id":"m","author":{"role":"user","name":null},"create_time":2.5,"content":{"content_type":"text","parts":["x",{"text":"y"}]},"metadata":{}}}}}]"#;
    const LINES: &str = r#"{"messages":[{"role":"developer","content":[{"type":"text","text":"x"}]},{"role":"assistant","content":null,"tool_calls":[{"id":"c","function":{"name":"f","arguments":"{}"}}]}]}
{"messages":[]}"#;

    fn all(bytes: &[u8]) -> Result<ImportedConversations, RefusalReason> {
        let mut found = ImportedConversations::new(OPENAI);
        let bytes = Zeroizing::new(bytes.to_vec());
        file(&bytes, "x.jsonl", Timestamp::UNIX_EPOCH, &|_| {}, &mut found).map(|()| found)
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
