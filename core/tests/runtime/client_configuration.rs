//! The configuration of a host: the servers of a group.

use gudgeon::{
    Server,
    client::{ClientGroup, read_configuration},
    error::ErrorKind,
};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::support::{
    http::{Answer, Mock},
    memory,
};

/// A row of the table that Python and Node run as well.
#[derive(Deserialize)]
struct Row {
    case: String,
    given: Option<Value>,
    file: Option<String>,
    servers: Option<Vec<String>>,
    error: Option<String>,
}

#[test]
fn a_configuration_is_an_object_of_servers_by_name() {
    let rows: Vec<Row> =
        serde_json::from_str(include_str!("../../../tests/client_group_targets.json")).unwrap();
    for Row { case, given, file, servers, error } in rows {
        let text = file.or_else(|| given.map(|value| value.to_string())).unwrap();
        let read = read_configuration(&text);
        let names =
            read.map(|servers| servers.into_iter().map(|(name, _)| name).collect::<Vec<_>>());
        match names {
            Ok(names) => assert_eq!((Some(names), None), (servers, error), "{case}"),
            Err(read) => {
                assert!(error.is_some(), "{case}: {read}");
                assert_eq!(read.kind, ErrorKind::Misuse, "{case}");
                if let Some((_, error)) = error.unwrap().split_once("the server ") {
                    assert!(read.to_string().contains(error), "{case}: {read}");
                }
            }
        }
    }
}

#[test]
fn an_error_names_the_server_and_what_is_wrong() {
    for (given, text) in [
        ("[]", "a configuration is an object of names to servers, or {\"mcpServers\": …}"),
        ("{", "the configuration: line 1, column 1: not valid JSON: EOF"),
        (r#"{"command": "uvx"}"#, "name it: {\"name\": {\"command\": …}}"),
        (r#"{"a": {"url": 1}}"#, "the server \"a\": url must be a string, not a number"),
        (r#"{"a": {"args": []}}"#, "the server \"a\": an entry of a host's configuration needs"),
        (r#"{"a": "npx -y b"}"#, r#"for a command write {"command": "npx", "args": ["-y","b"]}"#),
        (r#"{"a": {"mcpServers": {}}}"#, "\"mcpServers\" belongs at the top"),
        (r#"{"a": {"command": "b", "headers": {"A": "secret"}}}"#, "headers can be sent to http"),
        (r#"{"a": {"command": "b", "env": {"A": ["secret"]}}}"#, "env.A must be a string"),
    ] {
        let error = read_configuration(given).unwrap_err();
        assert_eq!(error.kind, ErrorKind::Misuse);
        let shown = error.to_string();
        assert!(shown.contains(text) && !shown.contains("secret"), "{shown}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_group_connects_to_the_servers_of_a_configuration() {
    let server = Server::new("shelf").tool("count", || async { 2 });
    let listening = server.listen(memory::HTTP).await.unwrap();
    let configuration = json!({
        "mcpServers": {
            "shelf": { "type": "http", "url": listening.url() },
            "gone": { "command": "gudgeon-no-such-program", "args": ["x"] },
        },
        "theme": "dark",
    });
    let servers = read_configuration(&configuration.to_string()).unwrap();
    let group = ClientGroup::connect(servers).await.unwrap();
    assert_eq!(group.call_tool("shelf_count", ()).await.unwrap().data::<u32>().unwrap(), 2);
    assert_eq!(group.errors().len(), 1);
    assert!(group.errors()[0].1.to_string().contains("gudgeon-no-such-program"));
    group.close().await;
    listening.shut_down().await;
}

#[tokio::test(start_paused = true)]
async fn headers_of_an_entry_are_sent_to_its_server() {
    let mock = Mock::start(|_| Answer::json(401, Value::Null)).await;
    let configuration = json!({ "a": { "url": mock.url, "headers": { "X-Tenant": "north" } } });
    let servers = read_configuration(&configuration.to_string()).unwrap();
    let group = ClientGroup::connect(servers).await.unwrap();
    assert_eq!(group.errors()[0].1.kind, ErrorKind::Auth);
    let seen = mock.seen();
    assert!(!seen.is_empty());
    assert!(seen.iter().all(|request| request.header("x-tenant") == Some("north")));
}
