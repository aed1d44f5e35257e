//! Metrics: what is counted, and under which names; their text; and docs/metrics.md, which lists them.

#![allow(clippy::needless_pass_by_value, reason = "`json!` at the call reads best by value")]

use std::{fmt::Write as _, fs, path::Path, sync::Arc, time::Duration};

use gudgeon::{
    http::{EndpointConfig, EndpointInput, ExchangeId},
    metrics::{Family, MetricKind, Metrics, Outcome, SampleValue, text},
    protocol::{Dialect, Principal},
    router::{Failure, Reply},
};
use serde_json::{Value, json};

use crate::support::{fixture, request::Request, visitor::Visitor};

/// The line of docs/metrics.md after which the catalogue follows.
const CATALOGUE: &str = "## All metrics\n\n";

fn visitor() -> Visitor {
    with(EndpointConfig::default())
}

/// A server whose metrics are read.
fn with(config: EndpointConfig) -> Visitor {
    let config = EndpointConfig { metrics: Some("/metrics".into()), ..config };
    Visitor::new(fixture::components_in(vec![Dialect::Bare]), config)
}

/// Returns the lines of one metric.
fn lines(visitor: &Visitor, metric: &str) -> Vec<String> {
    let text = text(&visitor.endpoint.metrics().snapshot());
    let is_of = |line: &&str| line.split(['{', ' ']).next() == Some(metric);
    text.lines().filter(is_of).map(str::to_owned).collect()
}

/// Returns the calls: `method name outcome revision count`.
fn calls(visitor: &Visitor) -> Vec<String> {
    let metrics = visitor.endpoint.metrics().snapshot();
    let calls = metrics.iter().find(|metric| metric.name == "gudgeon_calls_total").unwrap();
    let described = calls.samples.iter().map(|sample| {
        let SampleValue::Counter(count) = sample.value else { panic!("{sample:?}") };
        let values: Vec<&str> = sample.labels.iter().map(|(_, value)| &**value).collect();
        format!("{} {count}", values.join(" "))
    });
    described.collect()
}

fn call(visitor: &mut Visitor, tool: &str, arguments: Value) -> u64 {
    visitor.modern("tools/call", json!({"name": tool, "arguments": arguments}))
}

#[test]
fn calls_are_counted_by_their_outcome_and_revision() {
    let mut visitor = visitor();
    let session = visitor.open("2025-11-25", json!({}));
    for outcome in [
        Ok(Reply::Result(r#"{"content":[]}"#.into())),
        Ok(Reply::Result(r#"{"content":[],"isError":true}"#.into())),
        Err(Failure::Exposed("no".into())),
        Err(Failure::Invalid("no".into())),
    ] {
        call(&mut visitor, "wait", json!({}));
        visitor.finish(outcome);
    }
    call(&mut visitor, "add", json!({"a": "x"}));
    visitor.call(&session, 1, "slow");
    visitor.advance(Duration::from_secs(60));
    visitor.call(&session, 2, "wait");
    let cancel = json!({
        "jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 2},
    });
    visitor.legacy(&session, &cancel);
    let left = call(&mut visitor, "wait", json!({}));
    visitor.handle(EndpointInput::Disconnected(ExchangeId(left)));
    assert_eq!(
        calls(&visitor),
        [
            "initialize  ok 2025-11-25 1",
            "tools/call add invalid 2026-07-28 1",
            "tools/call slow timeout 2025-11-25 1",
            "tools/call wait cancelled 2025-11-25 1",
            "tools/call wait ok 2026-07-28 1",
            "tools/call wait error 2026-07-28 2",
            "tools/call wait invalid 2026-07-28 1",
            "tools/call wait cancelled 2026-07-28 1",
        ]
    );
}

#[test]
fn names_that_the_server_does_not_have_do_not_become_labels() {
    let mut visitor = visitor();
    for name in ["nil", "nil2", "nil3"] {
        call(&mut visitor, name, json!({}));
        visitor.modern("prompts/get", json!({"name": name}));
        visitor.modern("resources/read", json!({"uri": format!("a://{name}")}));
        visitor.modern(&format!("acme/{name}"), json!({}));
    }
    visitor.modern("prompts/get", json!({"name": "greet"}));
    for id in 0..3 {
        visitor.modern("resources/read", json!({"uri": format!("fixture://items/{id}")}));
        visitor.finish(Err(Failure::Exposed("no".into())));
    }
    visitor.modern("acme/echo", json!({}));
    visitor.finish(Err(Failure::Exposed("no".into())));
    let known = [
        "acme/echo  error 2026-07-28 1",
        "prompts/get  invalid 2026-07-28 3",
        "prompts/get greet invalid 2026-07-28 1",
        "resources/read  invalid 2026-07-28 3",
        "resources/read fixture://items/{id} error 2026-07-28 3",
        "tools/call  invalid 2026-07-28 3",
    ];
    let counted = calls(&visitor);
    let (other, rest): (Vec<_>, Vec<_>) =
        counted.iter().partition(|call| call.starts_with("_other"));
    assert_eq!(rest, known);
    assert!(other.len() <= 1, "{other:?}");
}

#[test]
fn a_duration_lasts_from_the_arrival_to_the_answer() {
    let mut visitor = visitor();
    call(&mut visitor, "wait", json!({}));
    visitor.advance(Duration::from_millis(30));
    visitor.finish(Ok(Reply::Result(r#"{"content":[]}"#.into())));
    let labels = r#"method="tools/call",name="wait",outcome="ok""#;
    let buckets = lines(&visitor, "gudgeon_call_duration_seconds_bucket");
    for (bound, count) in [("0.02", 0), ("0.05", 1), ("300", 1), ("+Inf", 1)] {
        let line =
            format!("gudgeon_call_duration_seconds_bucket{{{labels},le=\"{bound}\"}} {count}");
        assert!(buckets.contains(&line), "{line}: {buckets:?}");
    }
    let name = "gudgeon_call_duration_seconds";
    assert_eq!(lines(&visitor, &format!("{name}_sum")), [format!("{name}_sum{{{labels}}} 0.03")]);
    assert_eq!(lines(&visitor, &format!("{name}_count")), [format!("{name}_count{{{labels}}} 1")]);
}

#[test]
fn refusals_have_the_reasons_of_the_log() {
    let mut visitor = with(EndpointConfig { max_in_flight: 1, ..EndpointConfig::default() });
    visitor.send("POST", "/mcp", &[("host", "evil.example")], "{}");
    visitor.send("GET", "/nowhere", &[], "");
    let session = visitor.open("2025-11-25", json!({}));
    visitor.call("nobody's", 1, "wait");
    let headers = [
        ("content-type", "application/json"),
        ("accept", "application/json"),
        ("mcp-session-id", &*session),
    ];
    visitor.send("POST", "/mcp", &headers, "{");
    visitor.call(&session, 2, "wait");
    visitor.call(&session, 3, "wait");
    assert_eq!(
        lines(&visitor, "gudgeon_refusals_total"),
        ["host", "invalid_message", "max_in_flight", "path", "session"]
            .map(|reason| format!("gudgeon_refusals_total{{reason=\"{reason}\"}} 1"))
    );
}

#[test]
fn anybody_may_read_and_everything_that_an_endpoint_holds_is_bounded() {
    let mut visitor = visitor();
    visitor.principal = Some(Arc::new(Principal::new("ada")));
    let session = visitor.open("2025-11-25", json!({}));
    visitor.get(&session, "");
    call(&mut visitor, "wait", json!({}));
    visitor.principal = None;
    for method in ["GET", "HEAD"] {
        let request = Request::new(method, "/metrics").header("host", "10.0.0.7:9100");
        let id = visitor.request(&request);
        let reply = visitor.reply(id);
        assert_eq!(reply.status, 200);
        assert_eq!(reply.header("content-type"), "text/plain; version=0.0.4; charset=utf-8");
        assert_eq!(reply.header("cache-control"), "no-store");
        let families = reply.body.lines().filter(|line| line.starts_with("# TYPE")).count();
        assert_eq!(families, Family::ALL.len());
    }
    let id = visitor.send("POST", "/metrics", &[("host", "10.0.0.7")], "{}");
    assert_eq!((visitor.reply(id).status, visitor.reply(id).header("allow")), (405, "GET, HEAD"));
    visitor.handle(EndpointInput::ShutDown);
    let id = visitor.send("GET", "/metrics", &[], "");
    assert_eq!(visitor.reply(id).status, 200, "a server that stops still says what it does");
}

#[test]
fn nothing_is_counted_before_somebody_wants_to_read() {
    let mut visitor = Visitor::new(fixture::components(), EndpointConfig::default());
    let id = visitor.send("GET", "/metrics", &[], "");
    assert_eq!(visitor.reply(id).status, 404);
    call(&mut visitor, "add", json!({"a": "x"}));
    assert_eq!(calls(&visitor), [""; 0]);
    visitor.endpoint.metrics().turn_on();
    call(&mut visitor, "add", json!({"a": "x"}));
    assert_eq!(calls(&visitor), ["tools/call add invalid 2026-07-28 1"]);
}

#[test]
fn label_values_are_escaped() {
    let metrics = Metrics::default();
    metrics.turn_on();
    let mut text = String::new();
    for metric in metrics.snapshot() {
        write!(text, "{metric}").unwrap();
    }
    assert!(text.lines().all(|line| line.starts_with("# ") || line.starts_with("gudgeon_")));
    let sample = gudgeon::metrics::Sample {
        labels: vec![("name", "a\"b\\c\nd".into()), ("more", String::new())],
        value: SampleValue::Gauge(0.5),
    };
    let mut metric = metrics.snapshot().swap_remove(0);
    metric.samples = vec![sample];
    let last = metric.to_string();
    assert_eq!(last.lines().last(), Some(r#"gudgeon_calls_total{name="a\"b\\c\nd",more=""} 0.5"#));
}

#[test]
fn names_follow_the_conventions_of_prometheus() {
    for Family { name, kind, labels, help, .. } in Family::ALL {
        assert!(name.starts_with("gudgeon_") && help.ends_with('.'), "{name}");
        assert_eq!(name.ends_with("_total"), *kind == MetricKind::Counter, "{name}");
        assert!(!labels.contains(&"le"));
    }
}

/// Returns the part of docs/metrics.md that is made of the catalogue.
fn page() -> String {
    let mut page = String::from(
        "| metric | kind | labels | in OpenTelemetry | meaning |\n|---|---|---|---|---|\n",
    );
    for Family { name, kind, labels, help, telemetry } in Family::ALL {
        let labels: Vec<_> = labels.iter().map(|label| format!("`{label}`")).collect();
        let telemetry = telemetry.map_or(String::new(), |(name, _)| format!("`{name}`"));
        let kind = format!("{kind:?}").to_lowercase();
        let labels = labels.join(", ");
        writeln!(page, "| `{name}` | {kind} | {labels} | {telemetry} | {help} |").unwrap();
    }
    page.push_str("\n| outcome of a call | meaning |\n|---|---|\n");
    for outcome in Outcome::ALL {
        writeln!(page, "| `{}` | {} |", outcome.as_str(), outcome.meaning()).unwrap();
    }
    page
}

#[test]
fn the_documentation_lists_the_catalogue() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/metrics.md");
    let text = fs::read_to_string(&path).unwrap();
    let (before, listed) = text.split_once(CATALOGUE).unwrap();
    if std::env::var_os("UPDATE_METRICS_PAGE").is_some() {
        fs::write(path, format!("{before}{CATALOGUE}{}", page())).unwrap();
        return;
    }
    assert_eq!(listed.trim_end(), page().trim_end(), "run this test with UPDATE_METRICS_PAGE=1");
}
