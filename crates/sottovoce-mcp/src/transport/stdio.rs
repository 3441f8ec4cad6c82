//! Standard input and output, for the client that started the process.

use rmcp::service::{QuitReason, ServerInitializeError};
use rmcp::transport::stdio_pipes;
use rmcp::{ServerHandler, ServiceExt};
use tokio_util::sync::CancellationToken;

pub use super::TransportError;
use super::end_of_input::EndOfInput;

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
    let input = EndOfInput { input, ended };
    let running = match server.serve_with_ct((input, output), stop).await {
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
