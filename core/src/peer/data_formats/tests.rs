#![allow(clippy::unwrap_used, reason = "a test that fails here says where")]

use serde_json::json;

use super::*;
use crate::{
    peer::{KnownTools, ListedTools},
    protocol::json,
};

fn listed(schema: &Value) -> KnownTools {
    let mut tools = KnownTools::default();
    let tool = json!({"name": "t", "inputSchema": {}, "outputSchema": schema});
    tools.learn(ListedTools::read(&mut vec![json::to_raw(&tool)], true), true);
    tools.use_formats();
    tools
}

fn formats(tools: &KnownTools, result: &Value) -> Option<DataFormats> {
    tools.read_result("t", &json::to_raw(result)).unwrap().formats
}

/// Returns the nodes for the data `1`.
fn nodes(schema: &Value) -> Option<Value> {
    let formats = formats(&listed(schema), &json!({"content": [], "structuredContent": 1}))?;
    formats.to_json().map(|it| serde_json::from_str(it).unwrap())
}

fn string(format: &str) -> Value {
    json!({"type": "string", "format": format})
}

#[test]
fn each_format_is_found_and_others_are_not() {
    for format in FORMATS {
        assert_eq!(nodes(&string(format)), Some(json!([{"formats": [format]}])));
    }
    let bytes = json!({"type": "string", "contentEncoding": "base64"});
    assert_eq!(nodes(&bytes), Some(json!([{"formats": ["base64"]}])));
    for schema in [
        string("email"),
        json!({"type": "integer", "format": "date"}),
        json!({"properties": {"format": {"type": "string"}}}),
        json!({"type": "string", "contentEncoding": "gzip"}),
        json!({"format": 1}),
        json!({"format": "date", "type": 1}),
        json!(true),
        json!("\"format\""),
    ] {
        assert_eq!(nodes(&schema), None, "{schema}");
    }
}

#[test]
fn places_are_found_inside_of_objects_and_arrays() {
    let (day, id) = (string("date"), string("uuid"));
    let schema = json!({
        "properties": {"day": day, "title": {"type": "string"}, "all": {"items": {"$ref": "#/$defs/a~1%62"}}},
        "additionalProperties": id,
        "$defs": {"a/b": {"prefixItems": [{"type": "string"}, day], "items": id}},
    });
    assert_eq!(
        nodes(&schema),
        Some(json!([
            {"members": {"all": 3, "day": 1}, "others": 4},
            {"formats": ["date"]},
            {},
            {"rest": 5},
            {"formats": ["uuid"]},
            {"first": [null, 7], "rest": 8},
            {},
            {"formats": ["date"]},
            {"formats": ["uuid"]},
        ]))
    );
    let earlier = json!({"items": [day], "additionalItems": id});
    let expected = json!([{"first": [1], "rest": 2}, {"formats": ["date"]}, {"formats": ["uuid"]}]);
    assert_eq!(nodes(&earlier), Some(expected));
    let pattern = json!({"patternProperties": {"^x": {}}, "additionalProperties": day});
    assert_eq!(nodes(&pattern), None);
}

#[test]
fn a_string_with_a_format_among_alternatives_has_it_unless_it_may_be_any_string() {
    let (day, moment, nothing) = (string("date"), string("date-time"), json!({"type": "null"}));
    for (schema, formats) in [
        (json!({"anyOf": [day, nothing]}), json!(["date"])),
        (json!({"oneOf": [day, {"type": "integer"}]}), json!(["date"])),
        (json!({"type": ["string", "null"], "format": "date"}), json!(["date"])),
        (json!({"anyOf": [day, moment]}), json!(["date-time", "date"])),
        (json!({"allOf": [{"type": "string"}, {"format": "date"}]}), json!(["date"])),
        (json!({"type": "string", "anyOf": [{"format": "date"}]}), json!(["date"])),
        (json!({"format": "date", "anyOf": [{"type": "string"}, nothing]}), json!(["date"])),
    ] {
        assert_eq!(nodes(&schema), Some(json!([{"formats": formats}])), "{schema}");
    }
    for schema in [
        json!({"anyOf": [day, {"type": "string"}]}),
        json!({"anyOf": [day, {"enum": ["never"]}]}),
        json!({"anyOf": [day, {"const": "never"}]}),
        json!({"anyOf": [{"properties": {"a": day}}, {"properties": {"a": {"type": "string"}}}]}),
    ] {
        assert_eq!(nodes(&schema), None, "{schema}");
    }
}

#[test]
fn recursive_schemas_have_as_many_nodes_as_kinds_of_places() {
    let tree = json!({
        "$ref": "#/$defs/tree",
        "$defs": {"tree": {"properties": {
            "at": string("date-time"),
            "below": {"anyOf": [{"items": {"$ref": "#/$defs/tree"}}, {"type": "null"}]},
        }}},
    });
    assert!(nodes(&tree).unwrap().as_array().unwrap().len() < 8);
    let circles = [
        json!({"$ref": "#", "format": "date"}),
        json!({"allOf": [{"$ref": "#"}], "anyOf": [{"$ref": "#"}, {"$ref": "#"}], "format": "date"}),
    ];
    for circle in circles {
        assert_eq!(nodes(&circle), Some(json!([{"formats": ["date"]}])));
    }
}

#[test]
fn hostile_schemas_end_and_nothing_is_fetched() {
    // Each level doubles the combinations of schemas that may apply.
    let level = |at: usize| {
        let next = [2 * at, 2 * at + 1].map(|it| json!({"$ref": format!("#/$defs/{}", it % 97)}));
        json!({"properties": {"a": {"anyOf": next}, "b": next[0]}, "additionalProperties": next[1]})
    };
    let levels: Map<_, _> = (0..97).map(|at| (at.to_string(), level(at))).collect();
    let mut chain: Map<_, _> = (0..200)
        .map(|at| (at.to_string(), json!({"$ref": format!("#/$defs/{}", at + 1)})))
        .collect();
    chain.insert("200".into(), string("date"));
    let name = "n".repeat(1_000_000);
    let long = |it: usize| json!({"properties": {&name: string("date"), "x": {"minLength": it}}});
    for schema in [
        json!({"anyOf": [{"$ref": "#/$defs/1"}, string("date")], "$defs": levels}),
        json!({"$ref": "#/$defs/0", "$defs": chain}),
        json!({"anyOf": (0..5).map(long).collect::<Vec<_>>()}),
        json!({"$ref": "https://example.org/a.json", "x": string("date")}),
        json!({"$ref": format!("#/{name}"), "x": string("date")}),
        json!({"$ref": "#date", "$defs": {"a": {"$anchor": "date", "format": "date"}}}),
    ] {
        let text = schema.to_string();
        let nodes = nodes(&schema).map_or(0, |it| it.as_array().unwrap().len());
        assert!(nodes < 10_000, "{}", &text[..100]);
    }
}

#[test]
fn wrapped_data_and_texts_have_the_formats_of_the_value_itself() {
    let schema = |mark: bool| json!({"type": "object", "properties": {"result": string("date")}, "x-gudgeon-wrapped": mark});
    let structured = json!({"content": [], "structuredContent": {"result": "2026-01-02"}});
    let text = json!({"content": [{"type": "text", "text": "2026-01-02"}]});
    let found = |mark, result| {
        let json = formats(&listed(&schema(mark)), result)?.to_json()?.to_owned();
        Some(serde_json::from_str::<Value>(&json).unwrap())
    };
    for result in [&structured, &text] {
        assert_eq!(found(true, result), Some(json!([{"formats": ["date"]}])));
        assert_eq!(found(false, result).unwrap()[0], json!({"members": {"result": 1}}));
    }
    let failed =
        json!({"isError": true, "content": [], "structuredContent": {"result": "2026-01-02"}});
    assert_eq!(found(true, &failed), None);
}

#[test]
fn formats_are_those_of_tools_that_the_program_listed() {
    let mut tools = KnownTools::default();
    let tool = json!({"name": "t", "inputSchema": {}, "outputSchema": string("date")});
    let result = json!({"content": [], "structuredContent": "2026-01-02"});
    let needs_schema =
        |tools: &KnownTools| tools.read_result("t", &json::to_raw(&result)).unwrap().needs_schema;
    tools.learn(ListedTools::read(&mut vec![json::to_raw(&tool)], true), true);
    assert!(formats(&tools, &result).is_none());
    tools.use_formats();
    let listed = formats(&tools, &result).unwrap();
    tools.forget();
    assert!(!needs_schema(&tools), "they were never used");
    tools.learn(ListedTools::read(&mut vec![json::to_raw(&tool)], true), true);
    assert!(listed.to_json().is_some() && formats(&tools, &result).unwrap().to_json().is_some());
    // In a list that changed, or after the connection was made anew.
    tools.forget();
    let mut next = KnownTools::default();
    next.expect(tools.expected());
    for mut tools in [tools, next] {
        assert!(needs_schema(&tools) && formats(&tools, &result).is_none());
        tools.forget();
        assert!(needs_schema(&tools));
        tools.learn(ListedTools::read(&mut vec![json::to_raw(&tool)], true), true);
        assert!(!needs_schema(&tools) && formats(&tools, &result).is_some());
        tools.learn(ListedTools::read(&mut vec![json::to_raw(&tool)], true), true);
        tools.forget();
        assert!(needs_schema(&tools), "a second list does not undo the use");
        tools.learn(ListedTools::read(&mut Vec::new(), true), true);
        tools.forget();
        assert!(!needs_schema(&tools), "the server has it no more");
    }
}
