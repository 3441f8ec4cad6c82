//! Messages that keep less than the protocol's letter: they hold half a character, write arguments as a text of JSON, come
//! several at once, as revision 2025-03-26 has it, or lack something that their method needs.

use rmcp::ErrorData;
use rmcp::model::{
    CallToolRequestParams, CompleteRequestParams, ErrorCode, GetPromptRequestParams,
    InitializeRequestParams, ReadResourceRequestParams, RequestId, ServerJsonRpcMessage,
};
use serde::de::DeserializeOwned;
use serde_json::Value;
use serde_json::value::RawValue;
use sottovoce_net::replace_lone_surrogates;

/// Where a request names its revision.
const REVISION: &str = "/_meta/io.modelcontextprotocol~1protocolVersion";

/// The most requests of a batch.
const MOST: usize = 100;

/// The messages of a batch; none of what is none. `None` for a batch that is too long.
pub(super) fn batch(body: &[u8]) -> Option<Vec<Vec<u8>>> {
    let each: Vec<&RawValue> = serde_json::from_slice(body).unwrap_or_default();
    (each.len() <= MOST).then(|| each.iter().map(|one| one.get().into()).collect())
}

/// The request with the arguments that a text says.
pub(super) fn with_arguments(body: Vec<u8>) -> Vec<u8> {
    let Ok(mut request) = serde_json::from_slice::<Value>(&body) else { return body };
    let Some(arguments) = request.pointer_mut("/params/arguments") else { return body };
    let Value::String(said) = arguments else { return body };
    let mut said = std::mem::take(said).into_bytes();
    replace_lone_surrogates(&mut said);
    let Ok(said @ Value::Object(_)) = serde_json::from_slice(&said) else { return body };
    *arguments = said;
    serde_json::to_vec(&request).unwrap_or(body)
}

/// The answer to a request that lacks something, or has it in another form. The protocol's library would take it for a
/// request of a method that nobody knows.
pub(super) fn incomplete(body: &[u8]) -> Option<ServerJsonRpcMessage> {
    let request: Value = serde_json::from_slice(body).ok()?;
    let method = request.get("method")?.as_str()?;
    let params = request.get("params").unwrap_or(&Value::Null);
    let wrong = match method {
        // Revisions that name themselves in each request have no handshake.
        "initialize" if params.pointer(REVISION).is_none() => {
            wrong::<InitializeRequestParams>(params)
        }
        "tools/call" => wrong::<CallToolRequestParams>(params),
        "prompts/get" => wrong::<GetPromptRequestParams>(params),
        "resources/read" => wrong::<ReadResourceRequestParams>(params),
        "completion/complete" => wrong::<CompleteRequestParams>(params),
        _ => None,
    }?;
    refusal(body, ErrorCode::INVALID_PARAMS, format!("the params of {method}: {wrong}"))
}

fn wrong<T: DeserializeOwned>(params: &Value) -> Option<serde_json::Error> {
    T::deserialize(params).err()
}

/// The answer to a request that is not carried out; `None` for what has no id.
pub(super) fn refusal(
    request: &[u8],
    code: ErrorCode,
    why: impl Into<String>,
) -> Option<ServerJsonRpcMessage> {
    let request: Value = serde_json::from_slice(request).ok()?;
    let id = serde_json::from_value::<RequestId>(request.get("id")?.clone()).ok()?;
    Some(ServerJsonRpcMessage::error(ErrorData::new(code, why.into(), None), Some(id)))
}
