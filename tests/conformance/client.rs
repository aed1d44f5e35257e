//! The fixture client in Rust: does what a scenario of the official suite requires, with the server at a URL.
//!
//! `MCP_CONFORMANCE_SCENARIO` names the scenario, `MCP_CONFORMANCE_PROTOCOL_VERSION` the revision to speak, and
//! `MCP_CONFORMANCE_CONTEXT` has the scenario's data as JSON.

use std::{
    env,
    error::Error as StdError,
    future,
    io::{Read as _, Write as _},
    net::TcpStream,
    sync::Arc,
    time::Duration,
};

use gudgeon::{
    Client, Revision,
    client::{
        Target,
        auth::{Auth, ClientCredentials, EnterpriseManaged, OAuth, TokenSource, WorkloadIdentity},
    },
    error::Error,
    protocol::{
        ContentBlock, CreateMessageRequestParams, CreateMessageResult, ElicitAction,
        ElicitRequestParams, ElicitResult, Implementation, Prompt, Resource, Tool,
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
    let scenario = env::var("MCP_CONFORMANCE_SCENARIO")?;
    let auth = scenario.starts_with("auth/").then(|| auth(&scenario)).transpose()?;
    let builder = Client::builder(Target::url(&url)?)
        .options(|options| {
            options.revisions = revision.into_iter().collect();
            options.timeout = Some(Duration::from_secs(20));
            options.info = Implementation::new("conformance-client", "1.0.0");
            options.roots = Some(vec!["file:///workspace".into()]);
            options.auth = auth;
        })
        .on_elicit(|question| future::ready(answer(&question)))
        .on_sample(|_: CreateMessageRequestParams| {
            let content = vec![ContentBlock::from("Paris")];
            future::ready(Ok(CreateMessageResult::new("a-model", content)))
        })
        .on_list_changed(|_| ()); // makes the client listen for changes of lists
    let client = builder.connect().await?;
    let outcome = perform(&client, &scenario).await;
    client.close().await;
    outcome
}

async fn perform(client: &Client, scenario: &str) -> Result<(), Box<dyn StdError>> {
    match scenario {
        // The servers of this scenario and of "request-metadata" declare no capability.
        "initialize" => (),
        "request-metadata" => drop(client.ping().await?),
        "json-schema-ref-no-deref" => drop(client.list::<Tool>().await?),
        "tools_call" => {
            client.list::<Tool>().await?;
            client.call_tool("add_numbers", json!({ "a": 5, "b": 3 })).await?;
        }
        "elicitation-sep1034-client-defaults" => {
            client.list::<Tool>().await?;
            client.call_tool("test_client_elicitation_defaults", ()).await?;
        }
        "sse-retry" => {
            client.list::<Tool>().await?;
            client.call_tool("test_reconnection", ()).await?;
        }
        "sep-2322-client-request-state" => {
            for name in ["echo_state", "unrelated", "no_state", "no_result_type"] {
                client.call_tool(&format!("test_mrtr_{name}"), ()).await?;
            }
        }
        "http-standard-headers" => {
            for tool in client.list::<Tool>().await? {
                client.call_tool(&tool.name, ()).await?;
            }
            for resource in client.list::<Resource>().await? {
                client.read_resource(&resource.uri).await?;
            }
            for prompt in client.list::<Prompt>().await? {
                client.get_prompt(&prompt.name, ()).await?;
            }
        }
        "http-custom-headers" => {
            client.list::<Tool>().await?;
            let context: Context = serde_json::from_str(&env::var("MCP_CONFORMANCE_CONTEXT")?)?;
            for call in context.tool_calls {
                client.call_tool(&call.name, call.arguments).await?;
            }
        }
        "http-invalid-tool-headers" => {
            for tool in client.list::<Tool>().await? {
                let schema: Value = serde_json::from_str(tool.input_schema.get())?;
                let names = schema["properties"].as_object().into_iter().flat_map(Map::keys);
                let arguments: Map<_, _> =
                    names.map(|name| (name.clone(), json!("us-west1"))).collect();
                client.call_tool(&tool.name, arguments).await?;
            }
        }
        "json-schema-2020-12-preservation" => {
            let mut tools = client.list::<Tool>().await?.into_iter();
            let tool =
                tools.find(|tool| tool.name == "json_schema_2020_12_tool").ok_or("no tool")?;
            client.call_tool("json_schema_echo", json!({ "schema": tool.input_schema })).await?;
        }
        auth if auth.starts_with("auth/") => {
            for tool in client.list::<Tool>().await? {
                client.call_tool(&tool.name, ()).await?;
            }
        }
        unknown => return Err(format!("no scenario is called {unknown:?}").into()),
    }
    Ok(())
}

/// The data of the scenarios of authorization.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Credentials {
    client_id: Option<String>,
    client_secret: Option<String>,
    private_key_pem: Option<String>,
    signing_algorithm: Option<String>,
    issuer: Option<String>,
    idp_issuer: Option<String>,
    idp_client_id: Option<String>,
    idp_id_token: Option<String>,
    valid_jwt: Option<String>,
}

/// Returns the credentials for a scenario. The authorization server redirects without a user, and its answer is read
/// without a browser.
fn auth(scenario: &str) -> Result<Auth, Box<dyn StdError>> {
    let given = env::var("MCP_CONFORMANCE_CONTEXT").ok();
    let given: Credentials =
        given.map_or(Ok(Credentials::default()), |context| serde_json::from_str(&context))?;
    let client_id = || given.client_id.clone().ok_or("the scenario has no client_id");
    let token = given.idp_id_token.clone().or(given.valid_jwt.clone());
    let token = token.map(|token| -> TokenSource {
        Arc::new(move || Box::pin(future::ready(Ok(token.clone()))))
    });
    Ok(match scenario {
        "auth/client-credentials-basic" | "auth/client-credentials-jwt" => {
            let mut auth = ClientCredentials::default();
            auth.client_id = client_id()?;
            auth.client_secret = given.client_secret;
            auth.private_key = given.private_key_pem;
            auth.algorithm = given.signing_algorithm;
            auth.issuer = given.issuer;
            auth.into()
        }
        "auth/enterprise-managed-authorization" => {
            let mut auth = EnterpriseManaged::default();
            auth.identity_token = token;
            auth.idp = given.idp_issuer.ok_or("the scenario has no identity provider")?;
            auth.client_id = client_id()?;
            auth.client_secret = given.client_secret;
            auth.idp_client_id = given.idp_client_id;
            auth.issuer = given.issuer;
            auth.into()
        }
        "auth/wif-jwt-bearer" => {
            let client_id = given.client_id;
            WorkloadIdentity::new(|identity| {
                (identity.token, identity.client_id) = (token, client_id);
            })
            .into()
        }
        _ => OAuth::new(|oauth| {
            oauth.client_id = given.client_id;
            oauth.client_secret = given.client_secret;
            oauth.issuer = given.issuer;
            oauth.client_metadata_url =
                Some("https://conformance-test.local/client-metadata.json".into());
            oauth.dpop = scenario.starts_with("auth/dpop");
            oauth.on_redirect = Some(Arc::new(|url| Box::pin(redirect(url))));
        })
        .into(),
    })
}

/// Requests a URL and returns the one to which it redirects.
async fn redirect(url: String) -> Result<String, Error> {
    let asked = tokio::task::spawn_blocking(move || {
        let rest = url.strip_prefix("http://").ok_or("not an http URL")?;
        let (host, path) = rest.split_once('/').ok_or("no path")?;
        let mut stream = TcpStream::connect(host)?;
        write!(stream, "GET /{path} HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n\r\n")?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer)?;
        let mut headers = answer.lines().filter_map(|line| line.split_once(": "));
        let location = headers.find(|(name, _)| name.eq_ignore_ascii_case("location"));
        let (_, location) = location.ok_or("the authorization server does not redirect")?;
        Ok::<_, Box<dyn StdError + Send + Sync>>(location.to_owned())
    });
    let location = asked.await.map_err(|error| Error::misuse(error.to_string()))?;
    location.map_err(|error| Error::misuse(error.to_string()))
}

/// Confirms, where that is asked, and leaves everything else to the schema's defaults.
fn answer(question: &ElicitRequestParams) -> Result<ElicitResult, Error> {
    let is_confirmation = if let ElicitRequestParams::Form(form) = question {
        form.requested_schema.get().contains("\"confirmed\"")
    } else {
        false
    };
    let content = if is_confirmation { json!({ "confirmed": true }) } else { json!({}) };
    let content = serde_json::value::to_raw_value(&content)
        .map_err(|error| Error::misuse(error.to_string()))?;
    Ok(ElicitResult::new(ElicitAction::Accept, Some(content)))
}
