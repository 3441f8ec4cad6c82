//! Assembles tool calls from their pieces.

use serde::Deserialize;
use serde_json::value::RawValue;

use super::protocol::{RawCall, ReplyItem, Said};
use super::words::Words;

/// A piece of a call. A whole answer has each call in one piece.
#[derive(Deserialize)]
pub(super) struct CallFragment {
    index: Option<usize>,
    id: Option<String>,
    function: Option<Function>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Function {
    name: Option<String>,
    /// JSON in a string, or JSON itself from some servers.
    arguments: Option<Box<RawValue>>,
}

/// The calls so far, in the order in which they began.
#[derive(Default)]
pub(super) struct Calls(Vec<(Option<usize>, RawCall)>);

impl Calls {
    /// Adds a piece to its call. Returns the size of the piece in bytes.
    pub(super) fn add(&mut self, piece: CallFragment, said: &mut Said) -> Result<(), &'static str> {
        let CallFragment { index, id, function } = piece;
        let (id, function) = (id.unwrap_or_default(), function.unwrap_or_default());
        let name = function.name.unwrap_or_default();
        let arguments = function.arguments.map(text).transpose()?.unwrap_or_default();
        let bytes = id.len() + name.len() + arguments.len();
        if let Some(call) = self.begun(index, &id, !name.is_empty()) {
            if call.name.is_empty() {
                call.name = name;
            }
            if call.id.is_empty() {
                call.id = id;
            }
            call.arguments.push_str(&arguments);
            said.add(ReplyItem::Arguments(bytes));
        } else {
            self.0.push((index, RawCall { id, name, arguments }));
            said.add(ReplyItem::Call(bytes));
        }
        Ok(())
    }

    /// The call that a piece continues. Some servers number the calls, some give ids, some do neither, and some
    /// number all of them 0.
    fn begun(&mut self, index: Option<usize>, id: &str, is_named: bool) -> Option<&mut RawCall> {
        let at = self.0.iter().rposition(|(known, call)| match index {
            Some(_) => *known == index,
            None if !id.is_empty() => call.id == id,
            None => true,
        })?;
        let (_, call) = self.0.get_mut(at)?;
        let other_id = !id.is_empty() && !call.id.is_empty() && call.id != id;
        let other_name = is_named && index.is_none() && id.is_empty();
        (!other_id && !other_name).then_some(call)
    }

    /// Takes all calls, which are complete.
    pub(super) fn take(&mut self) -> Vec<RawCall> {
        let calls = std::mem::take(&mut self.0).into_iter().map(|(_, mut call)| {
            if call.arguments.trim().is_empty() {
                call.arguments = "{}".to_owned();
            }
            call
        });
        calls.collect()
    }
}

fn text(arguments: Box<RawValue>) -> Result<String, &'static str> {
    match arguments.get().as_bytes() {
        [b'"', ..] => serde_json::from_str::<Words>(arguments.get())
            .map(|words| words.text())
            .map_err(|_| "the arguments of a call are not text"),
        b"null" => Ok(String::new()),
        _ => Ok(Box::<str>::from(arguments).into()),
    }
}
