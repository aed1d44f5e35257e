//! Misuse at registration fails at once, with the place and the mend; pages and cursors of what was registered.

#![allow(clippy::unwrap_used, reason = "a test that fails here says where")]

use std::{sync::Arc, time::Duration};

use gudgeon::{
    protocol::{
        CacheHint, Implementation, Prompt, PromptArgument, ResourceTemplate, Revision, Tool, json,
    },
    router::{Handler, Offers, PromptOffer, RoundLimits, ServerFacts, TemplateOffer, ToolOffer},
};
use serde_json::json;

fn offers() -> Offers {
    Offers::new(ServerFacts {
        info: Implementation::new("test", "1"),
        instructions: None,
        revisions: Revision::ALL.into_iter().rev().collect(),
        dialects: Vec::new(),
        page_size: 2,
        list_ttl: Duration::ZERO,
        debug: false,
        request_state_keys: Vec::new(),
        rounds: RoundLimits::default(),
    })
}

fn handler() -> Handler {
    Arc::new(())
}

fn tool(name: &str) -> Tool {
    Tool::new(name, json::raw(r#"{"type":"object"}"#.into()))
}

fn refusal<T>(result: Result<T, gudgeon::error::Error>) -> String {
    result.err().expect("it is refused").to_string()
}

#[test]
fn a_name_is_registered_once() {
    let mut offers = offers();
    offers.tools.add(ToolOffer::new(tool("add"), handler()).unwrap(), true).unwrap();
    let again = offers.tools.add(ToolOffer::new(tool("add"), handler()).unwrap(), true);
    assert_eq!(
        refusal(again),
        "a tool named \"add\" is already registered: give this one another name, or remove that one first"
    );
}

#[test]
fn tool_names_are_letters_digits_and_three_signs() {
    for name in ["", "two words", "ä", "a/b", &"x".repeat(129)] {
        let refused = refusal(ToolOffer::new(tool(name), handler()));
        assert!(refused.contains("is no tool name: use 1 to 128 letters"), "{refused}");
    }
    for name in ["getUser", "DATA_EXPORT_v2", "admin.tools.list", "a-b", &"x".repeat(128)] {
        assert!(ToolOffer::new(tool(name), handler()).is_ok(), "{name}");
    }
}

#[test]
fn schemas_are_compiled_at_registration() {
    let cases = [
        (r#"{"type":"string"}"#, "must describe an object"),
        (
            r#"{"type":"object","properties":{"a":{"type":"integr"}}}"#,
            "input schema of tool \"t\" can't be used",
        ),
        (
            r#"{"type":"object","properties":{"a":{"$ref":"https://example.org/a.json"}}}"#,
            "never fetched",
        ),
        (r#"{"$schema":"https://example.org/mine","type":"object"}"#, "example.org/mine"),
    ];
    for (schema, expected) in cases {
        let refused = refusal(ToolOffer::new(Tool::new("t", json::raw(schema.into())), handler()));
        assert!(refused.contains(expected), "{refused}");
    }
    let mut bad_output = tool("t");
    bad_output.output_schema = Some(json::raw(r#"{"type":7}"#.into()));
    assert!(refusal(ToolOffer::new(bad_output, handler())).contains("output schema of tool \"t\""));
}

#[test]
fn uris_templates_and_completions_are_checked() {
    let template = |uri: &str| {
        let listed: ResourceTemplate =
            serde_json::from_str(&json!({"uriTemplate": uri, "name": "x"}).to_string()).unwrap();
        TemplateOffer::new(listed, handler())
    };
    assert!(refusal(template("books/{id}")).contains("start with a scheme"));
    assert!(refusal(template("shelf://{id")).contains("at position"));
    let mut offers = offers();
    offers.templates.add(template("shelf://{id}").unwrap(), true).unwrap();
    let mut prompt = Prompt::new("greet");
    prompt.arguments = Some(vec![PromptArgument::new("name")]);
    offers.prompts.add(PromptOffer::new(prompt, handler()).unwrap(), true).unwrap();
    offers.add_completion("greet", "name", handler()).unwrap();
    offers.add_completion("shelf://{id}", "id", handler()).unwrap();
    assert!(
        refusal(offers.add_completion("greet", "name", handler())).contains("already completes")
    );
    assert!(refusal(offers.add_completion("greet", "age", handler())).contains("it has name"));
    assert!(refusal(offers.add_completion("nope", "x", handler())).contains("register it first"));
    assert!(refusal(offers.add_method("a b", handler())).contains("acme/reindex"));
    assert!(refusal(offers.add_method("tools/call", handler())).contains("served already"));
    assert!(
        refusal(offers.add_notification("notifications/cancelled", handler()))
            .contains("served already")
    );
    offers.add_notification("notifications/roots/list_changed", handler()).unwrap();
}

#[test]
fn pages_follow_one_another_while_others_come_and_go() {
    let mut offers = offers();
    for name in ["a", "b", "c", "d", "e"] {
        offers.tools.add(ToolOffer::new(tool(name), handler()).unwrap(), true).unwrap();
    }
    let page = |offers: &Offers, cursor: Option<&str>| {
        let page = offers.tools.page(cursor, 2, CacheHint::default()).unwrap();
        (page.items.iter().map(|it| it.name.clone()).collect::<Vec<_>>(), page.next_cursor)
    };
    let (first, cursor) = page(&offers, None);
    assert_eq!(first, ["a", "b"]);
    offers.tools.remove("b").unwrap();
    offers.tools.remove("c").unwrap();
    offers.tools.add(ToolOffer::new(tool("f"), handler()).unwrap(), true).unwrap();
    let (second, cursor) = page(&offers, cursor.as_deref());
    assert_eq!(second, ["d", "e"]);
    let (third, end) = page(&offers, cursor.as_deref());
    assert_eq!((third, end), (vec!["f".to_owned()], None));
    for garbage in ["", "garbage", "dG9vbDo5OQ", "cHJvbXB0OjA"] {
        assert!(offers.tools.page(Some(garbage), 2, CacheHint::default()).is_err(), "{garbage}");
    }
}

#[test]
fn offers_change_by_name_and_by_tag() {
    let mut offers = offers();
    for (name, tag) in [("a", "x"), ("b", "y"), ("c", "x")] {
        let mut offer = ToolOffer::new(tool(name), handler()).unwrap();
        offer.tags = vec![tag.into()];
        offers.tools.add(offer, true).unwrap();
    }
    let before = offers.clone();
    offers.tools.set_enabled(&["b".into()], &["x".into()], false).unwrap();
    assert_eq!(offers.tools.iter().count(), 0);
    assert_eq!(before.tools.iter().count(), 3, "who held the old offers still sees them");
    offers.tools.set_enabled(&[], &["x".into()], true).unwrap();
    assert!(offers.tools.get("a").is_some() && offers.tools.get("b").is_none());
    assert!(refusal(offers.tools.set_enabled(&["zzz".into()], &[], true)).contains("\"zzz\""));
    let changes = json!({"title": "A", "description": "first"});
    offers.tools.update("a", changes.as_object().unwrap()).unwrap();
    assert_eq!(offers.tools.get("a").unwrap().tool.title.as_deref(), Some("A"));
    let renamed = offers.tools.update("a", json!({"name": "z"}).as_object().unwrap());
    assert!(refusal(renamed).contains("register the new one"));
    let gone = json!({"title": null});
    offers.tools.update("a", gone.as_object().unwrap()).unwrap();
    assert_eq!(offers.tools.get("a").unwrap().tool.title, None);
}
