//! Extensions and experimental capabilities of a program's own, which the other side reads (spec: Capabilities; SEP-2133,
//! "Negotiation").

use std::panic::{AssertUnwindSafe, catch_unwind};

use gudgeon::{Client, Context, Revision, Server, error::ErrorKind, server::ServerOptions};
use serde_json::{Value, json};

const SEARCH: &str = "com.example/search";

fn declares(name: &str, settings: Value) -> impl FnOnce(&mut ServerOptions) {
    move |options| drop(options.extensions.insert(name.into(), settings))
}

/// Serves the method of the extension, which returns what the client declared.
fn shelf() -> Server {
    Server::new("shelf").options(declares(SEARCH, json!({"depth": 2}))).method(
        "com.example/search/find",
        |_: Value, ctx: Context| async move {
            let declared = ctx.request().client_capabilities;
            Ok(json!({"extensions": declared.extensions, "experimental": declared.experimental}))
        },
    )
}

fn capabilities(client: &Client) -> Value {
    serde_json::from_str(client.server().capabilities.get()).unwrap()
}

#[tokio::test(start_paused = true)]
async fn each_side_reads_the_others_in_every_revision() {
    for revision in Revision::ALL {
        let server = shelf().options(|options| {
            options.experimental.insert("ranks".into(), json!({}));
        });
        let client = Client::builder(&server)
            .options(|options| {
                options.revisions = vec![revision];
                options.extensions.insert(SEARCH.into(), json!({"width": 3}));
                options.experimental.insert("drafts".into(), json!({}));
            })
            .connect()
            .await
            .unwrap();
        let declared = capabilities(&client);
        assert_eq!(declared["extensions"], json!({SEARCH: {"depth": 2}}), "{revision}");
        assert_eq!(declared["experimental"], json!({"ranks": {}}), "{revision}");
        let found = client.request("com.example/search/find", json!({})).await.unwrap();
        let found: Value = serde_json::from_str(found.get()).unwrap();
        assert_eq!(found["extensions"], json!({SEARCH: {"width": 3}}), "{revision}");
        assert_eq!(found["experimental"], json!({"drafts": {}}), "{revision}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_server_declares_those_of_its_mounted_servers() {
    let town = Server::new("town").mount("house", Server::new("house").mount("shelf", shelf()));
    let town = town.options(declares("com.example/maps", json!({})));
    let client = Client::connect(&town).await.unwrap();
    let expected = json!({SEARCH: {"depth": 2}, "com.example/maps": {}});
    assert_eq!(capabilities(&client)["extensions"], expected);
}

#[tokio::test(start_paused = true)]
async fn a_client_with_wrong_names_or_settings_does_not_connect() {
    for (name, settings, reason) in
        [("search", json!({}), "needs a prefix"), (SEARCH, json!(true), "must be an object")]
    {
        let builder = Client::builder(shelf())
            .options(|options| drop(options.extensions.insert(name.into(), settings)));
        let error = builder.connect().await.unwrap_err();
        assert_eq!(error.kind, ErrorKind::Misuse);
        assert!(error.message.contains(reason), "{error}");
    }
}

#[test]
fn a_server_with_wrong_names_or_settings_is_refused_where_it_is_made() {
    type Make = fn() -> Server;
    let wrong: [(Make, &str); 4] = [
        (|| Server::new("s").options(declares("search", json!({}))), "needs a prefix"),
        (|| Server::new("s").options(declares(SEARCH, json!([]))), "must be an object"),
        (
            || Server::new("s").options(declares(SEARCH, json!({}))).mount("a", shelf()),
            "\"shelf\" can't be mounted into \"s\": both declare \"com.example/search\"",
        ),
        (
            || Server::new("s").mount("a", shelf()).options(declares(SEARCH, json!({}))),
            "a mounted server declares \"com.example/search\" with other settings",
        ),
    ];
    for (make, reason) in wrong {
        let panic = catch_unwind(AssertUnwindSafe(make)).expect_err(reason);
        let said = panic.downcast_ref::<String>().unwrap();
        assert!(said.contains(reason), "{said}");
    }
}
