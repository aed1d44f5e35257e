//! The cost of checks, and values that are easily checked wrongly.

use serde_json::json;

use crate::schema::tests::{compile, complaint};

#[test]
fn a_large_valid_value_is_checked_to_its_end() {
    let schema = compile(
        &json!({"items": {"$ref": "#/$defs/a"}, "$defs": {"a": {"anyOf": [{"type": "null"}, {"type": "integer"}]}}}),
    );
    let items = vec!["1"; 1_000_000].join(",");
    assert_eq!(schema.check_json(&format!("[{items}]")), Ok(()));
}

#[test]
fn a_check_of_many_alternatives_at_each_depth_ends() {
    let inner = json!({"properties": {"a": {"$ref": "#"}}});
    let schema = json!({"anyOf": [inner, inner, inner], "type": "object"});
    let value = (0..100).fold(json!(1), |inner, _| json!({"a": inner}));
    assert!(complaint(&schema, &value).contains("to be checked by the schema"));
}

#[test]
fn sizes_of_strings_are_counted_in_characters() {
    let schema = compile(&json!({"minLength": 2, "maxLength": 3}));
    for (text, fits) in
        [("é", false), ("éé", true), ("ééé", true), ("éééé", false), ("🐟", false), ("🐟🐟", true)]
    {
        assert_eq!(schema.check(&json!(text)).is_ok(), fits, "{text}");
    }
}

#[test]
fn many_properties_are_found() {
    let properties: serde_json::Map<_, _> =
        (0..99).map(|number| (format!("name{number}"), json!({"const": number}))).collect();
    let schema = compile(&json!({"properties": properties, "additionalProperties": false}));
    let members: Vec<String> =
        (0..99).map(|number| format!(r#""name{number}":{number}"#)).collect();
    let text = format!("{{{}}}", members.join(","));
    assert_eq!(schema.check_json(&text), Ok(()));
    assert!(schema.check_json(&text.replace(":7,", ":8,")).is_err());
    assert!(schema.check_json(&text.replace("name7\"", "name700\"")).is_err());
}

#[test]
fn a_closed_schema_names_unknown_members_beside_wrong_ones() {
    let schema = json!({
        "$ref": "#/$defs/search",
        "unevaluatedProperties": false,
        "$defs": {"search": {"properties": {"query": {"type": "string"}, "limit": {"type": "integer"}}}},
    });
    assert_eq!(
        complaint(&schema, &json!({"limit": "x", "limt": 3})),
        "property 'limit': expected an integer, got \"x\"; unknown property 'limt'; did you mean 'limit'?"
    );
}

#[test]
fn a_failed_alternative_makes_no_member_unknown() {
    let branch = json!({"properties": {"size": {"type": "integer"}}, "required": ["size"]});
    let schema = json!({"anyOf": [branch, {"type": "null"}], "unevaluatedProperties": false});
    assert_eq!(
        complaint(&schema, &json!({"size": "x"})),
        "property 'size': expected an integer, got \"x\""
    );
}

#[test]
fn keywords_of_all_kinds_say_what_they_expect() {
    for (schema, value, expected) in [
        (
            json!({"contains": {"type": "null"}}),
            json!([1]),
            "at least 1 item of the kind that `contains` describes",
        ),
        (
            json!({"contains": true, "minContains": 0, "maxContains": 1}),
            json!([1, 2]),
            "expected 0 to 1 item of the kind that `contains` describes, got [1,2]",
        ),
        (
            json!({"not": {"type": "integer"}}),
            json!(1),
            "expected a value that does not fit {\"type\":\"integer\"}, got 1",
        ),
        (json!({"dependentRequired": {"a": ["b"]}}), json!({"a": 1}), "missing property 'b'"),
        (json!({"if": true, "then": {"minimum": 2}}), json!(1), "expected at least 2, got 1"),
        (
            json!({"unevaluatedItems": false}),
            json!([1]),
            "property '[0]': no value is allowed here, got 1",
        ),
        (json!({"uniqueItems": true}), json!([1, 1]), "expected items that all differ, got [1,1]"),
        (json!({"multipleOf": 0.5}), json!(0.75), "expected a multiple of 0.5, got 0.75"),
        (
            json!({"propertyNames": {"pattern": "^a"}}),
            json!({"b": 1}),
            "the name of a property is wrong: expected a string that matches \"^a\", got \"b\"",
        ),
    ] {
        let said = complaint(&schema, &value);
        assert!(said.contains(expected), "{schema}: {said}");
    }
}

/// Schemas that do little for a value, and so often that together it is much.
#[test]
fn a_check_ends_soon_whatever_is_repeated() {
    let numbers = |count: usize| json!((0..count).collect::<Vec<_>>());
    let members = |count: usize| {
        let members = (0..count).map(|number| (format!("m{number}"), json!(number)));
        json!(members.collect::<serde_json::Map<_, _>>())
    };
    let names = |count: usize| (0..count).map(|number| format!("n{number}")).collect::<Vec<_>>();
    let pattern_properties: serde_json::Map<_, _> =
        (0..900).map(|number| (format!("x{number}"), json!(true))).collect();
    let dependent: serde_json::Map<_, _> =
        names(30_000).into_iter().map(|name| (name, json!([]))).collect();
    let many = |schema: serde_json::Value| json!({"allOf": vec![schema; 4_000]});
    let empty = json!(vec![json!({}); 10_000]);
    for (schema, value) in [
        (many(json!({"properties": {"x": true}})), members(3_000)),
        (many(json!({"prefixItems": [true]})), numbers(3_000)),
        (many(json!({"uniqueItems": true})), numbers(3_000)),
        (many(json!({"unevaluatedProperties": true})), members(3_000)),
        (many(json!({"unevaluatedItems": true})), numbers(3_000)),
        (many(json!({"maxLength": 300_000})), json!("é".repeat(200_000))),
        (json!({"allOf": vec![json!({"pattern": "ba"}); 900]}), json!("a".repeat(800_000))),
        (many(json!({"uniqueItems": true})), json!(vec!["a".repeat(100_000); 2])),
        (many(json!({"const": "a"})), json!("a".repeat(200_000))),
        (many(json!({"properties": {"x": true}})), json!({"a".repeat(200_000): 1})),
        (json!({"patternProperties": pattern_properties}), members(3_000)),
        (json!({"items": {"dependentRequired": dependent}}), empty.clone()),
        (json!({"items": {"required": names(50_000)}}), empty),
    ] {
        let said = complaint(&schema, &value);
        assert!(said.contains("too large"), "{said}");
    }
}

#[test]
fn a_long_enum_is_searched_at_once() {
    let values: Vec<_> = (0..20_000).map(|number| format!("value {number}")).collect();
    let schema = compile(&json!({"items": {"enum": values}}));
    assert_eq!(schema.check(&json!(values)), Ok(()));
}
