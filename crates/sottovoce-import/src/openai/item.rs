//! Splits a file into objects, each of which may be a conversation.

use serde_json::value::RawValue;
use sottovoce::import::RefusalReason;

use crate::fields::json;

/// An object that may be a conversation.
pub(super) struct Item<'a> {
    pub(super) json: &'a str,
    /// Its number in the file, from 1.
    pub(super) number: usize,
    /// Its name in reports.
    pub(super) place: String,
}

/// The elements of an array, a single object, or one object per line.
pub(super) fn items<'a>(text: &'a str, file: &str) -> Result<Vec<Item<'a>>, RefusalReason> {
    let item = |(number, json): (usize, &'a str)| {
        let place = format!("{file}#{number}");
        Item { json, number, place }
    };
    if text.trim_ascii_start().starts_with('[') {
        let all: Vec<&RawValue> = json::parse(text, "it is not a list of conversations")?;
        return Ok((1..).zip(all.into_iter().map(RawValue::get)).map(item).collect());
    }
    match json::object::<&RawValue>(text, "it is not JSON") {
        Ok(one) => Ok(vec![item((1, one.get()))]),
        Err(reason) => {
            let lines = text.split('\n').filter(|line| !line.trim_ascii().is_empty());
            let is_object = |line: &str| json::object::<&RawValue>(line, "").is_ok();
            if !lines.clone().any(is_object) {
                return Err(reason);
            }
            Ok((1..).zip(lines).map(item).collect())
        }
    }
}
