//! Checks that take long: the patterns of a form or of a tool's output schema, on a long text.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
        mpsc,
    },
    time::Duration,
};

use gudgeon::{
    client::{Client, ClientBuilder, Target},
    error::ErrorKind,
    protocol::Tool,
};
use serde_json::{Value, json};
use tokio::runtime::Builder;

use crate::support::{
    asking_server::{ERAS, accept, asking, form},
    stream::{result, server},
};

/// Each pattern reads the whole text, and all of them match.
fn field() -> Value {
    let pattern =
        |n: u8| json!({"pattern": format!("^(a|b|c{n})*[^{}]*b$", char::from(100 + n % 20))});
    json!({"type": "string", "allOf": (0..64).map(pattern).collect::<Vec<_>>()})
}

const LENGTH: usize = 100_000;

fn text() -> String {
    "ab".repeat(LENGTH / 2)
}

/// Connects. Returns the client, and a flag that it sets when it receives a message as long as the text.
async fn watched(builder: ClientBuilder) -> (Client, Arc<AtomicBool>) {
    let received = Arc::new(AtomicBool::new(false));
    let flag = Arc::clone(&received);
    let builder = builder.on_message(move |_, message| {
        if message.len() > LENGTH {
            flag.store(true, Ordering::SeqCst);
        }
    });
    let builder = builder.options(|options| options.timeout = None);
    (builder.connect().await.expect("connects"), received)
}

/// Pings another server while a call runs, whose check takes long; all clients share one thread.
async fn ping_during_a_call((client, received): (Client, Arc<AtomicBool>)) {
    let (target, _) = server("2025-11-25", |message| vec![result(message, &json!({}))]);
    let other = Client::connect(target).await.expect("connects");
    let call = tokio::spawn(async move { client.call_tool("t", ()).await });
    let mut pings = 0;
    while !call.is_finished() {
        let is_checking = received.load(Ordering::SeqCst);
        other.ping().await.expect("answers");
        pings += u32::from(is_checking);
    }
    call.await.expect("no panic").expect("all patterns match");
    // A check on the thread lets the ping end that begins before it, and its answer.
    assert!(pings > 10, "{pings} pings were answered during the check");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn the_check_of_a_form_stalls_no_other_connection() {
    for era in ERAS {
        let mut field = field();
        field["default"] = text().into();
        let params = form(&json!({"v": field}), &json!([]));
        let builder = Client::builder(asking(era, vec![("k", "elicitation/create", params)]));
        let builder = builder.on_elicit(|_| async { Ok(accept(None)) });
        ping_during_a_call(watched(builder).await).await;
    }
}

/// Returns a client that has listed a tool whose result takes long to check.
async fn client_of_a_tool_with_a_long_check() -> (Client, Arc<AtomicBool>) {
    let output = json!({"type": "object", "properties": {"v": field()}});
    let tool = json!({"name": "t", "inputSchema": {"type": "object"}, "outputSchema": output});
    let (target, _): (Target, _) = server("2025-11-25", move |message| {
        vec![match message["method"].as_str() {
            Some("tools/list") => result(message, &json!({"tools": [tool]})),
            _ => result(message, &json!({"content": [], "structuredContent": {"v": text()}})),
        }]
    });
    let (client, received) = watched(Client::builder(target)).await;
    client.list::<Tool>().await.expect("lists");
    (client, received)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn the_check_of_a_result_stalls_no_other_connection() {
    ping_during_a_call(client_of_a_tool_with_a_long_check().await).await;
}

/// The only thread for long work is occupied, so that no check can end, however fast the machine is.
#[test]
fn the_check_of_a_result_counts_in_the_time_limits_of_the_call() {
    let runtime = Builder::new_current_thread()
        .enable_all()
        .start_paused(true)
        .max_blocking_threads(1)
        .build()
        .expect("a runtime");
    let (release, released) = mpsc::channel::<()>();
    runtime.block_on(async move {
        let (client, received) = client_of_a_tool_with_a_long_check().await;
        drop(tokio::task::spawn_blocking(move || released.recv()));
        for is_total in [false, true] {
            a_check_that_does_not_end(&client, &received, is_total).await;
        }
        drop(release);
    });
}

async fn a_check_that_does_not_end(client: &Client, received: &AtomicBool, is_total: bool) {
    const LIMIT: Duration = Duration::from_secs(5);
    received.store(false, Ordering::SeqCst);
    let limited = client.with_options(|options| {
        let limit = if is_total { &mut options.max_timeout } else { &mut options.timeout };
        *limit = Some(LIMIT);
    });
    let call = tokio::spawn(async move { limited.call_tool("t", ()).await });
    while !received.load(Ordering::SeqCst) {
        tokio::task::yield_now().await;
    }
    // More than the tasks need that take the message to the check; all of them are on this thread.
    let few_turns = async || {
        for _ in 0..1_000 {
            tokio::task::yield_now().await;
        }
    };
    few_turns().await;
    assert!(!call.is_finished(), "the check has not ended");
    tokio::time::advance(LIMIT).await;
    few_turns().await;
    assert!(call.is_finished(), "it is waited for");
    let error = call.await.expect("no panic").expect_err("the limit is over");
    assert_eq!(error.kind, ErrorKind::Timeout, "{error}");
}
