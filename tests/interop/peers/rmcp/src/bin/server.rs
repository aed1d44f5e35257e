//! The server of the suite `upstream` on the official Rust SDK: it asks in results, as servers of 2026-07-28 do.
#![forbid(unsafe_code)]

use std::{error::Error, time::Duration};

use rmcp::{
    ServerHandler, ServiceExt,
    model::{
        CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, ErrorData, GetPromptRequestParams,
        GetPromptResponse, GetPromptResult, InputRequiredResult, ListPromptsResult,
        ListResourceTemplatesResult, ListResourcesResult, ListToolsResult, PaginatedRequestParams, ProgressNotificationParam,
        ReadResourceRequestParams, ReadResourceResponse, ReadResourceResult, RequestParamsMeta as _, ServerCapabilities,
        ServerConfig,
    },
    service::{RequestContext, RoleServer},
    transport::stdio,
};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::time::sleep;

struct Peer;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    Peer.serve(stdio()).await?.waiting().await?;
    Ok(())
}

/// Reads a value of the protocol, because the SDK's types have no constructors with all members.
fn read<T: DeserializeOwned>(value: Value) -> Result<T, ErrorData> {
    serde_json::from_value(value).map_err(|error| ErrorData::internal_error(error.to_string(), None))
}

fn name() -> Value {
    let schema = json!({ "type": "object", "properties": { "name": { "type": "string" } }, "required": ["name"] });
    let params = json!({ "mode": "form", "message": "What is your name?", "requestedSchema": schema });
    json!({ "method": "elicitation/create", "params": params })
}

fn capital() -> Value {
    let content = json!({ "type": "text", "text": "What is the capital of France?" });
    let params = json!({ "messages": [{ "role": "user", "content": content }], "maxTokens": 10 });
    json!({ "method": "sampling/createMessage", "params": params })
}

fn asking(questions: Value) -> Result<CallToolResponse, ErrorData> {
    Ok(InputRequiredResult::new(Some(read(questions)?), Some("asked".into())).into())
}

fn text(text: impl Into<String>) -> Result<CallToolResponse, ErrorData> {
    Ok(CallToolResult::success(vec![ContentBlock::text(text)]).into())
}

impl ServerHandler for Peer {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder().enable_tools().enable_prompts().enable_resources();
        ServerConfig::new(capabilities.build())
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let tool = |name: &str| json!({ "name": name, "inputSchema": { "type": "object" } });
        let tools = ["greet", "fail", "count", "ask", "together"].map(tool);
        read(json!({ "tools": tools }))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let answers = request.input_responses.clone();
        match (&*request.name, answers) {
            ("greet", _) => {
                let name = request.arguments.as_ref().and_then(|given| given.get("name")).and_then(Value::as_str);
                text(format!("Hello, {}!", name.unwrap_or_default()))
            }
            ("fail", _) => Ok(CallToolResult::error(vec![ContentBlock::text("failed on purpose")]).into()),
            ("count", _) => {
                let token = request.progress_token().or_else(|| context.meta.get_progress_token());
                for step in [1.0, 2.0, 3.0] {
                    if let Some(token) = token.clone() {
                        let progress = ProgressNotificationParam::new(token, step).with_total(3.0);
                        let _ = context.peer.notify_progress(progress).await;
                        // The official TypeScript client drops progress that it reads together with the result.
                        sleep(Duration::from_millis(100)).await;
                    }
                }
                text("counted")
            }
            ("ask", None) => asking(json!({ "name": name() })),
            ("ask", Some(answers)) => text(answers["name"]["content"]["name"].as_str().unwrap_or_default()),
            ("together", None) => {
                asking(json!({ "name": name(), "capital": capital(), "roots": { "method": "roots/list" } }))
            }
            ("together", Some(answers)) => {
                let parts = [
                    &answers["name"]["content"]["name"],
                    &answers["capital"]["content"]["text"],
                    &answers["roots"]["roots"][0]["uri"],
                ];
                text(parts.map(|part| part.as_str().unwrap_or_default()).join(" "))
            }
            (other, _) => Err(ErrorData::invalid_params(format!("unknown tool: {other}"), None)),
        }
    }

    async fn list_resources(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        read(json!({ "resources": [{ "uri": "peer://about", "name": "about" }] }))
    }

    async fn list_resource_templates(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        read(json!({ "resourceTemplates": [{ "uriTemplate": "peer://items/{id}", "name": "item" }] }))
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let text = match request.uri.strip_prefix("peer://items/") {
            Some(id) => format!("item {id}"),
            None => "A server to test with.".to_owned(),
        };
        let result: ReadResourceResult = read(json!({ "contents": [{ "uri": request.uri, "text": text }] }))?;
        Ok(result.into())
    }

    async fn list_prompts(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        read(json!({ "prompts": [{ "name": "review", "arguments": [{ "name": "name", "required": true }] }] }))
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        let name = request.arguments.as_ref().and_then(|given| given.get("name")).and_then(|name| name.as_str());
        let content = json!({ "type": "text", "text": format!("Review {}.", name.unwrap_or_default()) });
        let result: GetPromptResult = read(json!({ "messages": [{ "role": "user", "content": content }] }))?;
        Ok(result.into())
    }
}
