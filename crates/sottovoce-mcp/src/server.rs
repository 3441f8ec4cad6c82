//! The protocol's request handler: passes each request to the module that answers it.

use std::borrow::Cow;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use futures_util::FutureExt;
use rmcp::model::{
    CacheScope, CallToolRequestParams, CallToolResponse, CompleteRequestParams, CompleteResult,
    DiscoverResult, ErrorCode, GetPromptRequestParams, GetPromptResponse, Implementation,
    ListPromptsResult, ListResourceTemplatesResult, ListResourcesResult, ListToolsResult,
    PaginatedRequestParams, ProtocolVersion, ReadResourceRequestParams, ReadResourceResponse,
    ServerCapabilities, ServerConfig, SubscribeRequestParams, SubscriptionFilter, Tool,
    UnsubscribeRequestParams,
};
use rmcp::service::{NotificationContext, RequestContext, SubscriptionContext};
use rmcp::{ErrorData, RoleServer, ServerHandler};

use crate::fault::Fault;
use crate::hub::Hub;
use crate::notices::{self, Wanted};
use crate::sampling::Round;
use crate::tool::context_chat;
use crate::{completion, page, prompts, resources, tool};

pub(crate) const INSTRUCTIONS: &str = "\
Each context is a conversation in which the model keeps one personality; its history is stored encrypted on this machine. \
Make one with context-manage (create_from_preset or create), talk in it with context-chat, keep notes in it with \
context-remember, find things again with context-search, \
and read with artifact-read what messages refer to as artifact://ID. Ids and names of contexts are both understood. \
A memory without contexts: remember stores a sentence, recall finds what fits a question, forget deletes for good.";

/// How long clients may cache what never changes while the server runs, in milliseconds.
const LASTING: u64 = 3_600_000;

/// The page of a list that a request asks for. The lists are types of their own in the protocol's library.
macro_rules! listed {
    ($list:ident, $all:expr, $request:expr, $ttl:expr, $cache:ident) => {{
        let (items, next) = page::by_cursor($all, $request)?;
        let list = $list::with_all_items(items).with_ttl_ms($ttl);
        let mut list = list.with_cache_scope(CacheScope::$cache);
        list.next_cursor = next;
        Ok(list)
    }};
}

/// Answers the requests of one client.
pub struct Server {
    hub: Arc<Hub>,
    wanted: Wanted,
}

impl Server {
    /// Creates a server for one client of the hub.
    pub fn new(hub: Arc<Hub>) -> Self {
        Self { hub, wanted: Wanted::default() }
    }

    async fn run(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let CallToolRequestParams { name, arguments, input_responses, request_state, .. } = request;
        if name == context_chat::NAME {
            let round = Round { responses: input_responses, state: request_state };
            return context_chat::run(&self.hub, arguments, round, &context).await;
        }
        Ok(tool::run(&self.hub, &name, arguments).await?.into())
    }
}

/// Runs a request. A panic becomes an error answer, so that the client does not wait for ever.
async fn answered<T>(work: impl Future<Output = Result<T, ErrorData>>) -> Result<T, ErrorData> {
    let caught = AssertUnwindSafe(work).catch_unwind().await;
    caught.unwrap_or_else(|_| {
        Err(ErrorData::internal_error("the server failed on this request", None))
    })
}

#[allow(clippy::needless_pass_by_value, reason = "as map_err hands it over")]
fn internal(fault: Fault) -> ErrorData {
    ErrorData::internal_error(fault.reason().to_owned(), None)
}

impl ServerHandler for Server {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder()
            .enable_tools()
            .enable_resources()
            .enable_resources_list_changed()
            .enable_resources_subscribe()
            .enable_prompts()
            .enable_completions()
            .build();
        let server = Implementation::new("sottovoce", env!("CARGO_PKG_VERSION"))
            .with_title("Sottovoce: encrypted contexts");
        ServerConfig::new(capabilities)
            .with_protocol_version(ProtocolVersion::LATEST_WITH_INITIALIZE)
            .with_server_info(server)
            .with_instructions(INSTRUCTIONS)
    }

    fn supported_protocol_versions(&self) -> Cow<'static, [ProtocolVersion]> {
        const SPOKEN: &[ProtocolVersion] = &[
            ProtocolVersion::V_2024_11_05,
            ProtocolVersion::V_2025_03_26,
            ProtocolVersion::V_2025_06_18,
            ProtocolVersion::V_2025_11_25,
            ProtocolVersion::V_2026_07_28,
        ];
        Cow::Borrowed(SPOKEN)
    }

    async fn discover(&self, _: RequestContext<RoleServer>) -> Result<DiscoverResult, ErrorData> {
        let spoken = self.supported_protocol_versions().into_owned();
        Ok(DiscoverResult::from_server_info(spoken, self.get_info())
            .with_ttl_ms(LASTING)
            .with_cache_scope(CacheScope::Public))
    }

    async fn list_tools(
        &self,
        request: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        listed!(ListToolsResult, tool::ALL.clone(), request, LASTING, Public)
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        tool::ALL.iter().find(|tool| tool.name == name).cloned()
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        answered(self.run(request, context)).await
    }

    async fn list_resources(
        &self,
        request: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        let all = resources::list(&self.hub).await.map_err(internal)?;
        listed!(ListResourcesResult, all, request, 0, Private)
    }

    async fn list_resource_templates(
        &self,
        request: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        listed!(ListResourceTemplatesResult, resources::templates(), request, LASTING, Public)
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let read = answered(resources::read(&self.hub, &request.uri)).await?;
        Ok(read.with_ttl_ms(0).with_cache_scope(CacheScope::Private).into())
    }

    async fn list_prompts(
        &self,
        request: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        listed!(ListPromptsResult, prompts::list(), request, LASTING, Public)
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        Ok(prompts::get(&request.name, request.arguments.as_ref())?.into())
    }

    async fn complete(
        &self,
        request: CompleteRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<CompleteResult, ErrorData> {
        answered(completion::complete(&self.hub, request)).await
    }

    fn accepted_subscription_filter(
        &self,
        requested: &SubscriptionFilter,
    ) -> Option<SubscriptionFilter> {
        Some(notices::within_limits(requested.clone()))
    }

    async fn listen(&self, subscription: SubscriptionContext) -> Result<(), ErrorData> {
        notices::listen(&self.hub, subscription).await;
        Ok(())
    }

    async fn on_initialized(&self, context: NotificationContext<RoleServer>) {
        notices::forward(&self.hub, context.peer, self.wanted.clone());
    }

    async fn subscribe(
        &self,
        request: SubscribeRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        let refused = |reason| ErrorData::new(ErrorCode::INVALID_REQUEST, reason, None);
        self.wanted.add(request.uri).map_err(refused)
    }

    async fn unsubscribe(
        &self,
        request: UnsubscribeRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.wanted.remove(&request.uri);
        Ok(())
    }
}

sottovoce::debug_shows!(Server: hub);
