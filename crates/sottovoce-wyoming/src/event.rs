//! Events of the Wyoming protocol: a line of JSON, then as many bytes of JSON data and of payload as the line says.

use std::io;

use serde_json::{Map, Value, json};
use sottovoce_net::{Connection, Held};
use tokio::io::{AsyncBufRead, AsyncBufReadExt, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use zeroize::Zeroizing;

/// Bytes of the first line.
const LONGEST_LINE: u64 = 64 << 10;
/// Bytes of an event's data. A transcript of a megabyte fits, with all its letters escaped.
const LONGEST_DATA: u64 = 8 << 20;
/// Bytes of an event's payload, which is skipped.
const LONGEST_PAYLOAD: u64 = 64 << 20;

/// An event. `Debug` is not implemented, because data holds words.
pub(crate) struct Event {
    pub(crate) kind: String,
    pub(crate) data: Map<String, Value>,
    /// Memory for what was read, until the event is handled.
    _held: Option<Held>,
}

impl Event {
    pub(crate) fn new(kind: &str, data: Value) -> Self {
        let data = match data {
            Value::Object(data) => data,
            _ => Map::new(),
        };
        Self { kind: kind.to_owned(), data, _held: None }
    }

    /// The text with this name; empty if there is none.
    pub(crate) fn text(&self, name: &str) -> &str {
        self.data.get(name).and_then(Value::as_str).unwrap_or_default()
    }

    /// Reads the next event; `None` at the end.
    ///
    /// # Errors
    /// What cannot be read, is no event, or is too long.
    pub(crate) async fn read(
        from: &mut (impl AsyncBufRead + Unpin),
        connection: &Connection,
    ) -> io::Result<Option<Self>> {
        let mut line = Zeroizing::new(Vec::new());
        if (&mut *from).take(LONGEST_LINE).read_until(b'\n', &mut line).await? == 0 {
            return Ok(None);
        }
        if line.last() != Some(&b'\n') {
            return Err(wrong("a line is too long, or cut off"));
        }
        let Ok(Value::Object(mut header)) = serde_json::from_slice(&line) else {
            return Err(wrong("a line is no JSON object"));
        };
        let Some(Value::String(kind)) = header.remove("type") else {
            return Err(wrong("an event has no type"));
        };
        let mut data = match header.remove("data") {
            Some(Value::Object(data)) => data,
            _ => Map::new(),
        };
        let length = |name: &str| header.get(name).and_then(Value::as_u64).unwrap_or(0);
        let (data_length, payload) = (length("data_length"), length("payload_length"));
        if data_length > LONGEST_DATA || payload > LONGEST_PAYLOAD {
            return Err(wrong("an event is too long"));
        }
        let length = usize::try_from(data_length).unwrap_or(usize::MAX);
        let held = Some(connection.take(length).map_err(io::Error::other)?);
        if data_length > 0 {
            let mut bytes = Zeroizing::new(Vec::new());
            let read = (&mut *from).take(data_length);
            let mut read = std::pin::pin!(read);
            let read = tokio::time::timeout(connection.limits().body, read.read_to_end(&mut bytes));
            read.await.map_err(|_| wrong("an event takes too long"))??;
            if bytes.len() as u64 != data_length {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            let Ok(Value::Object(more)) = serde_json::from_slice(&bytes) else {
                return Err(wrong("an event's data is no JSON object"));
            };
            data.extend(more);
        }
        let mut skipped = (&mut *from).take(payload);
        if tokio::io::copy(&mut skipped, &mut tokio::io::sink()).await? != payload {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        Ok(Some(Self { kind, data, _held: held }))
    }

    /// Writes the event.
    ///
    /// # Errors
    /// What keeps it from being written.
    pub(crate) async fn write(&self, to: &mut (impl AsyncWrite + Unpin)) -> io::Result<()> {
        let data = Zeroizing::new(serde_json::to_vec(&self.data)?);
        let header = json!({
            "type": self.kind,
            "version": env!("CARGO_PKG_VERSION"),
            "data_length": data.len(),
        });
        let mut bytes = Zeroizing::new(Vec::with_capacity(data.len() + 256));
        bytes.extend_from_slice(header.to_string().as_bytes());
        bytes.push(b'\n');
        bytes.extend_from_slice(&data);
        to.write_all(&bytes).await?;
        to.flush().await
    }
}

fn wrong(what: &'static str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}
