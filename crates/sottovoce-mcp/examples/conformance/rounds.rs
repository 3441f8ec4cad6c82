//! Asks the client: during the call after a handshake, otherwise in rounds, in which the client calls again with the
//! answers.

use std::time::Duration;

use rmcp::ErrorData;
use rmcp::model::{
    CallToolResponse, CallToolResult, ClientCapabilities, ContentBlock, InputRequest,
    InputRequests, InputRequiredResult, InputResponses, ServerRequest,
};
use rmcp::service::PeerRequestOptions;
use serde_json::Value;

use super::{Context, Shared, forms};

const PATIENCE: Duration = Duration::from_secs(20);

pub(super) enum Asked {
    Answered(Value),
    Round(InputRequiredResult),
}

/// What a client sends when it calls again.
pub(super) struct Brought<'a> {
    pub(super) responses: Option<&'a InputResponses>,
    pub(super) state: Option<&'a str>,
}

impl Brought<'_> {
    /// The response of that name, if it is valid. A client may send anything.
    fn response(&self, key: &str) -> Option<&Value> {
        self.responses?.get(key).filter(|response| response.is_object())
    }
}

/// Whether the client speaks the revision without a handshake.
pub(super) fn is_modern(context: &Context) -> bool {
    context.protocol_version().is_some_and(|version| !version.has_initialize())
}

pub(super) fn capabilities(context: &Context) -> ClientCapabilities {
    context.client_capabilities().unwrap_or_default()
}

/// Asks one thing in the client's revision.
pub(super) async fn ask(
    context: &Context,
    responses: Option<&InputResponses>,
    key: &str,
    wanted: Value,
) -> Result<Asked, ErrorData> {
    if is_modern(context) {
        let brought = Brought { responses, state: None };
        return Ok(match brought.response(key) {
            Some(response) => Asked::Answered(response.clone()),
            None => Asked::Round(round([(key, wanted)], None)),
        });
    }
    let failed = |reason: String| ErrorData::internal_error(reason, None);
    let request = match serde_json::from_value(wanted).map_err(|e| failed(e.to_string()))? {
        InputRequest::CreateMessage(request) => ServerRequest::CreateMessageRequest(request),
        InputRequest::Elicitation(request) => ServerRequest::ElicitRequest(request),
        InputRequest::ListRoots(request) => ServerRequest::ListRootsRequest(request),
        _ => return Err(failed("nobody can be asked that".to_owned())),
    };
    let patience = PeerRequestOptions::with_timeout(PATIENCE);
    let handle = context.peer.send_request_with_option(request, patience).await;
    let handle = handle.map_err(|error| failed(error.to_string()))?;
    let answer = handle.await_response().await.map_err(|error| failed(error.to_string()))?;
    serde_json::to_value(answer).map(Asked::Answered).map_err(|error| failed(error.to_string()))
}

/// A round that asks the client for these things.
fn round<const N: usize>(wanted: [(&str, Value); N], state: Option<String>) -> InputRequiredResult {
    let requests: InputRequests = wanted
        .into_iter()
        .map(|(key, wanted)| {
            let request = serde_json::from_value(wanted).expect("a request of the protocol");
            (key.to_owned(), request)
        })
        .collect();
    InputRequiredResult::new(Some(requests), state)
}

/// The tools that take several rounds.
pub(super) fn call(
    shared: &Shared,
    name: &str,
    brought: &Brought<'_>,
    context: &Context,
) -> Result<CallToolResponse, ErrorData> {
    let said = |text: String| CallToolResult::success(vec![ContentBlock::text(text)]).into();
    let name_form = || forms::words(&["name"]);
    let state = open(shared, brought.state)?;
    let sealed = |state: &str| Some(shared.codec.seal(state.as_bytes()));
    Ok(match name {
        "request_state" | "tampered_state" => {
            match (state.as_deref(), brought.response("confirm")) {
                (Some("confirmed?"), Some(_)) => said("state-ok".to_owned()),
                _ => {
                    let wanted = forms::wanted("Please confirm", forms::tick("ok"));
                    round([("confirm", wanted)], sealed("confirmed?")).into()
                }
            }
        }
        "multiple_inputs" => {
            let keys = ["user_name", "greeting", "client_roots"];
            match keys.iter().all(|key| brought.response(key).is_some()) {
                true => said("all three came".to_owned()),
                false => {
                    let wanted = [
                        ("user_name", forms::wanted("What is your name?", name_form())),
                        ("greeting", forms::question("Generate a greeting", 50)),
                        ("client_roots", forms::folders()),
                    ];
                    round(wanted, sealed("three")).into()
                }
            }
        }
        "multi_round" => {
            let (first, second) = (brought.response("step1"), brought.response("step2"));
            match (state.as_deref(), first, second) {
                (Some("second"), _, Some(_)) => said("both rounds are over".to_owned()),
                (Some("first"), Some(_), _) => {
                    let form = forms::words(&["color"]);
                    let wanted = forms::wanted("Step 2: What is your favorite color?", form);
                    round([("step2", wanted)], sealed("second")).into()
                }
                _ => {
                    let wanted = forms::wanted("Step 1: What is your name?", name_form());
                    round([("step1", wanted)], sealed("first")).into()
                }
            }
        }
        // Only what the client supports.
        "capabilities" if brought.responses.is_some() => said("it was asked".to_owned()),
        "capabilities" if capabilities(context).sampling.is_some() => {
            round([("question", forms::question("Hello?", 50))], None).into()
        }
        "capabilities" if capabilities(context).elicitation.is_some() => {
            round([("form", forms::wanted("Hello?", name_form()))], None).into()
        }
        "capabilities" => said("nothing can be asked of this client".to_owned()),
        _ => return Err(ErrorData::invalid_params("there is no such tool", None)),
    })
}

/// The state of the last round. Its signature proves that this server wrote it.
fn open(shared: &Shared, state: Option<&str>) -> Result<Option<String>, ErrorData> {
    let Some(state) = state else { return Ok(None) };
    let opened = shared.codec.open(state);
    let opened = opened.map_err(|_| ErrorData::invalid_params("requestState was changed", None))?;
    Ok(Some(String::from_utf8_lossy(&opened).into_owned()))
}
