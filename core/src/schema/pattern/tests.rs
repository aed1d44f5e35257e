use serde_json::json;

use crate::schema::{
    Checked, Schema,
    tests::{compile, complaint},
    without_flags,
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
    // The pattern, strings that match it, strings that do not.
    let table: [(&str, &[&str], &[&str]); 34] = [
        (r"^\d+$", &["12"], &["١٢"]),
        (r"^[a-z&&b]+$", &["a&b"], &[]),
        ("b", &["abc"], &[]),
        ("^b", &[], &["abc"]),
        (r"^(\w)\1$", &["aa"], &["ab", "ää"]),
        // Look-around changes no other part.
        (r"^(?=\d)\w+$", &["1a"], &["١a", "1ä"]),
        (r"^(?!a)[\d\s]+$", &["1\u{feff}2"], &["١"]),
        (r"^(?!a)[^\W]+$", &["b_1"], &["ä", "-"]),
        (r"^(?!a)[\D]+$", &["ä١"], &["1"]),
        (r"^(?!a)[^\S]+$", &[" \u{3000}"], &["x"]),
        (r"^(?!a)[\cJ\x41\u0042]\cI$", &["\n\t", "A\t", "B\t"], &["C\t"]),
        // Names of groups.
        (r#"^(?<quote>['"])[^'"]*\k<quote>$"#, &["'a'", "\"\""], &["'a\""]),
        (r"^(a)(?<second>b)\k<second>0\1$", &["abb0a"], &["aba0a"]),
        (r"^(?:(?<d>1)x|(?<d>2)y)\k<d>$", &["1x1", "2y2"], &["1x2"]),
        (r"^[(](?<a>.)\k<a>$", &["(bb"], &["(bc"]),
        (r"^\((?<a>.)\k<a>$", &["(bb"], &["(bc"]),
        // Classes that may be empty.
        ("^[^]$", &["\n", "a", "😀"], &["", "ab"]),
        ("^a[^]*b$", &["a\n\r]b"], &["a"]),
        ("^(?:a|[])$", &["a"], &["", "]"]),
        // No other syntax is lost.
        (r"^[\w-.]+$", &["a-b.c"], &["a+b"]),
        (r"^[a-\d]+$", &["a-1"], &["b"]),
        (r"^[\]\[a]+$", &["[a]"], &["b"]),
        (r"^[^\]]+$", &["a["], &["]"]),
        (r"^[\b]\0$", &["\u{8}\0"], &["b0"]),
        (r"^\ud83d\ude00[\ud83d\ude00-\ud83d\ude02]$", &["😀😁"], &["😀😀😀"]),
        (r"^\/\-\.$", &["/-."], &["/-a"]),
        ("^.$", &["a", "😀", "\u{85}"], &["\r", "\n", "\u{2028}", "\u{2029}"]),
        ("^(?s:.)$", &["\n"], &["ab"]),
        (r"^\p{Lu}\P{L}$", &["Ä1"], &["ää"]),
        // What only the `v` flag allows.
        (r"^[\p{L}--[a-z]]+$", &["ABÄä"], &["a", "1"]),
        (r"^[[\w]&&\d]+$", &["12"], &["a", "١"]),
        (r"^[[a-c][0-3]\-]+$", &["a-3"], &["d", "4", "["]),
        (r"^[^[a-c]\s]+(?<x>!)\k<x>$", &["de!!"], &["a!!", "d e!!", "de!?"]),
        (r"^[[a-c]--[a-c]]?$", &[""], &["a", "-"]),
    ];
    for (pattern, matching, others) in table {
        for text in matching {
            assert!(matches(pattern, text), "{pattern} and {text:?}");
        }
        for text in others {
            assert!(!matches(pattern, text), "{pattern} and {text:?}");
        }
    }
    assert!(complaint(&json!({"pattern": r"^\S+$"}), &json!("a b")).contains(r"matches"));
}

#[test]
fn what_is_not_a_pattern_is_refused() {
    let nested = format!("^[{}a{}]$", "[".repeat(20), "]".repeat(20));
    for pattern in [
        "(",
        "[a",
        r"\k<name>",
        r"(?<a>.)\k<b>",
        r"[a--[b]",
        r"[\q{ab|c}--c]",
        "a{2,1}",
        "[z-a]",
        &nested,
        "\\",
    ] {
        let refused =
            Schema::compile(&json!({"pattern": pattern}).to_string()).unwrap_err().to_string();
        assert!(refused.contains("is not a regular expression of ECMA-262"), "{refused}");
    }
}

#[test]
fn flags_become_part_of_a_pattern() {
    let table = [
        ("^ab-1$", "i", Some("^[aA][bB]-1$")),
        ("^ab$", "gdu", Some("^ab$")),
        ("^[a-z_]+$", "i", Some("^[a-z_A-Z]+$")),
        (r"[^a\d\-]", "i", Some(r"[^a\d\-A]")),
        ("[-a]x[a-]", "i", Some(r"[\-aA][xX][a\-A]")),
        (r"[\w-k]", "i", Some(r"[\w\-kK]")),
        (r"\x41\u0042\u{43}", "i", Some(r"[\x41a][\u0042b][\u{43}c]")),
        (r"(?<name>ä)\cJ\.", "i", Some(r"(?<name>[äÄ])\cJ\.")),
        ("a.b[.]", "s", Some(r"a[\s\S]b[.]")),
        ("^a$", "m", Some(r"(?<![^\n\r\u2028\u2029])a(?![^\n\r\u2028\u2029])")),
        ("a|b", "y", Some("^(?:a|b)")),
        (r"(a)\1", "i", None),
        (r"\p{Lu}", "i", None),
        (r"\p{Lu}[\p{L}]", "s", Some(r"\p{Lu}[\p{L}]")),
        ("(?i:a)", "s", None),
        ("[a--[b]]", "i", None),
        ("[a", "i", None),
    ];
    for (pattern, flags, expected) in table {
        assert_eq!(without_flags(pattern, flags).as_deref(), expected, "{pattern} with {flags}");
    }
    let matches = |pattern: &str, flags: &str, text: &str| {
        let pattern = without_flags(pattern, flags).unwrap();
        compile(&json!({"pattern": pattern})).check(&json!(text)).is_ok()
    };
    assert!(matches("^[a-f]x$", "i", "FX") && !matches("^[a-f]x$", "i", "GX"));
    assert!(matches("^b$", "m", "a\nb\r") && !matches("^b$", "m", "a\nbc"));
    assert!(matches("^.$", "s", "\n"));
}
