use serde_json::{Value, json};

use super::*;
use crate::schema::tests::compile;

fn arguments(properties: &Value, raw: &str) -> Result<Checked, Violation> {
    let definitions = json!({"Point": {"type": "object", "properties": {"x": {"type": "number"}}}, "Name": {"type": "string"}});
    compile(&json!({"type": "object", "properties": properties, "$defs": definitions}))
        .check_arguments(raw)
}

#[test]
fn arguments_that_fit_are_taken_as_given() {
    for (property, raw) in [
        (json!({"type": "string"}), r#"{"a": "5"}"#),
        (json!({"type": ["integer", "string"]}), r#"{"a": "5"}"#),
        (json!({}), r#"{"a": "[1]"}"#),
        (json!({"type": "integer"}), r#"{"a": 5}"#),
        (json!({"type": "integer"}), "{}"),
    ] {
        assert_eq!(arguments(&json!({"a": property}), raw), Ok(Checked::AsGiven), "{raw}");
    }
}

#[test]
fn a_string_is_decoded_once_where_no_string_is_taken() {
    for (property, given, decoded) in [
        (json!({"type": "integer"}), r#""5""#, "5"),
        (json!({"type": ["integer", "null"]}), r#""null""#, "null"),
        (json!({"enum": [1, 2]}), r#""2""#, "2"),
        (json!({"const": true}), r#""true""#, "true"),
        (json!({"anyOf": [{"type": "array"}, {"type": "null"}]}), r#""[1, \"b\"]""#, r#"[1, "b"]"#),
        (json!({"$ref": "#/$defs/Point"}), r#""{\n\"x\": 1}""#, r#"{ "x": 1}"#),
        (
            json!({"allOf": [{"$ref": "#/$defs/Point"}], "description": "d"}),
            r#""{\"x\": 1}""#,
            r#"{"x": 1}"#,
        ),
    ] {
        let raw = format!("{{\"big\": 12345678901234567890123, \"a\": {given}}}");
        let expected = format!("{{\"big\":12345678901234567890123,\"a\":{decoded}}}");
        assert_eq!(
            arguments(&json!({"a": property}), &raw),
            Ok(Checked::Decoded(expected)),
            "{raw}"
        );
    }
}

#[test]
fn what_fails_still_is_told_as_given() {
    for (property, raw) in [
        (json!({"type": "integer"}), r#"{"a": "five"}"#),
        (json!({"type": "integer"}), r#"{"a": "\"5\""}"#),
        (json!({"type": "integer"}), r#"{"a": "[5]"}"#),
        (json!({"type": "string", "maxLength": 1}), r#"{"a": "55"}"#),
        (
            json!({"anyOf": [{"$ref": "#/$defs/Name"}, {"type": "null"}], "maxLength": 1}),
            r#"{"a": "null"}"#,
        ),
    ] {
        let message = arguments(&json!({"a": property}), raw).unwrap_err().to_string();
        assert!(message.starts_with("property 'a"), "{raw}: {message}");
    }
    for raw in ["", "{", "[]", "7", r#"{"a": "\ud800"}"#] {
        assert!(arguments(&json!({"a": {"type": "integer"}}), raw).is_err(), "{raw}");
    }
}

#[test]
fn quoted_values_are_decoded_at_every_depth() {
    let properties = json!({
        "filter": {"$ref": "#/$defs/filter"},
        "rows": {"type": "array", "prefixItems": [{"type": "string"}], "items": {"type": "integer"}},
        "perhaps": {"anyOf": [{"$ref": "#/$defs/filter"}, {"type": "null"}]},
        "either": {"anyOf": [{"properties": {"n": {"type": "integer"}}}, {"properties": {"n": {"type": "string"}, "m": {"type": "integer"}}}]},
        "open": {"additionalProperties": {"type": ["number", "null"]}},
    });
    let schema = json!({
        "type": "object",
        "properties": properties,
        "$defs": {"filter": {"type": "object", "properties": {
            "limit": {"type": "integer"}, "tags": {"type": "array"}, "text": {"type": "string"}, "inner": {"$ref": "#/$defs/filter"},
        }}},
    });
    let schema = compile(&schema);
    for (given, decoded) in [
        (r#"{"filter":{"limit":" 5 ","text":"5"}}"#, r#"{"filter":{"limit":5,"text":"5"}}"#),
        (r#"{"filter":{"inner":{"tags":"[1,\n2]"}}}"#, r#"{"filter":{"inner":{"tags":[1, 2]}}}"#),
        (r#"{"rows":["1","2",3]}"#, r#"{"rows":["1",2,3]}"#),
        (r#"{"rows":"[\"1\",2]"}"#, r#"{"rows":["1",2]}"#),
        (r#"{"perhaps":{"limit":"5"}}"#, r#"{"perhaps":{"limit":5}}"#),
        (r#"{"perhaps":"null"}"#, r#"{"perhaps":null}"#),
        (r#"{"open":{"a":"1.50","b":"null"}}"#, r#"{"open":{"a":1.50,"b":null}}"#),
        (r#"{"either":{"n":"5","m":"6"}}"#, r#"{"either":{"n":"5","m":6}}"#),
    ] {
        assert_eq!(schema.check_arguments(given), Ok(Checked::Decoded(decoded.into())), "{given}");
    }
    for given in [
        r#"{"either":{"n":"5"}}"#.to_owned(),
        format!(r#"{{"filter":{}{{"limit":5}}{}}}"#, r#"{"inner":"#.repeat(40), "}".repeat(40)),
    ] {
        assert_eq!(schema.check_arguments(&given), Ok(Checked::AsGiven), "{given}");
    }
    for given in [
        r#"{"filter":{"limit":"five"}}"#.to_owned(),
        r#"{"filter":{"limit":"\"5\""}}"#.to_owned(),
        r#"{"rows":["1","[2]"]}"#.to_owned(),
        format!(r#"{{"filter":{}{{"limit":"5"}}{}}}"#, r#"{"inner":"#.repeat(40), "}".repeat(40)),
    ] {
        let refused = schema.check_arguments(&given).unwrap_err().to_string();
        assert!(refused.contains("expected an integer"), "{given}: {refused}");
    }
}

#[test]
fn large_arguments_are_decoded_and_refused_like_others() {
    let properties = json!({"limit": {"type": "integer"}, "rows": {"type": "array", "items": {"type": "integer"}}});
    let rows = "1,".repeat(30_000);
    let given = |limit: &str, last: &str| format!(r#"{{"limit":{limit},"rows":[{rows}{last}]}}"#);
    assert_eq!(arguments(&properties, &given("5", "1")), Ok(Checked::AsGiven));
    let decoded = Checked::Decoded(given("5", "1"));
    assert_eq!(arguments(&properties, &given(r#""5""#, "1")), Ok(decoded));
    for raw in [given("5", "true"), given(r#""x""#, "1"), given(r#""5""#, "true")] {
        let message = arguments(&properties, &raw).unwrap_err().to_string();
        assert!(message.contains("too large"), "{message}");
    }
}
