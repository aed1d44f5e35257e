//! A client and a server in one process, in every revision.

use std::{collections::HashMap, net::IpAddr};

use gudgeon::{
    Client, Revision, Server,
    error::ErrorKind,
    protocol::{ContentBlock, Tool},
};
use serde_json::{Value, json};

fn shelf() -> Server {
    Server::new("shelf")
        .tool("books", || async { vec!["a".to_owned(), "b".to_owned()] })
        .tool("broken", || async { Err::<String, _>(gudgeon::ToolError::new("out of paper")) })
}

#[tokio::test(start_paused = true)]
async fn a_server_in_memory_is_called_in_every_revision() {
    for revision in Revision::ALL {
        let builder =
            Client::builder(shelf()).options(|options| options.revisions = vec![revision]);
        let client = builder.connect().await.expect("connects");
        assert_eq!(client.server().info.name, "shelf");
        let books = client.call_tool("books", ()).await.expect("answers");
        assert_eq!(books.data::<Value>().expect("any value"), json!(["a", "b"]));
        assert_eq!(books.text(), r#"["a","b"]"#);
        let failure = client.call_tool("broken", ()).await.expect_err("broken");
        assert_eq!((failure.kind, failure.message.as_str()), (ErrorKind::Tool, "out of paper"));
        assert_eq!(client.list::<Tool>().await.expect("lists").len(), 2);
        client.ping().await.expect("answers");
        client.close().await;
    }
}

#[tokio::test(start_paused = true)]
async fn data_is_read_as_types_that_serde_reads_from_strings() {
    let address = IpAddr::from([10, 0, 0, 1]);
    let server = Server::new("network")
        .tool("one", move || async move { address.to_string() })
        .tool("many", move || async move {
            HashMap::from([("a".to_owned(), vec![Some(address.to_string()), None])])
        });
    for revision in Revision::ALL {
        let builder =
            Client::builder(&server).options(|options| options.revisions = vec![revision]);
        let client = builder.connect().await.expect("connects");
        for _ in 0..2 {
            let one = client.call_tool("one", ()).await.expect("answers");
            assert_eq!(one.data::<IpAddr>().expect("an address"), address);
            let many = client.call_tool("many", ()).await.expect("answers");
            let many = many.data::<HashMap<String, Vec<Option<IpAddr>>>>().expect("addresses");
            assert_eq!(many["a"], [Some(address), None]);
            client.list::<Tool>().await.expect("lists");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_text_is_never_taken_for_a_value_unless_its_type_asks_for_one() {
    let server = Server::new("texts")
        .tool("digits", || async { "12345".to_owned() })
        .tool("object", || async { ContentBlock::from(r#"{"a":[1]}"#) })
        .tool("word", || async { "many".to_owned() });
    for revision in Revision::ALL {
        let builder =
            Client::builder(&server).options(|options| options.revisions = vec![revision]);
        let client = builder.connect().await.expect("connects");
        let digits = client.call_tool("digits", ()).await.expect("answers");
        assert_eq!(digits.data::<Value>().expect("any value"), json!("12345"));
        assert_eq!(digits.data::<String>().expect("a string"), "12345");
        let object = client.call_tool("object", ()).await.expect("answers");
        assert_eq!(object.data::<Value>().expect("any value"), json!(r#"{"a":[1]}"#));
        assert_eq!(object.data::<HashMap<String, [u8; 1]>>().expect("a map")["a"], [1]);
        let misfit = object.data::<Vec<u8>>().expect_err("it is an object");
        assert!(misfit.message.contains("invalid type: map"), "{misfit}");
        let word = client.call_tool("word", ()).await.expect("answers");
        let misfit = word.data::<u32>().expect_err("it is a word");
        assert!(misfit.message.contains(r#"invalid type: string "many""#), "{misfit}");
    }
}

#[tokio::test(start_paused = true)]
async fn clones_share_a_connection_and_calls_overlap() {
    let client = Client::connect(&shelf()).await.expect("connects");
    let calls = (0..100).map(|_| {
        let client = client.clone();
        tokio::spawn(async move { client.call_tool("books", ()).await })
    });
    for call in calls.collect::<Vec<_>>() {
        let result = call.await.expect("no panic").expect("answers");
        assert_eq!(result.data::<Vec<String>>().expect("a list").len(), 2);
    }
}
