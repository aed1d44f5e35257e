//! Dialects, bounds and violations.

use serde_json::{Value, json};

use super::*;

pub(super) fn compile(schema: &Value) -> Schema {
    Schema::compile(&schema.to_string()).unwrap()
}

fn refusal(schema: &Value) -> String {
    Schema::compile(&schema.to_string()).unwrap_err().to_string()
}

pub(super) fn complaint(schema: &Value, value: &Value) -> String {
    compile(schema).check(value).unwrap_err().to_string()
}

#[test]
fn the_dialect_is_2020_12_unless_schema_says_otherwise() {
    // `prefixItems` is 2020-12, an `items` array is draft-07 and older.
    let tuple = |uri: Option<&str>, keyword: &str| {
        let mut schema = json!({keyword: [{"type": "integer"}]});
        if let Some(uri) = uri {
            schema["$schema"] = json!(uri);
        }
        compile(&schema).check(&json!(["x"])).is_err()
    };
    for new in [
        None,
        Some("https://json-schema.org/draft/2020-12/schema"),
        Some("https://json-schema.org/schema"),
    ] {
        assert!(tuple(new, "prefixItems"), "{new:?}");
    }
    for old in [
        "http://json-schema.org/draft-07/schema#",
        "http://json-schema.org/draft-07/schema",
        "https://json-schema.org/draft-07/schema#",
        "http://json-schema.org/draft-06/schema#",
        "http://json-schema.org/draft-04/schema#",
        "https://json-schema.org/draft/2019-09/schema",
    ] {
        assert!(tuple(Some(old), "items"), "{old}");
        assert!(!tuple(Some(old), "prefixItems"), "{old}");
    }
}

#[test]
fn an_unknown_dialect_is_named_with_those_supported() {
    for schema in [
        json!({"$schema": "https://example.com/mine"}),
        json!({"properties": {"a": {"$schema": "https://example.com/mine"}}}),
    ] {
        let message = refusal(&schema);
        assert!(
            message.contains("https://example.com/mine")
                && message.contains("2020-12")
                && message.contains("draft-07"),
            "{message}"
        );
    }
    assert!(refusal(&json!({"$schema": 7})).contains("unknown"));
}

#[test]
fn nothing_outside_the_document_is_fetched() {
    for target in [
        "https://example.com/a.json",
        "a.json#/x",
        "file:///etc/passwd",
        "https://json-schema.org/draft/2020-12/schema",
    ] {
        let message = refusal(&json!({"properties": {"a": {"$ref": target}}}));
        assert!(
            message.contains("never fetched") && message.contains("#/properties/a"),
            "{message}"
        );
    }
    assert!(refusal(&json!({"$ref": "#/$defs/gone"})).contains("nothing at that place"));
}

/// RFC 6901, section 4: `~1` is read before `~0`, so that `~01` is a tilde and a one.
#[test]
fn segments_of_a_pointer_are_unescaped_in_order() {
    let defs = json!({"a/b": {"const": 1}, "a~b": {"const": 2}, "a~1b": {"const": 3}, "~01": {"const": 4}});
    for (pointer, value) in [("a~1b", 1), ("a~0b", 2), ("a~01b", 3), ("~0~001", 0), ("~001", 4)] {
        let schema = json!({"$ref": format!("#/$defs/{pointer}"), "$defs": defs});
        if value == 0 {
            assert!(refusal(&schema).contains("nothing at that place"));
            continue;
        }
        let schema = compile(&schema);
        assert!(schema.check(&json!(value)).is_ok() && schema.check(&json!(0)).is_err());
    }
}

#[test]
fn references_inside_the_document_work() {
    let schema = compile(&json!({
        "$id": "https://example.com/root",
        "properties": {
            "a": {"$ref": "#/$defs/List%5Bint%5D"}, "b": {"$ref": "#named"}, "c": {"$ref": "other"}, "d": {"$ref": "#/components/x"},
            "e": {"$ref": "#"}
        },
        "components": {"x": {"type": "null"}},
        "$defs": {
            "List[int]": {"type": "array", "items": {"type": "integer"}},
            "n": {"$anchor": "named", "type": "boolean"},
            "o": {"$id": "other", "$ref": "#/$defs/inside", "$defs": {"inside": {"type": "string"}}}
        }
    }));
    assert!(
        schema.check(&json!({"a": [1], "b": true, "c": "x", "d": null, "e": {"a": [2]}})).is_ok()
    );
    for wrong in [
        json!({"a": ["x"]}),
        json!({"b": 1}),
        json!({"c": 1}),
        json!({"d": 1}),
        json!({"e": {"b": 1}}),
    ] {
        assert!(schema.check(&wrong).is_err(), "{wrong}");
    }
}

#[test]
fn a_reference_that_never_consumes_input_is_refused() {
    for schema in [
        json!({"$ref": "#"}),
        json!({"allOf": [{"$ref": "#"}]}),
        json!({"properties": {"x": {"anyOf": [{"$ref": "#/properties/x"}]}}}),
        json!({"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"not": {"$ref": "#/$defs/a"}}}}),
        json!({"$schema": "https://json-schema.org/draft/2019-09/schema", "$recursiveRef": "#"}),
        json!({"$dynamicAnchor": "n", "$dynamicRef": "#n"}),
    ] {
        assert!(refusal(&schema).contains("back to itself"), "{schema}");
    }
}

#[test]
fn bounds_on_text_depth_subschemas_and_rows_of_references() {
    assert!(
        Schema::compile(&" ".repeat(MAX_TEXT + 1)).unwrap_err().to_string().contains("at most")
    );
    assert!(
        Schema::compile(&"{\"not\":".repeat(100_000))
            .unwrap_err()
            .to_string()
            .contains("recursion limit")
    );
    assert!(
        refusal(&json!({"prefixItems": vec![true; MAX_SUBSCHEMAS]}))
            .contains("more than 10000 schemas")
    );
    assert!(
        refusal(&json!({"allOf": vec![json!({"pattern": "a"}); MAX_PATTERNS + 1]}))
            .contains("patterns")
    );
    assert!(refusal(&chain(MAX_IN_PLACE + 1, &json!({"type": "integer"}))).contains("in a row"));
    assert!(refusal(&chain(6_000, &json!({"type": "integer"}))).contains("in a row"));
    assert!(
        compile(&chain(MAX_IN_PLACE - 2, &json!({"type": "integer"}))).check(&json!(1)).is_ok()
    );
    for not_a_schema in ["7", "[]", "null", "{", ""] {
        assert!(Schema::compile(not_a_schema).is_err());
    }
    assert!(
        refusal(&json!({"properties": {"a": {"type": "strnig"}}})).contains("#/properties/a/type")
    );
    assert!(refusal(&json!({"pattern": "("})).contains("#/pattern"));
}

/// A root whose value goes through `length` schemas in a row before it comes to `last`.
fn chain(length: usize, last: &Value) -> Value {
    let links = length / 2;
    let mut definitions = serde_json::Map::new();
    for at in 0..links {
        let next = json!({"$ref": format!("#/$defs/d{}", at + 1)});
        definitions.insert(format!("d{at}"), json!({"allOf": [next, {}]}));
    }
    definitions.insert(format!("d{links}"), last.clone());
    json!({"$ref": "#/$defs/d0", "$defs": definitions})
}

#[test]
fn the_longest_row_over_the_deepest_value_fits_a_small_stack() {
    let schema = chain(
        MAX_IN_PLACE - 4,
        &json!({"properties": {"a": {"$ref": "#"}}, "type": ["object", "null"]}),
    );
    let deepest = format!("{}7{}", "{\"a\":".repeat(126), "}".repeat(126));
    let check =
        move || compile(&schema).check(&serde_json::from_str(&deepest).unwrap()).unwrap_err();
    let thread = std::thread::Builder::new().stack_size(2 * 1024 * 1024).spawn(check).unwrap();
    assert!(!thread.join().unwrap().to_string().is_empty());
}

#[test]
fn alternatives_that_multiply_do_not_hang() {
    let deep = (0..100).fold(json!(2), |inner, _| json!({"a": inner}));
    for (mut schema, back) in [
        (json!({}), json!({"$ref": "#"})),
        (json!({"$dynamicAnchor": "n"}), json!({"$dynamicRef": "#n"})),
        (
            json!({"$schema": "https://json-schema.org/draft/2019-09/schema", "$recursiveAnchor": true}),
            json!({"$recursiveRef": "#"}),
        ),
        (json!({"unevaluatedProperties": false}), json!({"$ref": "#"})),
    ] {
        let branch = json!({"type": "object", "properties": {"a": back}, "required": ["a"]});
        schema["anyOf"] = json!([branch, branch, {"const": 1}]);
        assert!(complaint(&schema, &deep).contains("too deeply nested"), "{schema}");
    }
    // The same schema by reference alone, at one value.
    let mut definitions = serde_json::Map::new();
    for at in 0..30 {
        let next = json!({"$ref": format!("#/$defs/d{}", at + 1)});
        definitions.insert(format!("d{at}"), json!({"anyOf": [next, next]}));
    }
    definitions.insert("d30".into(), json!({"type": "string"}));
    let schema = json!({"$ref": "#/$defs/d0", "$defs": definitions});
    assert!(complaint(&schema, &json!(1)).contains("too deeply nested"));
}

#[test]
fn large_failing_values_are_refused_without_a_flood_of_errors() {
    let schema = json!({"items": {"type": "string"}});
    assert!(complaint(&schema, &json!(vec![1; 1_000_000])).contains("too large"));
    assert!(complaint(&schema, &json!(vec![1; 1_000])).ends_with("and 995 more"));
}

#[test]
fn catastrophic_patterns_end() {
    let text = json!("a".repeat(50_000) + "!");
    assert!(compile(&json!({"pattern": "^(a+)+$"})).check(&text).is_err());
    assert!(compile(&json!({"pattern": "^(?=a)(a+)+$"})).check(&text).is_err());
    assert!(compile(&json!({"pattern": "^(?!b)\\w+$"})).check(&json!("abc")).is_ok());
}

#[test]
fn a_violation_says_where_and_what() {
    let schema = json!({
        "properties": {"q": true, "n": {"type": "integer"}, "s": {"maxLength": 3}, "e": {"enum": ["a", "b"]}, "u": {"anyOf": [{"type": "null"}, {"type": "boolean"}]}},
        "required": ["q"],
        "additionalProperties": false
    });
    assert_eq!(
        complaint(&schema, &json!({"q": 1, "z": 2})),
        "unknown property 'z'; it takes: q, n, s, e, u"
    );
    assert_eq!(complaint(&schema, &json!({})), "missing property 'q'");
    let message = complaint(&schema, &json!({"n": "ten", "s": "x".repeat(5000), "e": "c", "u": 1}));
    for part in [
        "property 'n': expected an integer, got \"ten\"",
        "property 's': expected at most 3 characters, got a string of 5000 characters",
        "property 'e': expected \"a\" or \"b\", got \"c\"",
        "property 'u': expected null or a boolean, got 1",
        "; ",
    ] {
        assert!(message.contains(part), "{message}");
    }
}

#[test]
fn places_are_dotted_with_indexes() {
    let schema = json!({"properties": {"order": {"properties": {"lines": {"items": {
        "properties": {"sku": {"type": "string"}}, "required": ["sku"], "additionalProperties": false
    }}}}}});
    for (line, expected) in [
        (json!({"sku": 5}), "property 'order.lines[1].sku': expected a string, got 5"),
        (json!({}), "missing property 'order.lines[1].sku'"),
        (
            json!({"sku": "a", "skuu": 1}),
            "unknown property 'order.lines[1].skuu'; did you mean 'sku'?",
        ),
        (
            json!({"sku": "a", "a.b": 1}),
            "unknown property 'order.lines[1][\"a.b\"]'; it takes: sku",
        ),
    ] {
        let value = json!({"order": {"lines": [{"sku": "a"}, line]}});
        assert_eq!(complaint(&schema, &value), expected);
    }
    // A member whose name is a number is not an index.
    let schema = json!({"additionalProperties": {"type": "null"}});
    assert_eq!(complaint(&schema, &json!({"0": 1})), "property '0': expected null, got 1");
}

#[test]
fn arguments_are_named_as_such() {
    let named = |schema: Value, raw: &str| {
        let violation = compile(&schema).check_arguments(raw).unwrap_err();
        violation.with_subject(Subject::Argument).to_string()
    };
    let schema = |properties: Value| json!({"type": "object", "properties": properties, "additionalProperties": false});
    let search = schema(json!({"query": {"type": "string"}, "limit": {"type": "integer"}}));
    for (raw, expected) in [
        (r#"{"limt": 3}"#, "unknown argument 'limt'; did you mean 'limit'?"),
        (r#"{"x": 3}"#, "unknown argument 'x'; this tool takes: query, limit"),
        (
            r#"{"x": 3, "limit": 1.5}"#,
            "argument 'limit': expected an integer, got 1.5; unknown argument 'x'; this tool takes: query, limit",
        ),
    ] {
        assert_eq!(named(search.clone(), raw), expected);
    }
    assert_eq!(
        named(schema(json!({})), r#"{"x": 3}"#),
        "unknown argument 'x'; this tool takes no arguments"
    );
    let many: serde_json::Map<_, _> =
        (0..1000).map(|number| (format!("name{number}"), json!(true))).collect();
    assert!(named(schema(json!(many)), r#"{"unlike": 3}"#).chars().count() < 500);
}

#[test]
fn a_value_is_told_of_the_alternative_that_its_discriminator_chooses() {
    let shape = |kind: &str, size: &str| {
        json!({
            "type": "object",
            "properties": {"kind": {"const": kind}, size: {"type": "number"}},
            "required": ["kind", size],
            "additionalProperties": false,
        })
    };
    for keyword in ["oneOf", "anyOf"] {
        let shapes = [shape("circle", "radius"), shape("square", "side"), json!({"type": "null"})];
        let schema = json!({"properties": {"shape": {keyword: shapes}}});
        for (given, expected) in [
            (
                json!({"kind": "circle", "radius": "x"}),
                "property 'shape.radius': expected a number, got \"x\"",
            ),
            (json!({"kind": "square"}), "missing property 'shape.side'"),
            (
                json!({"kind": "blob", "radius": 1}),
                "property 'shape.kind': expected \"circle\" or \"square\", got \"blob\"",
            ),
            (json!({"radius": 1}), "missing property 'shape.kind'"),
        ] {
            assert_eq!(complaint(&schema, &json!({"shape": given})), expected, "{keyword}");
        }
    }
}

#[test]
fn the_only_alternative_of_the_values_type_tells_what_is_wrong() {
    let schema =
        json!({"anyOf": [{"type": "string", "minLength": 2}, {"type": "integer", "enum": [1, 2]}]});
    assert_eq!(complaint(&schema, &json!("a")), "expected at least 2 characters, got \"a\"");
    assert_eq!(complaint(&schema, &json!(3)), "expected 1 or 2, got 3");
    assert_eq!(complaint(&schema, &json!(null)), "expected a string, 1 or 2, got null");
    let objects = json!({"anyOf": [
        {"type": "object", "required": ["a"]}, {"type": "object", "required": ["b"]}
    ]});
    let message = complaint(&objects, &json!({}));
    assert!(message.starts_with("fits none of 2 alternatives: missing property"), "{message}");
}

#[test]
fn a_violation_never_echoes_long_values() {
    let long = "y".repeat(10_000);
    for (schema, value) in [
        (json!({"additionalProperties": false}), json!({long.as_str(): 1})),
        (json!({"unevaluatedProperties": false}), json!({long.as_str(): 1})),
        (json!({"propertyNames": {"maxLength": 3}}), json!({long.as_str(): 1})),
        (json!({"additionalProperties": {"type": "null"}}), json!({long.as_str(): 1})),
        (json!({"type": "null"}), json!([long])),
        (json!({"const": 1}), json!(long)),
        (json!({"not": {"type": "string"}}), json!(long)),
        (json!({"anyOf": [{"type": "null"}, {"enum": [1]}]}), json!(long)),
        (json!({"anyOf": [{"additionalProperties": false}]}), json!({long.as_str(): 1})),
        (json!({"unevaluatedItems": false}), json!([long])),
    ] {
        let message = complaint(&schema, &value);
        assert!(
            message.chars().count() < 500 && !message.contains(&long[..200]),
            "{schema}: {message}"
        );
    }
}

#[test]
fn integers_that_a_double_can_not_hold_are_refused_by_name_where_the_language_has_no_others() {
    let text = r#"{"properties": {"n": {"type": ["integer", "null"]}, "any": {}}}"#;
    let mut schema = Schema::compile(text).unwrap();
    for beyond in ["9007199254740992", "-9007199254740992", "18446744073709551615"] {
        assert!(schema.check_json(&format!(r#"{{"n": {beyond}}}"#)).is_ok(), "{beyond}");
    }
    schema.refuse_beyond_doubles();
    for fits in [r#"{"n": 9007199254740991}"#, r#"{"n": 1e20}"#, r#"{"any": 9007199254740992}"#] {
        assert!(schema.check_json(fits).is_ok(), "{fits}");
    }
    for beyond in ["9007199254740992", "-9007199254740992", "18446744073709551615"] {
        let refused = schema.check_json(&format!(r#"{{"n": {beyond}}}"#)).unwrap_err();
        let range = "from -(2^53 - 1) to 2^53 - 1";
        assert_eq!(
            refused.to_string(),
            format!("property 'n': expected an integer or null {range}, got {beyond}")
        );
    }
}

#[test]
fn a_schema_keeps_its_text() {
    let text = "{ \"type\":\"object\" }";
    assert_eq!(Schema::compile(text).unwrap().text(), text);
}
