//! Parses an export in a stream, so that it need not fit into memory. The contents of artifacts are read in pieces.

use std::collections::HashSet;
use std::fmt;
use std::io::{self, Read};
use std::marker::PhantomData;
use std::path::Path;

use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde::Deserialize;
use serde::de::{
    DeserializeSeed, Deserializer, Error as _, IgnoredAny, MapAccess, SeqAccess, Visitor,
};
use serde_json::error::Category;
use zeroize::Zeroizing;

use crate::error::{Error, Result};
use crate::message::ChatMessage;
use crate::store::Artifact;
use crate::store::read::record_dump::{Body, Record};
use crate::store::record::name::RecordName;
use crate::store::record::seq_set::SeqSet;
use crate::transfer::import::backup::receive::Receiver;
use crate::transfer::import::backup::settings::Head;

/// Parses a text and passes its elements on.
pub(super) fn parse(text: impl Read, path: &Path, to: &mut Receiver) -> Result<()> {
    let mut failed = None;
    let mut json = serde_json::Deserializer::from_reader(text);
    let parsed = Reading(Export(&mut Sink { to, failed: &mut failed }))
        .deserialize(&mut json)
        .and_then(|()| json.end());
    match (failed, parsed) {
        (Some(error), _) => Err(error),
        (None, Ok(())) => Ok(()),
        (None, Err(error)) => Err(Error::NotImportable {
            path: path.into(),
            reason: match error.classify() {
                Category::Eof => "it is cut off; what came before is kept",
                Category::Syntax => "it is not JSON",
                Category::Data => "it is not an export of Sottovoce, or is one of another version",
                Category::Io if error.io_error_kind() == Some(io::ErrorKind::InvalidData) => {
                    "it was changed, or is sealed under another key"
                }
                Category::Io => "it cannot be read to its end",
            },
        }),
    }
}

/// The receiver, and its error, if any.
struct Sink<'a> {
    to: &'a mut Receiver,
    failed: &'a mut Option<Error>,
}

impl Sink<'_> {
    fn give<E: serde::de::Error>(
        &mut self,
        element: impl FnOnce(&mut Receiver) -> Result<()>,
    ) -> Result<(), E> {
        element(self.to).map_err(|error| {
            *self.failed = Some(error);
            E::custom("stopped")
        })
    }
}

/// A part of an export, which is read as it comes.
trait Part<'de>: Sized {
    fn list<S: SeqAccess<'de>>(self, _: S) -> Result<(), S::Error> {
        Err(S::Error::custom("a list where there is none"))
    }

    fn object<M: MapAccess<'de>>(self, _: M) -> Result<(), M::Error> {
        Err(M::Error::custom("an object where there is none"))
    }
}

/// Reads a part.
struct Reading<P>(P);

impl<'de, P: Part<'de>> DeserializeSeed<'de> for Reading<P> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, json: D) -> Result<(), D::Error> {
        json.deserialize_any(self)
    }
}

impl<'de, P: Part<'de>> Visitor<'de> for Reading<P> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a part of an export")
    }

    fn visit_seq<S: SeqAccess<'de>>(self, seq: S) -> Result<(), S::Error> {
        self.0.list(seq)
    }

    fn visit_map<M: MapAccess<'de>>(self, map: M) -> Result<(), M::Error> {
        self.0.object(map)
    }
}

/// The root object: `{"sottovoce":1,"conversations":[…]}`.
struct Export<'s, 'a>(&'s mut Sink<'a>);

impl<'de> Part<'de> for Export<'_, '_> {
    fn object<M: MapAccess<'de>>(self, mut map: M) -> Result<(), M::Error> {
        match map.next_entry::<String, u64>()? {
            Some((name, 1)) if name == "sottovoce" => {}
            _ => return Err(M::Error::custom("no export of this version")),
        }
        match map.next_key::<String>()?.as_deref() {
            Some("conversations") => map.next_value_seed(Reading(Conversations(self.0)))?,
            _ => return Err(M::Error::custom("no conversations")),
        }
        match map.next_key::<IgnoredAny>()? {
            None => Ok(()),
            Some(_) => Err(M::Error::custom("more than conversations")),
        }
    }
}

struct Conversations<'s, 'a>(&'s mut Sink<'a>);

impl<'de> Part<'de> for Conversations<'_, '_> {
    fn list<S: SeqAccess<'de>>(self, mut seq: S) -> Result<(), S::Error> {
        while seq.next_element_seed(Reading(Conversation(self.0)))?.is_some() {}
        Ok(())
    }
}

/// A conversation: the head, then the lists.
struct Conversation<'s, 'a>(&'s mut Sink<'a>);

impl<'de> Part<'de> for Conversation<'_, '_> {
    fn object<M: MapAccess<'de>>(self, mut map: M) -> Result<(), M::Error> {
        let Self(sink) = self;
        let (mut begun, mut needed) =
            (Some(Head::default()), HashSet::from(["scope", "lastSeq", "profile"]));
        while let Some(name) = map.next_key::<String>()? {
            if let Some(head) = &mut begun {
                needed.remove(name.as_str());
                match name.as_str() {
                    "scope" => head.scope = map.next_value()?,
                    "lastSeq" => head.last_seq = map.next_value()?,
                    "partial" => head.partial = map.next_value()?,
                    "profile" => head.profile = map.next_value()?,
                    "calibration" => {
                        head.calibration = Some(Zeroizing::new(map.next_value()?));
                    }
                    "imports" => head.imports = Some(decoded(&map.next_value::<String>()?)?),
                    "records" => {
                        let whole = begun.take().filter(|_| needed.is_empty());
                        let whole = whole.ok_or_else(|| M::Error::custom("no head"))?;
                        sink.give(|to| to.begin(whole))?;
                        let take = |to: &mut Receiver, row: Row| to.record(row.record()?);
                        map.next_value_seed(Reading(Rows { sink, take, of: PhantomData }))?;
                    }
                    _ => return Err(M::Error::custom("another field")),
                }
                continue;
            }
            match name.as_str() {
                "snapshots" => {
                    let take = |to: &mut Receiver, snapshot| to.snapshot(snapshot);
                    map.next_value_seed(Reading(Rows { sink, take, of: PhantomData }))?;
                }
                "artifacts" => map.next_value_seed(Reading(Artifacts(sink)))?,
                _ => return Err(M::Error::custom("another field")),
            }
        }
        if begun.is_some() {
            return Err(M::Error::custom("no records"));
        }
        sink.give(|to| to.end())
    }
}

/// A record: a message or a deletion.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Row {
    name: String,
    message: Option<ChatMessage>,
    erased: Option<Vec<(u64, u64)>>,
}

impl Row {
    fn record(self) -> Result<Record> {
        let wrong = || Error::InvalidMessage { reason: "a record of the export is invalid" };
        let name = RecordName::from_stem(&self.name).ok_or_else(wrong)?;
        let body = match (self.message, self.erased) {
            (Some(message), None) => Body::Message(message),
            (None, Some(ranges)) if name.is_forget() => {
                let erased: SeqSet = ranges.iter().map(|&(first, last)| first..=last).collect();
                let is_tidy = erased.ranges().map(|range| range.into_inner()).eq(ranges);
                if !is_tidy {
                    return Err(wrong());
                }
                Body::Forget(erased)
            }
            _ => return Err(wrong()),
        };
        Ok(Record { name, body })
    }
}

/// A list whose elements are passed on one by one.
struct Rows<'s, 'a, T, F> {
    sink: &'s mut Sink<'a>,
    take: F,
    of: PhantomData<T>,
}

impl<'de, T, F> Part<'de> for Rows<'_, '_, T, F>
where
    T: Deserialize<'de>,
    F: Fn(&mut Receiver, T) -> Result<()>,
{
    fn list<S: SeqAccess<'de>>(self, mut seq: S) -> Result<(), S::Error> {
        while let Some(element) = seq.next_element::<T>()? {
            self.sink.give(|to| (self.take)(to, element))?;
        }
        Ok(())
    }
}

fn decoded<E: serde::de::Error>(base64: &str) -> Result<Vec<u8>, E> {
    BASE64.decode(base64).map_err(|_| E::custom("not base64"))
}

/// The list of artifacts.
struct Artifacts<'s, 'a>(&'s mut Sink<'a>);

impl<'de> Part<'de> for Artifacts<'_, '_> {
    fn list<S: SeqAccess<'de>>(self, mut seq: S) -> Result<(), S::Error> {
        while seq.next_element_seed(Reading(OneArtifact(self.0)))?.is_some() {}
        Ok(())
    }
}

/// An artifact's description, followed by its contents.
struct OneArtifact<'s, 'a>(&'s mut Sink<'a>);

impl<'de> Part<'de> for OneArtifact<'_, '_> {
    fn object<M: MapAccess<'de>>(self, mut map: M) -> Result<(), M::Error> {
        let artifact = match map.next_entry::<String, Artifact>()? {
            Some((name, artifact)) if name == "meta" => artifact,
            _ => return Err(M::Error::custom("no meta")),
        };
        match map.next_key::<String>()?.as_deref() {
            Some("content") => map.next_value_seed(Reading(Contents { sink: self.0, artifact }))?,
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

impl<'de> Part<'de> for Contents<'_, '_> {
    fn list<S: SeqAccess<'de>>(self, seq: S) -> Result<(), S::Error> {
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
        let length = self.piece.get(self.at..).unwrap_or_default().read(into)?;
        self.at += length;
        Ok(length)
    }
}
