//! Standard input and output, for the client that started the process.

use std::collections::VecDeque;
use std::io;
use std::pin::Pin;

use futures_util::StreamExt;
use rmcp::model::{ClientJsonRpcMessage, ErrorCode, ServerJsonRpcMessage};
use rmcp::service::{QuitReason, ServerInitializeError};
use rmcp::transport::async_rw::{AsyncRwTransport, DEFAULT_MAX_LINE_LENGTH};
use rmcp::transport::{Transport, stdio_pipes};
use rmcp::{RoleServer, ServerHandler, ServiceExt};
use sottovoce_net::replace_lone_surrogates;
use tokio::io::{AsyncRead, AsyncWrite, Empty, empty};
use tokio_util::codec::{AnyDelimiterCodec, AnyDelimiterCodecError, FramedRead};
use tokio_util::sync::CancellationToken;

pub use super::TransportError;
use super::lenient::{batch, incomplete, refusal, with_arguments};

/// Serves until the client closes its end, or `stop` is cancelled. The end of the input cancels `ended`, so that
/// nothing waits for the client.
///
/// # Errors
/// [`TransportError::Protocol`] for a client whose first message violates the protocol.
pub async fn serve<S: ServerHandler>(
    server: S,
    stop: CancellationToken,
    ended: CancellationToken,
) -> Result<(), TransportError> {
    let (input, output) = stdio_pipes();
    let running = match server.serve_with_ct(Lines::new(input, output, ended), stop).await {
        Ok(running) => running,
        // The client asked nothing that needs an answer.
        Err(ServerInitializeError::ConnectionClosed(_) | ServerInitializeError::Cancelled) => {
            return Ok(());
        }
        // The error may quote what the client sent.
        Err(_) => {
            return Err(TransportError::Protocol("its first message is not a request".to_owned()));
        }
    };
    match running.waiting().await {
        Ok(QuitReason::Closed | QuitReason::Cancelled) => Ok(()),
        Ok(_) | Err(_) => Err(TransportError::Protocol("the connection broke".to_owned())),
    }
}

type Sending = Pin<Box<dyn Future<Output = io::Result<()>> + Send>>;

/// Messages by line. Those that the protocol's library would pass over get an answer here.
struct Lines<R, W: AsyncWrite> {
    input: FramedRead<R, AnyDelimiterCodec>,
    /// What was read and not yet taken.
    waiting: VecDeque<Vec<u8>>,
    output: AsyncRwTransport<RoleServer, Empty, W>,
    /// An answer on its way out, which goes on if `receive` is dropped.
    refusing: Option<Sending>,
    ended: CancellationToken,
}

impl<R: AsyncRead, W: AsyncWrite + Unpin + Send + 'static> Lines<R, W> {
    fn new(input: R, output: W, ended: CancellationToken) -> Self {
        let by_line = AnyDelimiterCodec::new_with_max_length(
            b"\n".into(),
            b"\n".into(),
            DEFAULT_MAX_LINE_LENGTH,
        );
        Self {
            input: FramedRead::new(input, by_line),
            waiting: VecDeque::new(),
            output: AsyncRwTransport::new(empty(), output),
            refusing: None,
            ended,
        }
    }
}

impl<R, W> Transport<RoleServer> for Lines<R, W>
where
    R: AsyncRead + Unpin + Send,
    W: AsyncWrite + Unpin + Send + 'static,
{
    type Error = io::Error;

    fn send(
        &mut self,
        answer: ServerJsonRpcMessage,
    ) -> impl Future<Output = io::Result<()>> + Send + 'static {
        self.output.send(answer)
    }

    async fn receive(&mut self) -> Option<ClientJsonRpcMessage> {
        loop {
            if let Some(refusing) = &mut self.refusing {
                let sent = refusing.await;
                self.refusing = None;
                if sent.is_err() {
                    self.ended.cancel();
                    return None;
                }
            }
            if let Some(message) = self.waiting.pop_front() {
                match read(message) {
                    Ok(message) => return Some(message),
                    Err(Some(refused)) => {
                        self.refusing = Some(Box::pin(self.output.send(*refused)))
                    }
                    Err(None) => {}
                }
                continue;
            }
            match self.input.next().await {
                Some(Ok(line)) => {
                    let mut line = line.to_vec();
                    replace_lone_surrogates(&mut line);
                    self.waiting = match batch(&line) {
                        Some(batch) if batch.is_empty() => [line].into(),
                        Some(batch) => batch.into(),
                        None => {
                            tracing::warn!("passed over a batch of more than 100 requests");
                            VecDeque::new()
                        }
                    };
                }
                // The stream pauses once after a line that is too long.
                Some(Err(AnyDelimiterCodecError::MaxChunkLengthExceeded)) => {
                    drop(self.input.next().await);
                }
                Some(Err(AnyDelimiterCodecError::Io(_))) | None => {
                    self.ended.cancel();
                    return None;
                }
            }
        }
    }

    async fn close(&mut self) -> io::Result<()> {
        self.output.close().await
    }
}

/// Reads a message, or the answer to one that is none. What has no id gets no answer: the client may send it back.
fn read(message: Vec<u8>) -> Result<ClientJsonRpcMessage, Option<Box<ServerJsonRpcMessage>>> {
    let message = with_arguments(message);
    if let Some(refused) = incomplete(&message) {
        return Err(Some(Box::new(refused)));
    }
    serde_json::from_slice(&message).map_err(|_| {
        refusal(&message, ErrorCode::INVALID_REQUEST, "this is no message of JSON-RPC 2.0")
            .map(Box::new)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use rmcp::model::ClientRequest;

    /// What is read and what is answered.
    async fn heard(lines: &[u8]) -> (Vec<ClientJsonRpcMessage>, String) {
        let (output, mut answers) = tokio::io::duplex(1 << 16);
        let ended = CancellationToken::new();
        let mut client = Lines::new(lines, output, ended.clone());
        let mut read = Vec::new();
        while let Some(message) = client.receive().await {
            read.push(message);
        }
        assert!(ended.is_cancelled());
        drop(client);
        let mut said = String::new();
        tokio::io::AsyncReadExt::read_to_string(&mut answers, &mut said).await.unwrap();
        (read, said)
    }

    #[tokio::test]
    async fn a_handshake_that_lacks_something_is_told_what_and_may_be_tried_again() {
        let lines = br#"{"jsonrpc":"2.0","id":"a","method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{}}}
{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"n","version":"1"}}}
"#;
        let (read, said) = heard(lines).await;
        assert_eq!(read.len(), 1);
        assert!(
            said.contains(r#""id":"a""#) && said.contains("missing field `clientInfo`"),
            "{said}"
        );
    }

    #[tokio::test]
    async fn half_a_character_a_batch_and_arguments_as_a_text_are_read() {
        let call = r#"{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"recall","arguments":"{\"text\":\"Rex \\ud83d\"}"}}"#;
        let plain = r#"{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"recall","arguments":{"text":"Rex \ud83d"}}}"#;
        let (read, said) = heard(format!("[{call},{plain}]\n{plain}").as_bytes()).await;
        assert_eq!((read.len(), &*said), (3, ""));
        for message in read {
            let ClientJsonRpcMessage::Request(request) = message else { panic!() };
            let ClientRequest::CallToolRequest(call) = request.request else { panic!() };
            let arguments = call.params.arguments.unwrap();
            assert_eq!(arguments["text"], "Rex \u{fffd}");
        }
    }

    #[tokio::test]
    async fn what_is_no_message_is_answered_by_its_id_and_what_is_no_json_is_passed_over() {
        let long = "x".repeat(DEFAULT_MAX_LINE_LENGTH + 10);
        let ping = r#"{"jsonrpc":"2.0","id":9,"method":"ping"}"#;
        let lines = format!("nonsense\n{long}\n{{\"id\":7,\"method\":\"ping\"}}\r\n{ping}\r\n");
        let (read, said) = heard(lines.as_bytes()).await;
        assert_eq!(read.len(), 1);
        assert!(said.contains(r#""id":7"#) && said.lines().count() == 1, "{said}");
    }
}
