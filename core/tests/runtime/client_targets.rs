//! The targets of clients: strings, lists of words, and what is neither.
#![allow(clippy::unwrap_used)] // a panic is how a test fails

use gudgeon::{
    Client, Server,
    client::{Target, auth::Auth},
    error::ErrorKind,
    protocol::Tool,
};

#[tokio::test]
async fn a_string_is_a_url() {
    let server = Server::new("shelf").tool("open", || async { "open" });
    let listening = server.listen("http://127.0.0.1:0/mcp").await.unwrap();
    let url = listening.url().to_owned();
    let targets: [Target; 3] = [url.as_str().into(), (&url).into(), url.clone().into()];
    for target in targets {
        let client = Client::connect(target).await.unwrap();
        assert_eq!(client.list::<Tool>().await.unwrap().len(), 1);
        client.close().await;
    }
    listening.shut_down().await;
}

#[test]
fn a_list_of_words_is_a_command() {
    let words = ["python3", "a server.py"];
    let owned: Vec<String> = words.map(str::to_owned).to_vec();
    let targets: [Target; 4] =
        [words.into(), words.to_vec().into(), owned.as_slice().into(), owned.clone().into()];
    for target in targets {
        assert_eq!(target.to_string(), r#"python3 "a server.py""#);
    }
}

#[tokio::test]
async fn what_is_no_target_fails_when_it_is_connected_to() {
    for (target, problem) in [
        (Target::from("npx -y a"), r#"a command is a list of words: ["npx", "-y", "a"]"#),
        (Target::from("ftp://a:secret@b"), "must be a URL (http, https, ws"),
        (Target::from("http:/a"), "two slashes"),
        (Target::from(""), "URL"),
        (Target::from(Vec::<String>::new()), "begin it with a program"),
    ] {
        let failed = Client::connect(target).await.unwrap_err();
        assert_eq!(failed.kind, ErrorKind::Misuse);
        assert!(failed.message.contains(problem), "{failed}");
        assert!(!failed.to_string().contains("secret"), "{failed}");
    }
}

#[test]
fn credentials_are_made_of_strings() {
    assert!(matches!(Auth::from("s3cret"), Auth::Token(token) if token == "s3cret"));
    assert!(matches!(Auth::from(String::from("s3cret")), Auth::Token(_)));
    assert!(matches!(Auth::from("oauth"), Auth::OAuth(_)));
}
