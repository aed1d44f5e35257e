//! Wrong registrations fail at once with the place and the fix; pages and cursors of registered items.

use std::{sync::Arc, time::Instant};

use crate::support::{Handler, kept};
use gudgeon::{
    protocol::{Implementation, Prompt, ResourceTemplate, Revision, Tool, json},
    router::{
        Components, Definition, RegisteredPrompt, RegisteredTemplate, RegisteredTool, ServerFacts,
        Visibility,
    },
    service::{Input, Output, Service},
};
use serde_json::json;

fn components() -> Components {
    Components::new(ServerFacts {
        page_size: 2,
        ..ServerFacts::from(Implementation::new("test", "1"))
    })
}

fn handler() -> Handler {
    Handler::Plain
}

fn tool(name: &str) -> Tool {
    Tool::new(name, json::raw(r#"{"type":"object"}"#.into()))
}

fn completion(target: &str, argument: &str) -> Definition {
    Definition::Completion { target: target.into(), argument: argument.into() }
}

fn method(name: &str) -> Definition {
    Definition::Method(name.into())
}

fn notification(name: &str) -> Definition {
    Definition::Notification(name.into())
}

fn refusal<T>(result: Result<T, gudgeon::error::Error>) -> String {
    result.err().expect("it is refused").to_string()
}

#[test]
fn a_name_is_registered_once() {
    let mut components = components();
    components.tools.add(RegisteredTool::new(tool("add"), kept(handler())).unwrap(), true).unwrap();
    let again =
        components.tools.add(RegisteredTool::new(tool("add"), kept(handler())).unwrap(), true);
    assert_eq!(
        refusal(again),
        "a tool named \"add\" is already registered: give this one another name, or remove that one first"
    );
}

#[test]
fn tool_names_are_letters_digits_and_three_signs() {
    for name in ["", "two words", "ä", "a/b", &"x".repeat(129)] {
        let refused = refusal(RegisteredTool::new(tool(name), kept(handler())));
        assert!(refused.contains("is not a tool name: use 1 to 128 letters"), "{refused}");
    }
    for name in ["getUser", "DATA_EXPORT_v2", "admin.tools.list", "a-b", &"x".repeat(128)] {
        assert!(RegisteredTool::new(tool(name), kept(handler())).is_ok(), "{name}");
    }
}

#[test]
fn reserved_meta_keys_are_reported() {
    let mut components = components();
    let mut noted = tool("noted");
    noted.meta = Some(json::raw(r#"{"com.example/ok":1,"not ok":2}"#.into()));
    let warned =
        components.tools.add(RegisteredTool::new(noted, kept(handler())).unwrap(), true).unwrap();
    let [warned] = &warned[..] else { panic!("one text, not {warned:?}") };
    assert!(
        warned.starts_with(r#"tool "noted": _meta: the key "not ok" is not a name"#),
        "{warned}"
    );
    let mut prompt = Prompt::from("p");
    prompt.meta = Some(json::raw(r#"{"dev.mcp/x":1}"#.into()));
    let warned = components
        .prompts
        .add(RegisteredPrompt::new(prompt, kept(handler())).unwrap(), true)
        .unwrap();
    assert!(
        warned[0].starts_with(r#"prompt "p": _meta: the key "dev.mcp/x" has a prefix"#),
        "{warned:?}"
    );
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
        let refused =
            refusal(RegisteredTool::new(Tool::new("t", json::raw(schema.into())), kept(handler())));
        assert!(refused.contains(expected), "{refused}");
    }
    let mut bad_output = tool("t");
    bad_output.output_schema = Some(json::raw(r#"{"type":7}"#.into()));
    assert!(
        refusal(RegisteredTool::new(bad_output, kept(handler())))
            .contains("output schema of tool \"t\"")
    );
}

#[test]
fn uris_templates_and_completions_are_checked() {
    let template = |uri: &str| {
        let listed: ResourceTemplate =
            serde_json::from_str(&json!({"uriTemplate": uri, "name": "x"}).to_string()).unwrap();
        RegisteredTemplate::new(listed, kept(handler()))
    };
    assert!(refusal(template("books/{id}")).contains("start with a scheme"));
    assert!(refusal(template("shelf://{id")).contains("at position"));
    let mut components = components();
    components.templates.add(template("shelf://{id}").unwrap(), true).unwrap();
    let mut prompt = Prompt::from("greet");
    prompt.arguments = Some(vec!["name".into()]);
    components.prompts.add(RegisteredPrompt::new(prompt, kept(handler())).unwrap(), true).unwrap();
    components.add(completion("greet", "name"), kept(handler())).unwrap();
    components.add(completion("shelf://{id}", "id"), kept(handler())).unwrap();
    assert!(
        refusal(components.add(completion("greet", "name"), kept(handler())))
            .contains("already completes")
    );
    assert!(
        refusal(components.add(completion("greet", "age"), kept(handler())))
            .contains("it has name")
    );
    assert!(
        refusal(components.add(completion("nope", "x"), kept(handler())))
            .contains("register it first")
    );
    assert!(refusal(components.add(method("a b"), kept(handler()))).contains("acme/reindex"));
    components.add(method("tools/call"), kept(handler())).unwrap();
    assert!(
        refusal(components.add(method("tools/call"), kept(handler())))
            .contains("already registered")
    );
    assert!(refusal(components.add(method("initialize"), kept(handler()))).contains("middleware"));
    assert!(
        refusal(components.add(notification("notifications/cancelled"), kept(handler())))
            .contains("already served")
    );
    components.add(notification("notifications/roots/list_changed"), kept(handler())).unwrap();
}

#[test]
fn pages_stay_consistent_while_entries_change() {
    let mut components = components();
    for name in ["a", "b", "c", "d", "e"] {
        components
            .tools
            .add(RegisteredTool::new(tool(name), kept(handler())).unwrap(), true)
            .unwrap();
    }
    let page = |components: &Components, after: Option<u64>| {
        let page = components.tools.page(after, 2, &Visibility::everything());
        (page.items.iter().map(|tool| tool.name.clone()).collect::<Vec<_>>(), page.next)
    };
    let (first, after) = page(&components, None);
    assert_eq!(first, ["a", "b"]);
    components.tools.remove("b").unwrap();
    components.tools.remove("c").unwrap();
    components.tools.add(RegisteredTool::new(tool("f"), kept(handler())).unwrap(), true).unwrap();
    let (second, after) = page(&components, after);
    assert_eq!(second, ["d", "e"]);
    let (third, end) = page(&components, after);
    assert_eq!((third, end), (vec!["f".to_owned()], None));
    assert!(components.tools.has_place(5) && !components.tools.has_place(6));
}

#[test]
fn a_page_is_serialized_once_per_change() {
    let mut components = components();
    for name in ["a", "b", "c"] {
        components
            .tools
            .add(RegisteredTool::new(tool(name), kept(handler())).unwrap(), true)
            .unwrap();
    }
    let page = |components: &Components, after, size| {
        components.tools.page(after, size, &Visibility::everything())
    };
    let first = page(&components, None, 2);
    assert!(Arc::ptr_eq(&first.spellings, &page(&components, None, 2).spellings));
    assert!(Arc::ptr_eq(&first.spellings, &page(&components.clone(), None, 2).spellings));
    assert!(!Arc::ptr_eq(&first.spellings, &page(&components, Some(1), 2).spellings));
    assert_eq!(page(&components, None, 1).items.len(), 1, "another size is another page");
    let changes: [fn(&mut Components); 4] = [
        |components| {
            components.tools.update("a", json!({"title": "A"}).as_object().unwrap()).unwrap();
        },
        |components| assert!(components.tools.set_enabled(&["a".into()], &[], false).unwrap()),
        |components| components.tools.remove("c").unwrap(),
        |components| {
            drop(
                components
                    .tools
                    .add(RegisteredTool::new(tool("d"), kept(handler())).unwrap(), true)
                    .unwrap(),
            );
        },
    ];
    let mut titles = Vec::new();
    for change in changes {
        let before = page(&components, None, 2);
        change(&mut components);
        let after = page(&components, None, 2);
        assert!(!Arc::ptr_eq(&before.spellings, &after.spellings));
        titles.push(after.items.iter().map(|tool| tool.name.clone()).collect::<String>());
    }
    assert_eq!(titles, ["ab", "bc", "b", "bd"]);
}

#[test]
fn a_completion_goes_with_what_it_completes() {
    let mut components = components();
    let mut greet = Prompt::from("greet");
    greet.arguments = Some(vec!["name".into()]);
    let component = RegisteredPrompt::new(greet, kept(handler())).unwrap();
    for _ in 0..2 {
        components.prompts.add(component.clone(), true).unwrap();
        components.add(completion("greet", "name"), kept(handler())).unwrap();
        assert!(capabilities(&components).contains("completions"));
        components.prompts.remove("greet").unwrap();
        assert!(!capabilities(&components).contains("completions"));
    }
}

/// Returns the server's declared capabilities.
fn capabilities(components: &Components) -> String {
    let now = Instant::now();
    let mut service = Service::new(Arc::new(components.clone()), &gudgeon::test_pair::start(now));
    service.handle(now, Input::Frame(br#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}"#));
    match service.poll() {
        Some(Output::Send(frame)) => String::from_utf8(frame).unwrap(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn components_change_by_name_and_by_tag() {
    let mut components = components();
    for (name, tag) in [("a", "x"), ("b", "y"), ("c", "x")] {
        let mut component = RegisteredTool::new(tool(name), kept(handler())).unwrap();
        component.options.tags = vec![tag.into()];
        components.tools.add(component, true).unwrap();
    }
    let before = components.clone();
    assert!(components.tools.set_enabled(&["b".into()], &["x".into()], false).unwrap());
    let again = components.tools.set_enabled(&["b".into()], &["x".into()], false);
    assert!(!again.unwrap(), "that changes nothing");
    assert_eq!(components.tools.iter().count(), 0);
    assert_eq!(before.tools.iter().count(), 3, "who held the old components still sees them");
    assert!(components.tools.set_enabled(&[], &["x".into()], true).unwrap());
    assert!(components.tools.get("a").is_some() && components.tools.get("b").is_none());
    assert!(refusal(components.tools.set_enabled(&["zzz".into()], &[], true)).contains("\"zzz\""));
    let changes = json!({"title": "A", "description": "first"});
    components.tools.update("a", changes.as_object().unwrap()).unwrap();
    assert_eq!(components.tools.get("a").unwrap().tool.title.as_deref(), Some("A"));
    let renamed = components.tools.update("a", json!({"name": "z"}).as_object().unwrap());
    assert!(refusal(renamed).contains("register the new one"));
    let gone = json!({"title": null});
    components.tools.update("a", gone.as_object().unwrap()).unwrap();
    assert_eq!(components.tools.get("a").unwrap().tool.title, None);
}

#[test]
fn features_that_hosts_reject_are_reported_at_registration() {
    let warnings = |name: &str, schema: serde_json::Value| {
        let mut components = components();
        let listed = Tool::new(name, json::raw(schema.to_string()));
        components.tools.add(RegisteredTool::new(listed, kept(handler())).unwrap(), true).unwrap()
    };
    let property = |schema: serde_json::Value| {
        let defs = json!({"book": {"type": "object"}});
        json!({"type": "object", "properties": {"shelf": {"type": "object", "properties": {"a": schema}}}, "$defs": defs})
    };
    let object = || json!({"type": "object", "properties": {"a": {"type": "string"}}});
    let with = |key: &str, value: serde_json::Value| {
        let mut schema = object();
        schema[key] = value;
        schema
    };
    let cases = [
        (warnings("admin.list", object()), "tool \"admin.list\": its name has a \".\""),
        (warnings(&"x".repeat(65), object()), "longer than the 64 characters"),
        (
            warnings("t", property(json!({"type": "string", "pattern": "(?=.*a).{8,}"}))),
            "matching \"(?=.*a).{8,}\" needs look-around",
        ),
        (
            warnings("t", with("$schema", json!("https://json-schema.org/draft/2020-12/schema"))),
            "tool \"t\": its input schema has \"$schema\"",
        ),
        (
            warnings("t", with("anyOf", json!([{"required": ["a"]}]))),
            "has \"anyOf\" around all arguments",
        ),
        (
            warnings(
                "t",
                json!({"type": "object", "properties": {"two words": {"type": "string"}}}),
            ),
            "its argument \"two words\" is not accepted",
        ),
        (warnings("t", property(json!({"$ref": "#/$defs/book"}))), "has \"$ref\" at shelf.a"),
        (
            warnings("t", property(json!({"type": "array"}))),
            "an array without an \"items\" schema at shelf.a",
        ),
        (
            warnings("t", property(json!({"type": "array", "prefixItems": [{"type": "string"}]}))),
            "an array without an \"items\" schema at shelf.a",
        ),
        (
            warnings("t", property(json!({"anyOf": [{"type": "string"}, {"type": "null"}]}))),
            "\"anyOf\" with null at shelf.a",
        ),
    ];
    for (texts, expected) in cases {
        assert_eq!(texts.len(), 1, "{expected}: {texts:?}");
        assert!(texts[0].contains(expected), "{expected}: {texts:?}");
    }
    let twice =
        json!({"type": "object", "properties": {"a": {"type": "array"}, "b": {"type": "array"}}});
    assert_eq!(warnings("t", twice).len(), 1, "a problem is told once");
    for fine in [
        object(),
        property(json!({"type": ["string", "null"]})),
        property(json!({"type": "array", "items": {"type": "integer"}})),
        property(
            json!({"type": "object", "properties": {"$ref": {"type": "string"}, "anyOf": {"type": "string"}}}),
        ),
        property(json!({"anyOf": [{"type": "string"}, {"type": "integer"}]})),
        property(json!({"enum": [{"$ref": "no schema"}], "default": {"$schema": "none either"}})),
    ] {
        assert_eq!(warnings("read-only_tool", fine), Vec::<String>::new());
    }
}

#[test]
fn revisions_are_named_by_their_dates_and_spoken_newest_first() {
    let mut facts = ServerFacts::from(Implementation::new("test", "1"));
    let dates = ["2025-06-18", "2026-07-28", "2025-06-18"];
    facts.set_revisions(Revision::named(&dates).unwrap()).unwrap();
    assert_eq!(facts.revisions, [Revision::V2026_07_28, Revision::V2025_06_18]);
    let unknown = refusal(Revision::named(&["2023-01-01"]));
    assert!(unknown.contains("\"2023-01-01\"") && unknown.contains("2025-11-25"), "{unknown}");
    assert!(refusal(Revision::named::<&str>(&[])).contains("2025-11-25"));
    assert!(refusal(facts.set_revisions([])).contains("at least one"));
}
