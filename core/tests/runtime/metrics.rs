//! Metrics of a server that listens, and their readers.

use std::time::Duration;

use gudgeon::{Client, Listening, Server, Tool, server::SampleValue};
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::{
    health::ask,
    http_server::{call, connect, read},
    support::memory,
};

const STALLED: &str = "GET /metrics HTTP/1.1\r\nHost: 10.0.0.7\r\n\r\n";

/// Returns the lines of the metric that begin like this.
async fn scraped(listening: &Listening, beginning: &str) -> Vec<String> {
    let answer = ask(listening, "GET", "/metrics").await;
    assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
    assert!(answer.contains("content-type: text/plain; version=0.0.4; charset=utf-8\r\n"));
    answer.lines().filter(|line| line.starts_with(beginning)).map(str::to_owned).collect()
}

#[tokio::test(start_paused = true)]
async fn each_address_shows_the_calls_of_all_addresses_and_of_streams() {
    let server = Server::new("s")
        .tool("one", || async { "1" })
        .options(|options| options.http.max_in_flight = 7);
    let public = server.listen(memory::HTTP).await.unwrap();
    assert!(ask(&public, "GET", "/metrics").await.starts_with("HTTP/1.1 421"));
    let private = Server::options(server, |options| options.http.metrics = Some("/metrics".into()));
    let listening = private.listen(memory::HTTP).await.unwrap();
    let mut stream = connect(&public);
    stream.write_all(call("one", 1).as_bytes()).await.unwrap();
    assert!(read(&mut stream).await.starts_with("HTTP/1.1 200"));
    let client = Client::connect(&private).await.unwrap();
    client.call_tool("one", json!({})).await.unwrap();
    let calls = scraped(&listening, "gudgeon_calls_total{method=\"tools/call\"").await;
    assert_eq!(
        calls,
        [
            "gudgeon_calls_total{method=\"tools/call\",name=\"one\",outcome=\"ok\",revision=\"2026-07-28\"} 2"
        ]
    );
    let metrics = private.metrics().read();
    let gauge = |name: &str| {
        let metric = metrics.iter().find(|metric| metric.name == name).unwrap();
        let SampleValue::Gauge(value) = metric.samples[0].value else { panic!("{metric:?}") };
        value
    };
    assert_eq!((gauge("gudgeon_in_flight"), gauge("gudgeon_connections")), (0.0, 1.0));
    assert!(gauge("gudgeon_in_flight_limit") >= 14.0, "two addresses and a stream");
    client.close().await;
}

#[tokio::test(start_paused = true)]
async fn a_reader_that_stalls_holds_up_nobody_and_its_answer_is_counted() {
    let mut server = Server::new("s");
    for number in 0..200 {
        server = server.add(Tool::new(format!("t{number}"), || async { "" }));
    }
    let server = server.options(|options| options.http.metrics = Some("/metrics".into()));
    let listening = server.listen(memory::HTTP).await.unwrap();
    let mut stream = connect(&listening);
    for number in 0..200 {
        stream.write_all(call(&format!("t{number}"), number).as_bytes()).await.unwrap();
        assert!(read(&mut stream).await.starts_with("HTTP/1.1 200"));
    }
    let unread = "gudgeon_held_bytes{purpose=\"unread\"} ";
    assert_eq!(scraped(&listening, unread).await, [format!("{unread}0")]);
    let mut stalled = connect(&listening);
    stalled.write_all(STALLED.as_bytes()).await.unwrap();
    tokio::time::sleep(Duration::from_secs(1)).await;
    let held = scraped(&listening, unread).await.remove(0);
    let bytes: usize = held.strip_prefix(unread).unwrap().parse().unwrap();
    assert!((100_000..1_000_000).contains(&bytes), "{held}");
    stream.write_all(call("t0", 1).as_bytes()).await.unwrap();
    assert!(read(&mut stream).await.starts_with("HTTP/1.1 200"));
    tokio::time::sleep(Duration::from_secs(600)).await;
    assert_eq!(scraped(&listening, unread).await, [format!("{unread}0")]);
    // Its connection is closed with a part of the answer.
    let mut rest = Vec::new();
    let _ = stalled.read_to_end(&mut rest).await;
    assert!(rest.starts_with(b"HTTP/1.1 200") && rest.len() < bytes, "{}", rest.len());
}
