//! What a forget record says.

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::error::{Error, Result};
use crate::store::record::encoding::{LONGEST_RECORD, object};
use crate::store::record::seq_set::SeqSet;

/// The numbers that are forgotten, and why. Once this record is durable, the messages are gone; whoever takes the lock
/// next finishes what is left to do.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ForgetRecord {
    /// All forgotten numbers, those of earlier records included.
    #[serde(with = "ranges")]
    pub(crate) erased: SeqSet,
    /// The numbers that somebody wanted forgotten when this record was written. Limits removed the others.
    #[serde(default, with = "ranges", skip_serializing_if = "SeqSet::is_empty")]
    pub(crate) wanted: SeqSet,
}

impl ForgetRecord {
    /// Parses a record. `None` unless the ranges are in their canonical form.
    pub(crate) fn parse(json: &[u8]) -> Option<Self> {
        object(json)
    }

    /// The record's plaintext.
    ///
    /// # Errors
    /// If the numbers have more separate ranges than fit a record.
    pub(crate) fn to_plaintext(&self) -> Result<Vec<u8>> {
        let reason = "too many separate ranges for one forget record";
        let json = serde_json::to_vec(self).ok().filter(|json| json.len() <= LONGEST_RECORD);
        json.ok_or(Error::InvalidMessage { reason })
    }
}

/// Writes a set as its ranges.
mod ranges {
    use super::{Deserialize, Deserializer, SeqSet, Serialize, Serializer};

    pub(super) fn serialize<S: Serializer>(seqs: &SeqSet, to: S) -> Result<S::Ok, S::Error> {
        seqs.ranges().map(|range| range.into_inner()).collect::<Vec<_>>().serialize(to)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<SeqSet, D::Error> {
        SeqSet::try_from(Vec::deserialize(from)?).map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_says_what_was_wanted_and_untidy_ranges_are_refused() {
        let [erased, wanted] = [1..=9, 3..=4].map(|range| std::iter::once(range).collect());
        let record = ForgetRecord { erased, wanted };
        let json = record.to_plaintext().unwrap();
        assert_eq!(json, br#"{"erased":[[1,9]],"wanted":[[3,4]]}"#);
        assert_eq!(ForgetRecord::parse(&json), Some(record));
        let older = ForgetRecord::parse(br#"{"erased":[[1,7],[9,9]]}"#).unwrap();
        assert_eq!((older.erased.count(), older.wanted.count()), (8, 0));
        assert_eq!(older.to_plaintext().unwrap(), br#"{"erased":[[1,7],[9,9]]}"#);
        for wrong in [
            r#"{"erased":[[7,1]]}"#,
            r#"{"erased":[[9,9],[1,7]]}"#,
            r#"{"erased":[[1,7],[7,9]]}"#,
            r#"{"erased":[[1,7],[8,9]]}"#,
            r#"{"erased":[[0,7]]}"#,
            r#"{"erased":[[1,7]],"also":1}"#,
            r#"{"erased":[[1,7]],"wanted":[[2,1]]}"#,
            r#"{"wanted":[[1,7]]}"#,
            r#"[[1,7]]"#,
            r#"[[[1,7]]]"#,
        ] {
            assert!(ForgetRecord::parse(wrong.as_bytes()).is_none(), "{wrong}");
        }
    }
}
