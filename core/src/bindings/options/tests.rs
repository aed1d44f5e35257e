use serde_json::{Value as Json, json};

use super::*;
use crate::error::Language::{Python, TypeScript};

struct Number(f64);

impl Given for Number {
    fn value(&self) -> Value {
        Value::Fraction(self.0)
    }

    fn items(&self) -> Vec<Self> {
        Vec::new()
    }

    fn entries(&self) -> Vec<(Self, Self)> {
        Vec::new()
    }
}

fn problem(language: Language, taker: Taker, name: &str, value: &Json) -> String {
    match check(language, taker, "here", name, value) {
        Ok(_) => String::new(),
        Err(problem) => problem.text(|| value.to_string()),
    }
}

/// Function, option, value, and the description in Python and in TypeScript if it differs.
const REFUSED: &str = r#"
tool timeout -1 | must be a number of seconds | must be a number of milliseconds
tool concurrency 0 | must be an integer from 1
tool concurrency 1.5 | must be an integer from 1
tool concurrency true | must be an integer from 1
tool tags "a" | must be a list of strings such as ["work"]
tool tags [1] | must be a list of strings such as ["work"]
tool replay "no" | must be "allow" or "forbid"
tool enabled 1 | must be True or False | must be true or false
tool meta [] | must be a mapping | must be an object
resource size -1 | must be a number of bytes
server title 7 | must be a string
server suspended_limit -1 | must be an integer, or 0 for none
server suspended_ttl 0 | must be a number of seconds above 0 | must be a number of milliseconds above 0
server website_url "x" | must be a URL such as "https://example.org"
client timeout 0 | must be a number of seconds above 0, or None for no limit | must be a number of milliseconds above 0, or Infinity for no limit
client on_log 1 | must be a function
client revision "2024-01-01" | must be "auto", one or more of 2024-11-05, 2025-03-26, 2025-06-18, 2025-11-25, 2026-07-28, or one of 0.7 and bare by itself
client revision [] | must be "auto", one or more of 2024-11-05, 2025-03-26, 2025-06-18, 2025-11-25, 2026-07-28, or one of 0.7 and bare by itself
client revision ["bare"] | must be "auto", one or more of 2024-11-05, 2025-03-26, 2025-06-18, 2025-11-25, 2026-07-28, or one of 0.7 and bare by itself
client retry "always" | must be "safe", "never" or a Retry | must be "safe" or "never", or an object { attempts, deadlineMs }
retry attempts 0 | must be an integer from 1
subscribe uris [3] | must be a list of strings such as "file:///shelf"
http health true | must be a string
http ready ["/readyz"] | must be a string
http metrics 1 | must be a string
http drain_delay -1 | must be a number of seconds | must be a number of milliseconds
http max_body "4MiB" | must be a number of bytes, an integer from 1
http public_url "ftp://a" | must be a URL such as "https://example.org/mcp"
http cors "a" | must be a list of strings such as "https://example.org", or True or False | must be a list of strings such as "https://example.org", or true or false
http tls [] | must be the paths of two PEM files: ("certificate.pem", "key.pem") | must be { cert, key }, the paths of two PEM files
"#;

#[test]
fn a_value_that_may_be_a_key_is_not_shown() {
    for (name, value, python, typescript) in [
        (
            "ca",
            json!(3),
            "must be the path of a PEM file, or its bytes",
            "must be the path of a PEM file, or its text or bytes",
        ),
        (
            "certificate",
            json!("s"),
            "must be two PEM files, each as path or bytes: (\"certificate.pem\", \"key.pem\")",
            "must be { cert, key }, two PEM files, each as path, text or bytes",
        ),
    ] {
        assert_eq!(problem(Python, Taker::Client, name, &value), format!("here: {name}= {python}"));
        let expected = format!("here: {name} {typescript}");
        assert_eq!(problem(TypeScript, Taker::Client, name, &value), expected);
    }
}

#[test]
fn a_value_that_is_not_allowed_is_described_in_the_words_of_the_language() {
    for line in REFUSED.trim().lines() {
        let parts: Vec<_> = line.split(" | ").collect();
        let given: Vec<_> = parts[0].split(' ').collect();
        let (taker, name, value) = (given[0].parse().unwrap(), given[1], given[2]);
        let value = serde_json::from_str(value).unwrap();
        let expected = format!("here: {name}= {}, not {value}", parts[1]);
        assert_eq!(problem(Python, taker, name, &value), expected);
        let name = TypeScript.option(name);
        let expected = format!("here: {name} {}, not {value}", parts.last().unwrap());
        assert_eq!(problem(TypeScript, taker, &name, &value), expected);
    }
}

#[test]
fn allowed_and_absent_values_pass() {
    for (name, value) in [
        ("public_url", json!("HTTPS://example.org/mcp")),
        ("cors", json!(false)),
        ("cors", json!(["https://a"])),
        ("allowed_hosts", json!([])),
        ("tls", json!(["a", "b"])),
        ("keep_alive", json!(0.5)),
        ("shutdown_grace", json!(0)),
        ("drain_delay", json!(0)),
        ("health", json!("/healthz")),
        ("metrics", json!("/metrics")),
        ("max_body", json!(1)),
        ("max_body", json!(null)),
    ] {
        assert_eq!(problem(Python, Taker::Http, name, &value), "", "{name}");
    }
    assert_eq!(problem(TypeScript, Taker::Http, "tls", &json!({"cert": "a", "key": "b"})), "");
}

struct Store(&'static [&'static str]);

impl Given for Store {
    fn value(&self) -> Value {
        Value::Other
    }

    fn items(&self) -> Vec<Self> {
        Vec::new()
    }

    fn entries(&self) -> Vec<(Self, Self)> {
        Vec::new()
    }

    fn has_method(&self, name: &str) -> bool {
        self.0.contains(&name)
    }
}

#[test]
fn a_store_is_in_memory_or_has_methods_and_its_url_is_not_shown() {
    let wanted = "here: store= must be \"memory\", \"redis://host:6379\" (also \"rediss:\", \"valkey:\" and \"valkeys:\") or \
                  \"sqlite:path\", or an object with the methods get, put and take, and both or none of append and read, and of \
                  publish and subscribe, and all or none of lease, renew and release (gudgeon.types.Store)";
    for url in ["postgres://:s3cret@localhost", "store.db", "sqlite:", ""] {
        assert_eq!(problem(Python, Taker::Server, "store", &json!(url)), wanted);
    }
    for url in ["redis://:s3cret@localhost", "sqlite:store.db", "memory"] {
        assert_eq!(problem(Python, Taker::Server, "store", &json!(url)), "");
    }
    assert!(
        problem(TypeScript, Taker::Server, "store", &json!({}))
            .ends_with("release (the interface Store)")
    );
    let check = |methods| check(Python, Taker::Server, "here", "store", &Store(methods));
    assert!(check(&["get", "put", "take", "close"]).is_ok());
    assert!(check(&["get", "put", "take", "append", "read", "delete"]).is_ok());
    for methods in [&["get", "put"][..], &["get", "put", "take", "append"]] {
        assert_eq!(check(methods).unwrap_err().message, wanted);
    }
}

#[test]
fn infinity_is_a_time_limit_only_and_nan_is_nothing() {
    let fits = |taker, name, value| check(Python, taker, "", name, &Number(value)).is_ok();
    assert!(fits(Taker::Client, "timeout", f64::INFINITY));
    assert!(!fits(Taker::Client, "timeout", f64::NAN));
    assert!(!fits(Taker::Http, "keep_alive", f64::INFINITY));
    assert!(!fits(Taker::Http, "shutdown_grace", f64::NAN));
    assert!(!fits(Taker::Tool, "timeout", f64::INFINITY));
}

#[test]
fn unknown_options_are_refused_with_the_option_that_was_meant() {
    for (language, taker, name, fix) in [
        (Python, Taker::Tool, "timout", "did you mean 'timeout'?"),
        (TypeScript, Taker::Tool, "timout", "did you mean 'timeoutMs'?"),
        (TypeScript, Taker::Client, "timeout", "did you mean 'timeoutMs'?"),
        (Python, Taker::Server, "life_span", "did you mean 'lifespan'?"),
        (Python, Taker::Tool, "output_schema", "did you mean 'output'?"),
        (TypeScript, Taker::Prompt, "input", "did you mean 'args'?"),
        (Python, Taker::Http, "show_banner", "leave it out"),
        (TypeScript, Taker::CallRound, "answer", "did you mean 'answers'?"),
        (
            TypeScript,
            Taker::Call,
            "variables",
            "it takes output, signal, timeoutMs, onProgress, throwOnError, meta",
        ),
    ] {
        let expected = format!("here: unknown option '{name}'; {fix}");
        assert_eq!(problem(language, taker, name, &json!(null)), expected);
    }
    assert!(problem(Python, Taker::Prompt, "concurrency", &json!(1)).contains("unknown option"));
}

#[test]
fn only_values_out_of_range_are_range_errors() {
    let is_range = |name, value| check(Python, Taker::Tool, "", name, &value).unwrap_err().is_range;
    assert!(is_range("timeout", json!(-1)));
    assert!(is_range("replay", json!("no")));
    assert!(!is_range("tags", json!("a")));
    assert!(!is_range("qqq", json!(1)));
}

#[test]
fn durations_end_in_ms_in_typescript_and_in_declarations() {
    let takers =
        ["server", "tool", "resource", "prompt", "client", "call", "subscribe", "retry", "http"];
    for taker in takers.map(|name| name.parse().unwrap()) {
        for row in Row::all(TypeScript, taker) {
            let is_duration = matches!(row.kind, Kind::Duration(_));
            assert_eq!(row.name_in(TypeScript).ends_with("Ms"), is_duration, "{}", row.name);
            let member = row.member();
            assert!(member.is_none_or(|name| name == "_meta" || name == row.name_in(TypeScript)));
        }
    }
}

#[test]
fn every_hint_is_for_a_name_that_does_not_exist() {
    let takers =
        ["server", "tool", "resource", "prompt", "client", "call", "subscribe", "retry", "http"];
    for (language, taker) in takers.iter().flat_map(|name| [(Python, name), (TypeScript, name)]) {
        let taker: Taker = taker.parse().unwrap();
        let hints = if language == Python {
            hints_python::for_taker(taker)
        } else {
            hints_typescript::for_taker(taker)
        };
        for (name, _) in hints.iter().flat_map(|list| list.iter()) {
            assert!(Row::find(language, taker, name).is_none(), "{name}");
        }
    }
}
