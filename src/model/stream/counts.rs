//! Counts and times of a server's JSON. One in another form than usual is passed over: no answer is lost for it.

use serde::{Deserialize, Deserializer};
use serde_json::Value;

pub(super) fn whole<'de, D: Deserializer<'de>>(json: D) -> Result<Option<u64>, D::Error> {
    Ok(Value::deserialize(json)?.as_u64())
}

pub(super) fn number<'de, D: Deserializer<'de>>(json: D) -> Result<Option<f64>, D::Error> {
    Ok(Value::deserialize(json)?.as_f64())
}
