//! The server that the conformance suite of the Model Context Protocol expects, on this crate's transport.
//!
//! The suite calls tools, resources and prompts with fixed names, which only show that every feature of the protocol
//! works: `cargo run -p sottovoce-mcp --example conformance [PORT]` serves them on loopback without a token, and
//! prints the address on standard error. `.ci/clients` runs the suite against it.

// Earlier revisions of the protocol need features that the newest one deprecates.
#![allow(deprecated)]
#![allow(clippy::expect_used, clippy::indexing_slicing, reason = "only a test talks to it")]
#![allow(clippy::print_stderr, reason = "that is where the address is told")]

mod forms;
mod prompts;
mod resources;
mod rounds;
mod tools;

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CompleteRequestParams, CompleteResult, CompletionInfo,
    GetPromptRequestParams, GetPromptResponse, Implementation, ListPromptsResult,
    ListResourceTemplatesResult, ListResourcesResult, ListToolsResult, PaginatedRequestParams,
    ProtocolVersion, ReadResourceRequestParams, ReadResourceResponse, RequestStateCodec,
    ServerCapabilities, ServerConfig, SetLevelRequestParams, SubscribeRequestParams,
    SubscriptionFilter, Tool, UnsubscribeRequestParams,
};
use rmcp::service::{RequestContext, SubscriptionContext};
use rmcp::{ErrorData, RoleServer, ServerHandler};
use sottovoce_mcp::http::{self, Admission};
use tokio::sync::broadcast;
use tokio_util::sync::CancellationToken;

/// The changes that subscribers hear of.
#[derive(Debug, Clone, Copy)]
enum Change {
    Tools,
    Prompts,
}

/// State shared by all requests.
struct Shared {
    changes: broadcast::Sender<Change>,
    codec: RequestStateCodec,
}

#[derive(Clone)]
struct Fixture(Arc<Shared>);

type Context = RequestContext<RoleServer>;

impl ServerHandler for Fixture {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder()
            .enable_tools()
            .enable_tool_list_changed()
            .enable_resources()
            .enable_resources_list_changed()
            .enable_resources_subscribe()
            .enable_prompts()
            .enable_prompts_list_changed()
            .enable_completions()
            .enable_logging()
            .build();
        ServerConfig::new(capabilities)
            .with_protocol_version(ProtocolVersion::LATEST_WITH_INITIALIZE)
            .with_server_info(Implementation::new("sottovoce-conformance", "1.0.0"))
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: Context,
    ) -> Result<ListToolsResult, ErrorData> {
        Ok(ListToolsResult::with_all_items(tools::list()))
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        tools::list().into_iter().find(|tool| tool.name == name)
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: Context,
    ) -> Result<CallToolResponse, ErrorData> {
        tools::call(&self.0, request, &context).await
    }

    async fn list_resources(
        &self,
        _: Option<PaginatedRequestParams>,
        _: Context,
    ) -> Result<ListResourcesResult, ErrorData> {
        Ok(ListResourcesResult::with_all_items(resources::list()))
    }

    async fn list_resource_templates(
        &self,
        _: Option<PaginatedRequestParams>,
        _: Context,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        Ok(ListResourceTemplatesResult::with_all_items(resources::templates()))
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        _: Context,
    ) -> Result<ReadResourceResponse, ErrorData> {
        resources::read(&request.uri).map(Into::into)
    }

    async fn list_prompts(
        &self,
        _: Option<PaginatedRequestParams>,
        _: Context,
    ) -> Result<ListPromptsResult, ErrorData> {
        Ok(ListPromptsResult::with_all_items(prompts::list()))
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        context: Context,
    ) -> Result<GetPromptResponse, ErrorData> {
        prompts::get(request, &context).await
    }

    async fn complete(
        &self,
        request: CompleteRequestParams,
        _: Context,
    ) -> Result<CompleteResult, ErrorData> {
        let typed = request.argument.value;
        let known =
            ["test", "testing", "other"].into_iter().filter(|word| word.starts_with(&typed));
        let values = CompletionInfo::with_all_values(known.map(str::to_owned).collect());
        Ok(CompleteResult::new(values.expect("there are three")))
    }

    async fn set_level(&self, _: SetLevelRequestParams, _: Context) -> Result<(), ErrorData> {
        Ok(())
    }

    async fn subscribe(&self, _: SubscribeRequestParams, _: Context) -> Result<(), ErrorData> {
        Ok(())
    }

    async fn unsubscribe(&self, _: UnsubscribeRequestParams, _: Context) -> Result<(), ErrorData> {
        Ok(())
    }

    fn accepted_subscription_filter(
        &self,
        requested: &SubscriptionFilter,
    ) -> Option<SubscriptionFilter> {
        Some(requested.clone())
    }

    async fn listen(&self, subscription: SubscriptionContext) -> Result<(), ErrorData> {
        let mut changes = self.0.changes.subscribe();
        loop {
            let change = tokio::select! {
                change = changes.recv() => change,
                () = subscription.cancelled() => return Ok(()),
            };
            // The subscriber may have asked for the other kind only.
            match change {
                Ok(Change::Tools) => drop(subscription.sink().notify_tool_list_changed().await),
                Ok(Change::Prompts) => drop(subscription.sink().notify_prompt_list_changed().await),
                Err(_) => return Ok(()),
            }
        }
    }
}

#[tokio::main]
async fn main() {
    let port = std::env::args().nth(1).map_or(0, |port| port.parse().expect("a port's number"));
    let mut secret = [0; 32];
    getrandom::fill(&mut secret).expect("random numbers");
    let codec = RequestStateCodec::try_new(secret).expect("a key of 32 bytes");
    let fixture = Fixture(Arc::new(Shared { changes: broadcast::Sender::new(16), codec }));
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    let listening = http::listen(address, Admission::default()).await.expect("a free port");
    eprintln!("http://{}{}", listening.address(), http::PATH);
    let stop = CancellationToken::new();
    let stopped = stop.clone();
    tokio::spawn(async move {
        // Without signals it runs until it is killed.
        if tokio::signal::ctrl_c().await.is_ok() {
            stopped.cancel();
        }
    });
    http::serve(listening, move || fixture.clone(), stop).await;
}
