use serde_json::json;

use super::*;

fn document(text: &str, syntax: Syntax, servers: &'static str) -> Document {
    let document = Document { text: text.to_owned(), syntax, servers, exists: true };
    document.read().unwrap();
    document
}

fn entry(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(members) => members,
        other => panic!("{other}"),
    }
}

const COMMENTED: &str = r#"// My settings
{
    "theme": "dark", // at night
    /* servers */
    "servers": {
        // the first
        "a": { "command": "x", "args": [], },
    },
    "inputs": [1, 2],
}
"#;

#[test]
fn comments_order_and_indentation_of_json_are_kept() {
    let document = document(COMMENTED, Syntax::JsonWithComments, "servers");
    let edited = document.with("b", &entry(json!({ "command": "y", "args": ["z"] }))).unwrap();
    let expected = COMMENTED.replace(
        "[], },\n",
        "[], },\n        \"b\": {\n            \"command\": \"y\",\n            \"args\": [\"z\"],\n        },\n",
    );
    assert_eq!(edited.text(), expected);
    assert_eq!(edited.without("b").unwrap().text(), COMMENTED);
    assert_eq!(edited.entries().keys().collect::<Vec<_>>(), ["a", "b"]);
}

#[test]
fn an_empty_file_becomes_an_object() {
    for text in ["", "\n", "{}", "{}\n", "{ }"] {
        let document = document(text, Syntax::Json, "mcpServers");
        let edited = document.with("a", &entry(json!({ "command": "x" }))).unwrap();
        assert_eq!(
            serde_json::from_str::<Value>(edited.text()).unwrap(),
            json!({ "mcpServers": { "a": { "command": "x" } } }),
            "{text:?}: {}",
            edited.text()
        );
    }
}

#[test]
fn line_ends_and_a_byte_order_mark_are_kept() {
    let text = "\u{feff}{\r\n\t\"mcpServers\": {\r\n\t}\r\n}\r\n";
    let document = document(text, Syntax::Json, "mcpServers");
    let edited = document.with("a", &entry(json!({ "command": "x" }))).unwrap();
    assert!(edited.text().starts_with("\u{feff}{\r\n\t\"mcpServers\": {\r\n\t\t\"a\": {\r\n"));
    assert!(!edited.text().replace("\r\n", "").contains('\n'), "{:?}", edited.text());
}

#[test]
fn a_replaced_entry_stays_in_its_place() {
    let text = "{\n  \"mcpServers\": {\n    \"a\": {\"command\": \"x\"},\n    \"b\": {\"url\": \"u\"}\n  }\n}\n";
    let document = document(text, Syntax::Json, "mcpServers");
    let edited = document.with("a", &entry(json!({ "command": "y" }))).unwrap();
    assert_eq!(edited.entries().keys().collect::<Vec<_>>(), ["a", "b"]);
    assert!(edited.text().ends_with("    \"b\": {\"url\": \"u\"}\n  }\n}\n"), "{}", edited.text());
}

const CODEX: &str = r#"# models
model = "x" # the best

[mcp_servers.a]
command = "npx" # a
args = ["-y"]

[mcp_servers.a.env]
TOKEN = "s3cret"

[profiles.p]
model = "y"
"#;

#[test]
fn comments_and_tables_of_toml_are_kept() {
    let document = document(CODEX, Syntax::Toml, "mcp_servers");
    let new = entry(json!({ "command": "y", "args": ["z"], "env": { "K": "v" } }));
    let edited = document.with("b-c", &new).unwrap();
    assert_eq!(edited.entries()["b-c"], Value::Object(new));
    let table = "[mcp_servers.b-c]\ncommand = \"y\"\nargs = [\"z\"]\nenv = { K = \"v\" }\n";
    let without = edited.text().replace(table, "");
    assert!(edited.text().contains(table), "{}", edited.text());
    assert_eq!(
        without.split_whitespace().collect::<String>(),
        CODEX.split_whitespace().collect::<String>()
    );
    assert_eq!(edited.without("b-c").unwrap().text().trim_end(), CODEX.trim_end());
    let masked = edited.masked("b-c");
    assert!(!masked.contains("s3cret") && masked.contains("TOKEN = \"…\""), "{masked}");
}

#[test]
fn inline_tables_of_servers_are_edited_as_such() {
    let text = "mcp_servers = { a = { command = \"x\" } }\n";
    let document = document(text, Syntax::Toml, "mcp_servers");
    let edited = document.with("b", &entry(json!({ "command": "y" }))).unwrap();
    assert_eq!(edited.entries()["b"], json!({ "command": "y" }));
    assert_eq!(edited.entries()["a"], json!({ "command": "x" }));
}

/// A host's settings, two servers of the user, and the one that is changed.
const SECRETS: &str = r#"{
  "account": { "id": "s3cret", "pins": [1234], "isKnown": true },
  "mcpServers": {
    "near": {
      "command": "s3cret", // theirs
      "args": ["--quiet", "s3cret", "a=s3cret", "${env:R}"],
      "env": { "K": "s3cret", "N": 1234 }
    },
    "far": { "url": "https://s3cret.example/s3cret", "oauth": { "clientSecret": "s3cret" }, "timeout": 1234 },
    "own": {
      "command": "npx",
      "args": ["--quiet", "--token", "s3cret", "DB=a;password=s3cret", "run"],
      "env": { "K": "s3cret", "R": "${env:R}", "N": 1234 },
      "url": "https://me:s3cret@b.example/mcp?key=s3cret",
      "headers": { "H": "s3cret" },
      "oauth": { "clientSecret": "s3cret", "scopes": ["a"] },
      "bearer_token_env_var": "TOKEN",
      "timeout": 60
    }
  }
}
"#;

#[test]
fn a_change_shows_nothing_of_other_servers_and_no_secrets_of_its_own() {
    let own = r#"    "own": {
      "command": "npx",
      "args": ["--quiet", "--token", "…", "DB=…", "run"],
      "env": { "K": "…", "R": "${env:R}", "N": "…" },
      "url": "https://…@b.example/mcp?…",
      "headers": { "H": "…" },
      "oauth": { "clientSecret": "…", "scopes": ["a"] },
      "bearer_token_env_var": "TOKEN",
      "timeout": 60
    }"#;
    let document = document(SECRETS, Syntax::JsonWithComments, "mcpServers");
    let masked = document.masked("own");
    assert!(!masked.contains("s3cret") && !masked.contains("1234"), "{masked}");
    assert!(masked.contains(own), "{masked}");
    assert!(masked.contains("\"isKnown\": true") && masked.contains("// theirs"), "{masked}");
    assert!(masked.contains(r#"["…", "…", "…", "${env:R}"]"#), "{masked}");
}

#[test]
fn toml_is_shown_as_json_is() {
    let servers = document(SECRETS, Syntax::JsonWithComments, "mcpServers").entries();
    let mut edited = document("[account]\nid = 's3cret' # why\n", Syntax::Toml, "mcpServers");
    for (name, server) in &servers {
        edited = edited.with(name, server.as_object().unwrap()).unwrap();
    }
    let masked = edited.masked("own");
    assert!(!masked.contains("s3cret") && !masked.contains("1234"), "{masked}");
    assert!(masked.contains("id = \"…\" # why"), "{masked}");
    let shown = document(SECRETS, Syntax::JsonWithComments, "mcpServers").masked("own");
    let shown = document(&shown, Syntax::JsonWithComments, "mcpServers").entries();
    assert_eq!(document(&masked, Syntax::Toml, "mcpServers").entries(), shown);
}

#[test]
fn a_syntax_error_has_line_and_column() {
    for (text, syntax, expected) in [
        ("{\n  \"a\": [1,\n}", Syntax::Json, "line 3, column 1: "),
        ("{\n  \"a\" 1\n}", Syntax::JsonWithComments, "line 2, column 7: "),
        ("// no\n{}", Syntax::Json, "line 1, column 1: "),
        ("a = 1\nb = [1,,]\n", Syntax::Toml, "line 2, column 8: "),
        ("[]", Syntax::Json, "must hold an object"),
        ("{\"mcpServers\": []}", Syntax::Json, "must be an object of servers"),
        ("{\"a\": 1, \"a\": 2}", Syntax::Json, "\"a\" occurs twice"),
    ] {
        let document =
            Document { text: text.to_owned(), syntax, servers: "mcpServers", exists: true };
        let error = document.read().unwrap_err();
        assert!(error.contains(expected), "{error}");
    }
}
