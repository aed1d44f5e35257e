//! The official Rust SDK signs in at the servers of its jobs and calls a tool, or, for a job with steps, makes their calls.
#![forbid(unsafe_code)]

use std::{error::Error, io::stdin, process::Command};

use reqwest::Client;
use rmcp::{
    ServiceExt,
    model::{CallToolRequestParams, CallToolResult},
    transport::{
        AuthClient, StreamableHttpClientTransport,
        auth::{AuthorizationRequest, OAuthState},
        streamable_http_client::StreamableHttpClientTransportConfig,
    },
};
use serde_json::{Value, json};

const REDIRECT_URL: &str = "http://127.0.0.1:9/callback";

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    for job in stdin().lines() {
        let done = perform(&serde_json::from_str(&job?)?).await;
        if let Err(error) = &done {
            eprintln!("Error: {error}");
        }
        println!("{}", json!({ "done": done.is_ok() }));
    }
    Ok(())
}

async fn perform(job: &Value) -> Result<(), Box<dyn Error>> {
    if let Some(steps) = job["steps"].as_array() {
        return perform_steps(job["target"].as_str().unwrap_or_default(), steps).await;
    }
    let [url, tool] = ["url", "tool"].map(|name| job[name].as_str().unwrap_or_default().to_owned());
    let mut sign_in = OAuthState::new(&url, None).await?;
    let request = AuthorizationRequest::new(REDIRECT_URL).with_client_name("rmcp");
    sign_in.start_authorization(request).await?;
    let redirected = follow(&sign_in.get_authorization_url().await?)?;
    sign_in.handle_callback_url(&redirected).await?;
    let manager = sign_in.into_authorization_manager().ok_or("no token was granted")?;
    let transport = StreamableHttpClientTransport::with_client(
        AuthClient::new(Client::new(), manager),
        StreamableHttpClientTransportConfig::with_uri(url),
    );
    let client = ().serve(transport).await?;
    let tools = client.list_all_tools().await?.len();
    let result = client.call_tool(CallToolRequestParams::new(tool)).await?;
    println!("{}", json!({ "tools": tools, "text": text_of(&result) }));
    client.cancel().await?;
    Ok(())
}

/// Makes the calls of the steps without signing in, with the SDK's default options.
async fn perform_steps(url: &str, steps: &[Value]) -> Result<(), Box<dyn Error>> {
    let client = ().serve(StreamableHttpClientTransport::from_uri(url)).await?;
    for step in steps {
        let mut call =
            CallToolRequestParams::new(step["name"].as_str().unwrap_or_default().to_owned());
        call.arguments = step["arguments"].as_object().cloned();
        let got = match client.call_tool(call).await {
            Ok(result) => {
                json!({ "is_error": result.is_error.unwrap_or(false), "text": text_of(&result) })
            }
            Err(error) => json!({ "code": null, "error": error.to_string() }),
        };
        println!("{}", json!({ "check": step["check"], "got": got }));
    }
    client.cancel().await?;
    Ok(())
}

fn text_of(result: &CallToolResult) -> Option<String> {
    result.content.first().and_then(|content| content.as_text()).map(|text| text.text.clone())
}

/// Agrees in the pages of authorization servers, and returns the URL with which the browser returns.
fn follow(page: &str) -> Result<String, Box<dyn Error>> {
    let program = ["tests/interop/protected/follow.py", page];
    let done = Command::new("python3").args(program).output()?;
    match done.status.success() {
        true => Ok(String::from_utf8(done.stdout)?.trim().to_owned()),
        false => Err(String::from_utf8_lossy(&done.stderr).into()),
    }
}
