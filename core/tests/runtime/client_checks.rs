//! Checks that take long: the patterns of a form or of a tool's output schema, on a long text.

use std::time::{Duration, Instant};

use gudgeon::{
    client::{Client, Target},
    error::ErrorKind,
    protocol::Tool,
};
use serde_json::{Value, json};

use crate::support::{
    asking_server::{ERAS, accept, asking, form},
    stream::{result, server},
};

/// Each pattern reads the whole text, and all of them match.
fn field() -> Value {
    let pattern =
        |n: u8| json!({"pattern": format!("^(a|b|c{n})*[^{}]*b$", char::from(100 + n % 20))});
    json!({"type": "string", "allOf": (0..=u8::MAX).map(pattern).collect::<Vec<_>>()})
}

fn text() -> String {
    "ab".repeat(200_000)
}

/// Pings another server while a call runs, whose check takes long; all clients share one thread.
async fn ping_during_a_call(client: Client) {
    let (target, _) = server("2025-11-25", |it| vec![result(it, &json!({}))]);
    let other = Client::connect(target).await.expect("connects");
    let start = Instant::now();
    let call = tokio::spawn(async move { client.call_tool("t", ()).await });
    let mut longest = Duration::ZERO;
    while !call.is_finished() {
        longest = longest.max(other.ping().await.expect("answers"));
    }
    let all = start.elapsed();
    call.await.expect("no panic").expect("all patterns match");
    assert!(longest * 2 < all, "a ping took {longest:?} of {all:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn the_check_of_a_form_stalls_no_other_connection() {
    for era in ERAS {
        let mut field = field();
        field["default"] = text().into();
        let params = form(&json!({"v": field}), &json!([]));
        let builder = Client::builder(asking(era, vec![("k", "elicitation/create", params)]));
        let builder = builder.on_elicit(|_| async { Ok(accept(None)) });
        ping_during_a_call(builder.connect().await.expect("connects")).await;
    }
}

/// Returns a client that has listed a tool whose result takes long to check.
async fn client_of_a_tool_with_a_long_check() -> Client {
    let output = json!({"type": "object", "properties": {"v": field()}});
    let tool = json!({"name": "t", "inputSchema": {"type": "object"}, "outputSchema": output});
    let (target, _): (Target, _) = server("2025-11-25", move |it| {
        vec![match it["method"].as_str() {
            Some("tools/list") => result(it, &json!({"tools": [tool]})),
            _ => result(it, &json!({"content": [], "structuredContent": {"v": text()}})),
        }]
    });
    let client = Client::connect(target).await.expect("connects");
    client.list::<Tool>().await.expect("lists");
    client
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn the_check_of_a_result_stalls_no_other_connection() {
    ping_during_a_call(client_of_a_tool_with_a_long_check().await).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn the_check_of_a_result_counts_in_the_time_limits_of_the_call() {
    let client = client_of_a_tool_with_a_long_check().await;
    let mut durations = Vec::new();
    for _ in 0..3 {
        let start = Instant::now();
        client.call_tool("t", ()).await.expect("all patterns match");
        durations.push(start.elapsed());
    }
    // The first call compiles the patterns too.
    let whole = durations[1].min(durations[2]);
    for is_total in [false, true] {
        let limited = client.with_options(|it| {
            let limit = if is_total { &mut it.max_timeout } else { &mut it.timeout };
            *limit = Some(whole / 10);
        });
        let start = Instant::now();
        let error = limited.call_tool("t", ()).await.expect_err("the check takes longer");
        assert_eq!(error.kind, ErrorKind::Timeout, "{error}");
        assert!(start.elapsed() < whole * 4 / 5, "{:?} of {whole:?}", start.elapsed());
    }
}
