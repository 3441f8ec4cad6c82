//! The tool `context-chat`: stores a message in a context and answers it with a model.

use std::sync::Arc;
use std::time::{Duration, Instant};

use rmcp::model::{CallToolResponse, CallToolResult, JsonObject, ProgressNotificationParam, Tool};
use rmcp::service::RequestContext;
use rmcp::{ErrorData, RoleServer};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use sottovoce::config::Sampling;
use sottovoce::context::TokenRates;
use sottovoce::model::ModelFailure;
use sottovoce::persona::PersonaConversation;
use sottovoce::{AnswerEvent, Conversation, Error, StoredMessage};

use crate::fault::{Fault, Stop};
use crate::hub::{Hub, Target};
use crate::resources::publish_context;
use crate::sampling::{self, Asked, Sampled, Utterance, offers_sampling};
use crate::shape::MessageShape;
use crate::tool::{Effect, answer, arguments, define, json};

pub(crate) const NAME: &str = "context-chat";

/// The share of the history's limit at which the answer carries a warning.
const NEARLY_FULL: f64 = 0.8;
/// The shortest time between two progress notifications.
const BEAT: Duration = Duration::from_millis(200);

#[derive(Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Arguments {
    /// The context, by id or name.
    context_id: String,
    /// The message to answer.
    #[schemars(length(min = 1))]
    message: String,
    /// Whether the prompt holds the context's personality; true unless given.
    #[serde(skip_serializing_if = "Option::is_none")]
    maintain_personality: Option<bool>,
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(deny_unknown_fields)]
struct Output {
    /// The answer.
    response: String,
    /// The context's name.
    context_name: String,
    /// The context's personality.
    personality: String,
    /// The user's message as stored.
    user_message: MessageShape,
    /// The answer as stored.
    assistant_response: MessageShape,
    /// The cost of the turn, and the context's expiry.
    metadata: Metadata,
    /// Tokens of history in the prompt.
    history_tokens: usize,
    /// Whether older messages were left out because they did not fit.
    truncated: bool,
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(deny_unknown_fields)]
struct Metadata {
    /// Tokens of prompt and answer, as counted by the model server, or estimated if the server gave no count.
    tokens_used: u64,
    /// Estimated tokens of history in the prompt.
    history_tokens: usize,
    /// The most tokens of history that the prompt may hold: the context's limit, or what the model's window leaves.
    #[serde(skip_serializing_if = "Option::is_none")]
    history_limit: Option<usize>,
    /// Whether older messages were left out because they did not fit.
    history_truncated: bool,
    /// When the context expires unless somebody speaks in it before.
    #[serde(skip_serializing_if = "Option::is_none")]
    context_expiry: Option<String>,
    /// Whether the context has expired.
    is_expired: bool,
    /// Warnings for the user: the history is nearly full, or the answer was cut.
    warnings: Vec<String>,
}

pub(crate) fn tool() -> Tool {
    define::<Arguments, Output>(
        NAME,
        "Talk in a context",
        "Says something in a context and gives the model's answer, which keeps to the context's personality and knows \
what was said before. Both are stored.",
        Effect::Asks,
    )
}

pub(crate) async fn run(
    hub: &Hub,
    given: Option<JsonObject>,
    round: sampling::Round,
    request: &RequestContext<RoleServer>,
) -> Result<CallToolResponse, ErrorData> {
    match talk(hub, given, round, request).await {
        Ok(response) => Ok(response),
        Err(Stop::Told(fault)) => Ok(CallToolResult::from(fault).into()),
        Err(Stop::Refused(error)) => Err(error),
    }
}

async fn talk(
    hub: &Hub,
    given: Option<JsonObject>,
    round: sampling::Round,
    request: &RequestContext<RoleServer>,
) -> Result<CallToolResponse, Stop> {
    let given: Arguments = arguments(given)?;
    if given.message.trim().is_empty() {
        return Err(Fault::new("message must contain a word").into());
    }
    let prefers = hub.config().mcp.prefer_sampling;
    let offered = prefers != Sampling::Never && offers_sampling(request);
    let is_said = offered && sampling::brings_answer(&round, request);
    let target = hub.target(&given.context_id).await?;
    let mut conversation = hub.conversation(&target, is_said).await?;
    if given.maintain_personality == Some(false) {
        conversation = conversation.without_personality();
    }
    let mut said = None;
    let mut answered = None;
    let samples_first = is_said || (offered && prefers == Sampling::Always);
    if !samples_first {
        match ask(hub, &conversation, &given.message, request).await {
            Err(NoTurn::NobodyAnswers(utterance, _)) if offered => said = utterance,
            turn => answered = Some(turn?),
        }
    }
    let turn = if let Some(turn) = answered {
        turn
    } else {
        // A retry must be the same call on the same context. The id is part of the key because a name may mean
        // another context by then.
        let call = serde_json::to_string(&(&target.id, &given)).unwrap_or_default();
        let (words, scope) = (given.message.as_str(), &target.scope);
        let conversation = &conversation.without_model();
        let asked = Asked { call: &call, scope, words, said, conversation };
        match sampling::ask(hub, asked, round, request).await? {
            Sampled::Answered(turn) => *turn,
            Sampled::Round(needed) => return Ok(needed.into()),
        }
    };
    publish_context(hub, &target.id);
    // The utterance has postponed the expiry.
    let now = match &target.context {
        Some(context) => hub.registry.get(&context.id).await.ok(),
        None => None,
    };
    let personality = given.maintain_personality.unwrap_or(true);
    let output = output(&target, now.or(target.context.clone()), &turn, personality);
    Ok(answer(&json(&output)?).into())
}

/// Why the configured model gave no answer.
enum NoTurn {
    /// The server is not reachable, or lacks the model. The utterance is stored.
    NobodyAnswers(Option<Arc<StoredMessage>>, Fault),
    Other(Fault),
}

impl<F: Into<Fault>> From<F> for NoTurn {
    fn from(fault: F) -> Self {
        Self::Other(fault.into())
    }
}

impl From<NoTurn> for Stop {
    fn from((NoTurn::NobodyAnswers(_, fault) | NoTurn::Other(fault)): NoTurn) -> Self {
        Self::Told(fault)
    }
}

fn is_nobody(error: &Error) -> bool {
    let Error::Model { failure, .. } = error else { return false };
    matches!(failure, ModelFailure::Unreachable(_) | ModelFailure::NoSuchModel { .. })
}

/// Asks the configured model for the answer.
async fn ask(
    hub: &Hub,
    conversation: &Conversation,
    words: &str,
    request: &RequestContext<RoleServer>,
) -> Result<Utterance, NoTurn> {
    let mut answer = tokio::select! {
        answer = conversation.ask_once(words, sampling::PATIENCE) => {
            answer.inspect_err(|error| hub.conversations.metrics().failed(error))?
        }
        () = hub.given_up(request) => return Err(Fault::new("cancelled while the message was being stored").into()),
    };
    let utterance = answer.utterance().cloned();
    // One future for the whole answer. A new one for each event would restart the grace period.
    let mut given_up = std::pin::pin!(hub.given_up(request));
    let (mut told, mut pieces) = (Instant::now(), 0_u32);
    let kept = loop {
        let piece = tokio::select! {
            piece = answer.next() => piece,
            () = &mut given_up => {
                drop(answer);
                // Stores the partial answer before the caller learns that the turn has ended.
                conversation.close().await?;
                return Err(Fault::new("cancelled; the message and the answer's beginning are stored").into());
            }
        };
        match piece {
            Some(Ok(AnswerEvent::Done(kept))) => break kept,
            Some(Ok(_)) => {
                pieces += 1;
                if told.elapsed() >= BEAT {
                    told = Instant::now();
                    progress(request, pieces).await;
                }
            }
            Some(Err(error @ Error::UtteranceForgotten)) => return Err(error.into()),
            Some(Err(error)) => {
                conversation.close().await?;
                let is_nobody = is_nobody(&error);
                let fault = Fault::from(error);
                let fault = Fault::new(format!("the message is stored, but {}", fault.reason()));
                return Err(match is_nobody {
                    true => NoTurn::NobodyAnswers(utterance, fault),
                    false => fault.into(),
                });
            }
            None => return Err(Fault::new("the answer ended early").into()),
        }
    };
    let (Some(utterance), Some(reply)) = (utterance, kept.message) else {
        return Err(Fault::new("the model called functions, but this server runs none").into());
    };
    let usage = &kept.report.usage;
    let counted = match (usage.prompt_tokens, usage.answer_tokens) {
        (None, None) => None,
        (prompt, answer) => Some(prompt.unwrap_or(0) + answer.unwrap_or(0)),
    };
    Ok(Utterance { utterance, reply, receipt: kept.report.receipt, counted, cut: usage.cut })
}

async fn progress(request: &RequestContext<RoleServer>, pieces: u32) {
    let Some(token) = request.meta.get_progress_token() else { return };
    let progress = ProgressNotificationParam::new(token, f64::from(pieces))
        .with_message("the model is answering");
    // If the client no longer listens, the call is cancelled, and the cancellation is handled elsewhere.
    drop(request.peer.notify_progress(progress).await);
}

fn output(
    target: &Target,
    context: Option<PersonaConversation>,
    turn: &Utterance,
    personality: bool,
) -> Output {
    let rates = TokenRates::default();
    let receipt = &turn.receipt;
    let reply = &turn.reply.message;
    let estimated = receipt.used_tokens + rates.estimate(&reply.content);
    let mut warnings = Vec::new();
    if receipt.is_history_truncated() {
        warnings.push("older messages did not fit and were left out; they stay stored".to_owned());
    } else if receipt.is_history_filled(NEARLY_FULL) {
        warnings
            .push("the history is over 80 % full; older messages will be left out soon".to_owned());
    }
    if turn.cut {
        warnings.push("the answer reached its token limit and was cut".to_owned());
    }
    let (history_tokens, truncated) = (receipt.history_tokens(), receipt.is_history_truncated());
    let told = context.as_ref().map(|context| context.assigned_persona.persona.personality.clone());
    Output {
        response: reply.content.clone(),
        context_name: context.as_ref().map_or(target.id.as_str(), |c| c.name.as_str()).to_owned(),
        personality: told.filter(|_| personality).unwrap_or_default(),
        user_message: MessageShape::new(&target.id, &turn.utterance),
        assistant_response: MessageShape::new(&target.id, &turn.reply),
        metadata: Metadata {
            tokens_used: turn.counted.unwrap_or(estimated as u64),
            history_tokens,
            history_limit: receipt.history_room,
            history_truncated: truncated,
            context_expiry: context.as_ref().map(|context| context.expires_at.to_string()),
            is_expired: context.as_ref().is_some_and(|context| context.is_expired),
            warnings,
        },
        history_tokens,
        truncated,
    }
}
