use super::{super::Notation, *};

fn read(entry: &Value) -> Result<Entry, Problem> {
    Entry::read(Language::Rust, entry)
}

fn pair(name: &str, value: &str) -> (String, String) {
    (name.to_owned(), value.to_owned())
}

#[test]
fn entries_of_every_spelling_are_read() {
    let zed = json!({ "command": { "path": "a", "args": ["b"], "env": { "K": 1, "L": true } } });
    let Ok(Entry::Command { program, arguments, environment, .. }) = read(&zed) else { panic!() };
    assert_eq!((program.as_str(), arguments[0].as_str()), ("a", "b"));
    assert_eq!(environment, [pair("K", "1"), pair("L", "true")]);
    let codex = json!({ "url": "https://a", "bearer_token_env_var": "TOKEN",
        "http_headers": { "A": "b" }, "env_http_headers": { "C": "D" } });
    let Ok(Entry::Url { headers, .. }) = read(&codex) else { panic!() };
    let expected =
        [pair("A", "b"), pair("C", "${env:D}"), pair("Authorization", "Bearer ${env:TOKEN}")];
    assert_eq!(headers, expected);
    for name in URLS {
        let entry = read(&json!({ name: "http://a", "type": "http" })).unwrap();
        assert_eq!(entry, Entry::Url { url: "http://a".into(), headers: Vec::new() });
    }
    let local = json!({ "type": "local", "command": "a", "env": "inherit", "restart": true });
    let Ok(Entry::Command { inherits, restarts, .. }) = read(&local) else { panic!() };
    assert!(inherits && restarts);
}

#[test]
fn an_entry_is_read_back_from_its_json() {
    for given in [
        json!({ "command": "a", "args": ["b"], "env": { "A": "1" }, "cwd": "/c", "restart": true,
            "envFile": ".env" }),
        json!({ "command": "a", "env": "inherit" }),
        json!({ "url": "https://a/", "headers": { "A": "b" } }),
    ] {
        let entry = read(&given).unwrap();
        assert_eq!(read(&entry.to_json()), Ok(entry));
    }
}

#[test]
fn an_error_names_the_member_and_no_value() {
    for (entry, expected) in [
        (json!(1), "an entry must be an object, not a number"),
        (json!({}), "needs \"command\" or \"url\"; this one has no members"),
        (json!({ "args": [] }), "this one has args"),
        (json!({ "command": "" }), "command must be a program's name or path, not an empty string"),
        (json!({ "command": ["a", "s3cret"] }), "not a list; its arguments belong in args"),
        (
            json!({ "command": { "args": [] } }),
            "command must be a program's name or path, not null",
        ),
        (
            json!({ "command": "a", "args": "s3cret" }),
            "args must be a list of strings, not a string; write one",
        ),
        (
            json!({ "command": "a", "args": ["b", 3] }),
            "args must be a list of strings, but args[1] is a number",
        ),
        (
            json!({ "command": "a", "env": { "K": ["s3cret"] } }),
            "env.K must be a string, not a list",
        ),
        (
            json!({ "command": "a", "env": "s3cret" }),
            "env must be an object of strings, or \"inherit\", not a string",
        ),
        (json!({ "command": "a", "cwd": 1 }), "cwd must be a string, not a number"),
        (json!({ "command": "a", "envFile": ["s3cret"] }), "envFile must be a string, not a list"),
        (
            json!({ "command": "a", "restart": "s3cret" }),
            "restart must be true or false, not a string",
        ),
        (json!({ "command": "a", "headers": { "A": "s3cret" } }), "headers can be sent to http"),
        (json!({ "command": "a", "type": "http" }), "must be \"stdio\", not \"http\""),
        (json!({ "url": ["s3cret"] }), "url must be a string, not a list"),
        (json!({ "httpUrl": 1 }), "httpUrl must be a string, not a number"),
        (
            json!({ "url": "http://a", "headers": ["s3cret"] }),
            "headers must be an object of strings, not a list",
        ),
        (
            json!({ "url": "http://a", "headers": { "A": ["s3cret"] } }),
            "headers.A must be a string, not a list",
        ),
    ] {
        let error = read(&entry).unwrap_err().message;
        assert!(error.contains(expected) && !error.contains("s3cret"), "{error}");
    }
}

#[test]
fn every_string_is_resolved_and_an_error_names_its_member() {
    let resolver = |notation| {
        Resolver::new(notation, "/no/such/folder".into(), None, |name| {
            (name == "A").then(|| "x".to_owned())
        })
    };
    let entry =
        json!({ "command": "${A}", "args": ["${A}"], "env": { "B": "${A}" }, "cwd": "${A}" });
    let found = read(&entry).unwrap().resolve(&resolver(Notation::All)).unwrap();
    assert_eq!(
        found,
        read(&json!({ "command": "x", "args": ["x"], "env": { "B": "x" }, "cwd": "x" })).unwrap()
    );
    let entry = json!({ "url": "http://${A}", "headers": { "C": "${A}" } });
    let found = read(&entry).unwrap().resolve(&resolver(Notation::All)).unwrap();
    assert_eq!(found, read(&json!({ "url": "http://x", "headers": { "C": "x" } })).unwrap());
    for (entry, member) in [
        (json!({ "command": "${B}" }), "command: "),
        (json!({ "command": "a", "args": ["b", "${B}"] }), "args[1]: "),
        (json!({ "command": "a", "cwd": "${B}" }), "cwd: "),
        (json!({ "command": "a", "envFile": "${B}" }), "envFile: "),
        // A reference never stands for another member, so members can't refer to each other in a circle.
        (
            json!({ "command": "a", "env": { "B": "${C}", "C": "${B}" } }),
            "env.B: the environment variable C is not set",
        ),
        (json!({ "url": "${B}" }), "url: "),
        (json!({ "url": "http://a", "headers": { "D": "${B}" } }), "headers.D: "),
        (
            json!({ "command": "a", "envFile": ".env" }),
            "envFile: /no/such/folder/.env: No such file",
        ),
    ] {
        let error = read(&entry).unwrap().resolve(&resolver(Notation::All)).unwrap_err();
        assert!(error.starts_with(member), "{error}");
    }
}

#[test]
fn variables_of_codex_are_read_in_headers_only() {
    let resolver = Resolver::new(Notation::Headers, "/".into(), None, |_| Some("x".to_owned()));
    let entry = read(&json!({ "url": "http://${A}", "bearer_token_env_var": "A" })).unwrap();
    let expected = json!({ "url": "http://${A}", "headers": { "Authorization": "Bearer x" } });
    assert_eq!(entry.resolve(&resolver), Ok(read(&expected).unwrap()));
}
