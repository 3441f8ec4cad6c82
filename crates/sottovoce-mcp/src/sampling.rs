//! Sampling: asks the client's own model. Clients of the newest revision are told to ask and to call again with the
//! answer. Clients of earlier revisions are asked during the call.

use std::sync::Arc;
use std::time::{Duration, Instant};

use rmcp::model::{
    CancelledNotificationParam, ClientResult, ConstString, CreateMessageRequest,
    CreateMessageRequestMethod, CreateMessageRequestParams, CreateMessageResult, CustomRequest,
    InputRequest, InputRequiredResult, InputResponses, SamplingMessage,
    SamplingMessageContentBlock, SealOptions, ServerRequest,
};
use rmcp::service::{PeerRequestOptions, RequestContext, ServiceError};
use rmcp::{ErrorData, RoleServer};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sottovoce::model::{OpenAiChatRenderer, PromptRenderer, without_thoughts};
use sottovoce::prompt::{Prompt, Receipt};
use sottovoce::{ChatRole, Conversation, Error, ModelOptions, Scope, StoredMessage};

use crate::fault::{Fault, Stop};
use crate::hub::Hub;

/// The name of the answer in a round.
const ANSWER: &str = "answer";
/// The most tokens of an answer if the conversation sets no limit.
const USUAL: u32 = 1000;
/// How long a client may take to answer, which may include asking its user. Also how long a client may retry an
/// unanswered message.
pub(crate) const PATIENCE: Duration = Duration::from_secs(600);

/// What a client sends when it calls again.
pub(crate) struct Round {
    pub(crate) responses: Option<InputResponses>,
    pub(crate) state: Option<String>,
}

/// What the client's model is asked to answer.
pub(crate) struct Asked<'a> {
    /// The whole call with the conversation that it addresses. An answer to another call is refused.
    pub(crate) call: &'a str,
    pub(crate) scope: &'a Scope,
    pub(crate) words: &'a str,
    /// The utterance, if it is stored already.
    pub(crate) said: Option<Arc<StoredMessage>>,
    pub(crate) conversation: &'a Conversation,
}

/// An answered turn.
pub(crate) struct Utterance {
    pub(crate) utterance: Arc<StoredMessage>,
    pub(crate) reply: Arc<StoredMessage>,
    pub(crate) receipt: Receipt,
    /// Tokens of prompt and answer, if the server counted them.
    pub(crate) counted: Option<u64>,
    pub(crate) cut: bool,
}

pub(crate) enum Sampled {
    Answered(Box<Utterance>),
    /// The client must ask its model and call again.
    Round(InputRequiredResult),
}

/// What the client hands back with its second call, signed by the server.
#[derive(Serialize, Deserialize)]
struct State {
    /// The number of the stored utterance.
    utterance: u64,
    /// The name of the utterance's file.
    file: String,
}

/// Whether the client allows servers to ask its model.
pub(crate) fn offers_sampling(request: &RequestContext<RoleServer>) -> bool {
    if is_modern(request) {
        return request.meta.client_capabilities().is_some_and(|client| client.sampling.is_some());
    }
    request.peer.peer_info().is_some_and(|client| client.capabilities.sampling.is_some())
}

/// Whether the client speaks the revision without a handshake.
fn is_modern(request: &RequestContext<RoleServer>) -> bool {
    request.protocol_version().is_some_and(|version| !version.has_initialize())
}

/// Whether a call brings the model's answer to an earlier call.
pub(crate) fn brings_answer(round: &Round, request: &RequestContext<RoleServer>) -> bool {
    is_modern(request) && round.responses.as_ref().is_some_and(|known| known.contains_key(ANSWER))
}

pub(crate) async fn ask(
    hub: &Hub,
    asked: Asked<'_>,
    round: Round,
    request: &RequestContext<RoleServer>,
) -> Result<Sampled, Stop> {
    match is_modern(request) {
        true => in_rounds(hub, asked, round).await,
        false => Ok(at_once(hub, asked, request).await?),
    }
}

async fn in_rounds(hub: &Hub, asked: Asked<'_>, round: Round) -> Result<Sampled, Stop> {
    let response = round.responses.as_ref().and_then(|responses| responses.get(ANSWER));
    let Some(response) = response else {
        return Ok(first_round(hub, &asked).await?);
    };
    let invalid = |reason: &'static str| Stop::Refused(ErrorData::invalid_params(reason, None));
    let state = round.state.ok_or_else(|| invalid("requestState is missing"))?;
    let state: State = hub.codec.open_json_with(&state, asked.call.as_bytes()).map_err(|_| {
        invalid("requestState belongs to another call, has expired, or was changed")
    })?;
    let answer: CreateMessageResult = serde_json::from_value(response.clone())
        .map_err(|_| invalid("the answer is not a result of sampling/createMessage"))?;
    Ok(second_round(hub, &asked, &state, &answer).await?)
}

/// Stores the utterance once, and builds its prompt.
async fn hear(asked: &Asked<'_>) -> Result<(Arc<StoredMessage>, Prompt, Receipt), Fault> {
    if let Some(said) = &asked.said {
        let (prompt, receipt) = asked.conversation.prompt(Arc::clone(said)).await?;
        return Ok((Arc::clone(said), prompt, receipt));
    }
    let heard = asked.conversation.prepare_turn_once(asked.words, PATIENCE).await?;
    Ok((heard.message, heard.prompt, heard.receipt))
}

async fn first_round(hub: &Hub, asked: &Asked<'_>) -> Result<Sampled, Fault> {
    let (utterance, prompt, _) = hear(asked).await?;
    let params = params(&prompt)?;
    let state = State { utterance: utterance.seq, file: utterance.file_name() };
    let options = SealOptions::new().associated_data(asked.call.as_bytes()).ttl(PATIENCE);
    let state = hub
        .codec
        .seal_json_with(&state, &options)
        .map_err(|_| Fault::new("the call cannot be continued"))?;
    let needed = InputRequest::CreateMessage(CreateMessageRequest::new(params));
    let needed = std::iter::once((ANSWER.to_owned(), needed)).collect();
    Ok(Sampled::Round(InputRequiredResult::new(Some(needed), Some(state))))
}

async fn second_round(
    hub: &Hub,
    asked: &Asked<'_>,
    said: &State,
    answer: &CreateMessageResult,
) -> Result<Sampled, Fault> {
    let words = words(answer)?;
    let conversation = asked.conversation;
    let there = stored(conversation, said.utterance).await?;
    let Some(utterance) = there.filter(|there| there.file_name() == said.file) else {
        return Err(Error::UtteranceForgotten.into());
    };
    let (_, receipt) = conversation.prompt(Arc::clone(&utterance)).await?;
    let reply = keep_once(hub, asked, Arc::clone(&utterance), words).await?;
    Ok(turn(utterance, reply, receipt, answer))
}

/// Stores the answer to an utterance unless one is stored already: a client may send it again if it does not know
/// whether it arrived. Runs in the background, so that a cancelled call cannot leave an answer stored but not
/// remembered.
async fn keep_once(
    hub: &Hub,
    asked: &Asked<'_>,
    utterance: Arc<StoredMessage>,
    words: String,
) -> Result<Arc<StoredMessage>, Fault> {
    let (answered, conversation) = (Arc::clone(&hub.answered), asked.conversation.clone());
    let this = (asked.scope.clone(), utterance.file_name());
    let kept = tokio::spawn(async move {
        let mut answered = answered.lock().await;
        // A client can no longer retry older calls.
        answered.retain(|_, (at, _)| at.elapsed() <= PATIENCE);
        if let Some((_, seq)) = answered.get(&this) {
            let known = stored(&conversation, *seq).await?;
            return known.ok_or_else(|| Fault::new("the answer has been deleted since"));
        }
        let reply = conversation.message(ChatRole::Assistant, words);
        let reply = conversation.store_answer(&utterance, reply).await?;
        answered.insert(this, (Instant::now(), reply.seq));
        Ok(reply)
    });
    kept.await.unwrap_or_else(|_| Err(Fault::new("the answer cannot be stored")))
}

async fn stored(
    conversation: &Conversation,
    seq: u64,
) -> Result<Option<Arc<StoredMessage>>, Fault> {
    Ok(conversation.store().read_seqs(seq..=seq).await?.messages.into_iter().next())
}

/// Asks a client during its call.
async fn at_once(
    hub: &Hub,
    asked: Asked<'_>,
    request: &RequestContext<RoleServer>,
) -> Result<Sampled, Fault> {
    let (utterance, prompt, receipt) = hear(&asked).await?;
    let wanted = ServerRequest::CustomRequest(exact(params(&prompt)?, prompt.temperature)?);
    let patience = PeerRequestOptions::with_timeout(PATIENCE);
    let said = |reason: String| Fault::new(format!("the message is stored, but {reason}"));
    let lost = |_| said("the client cannot be asked".to_owned());
    let handle = request.peer.send_request_with_option(wanted, patience).await.map_err(lost)?;
    let id = handle.id.clone();
    let answer = tokio::select! {
        answer = handle.await_response() => answer,
        () = hub.given_up(request) => {
            let why = Some("the call was cancelled".to_owned());
            let cancelled = CancelledNotificationParam::new(Some(id), why);
            drop(request.peer.notify_cancelled(cancelled).await);
            return Err(said("the call was cancelled".to_owned()));
        }
    };
    let answer = match answer {
        Ok(ClientResult::CreateMessageResult(answer)) => answer,
        Ok(_) => return Err(said("the client answered with another kind of result".to_owned())),
        Err(ServiceError::McpError(error)) => {
            return Err(said(format!("the client refused to ask its model: {}", error.message)));
        }
        Err(ServiceError::Timeout { .. }) => {
            return Err(said("the client gave no answer for ten minutes".to_owned()));
        }
        Err(_) => return Err(said("the client has disconnected".to_owned())),
    };
    let reply = asked.conversation.message(ChatRole::Assistant, words(&answer)?);
    let reply = asked.conversation.store_answer(&utterance, reply).await?;
    Ok(turn(utterance, reply, receipt, &answer))
}

fn turn(
    utterance: Arc<StoredMessage>,
    reply: Arc<StoredMessage>,
    receipt: Receipt,
    answer: &CreateMessageResult,
) -> Sampled {
    let cut = answer.stop_reason.as_deref() == Some("maxTokens");
    Sampled::Answered(Box::new(Utterance { utterance, reply, receipt, counted: None, cut }))
}

/// The text of an answer.
fn words(answer: &CreateMessageResult) -> Result<String, Fault> {
    let texts = answer.message.content.iter().filter_map(|content| match content {
        SamplingMessageContentBlock::Text(text) => Some(text.text.as_str()),
        _ => None,
    });
    let words = without_thoughts(&texts.collect::<String>());
    if words.trim().is_empty() {
        return Err(Fault::new("the message is stored, but the client's model gave no answer"));
    }
    Ok(words)
}

/// The sampling request for a prompt. It uses the same texts as a chat request, so that an earlier turn reads the
/// same in every request.
fn params(prompt: &Prompt) -> Result<CreateMessageRequestParams, Fault> {
    let request = OpenAiChatRenderer::new(ModelOptions::new("")).render(prompt);
    let odd = || Fault::new("the prompt cannot be sent as a sampling request");
    let request: Value = serde_json::from_str(&request.body).map_err(|_| odd())?;
    let (mut system, mut messages) = (None, Vec::new());
    for line in request.get("messages").and_then(Value::as_array).ok_or_else(odd)? {
        let text = |name| line.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
        let words = text("content");
        match text("role").as_str() {
            "system" => system = Some(words),
            "assistant" if words.is_empty() => {}
            "assistant" => messages.push(SamplingMessage::assistant_text(words)),
            _ => messages.push(SamplingMessage::user_text(words)),
        }
    }
    let most = prompt.max_tokens.unwrap_or(USUAL);
    let mut params = CreateMessageRequestParams::new(messages, most);
    params.system_prompt = system;
    #[expect(clippy::cast_possible_truncation, reason = "the protocol's library has it so")]
    let temperature = prompt.temperature.map(|temperature| temperature as f32);
    params.temperature = temperature;
    Ok(params)
}

/// The request with the exact temperature. The protocol's library stores it as a 32-bit float and writes 0.7 as
/// 0.699999988079071.
fn exact(
    params: CreateMessageRequestParams,
    temperature: Option<f64>,
) -> Result<CustomRequest, Fault> {
    let odd = |_| Fault::new("the prompt cannot be sent as a sampling request");
    let mut params = serde_json::to_value(params).map_err(odd)?;
    if let (Some(params), Some(temperature)) = (params.as_object_mut(), temperature) {
        params.insert("temperature".to_owned(), temperature.into());
    }
    Ok(CustomRequest::new(CreateMessageRequestMethod::VALUE, Some(params)))
}
