//! Parses the artifacts of an export. Their contents are read in pieces.

use std::fmt;
use std::io::{self, Read};
use std::marker::PhantomData;

use serde::de::{
    DeserializeSeed, Deserializer, Error as _, IgnoredAny, MapAccess, SeqAccess, Visitor,
};
use zeroize::Zeroizing;

use crate::store::Artifact;
use crate::transfer::import::backup::parse::{Sink, decoded};

/// The list of artifacts.
pub(super) struct Artifacts<'s, 'a>(pub(super) &'s mut Sink<'a>);

impl<'de> DeserializeSeed<'de> for Artifacts<'_, '_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, json: D) -> Result<(), D::Error> {
        json.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for Artifacts<'_, '_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("artifacts")
    }

    fn visit_seq<S: SeqAccess<'de>>(self, mut seq: S) -> Result<(), S::Error> {
        while seq.next_element_seed(OneArtifact(self.0))?.is_some() {}
        Ok(())
    }
}

/// An artifact's description, followed by its contents.
struct OneArtifact<'s, 'a>(&'s mut Sink<'a>);

impl<'de> DeserializeSeed<'de> for OneArtifact<'_, '_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, json: D) -> Result<(), D::Error> {
        json.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for OneArtifact<'_, '_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an artifact")
    }

    fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<(), M::Error> {
        let artifact = match map.next_entry::<String, Artifact>()? {
            Some((name, artifact)) if name == "meta" => artifact,
            _ => return Err(M::Error::custom("no meta")),
        };
        match map.next_key::<String>()?.as_deref() {
            Some("content") => map.next_value_seed(Contents { sink: self.0, artifact })?,
            _ => return Err(M::Error::custom("no content")),
        }
        match map.next_key::<IgnoredAny>()? {
            None => Ok(()),
            Some(_) => Err(M::Error::custom("more than an artifact")),
        }
    }
}

/// The contents of an artifact.
struct Contents<'s, 'a> {
    sink: &'s mut Sink<'a>,
    artifact: Artifact,
}

impl<'de> DeserializeSeed<'de> for Contents<'_, '_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, json: D) -> Result<(), D::Error> {
        json.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for Contents<'_, '_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("pieces of base64")
    }

    fn visit_seq<S: SeqAccess<'de>>(self, seq: S) -> Result<(), S::Error> {
        let Self { sink, artifact } = self;
        let mut pieces =
            Pieces { seq, piece: Zeroizing::default(), at: 0, failed: None, of: PhantomData };
        let given = sink.give(|to| to.artifact(artifact, &mut pieces));
        if let Some(error) = pieces.failed.take() {
            *sink.failed = None;
            return Err(error);
        }
        given?;
        // The receiver may not have read all.
        while pieces.seq.next_element::<IgnoredAny>()?.is_some() {}
        Ok(())
    }
}

struct Pieces<'de, S: SeqAccess<'de>> {
    seq: S,
    piece: Zeroizing<Vec<u8>>,
    at: usize,
    failed: Option<S::Error>,
    of: PhantomData<&'de ()>,
}

impl<'de, S: SeqAccess<'de>> Read for Pieces<'de, S> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        while self.at >= self.piece.len() {
            let next = self
                .seq
                .next_element::<String>()
                .and_then(|next| next.map(Zeroizing::new).map(|text| decoded(&text)).transpose());
            match next {
                Ok(None) => return Ok(0),
                Ok(Some(piece)) => (self.piece, self.at) = (Zeroizing::new(piece), 0),
                Err(error) => {
                    self.failed = Some(error);
                    return Err(io::ErrorKind::InvalidData.into());
                }
            }
        }
        let rest = self.piece.get(self.at..).unwrap_or_default();
        let length = rest.len().min(into.len());
        if let (Some(into), Some(rest)) = (into.get_mut(..length), rest.get(..length)) {
            into.copy_from_slice(rest);
        }
        self.at += length;
        Ok(length)
    }
}
