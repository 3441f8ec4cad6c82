//! Events of the Wyoming protocol: a line of JSON, then as many bytes of JSON data and of payload as the line says.

use std::io;

use serde_json::{Map, Value, json};
use sottovoce_net::{Connection, Held, ReadError};
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
        let mut held = None;
        if data_length > 0 {
            let mut unread = (&mut *from).take(data_length);
            let length = usize::try_from(data_length).unwrap_or(usize::MAX);
            let read = connection.read(&mut unread, length).await;
            let left = unread.limit();
            let mut bytes = match read {
                Ok(bytes) => bytes,
                Err(ReadError::Busy) => {
                    // The client reads why only once it has sent all.
                    drop(skip(from, left + payload, connection).await);
                    return Err(busy());
                }
                Err(error) => return Err(io::Error::other(error)),
            };
            let Ok(Value::Object(more)) = serde_json::from_slice(&bytes) else {
                return Err(wrong("an event's data is no JSON object"));
            };
            bytes.clear();
            data.extend(more);
            held = Some(bytes);
        }
        skip(from, payload, connection).await?;
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

/// Reads so many bytes to no end, within the time that a body may take.
async fn skip(
    from: &mut (impl AsyncBufRead + Unpin),
    bytes: u64,
    connection: &Connection,
) -> io::Result<()> {
    let (mut skipped, mut nowhere) = (from.take(bytes), tokio::io::sink());
    let copied = tokio::io::copy(&mut skipped, &mut nowhere);
    let copied = tokio::time::timeout(connection.limits().body, copied).await;
    match copied.map_err(|_| wrong("an event takes too long"))?? == bytes {
        true => Ok(()),
        false => Err(io::ErrorKind::UnexpectedEof.into()),
    }
}

/// There is no room for an event now. Later there may be.
pub(crate) fn busy() -> io::Error {
    io::ErrorKind::ResourceBusy.into()
}

fn wrong(what: &'static str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use sottovoce_net::{Limits, Listener, Places, accept};
    use tokio::io::BufReader;
    use tokio::net::TcpStream;
    use tokio::sync::mpsc;
    use tokio_util::sync::CancellationToken;

    use super::*;

    #[tokio::test]
    async fn data_and_payload_that_do_not_come_end_their_connection() {
        let mut limits = Limits::default();
        limits.body = Duration::from_millis(50);
        let listener = Listener::bind("127.0.0.1:0".parse().unwrap()).await.unwrap();
        let address = listener.address();
        let (sender, mut read) = mpsc::unbounded_channel();
        let serve = move |stream, connection: Connection| {
            let sender = sender.clone();
            async move {
                let event = Event::read(&mut BufReader::new(stream), &connection).await;
                sender.send(event.map(drop).map_err(|error| error.to_string())).unwrap();
            }
        };
        let places = Places::new(limits);
        let stop = CancellationToken::new();
        tokio::spawn(async move { accept(listener, &places, serve, &stop).await });
        for header in [
            "{\"type\":\"transcript\",\"data_length\":9}\n{",
            "{\"type\":\"audio-chunk\",\"payload_length\":9}\n{",
        ] {
            let mut client = TcpStream::connect(address).await.unwrap();
            client.write_all(header.as_bytes()).await.unwrap();
            let ended = tokio::time::timeout(Duration::from_secs(5), read.recv());
            assert!(ended.await.expect("it ends").unwrap().is_err(), "{header}");
        }
    }
}
