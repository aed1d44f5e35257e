//! Variables of resources that are paths: no URI leads a handler out of its folder.

use std::panic::{AssertUnwindSafe, catch_unwind};

use gudgeon::{Resource, Server};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::support::duplex::Peer;

#[derive(Deserialize, JsonSchema)]
struct Read {
    #[serde(default)]
    path: String,
}

fn names(case: &Value, member: &str) -> Vec<String> {
    let names = case[member].as_array().into_iter().flatten();
    names.map(|name| name.as_str().unwrap().to_owned()).collect()
}

#[tokio::test(start_paused = true)]
async fn paths_in_uris() {
    let table = concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/resource_paths.json");
    let table: Value = serde_json::from_str(&std::fs::read_to_string(table).unwrap()).unwrap();
    for case in table.as_array().unwrap() {
        let template = case["template"].as_str().unwrap();
        let mut resource = Resource::template(template, |Read { path }: Read| async move { path });
        for (member, is_checked) in [("paths", true), ("unchecked", false)] {
            let names = names(case, member).into_iter();
            resource = names.fold(resource, |resource, name| resource.check_path(name, is_checked));
        }
        let mut peer = Peer::legacy(&Server::new("files").add(resource)).await;
        for (uri, path) in case["reads"].as_object().unwrap() {
            let reply = peer.request("resources/read", json!({"uri": uri})).await;
            assert_eq!(reply["result"]["contents"][0]["text"], *path, "{uri}: {reply}");
        }
        for uri in names(case, "refuses") {
            let reply = peer.request("resources/read", json!({"uri": uri})).await;
            assert_eq!(reply["error"]["code"], -32002, "{uri}: {reply}");
        }
    }
}

#[test]
fn a_name_that_is_no_variable_is_refused() {
    let read = |Read { path }: Read| async move { path };
    let wrong = Resource::template("files://{+path}", read).check_path("paht", false);
    let panic = catch_unwind(AssertUnwindSafe(|| Server::new("files").add(wrong))).unwrap_err();
    let said = panic.downcast_ref::<String>().expect("a panic with a message");
    assert!(said.contains(r#"has no variable "paht""#), "{said}");
}
