//! The fixture client in Rust: does what a scenario of the official suite requires, with the server at a URL.
//!
//! `MCP_CONFORMANCE_SCENARIO` names the scenario, `MCP_CONFORMANCE_PROTOCOL_VERSION` the revision to speak, and
//! `MCP_CONFORMANCE_CONTEXT` has the scenario's data as JSON.

use std::{env, error::Error as StdError, future, time::Duration};

use gudgeon::{
    Client, Revision,
    client::Target,
    error::Error,
    protocol::{
        ContentBlock, CreateMessageRequestParams, CreateMessageResult, ElicitAction,
        ElicitRequestParams, ElicitResult, Implementation,
    },
};
use serde::Deserialize;
use serde_json::{Map, Value, json};

/// The data of the scenario "http-custom-headers".
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Context {
    tool_calls: Vec<ToolCall>,
}

#[derive(Deserialize)]
struct ToolCall {
    name: String,
    arguments: Value,
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn StdError>> {
    let url = env::args().nth(1).ok_or("usage: conformance-client URL")?;
    let revision = Revision::parse(&env::var("MCP_CONFORMANCE_PROTOCOL_VERSION")?);
    let builder = Client::builder(Target::url(&url)?)
        .options(|it| {
            it.revisions = revision.into_iter().collect();
            it.timeout = Some(Duration::from_secs(20));
            it.info = Implementation::new("conformance-client", "1.0.0");
            it.roots = Some(vec!["file:///workspace".into()]);
        })
        .on_elicit(|question| future::ready(answer(&question)))
        .on_sample(|_: CreateMessageRequestParams| {
            let content = vec![ContentBlock::text("Paris")];
            future::ready(Ok(CreateMessageResult::new("a-model", content)))
        })
        .on_list_changed(|_| ()); // makes the client listen for changes of lists
    let client = builder.connect().await?;
    let outcome = perform(&client, &env::var("MCP_CONFORMANCE_SCENARIO")?).await;
    client.close().await;
    outcome
}

async fn perform(client: &Client, scenario: &str) -> Result<(), Box<dyn StdError>> {
    match scenario {
        // The servers of this scenario and of "request-metadata" declare no capability.
        "initialize" => (),
        "request-metadata" => drop(client.ping().await?),
        "json-schema-ref-no-deref" => drop(client.list_tools().await?),
        "tools_call" => {
            client.list_tools().await?;
            client.call_tool("add_numbers", json!({ "a": 5, "b": 3 })).await?;
        }
        "elicitation-sep1034-client-defaults" => {
            client.list_tools().await?;
            client.call_tool("test_client_elicitation_defaults", ()).await?;
        }
        "sse-retry" => {
            client.list_tools().await?;
            client.call_tool("test_reconnection", ()).await?;
        }
        "sep-2322-client-request-state" => {
            for name in ["echo_state", "unrelated", "no_state", "no_result_type"] {
                client.call_tool(&format!("test_mrtr_{name}"), ()).await?;
            }
        }
        "http-standard-headers" => {
            for tool in client.list_tools().await? {
                client.call_tool(&tool.name, ()).await?;
            }
            for resource in client.list_resources().await? {
                client.read_resource(&resource.uri).await?;
            }
            for prompt in client.list_prompts().await? {
                client.get_prompt(&prompt.name, ()).await?;
            }
        }
        "http-custom-headers" => {
            client.list_tools().await?;
            let context: Context = serde_json::from_str(&env::var("MCP_CONFORMANCE_CONTEXT")?)?;
            for call in context.tool_calls {
                client.call_tool(&call.name, call.arguments).await?;
            }
        }
        "http-invalid-tool-headers" => {
            for tool in client.list_tools().await? {
                let schema: Value = serde_json::from_str(tool.input_schema.get())?;
                let names = schema["properties"].as_object().into_iter().flat_map(Map::keys);
                let arguments: Map<_, _> =
                    names.map(|it| (it.clone(), json!("us-west1"))).collect();
                client.call_tool(&tool.name, arguments).await?;
            }
        }
        "json-schema-2020-12-preservation" => {
            let mut tools = client.list_tools().await?.into_iter();
            let tool = tools.find(|it| it.name == "json_schema_2020_12_tool").ok_or("no tool")?;
            client.call_tool("json_schema_echo", json!({ "schema": tool.input_schema })).await?;
        }
        unknown => return Err(format!("no scenario is called {unknown:?}").into()),
    }
    Ok(())
}

/// Confirms, where that is asked, and leaves everything else to the schema's defaults.
fn answer(question: &ElicitRequestParams) -> Result<ElicitResult, Error> {
    let is_confirmation = if let ElicitRequestParams::Form(form) = question {
        form.requested_schema.get().contains("\"confirmed\"")
    } else {
        false
    };
    let content = if is_confirmation { json!({ "confirmed": true }) } else { json!({}) };
    let content =
        serde_json::value::to_raw_value(&content).map_err(|it| Error::misuse(it.to_string()))?;
    Ok(ElicitResult::new(ElicitAction::Accept, Some(content)))
}
