use serde_json::json;

use crate::schema::{
    Checked,
    tests::{compile, complaint},
};

/// An ordinary pattern for passwords.
const PASSWORD: &str = r"(?=.*\d)(?=.*[a-z])(?=.*[A-Z]).{8,}";

#[test]
fn a_pattern_with_look_ahead_is_checked_under_a_budget() {
    let schema = compile(&json!({"properties": {"password": {"pattern": PASSWORD}}}));
    let check = |text: String| schema.check(&json!({"password": text}));
    assert_eq!(schema.backtracking_patterns().collect::<Vec<_>>(), [PASSWORD]);
    assert!(check("Correct1horse".into()).is_ok());
    let wrong = check("x".repeat(40)).unwrap_err().to_string();
    assert!(wrong.contains("a string that matches"), "{wrong}");
    // The text that matches at once may be long.
    assert!(check("aB1".repeat(30_000)).is_ok());

    let refused = check("x".repeat(100_000)).unwrap_err().to_string();
    assert!(refused.contains("takes too many steps"), "{refused}");
    assert!(refused.contains(&PASSWORD.replace('\\', "\\\\")), "{refused}");
}

#[test]
fn the_arguments_of_a_tool_have_the_same_budget() {
    let schema = compile(&json!({
        "type": "object",
        "properties": {"password": {"pattern": PASSWORD}, "count": {"type": "integer"}},
    }));
    let check = |raw: &str| schema.check_arguments(raw);
    assert_eq!(check(r#"{"password":"Correct1horse"}"#), Ok(Checked::AsGiven));
    let decoded = check(r#"{"password":"Correct1horse","count":"3"}"#);
    assert_eq!(decoded, Ok(Checked::Decoded(r#"{"password":"Correct1horse","count":3}"#.into())));
    let wrong = check(r#"{"password":"short"}"#).unwrap_err().to_string();
    assert!(wrong.contains("a string that matches"), "{wrong}");
    let refused = check(&json!({"password": "x".repeat(100_000)}).to_string()).unwrap_err();
    assert!(refused.to_string().contains("takes too many steps"), "{refused}");
}

#[test]
fn the_budget_of_patterns_is_for_the_whole_check() {
    let schema = compile(&json!({"items": {"anyOf": [{"pattern": PASSWORD}, true]}}));
    let texts = vec!["x".repeat(100); 10_000];
    let refused = schema.check(&json!(texts)).unwrap_err().to_string();
    assert!(refused.contains("takes too many steps"), "{refused}");
    assert!(schema.check(&json!(vec!["a"; 10_000])).is_ok());
}

#[test]
fn a_pattern_that_takes_too_long_does_not_pass_below_not() {
    let schema = json!({"not": {"pattern": PASSWORD}});
    assert!(compile(&schema).check(&json!("x")).is_ok());
    assert!(complaint(&schema, &json!("x".repeat(100_000))).contains("takes too many steps"));
}

#[test]
fn names_too_long_for_their_pattern_are_refused() {
    let schema = json!({"patternProperties": {PASSWORD: {"type": "integer"}}});
    assert!(compile(&schema).check(&json!({"Correct1horse": 5})).is_ok());
    let value = json!({"x".repeat(100_000): 1});
    assert!(complaint(&schema, &value).contains("takes too many steps"));
    let value = json!({"x".repeat(2_000): 1});
    assert!(
        compile(&schema).check(&value).is_ok(),
        "no name matches, so nothing is required of it"
    );
}

#[test]
fn patterns_are_those_of_ecma_262() {
    let matches = |pattern: &str, text: &str| {
        compile(&json!({"pattern": pattern})).check(&json!(text)).is_ok()
    };
    assert!(matches(r"^\d+$", "12") && !matches(r"^\d+$", "١٢"));
    assert!(matches(r"^[a-z&&b]+$", "a&b"));
    assert!(matches("b", "abc") && !matches("^b", "abc"));
    assert!(matches(r"^(\w)\1$", "aa") && !matches(r"^(\w)\1$", "ab"));
    assert!(complaint(&json!({"pattern": r"^\S+$"}), &json!("a b")).contains(r"matches"));
}
