//! Groups of clients: names, the servers that requests go to, and servers that are away for a while.

use std::{collections::BTreeMap, time::Duration};

use gudgeon::{
    Client, Resource, Server, Tool, ToolError,
    client::{ClientBuilder, ClientGroup, Retry, Target},
    error::{Error, ErrorKind},
    protocol,
    transport::Command,
};
use serde::Deserialize;
use serde_json::Value;

use crate::support::{
    http::{Answer, Mock},
    memory::reserve_url,
};

/// The components of a server; each answers with the server's name.
#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Components {
    tools: Vec<String>,
    resources: Vec<String>,
    templates: Vec<String>,
    refuses: bool,
}

#[derive(Deserialize, schemars::JsonSchema)]
#[allow(dead_code, reason = "the URI of the resource does not matter")]
struct OneVariable {
    item: String,
}

#[derive(Deserialize, schemars::JsonSchema)]
#[allow(dead_code, reason = "the URI of the resource does not matter")]
struct TwoVariables {
    item: String,
    part: String,
}

impl Components {
    fn server(self, name: &str) -> Server {
        let refuses = self.refuses;
        let name = name.to_owned();
        let read = move |name: String| match refuses {
            true => Err(ToolError::protocol(-32000, format!("{name} refuses"), None::<()>)),
            false => Ok(name),
        };
        let mut server = Server::new(&*name);
        for tool in self.tools {
            let name = name.clone();
            server = server.add(Tool::new(tool, move || {
                let name = name.clone();
                async move { name }
            }));
        }
        for uri in self.resources {
            let name = name.clone();
            server = server.add(Resource::new(uri, move || {
                let name = name.clone();
                async move { read(name) }
            }));
        }
        for template in self.templates {
            let name = name.clone();
            server = server.add(if template.contains("{part}") {
                Resource::template(template, move |_: TwoVariables| {
                    let name = name.clone();
                    async move { read(name) }
                })
            } else {
                Resource::template(template, move |_: OneVariable| {
                    let name = name.clone();
                    async move { read(name) }
                })
            });
        }
        server
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    #[serde(rename = "case")]
    title: String,
    servers: serde_json::Map<String, Value>,
    names: Option<Value>,
    #[serde(default)]
    call: BTreeMap<String, Value>,
    #[serde(default)]
    read: BTreeMap<String, Value>,
}

fn check(case: &str, expected: &Value, outcome: Result<Value, Error>) {
    match (expected.get("error").and_then(Value::as_str), outcome) {
        (Some(part), Err(error)) => assert!(error.message.contains(part), "{case}: {error}"),
        (None, Ok(value)) => assert_eq!(*expected, value, "{case}"),
        (_, outcome) => panic!("{case}: {outcome:?} instead of {expected}"),
    }
}

fn shelf(name: &str, tools: &[&str]) -> Server {
    let tools = tools.iter().map(|tool| (*tool).to_owned()).collect();
    Components { tools, ..Components::default() }.server(name)
}

/// The table of cases that Python and Node run as well.
#[tokio::test(start_paused = true)]
async fn the_server_that_a_request_goes_to() {
    let cases: Vec<Case> =
        serde_json::from_str(include_str!("../../../tests/client_groups.json")).unwrap();
    for Case { title, servers, names, call, read } in cases {
        let targets = servers.into_iter().map(|(name, components)| {
            let builder = match components {
                Value::Null => Client::builder(["gudgeon-no-such-program"]),
                components => {
                    let components: Components = serde_json::from_value(components).unwrap();
                    Client::builder(components.server(&name))
                }
            };
            (name, builder)
        });
        let group = ClientGroup::connect(targets).await.unwrap();
        if let Some(expected) = names {
            let tools = group.list::<protocol::Tool>().await;
            let names =
                tools.map(|tools| tools.into_iter().map(|tool| Value::String(tool.name)).collect());
            check(&title, &expected, names);
        }
        for (name, expected) in call {
            let called = group.call_tool(&name, ()).await;
            check(&title, &expected, called.map(|result| result.text().into()));
        }
        for (uri, expected) in read {
            let read = group.read_resource(&uri).await;
            let text = |result: protocol::ReadResourceResult| {
                serde_json::to_value(&result.contents[0]).unwrap()["text"].clone()
            };
            check(&title, &expected, read.map(text));
        }
        group.close().await;
    }
}

#[tokio::test(start_paused = true)]
async fn names_are_unique_and_not_empty() {
    let server = shelf("a", &[]);
    for names in [["a", "a"], ["a", ""]] {
        let group = ClientGroup::connect(names.map(|name| (name, Client::builder(&server)))).await;
        assert_eq!(group.unwrap_err().kind, ErrorKind::Misuse);
    }
}

fn at(url: &str) -> ClientBuilder {
    let never = Retry { attempts: 1, ..Retry::default() };
    Client::builder(Target::url(url).unwrap()).options(|options| options.retry = never)
}

#[tokio::test(start_paused = true)]
async fn a_server_that_starts_later_joins_the_group() {
    let url = reserve_url();
    let a = shelf("a", &["who"]);
    let group = ClientGroup::connect([("a", Client::builder(&a)), ("late", at(&url))]);
    let group = group.await.unwrap();
    assert_eq!(group.errors()[0].0, "late");
    assert_eq!(group.errors()[0].1.kind, ErrorKind::Connect);
    let error = group.call_tool("late_who", ()).await.unwrap_err();
    assert_eq!((error.kind, error.target.as_deref()), (ErrorKind::Connect, Some(&*url)));
    let listening = shelf("late", &["who"]).listen(&url).await.unwrap();
    // In the background: nothing asks for that server.
    let joined = async {
        while group.clients().len() < 2 {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(5), joined).await.expect("is tried again");
    assert!(group.errors().is_empty());
    let tools = group.list::<protocol::Tool>().await.unwrap();
    assert_eq!(tools.iter().map(|tool| &*tool.name).collect::<Vec<_>>(), ["a_who", "late_who"]);
    listening.shut_down().await;
    group.close().await;
}

#[tokio::test(start_paused = true)]
async fn a_call_tries_to_reach_its_server_at_once() {
    let url = reserve_url();
    let group = ClientGroup::connect([("late", at(&url))]).await.unwrap();
    let listening = shelf("late", &["who"]).listen(&url).await.unwrap();
    let began = tokio::time::Instant::now();
    assert_eq!(group.call_tool("late_who", ()).await.unwrap().text(), "late");
    assert!(began.elapsed() < Duration::from_millis(700), "before the next attempt is due");
    assert!(group.errors().is_empty());
    listening.shut_down().await;
    group.close().await;
}

#[tokio::test(start_paused = true)]
async fn a_server_that_dies_is_left_out_of_lists_until_it_is_back() {
    let url = reserve_url();
    let listening = shelf("b", &["who"]).listen(&url).await.unwrap();
    let a = shelf("a", &["who"]);
    let group = ClientGroup::connect([("a", Client::builder(&a)), ("b", at(&url))]);
    let group = group.await.unwrap();
    let names = async || {
        let tools = group.list::<protocol::Tool>().await.unwrap();
        tools.into_iter().map(|tool| tool.name).collect::<Vec<_>>()
    };
    assert_eq!(names().await, ["a_who", "b_who"]);
    listening.shut_down().await;
    assert_eq!(names().await, ["a_who"]);
    assert_eq!(group.errors()[0].0, "b");
    assert_eq!(group.call_tool("a_who", ()).await.unwrap().text(), "a");
    let again = shelf("b", &["who"]).listen(&url).await.unwrap();
    assert_eq!(names().await, ["a_who", "b_who"]);
    assert!(group.errors().is_empty());
    again.shut_down().await;
}

#[tokio::test]
async fn a_command_that_ended_is_started_again() {
    const SERVER: &str = r#"
import json, os, sys
for line in sys.stdin:
    message = json.loads(line)
    method, result = message["method"], {}
    if method == "initialize":
        result = dict(protocolVersion=message["params"]["protocolVersion"], serverInfo=dict(name="s", version="1"),
                      capabilities=dict(tools={}))
    elif method == "tools/call" and message["params"]["name"] == "die":
        sys.exit(4)
    elif method == "tools/call":
        result = dict(content=[dict(type="text", text=str(os.getpid()))])
    if "id" in message:
        print(json.dumps(dict(jsonrpc="2.0", id=message["id"], result=result)), flush=True)
"#;
    let legacy = vec![gudgeon::Revision::V2025_11_25];
    let command = Command::new("python3").args(["-c", SERVER]);
    let builder = Client::builder(command).options(|options| options.revisions = legacy);
    let group = ClientGroup::connect([("s", builder)]).await.unwrap();
    let first = group.call_tool("s_pid", ()).await.unwrap().text();
    assert_eq!(group.call_tool("s_die", ()).await.unwrap_err().kind, ErrorKind::Lost);
    assert_ne!(group.call_tool("s_pid", ()).await.unwrap().text(), first);
    group.close().await;
}

#[tokio::test(start_paused = true)]
async fn missing_credentials_are_not_tried_again() {
    let server = Mock::start(|_| Answer::json(401, Value::Null)).await;
    let group = ClientGroup::connect([("s", at(&server.url))]).await.unwrap();
    assert_eq!(group.errors()[0].1.kind, ErrorKind::Auth);
    let asked = server.seen().len();
    assert_eq!(group.call_tool("s_x", ()).await.unwrap_err().kind, ErrorKind::Auth);
    tokio::time::sleep(Duration::from_millis(1500)).await;
    assert_eq!(server.seen().len(), asked);
    group.close().await;
}

#[tokio::test(start_paused = true)]
async fn a_closed_group_makes_no_further_attempt() {
    let url = reserve_url();
    let a = shelf("a", &["who"]);
    let group = ClientGroup::connect([("a", Client::builder(&a)), ("late", at(&url))]);
    let group = group.await.unwrap();
    group.close().await;
    let failed: Vec<_> = group.errors().into_iter().map(|(name, _)| name).collect();
    assert_eq!(failed, ["late"], "closing is not a failure of the others");
    let listening = shelf("late", &["who"]).listen(&url).await.unwrap();
    tokio::time::sleep(Duration::from_millis(1500)).await;
    assert_eq!(group.clients().len(), 1);
    assert!(group.call_tool("late_who", ()).await.is_err());
    listening.shut_down().await;
}
