//! The drain of a server that listens: it goes on while `ready` says that it ends.

#[cfg(unix)]
use std::io::{Read, Write as _};
use std::{sync::Arc, time::Duration};

use gudgeon::{Listening, Server, transport::memory_network};
use tokio::{
    io::AsyncWriteExt,
    task::{JoinHandle, spawn_blocking},
    time::{Instant, sleep, timeout},
};

use crate::{
    health::ask,
    http_server::{call, connect, read, read_all},
    support::memory,
};

const DELAY: Duration = Duration::from_secs(5);

async fn draining() -> Arc<Listening> {
    let server = Server::new("s").tool("one", || async { 1 }).options(|options| {
        options.http.ready = Some("/readyz".into());
        options.http.drain_delay = DELAY;
    });
    Arc::new(server.listen(memory::HTTP).await.unwrap())
}

/// Begins the shutdown, and waits until the server says so.
async fn shut_down(listening: &Arc<Listening>) -> JoinHandle<()> {
    let ending = Arc::clone(listening);
    let ended = tokio::spawn(async move { ending.shut_down().await });
    while !ask(listening, "GET", "/readyz").await.starts_with("HTTP/1.1 503") {
        tokio::task::yield_now().await;
    }
    ended
}

#[cfg(unix)]
fn unix_address() -> String {
    let file = std::env::temp_dir().join(format!("gudgeon-drain-{}", std::process::id()));
    format!("http+unix:{}", file.display())
}

/// Connects and sends a call, without waiting for the server.
#[cfg(unix)]
fn system_connection(url: &str) -> Box<dyn Read + Send> {
    let request = call("one", 1);
    if let Some(path) = url.strip_prefix("http+unix:") {
        let mut stream = std::os::unix::net::UnixStream::connect(path).unwrap();
        stream.write_all(request.as_bytes()).unwrap();
        Box::new(stream)
    } else {
        let address = url.trim_start_matches("http://").trim_end_matches("/mcp");
        let mut stream = std::net::TcpStream::connect(address).unwrap();
        stream.write_all(request.as_bytes()).unwrap();
        Box::new(stream)
    }
}

fn is_last(response: &str) -> bool {
    response.to_ascii_lowercase().contains("\r\nconnection: close\r\n")
}

#[tokio::test(start_paused = true)]
async fn calls_are_served_until_the_drain_is_over_and_each_closes_its_connection() {
    let listening = draining().await;
    let mut kept = connect(&listening);
    kept.write_all(call("one", 1).as_bytes()).await.unwrap();
    let first = read(&mut kept).await;
    assert!(first.starts_with("HTTP/1.1 200") && !is_last(&first), "{first}");
    let (mut idle, begun) = (connect(&listening), Instant::now());
    let ended = shut_down(&listening).await;
    for number in 2..4 {
        let mut fresh = connect(&listening);
        for stream in [&mut kept, &mut fresh] {
            stream.write_all(call("one", number).as_bytes()).await.unwrap();
            let last = read_all(stream).await;
            assert!(last.starts_with("HTTP/1.1 200") && is_last(&last), "{last}");
            assert!(last.contains(&format!(r#""id":{number}"#)), "{last}");
        }
        kept = connect(&listening);
        sleep(DELAY / 4).await;
    }
    assert!(!ended.is_finished());
    assert_eq!(read_all(&mut idle).await, "");
    assert!(begun.elapsed() >= DELAY, "{:?}", begun.elapsed());
    ended.await.unwrap();
    let port = listening.url().rsplit([':', '/']).nth(1).unwrap().parse().unwrap();
    assert!(memory_network::connect(port).is_err(), "nothing listens");
    // A second call does not wait again.
    timeout(DELAY / 2, listening.shut_down()).await.expect("it has ended");
}

#[tokio::test(start_paused = true)]
async fn a_request_that_is_on_its_way_when_the_drain_ends_is_answered() {
    let listening = draining().await;
    let request = call("one", 1);
    let mut streams = Vec::new();
    // Before the first byte, in the head, and in the body.
    for sent in [0, 20, request.len() - 5] {
        for is_used in [false, true] {
            let mut stream = connect(&listening);
            if is_used {
                stream.write_all(call("one", 0).as_bytes()).await.unwrap();
                assert!(read(&mut stream).await.starts_with("HTTP/1.1 200"));
            }
            streams.push((stream, sent));
        }
    }
    let ended = shut_down(&listening).await;
    for (stream, sent) in &mut streams {
        stream.write_all(&request.as_bytes()[..*sent]).await.unwrap();
    }
    let delay = DELAY + Duration::from_millis(50);
    sleep(delay).await;
    assert!(!ended.is_finished());
    for (stream, sent) in &mut streams {
        stream.write_all(&request.as_bytes()[*sent..]).await.unwrap();
    }
    for (stream, sent) in &mut streams {
        let last = read_all(stream).await;
        assert!(last.starts_with("HTTP/1.1 200") && is_last(&last), "{sent}: {last}");
    }
    ended.await.unwrap();
}

#[cfg(unix)]
#[tokio::test]
async fn connections_in_the_queue_of_the_system_when_the_drain_ends_are_served() {
    let delay = Duration::from_millis(1);
    for address in ["http://127.0.0.1:0/mcp", &unix_address()] {
        let server = Server::new("s")
            .tool("one", || async { 1 })
            .options(|options| options.http.drain_delay = delay);
        let listening = Arc::new(server.listen(address).await.unwrap());
        let (ending, url) = (Arc::clone(&listening), listening.url().to_owned());
        let ended = tokio::spawn(async move { ending.shut_down().await });
        let connecting = tokio::spawn(async move {
            sleep(delay).await;
            (0..20).map(|_| system_connection(&url)).collect::<Vec<_>>()
        });
        // Both tasks wait for the end of the drain, and run in a row because both delays are over when they are looked at next: the
        // server's task, which accepts, does not run between the connections and the end of the drain.
        tokio::task::yield_now().await;
        let over = std::time::Instant::now() + 10 * delay;
        while std::time::Instant::now() < over {
            std::thread::yield_now();
        }
        for mut stream in connecting.await.unwrap() {
            let answer = spawn_blocking(move || {
                let mut answer = String::new();
                stream.read_to_string(&mut answer).map(|_| answer)
            });
            let last = answer.await.unwrap().unwrap();
            assert!(last.starts_with("HTTP/1.1 200") && is_last(&last), "{address}: {last}");
        }
        ended.await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn dropping_a_server_that_drains_ends_it_at_once() {
    let listening = draining().await;
    let mut idle = connect(&listening);
    let (ended, begun) = (shut_down(&listening).await, Instant::now());
    ended.abort();
    let _ = ended.await;
    drop(listening);
    assert_eq!(read_all(&mut idle).await, "");
    assert!(begun.elapsed() < DELAY, "{:?}", begun.elapsed());
}
