//! Termination signals during [`Server::run`], on every kind of address.

use std::{
    env,
    io::{BufRead as _, BufReader},
    process::{Child, ChildStderr, Command, Stdio},
};

use gudgeon::{Client, Revision, Server, client::Target};
use serde_json::json;
use tokio::signal::unix::{SignalKind, signal};

/// The address, in the process that serves.
const AT: &str = "GUDGEON_RUN_AT";
const IN_FLIGHT: usize = 50;

fn serve(at: &str) {
    let server = Server::new("told").tool("wait", || async {
        let kinds = [SignalKind::terminate(), SignalKind::interrupt()];
        let [mut terminated, mut interrupted] = kinds.map(|kind| signal(kind).unwrap());
        eprintln!("began");
        tokio::select! {
            _ = terminated.recv() => "waited",
            _ = interrupted.recv() => "waited",
        }
    });
    tokio::runtime::Runtime::new().unwrap().block_on(server.run(at)).unwrap();
    eprintln!("returned");
}

/// A process that serves, the URL that it says, and what else it says.
fn begin(at: &str) -> (Child, String, BufReader<ChildStderr>) {
    let mut child = Command::new(env::current_exe().unwrap())
        .args([
            "--exact",
            "server_signals::calls_in_flight_are_answered_and_run_returns",
            "--nocapture",
        ])
        .env(AT, at)
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut said = BufReader::new(child.stderr.take().unwrap());
    let mut lines = [String::new(), String::new()];
    for line in &mut lines {
        said.read_line(line).unwrap();
    }
    let [first, url] = lines;
    assert_eq!(first, "told serves (Ctrl-C ends it)\n");
    (child, url.trim_end().to_owned(), said)
}

async fn call_and_end(
    url: &str,
    revision: Revision,
    child: &Child,
    said: &mut impl std::io::BufRead,
    signal: &str,
) {
    let client = Client::builder(Target::url(url).unwrap())
        .options(|options| options.revisions = vec![revision])
        .connect()
        .await
        .unwrap();
    let calls: Vec<_> = (0..IN_FLIGHT)
        .map(|_| {
            let client = client.clone();
            tokio::spawn(async move { client.call_tool("wait", json!({})).await })
        })
        .collect();
    let mut line = String::new();
    for _ in 0..IN_FLIGHT {
        line.clear();
        tokio::task::block_in_place(|| said.read_line(&mut line)).unwrap();
        assert_eq!(line, "began\n");
    }
    let id = child.id().to_string();
    assert!(Command::new("kill").args([&format!("-{signal}"), &id]).status().unwrap().success());
    for call in calls {
        assert_eq!(call.await.unwrap().unwrap().text(), "waited", "{url} {signal}");
    }
}

#[test]
fn calls_in_flight_are_answered_and_run_returns() {
    if let Ok(at) = env::var(AT) {
        return serve(&at);
    }
    let path = env::temp_dir().join(format!("gudgeon-signals-{}", std::process::id()));
    let unix = format!("unix:{}", path.display());
    let runtime = tokio::runtime::Runtime::new().unwrap();
    for at in ["http://127.0.0.1:0/mcp", "tcp://127.0.0.1:0", &unix] {
        for (signal, revision) in [("TERM", Revision::LATEST), ("INT", Revision::LATEST_LEGACY)] {
            let (mut child, url, mut said) = begin(at);
            runtime.block_on(call_and_end(&url, revision, &child, &mut said, signal));
            let rest: Vec<_> = said.lines().map(Result::unwrap).collect();
            assert!(child.wait().unwrap().success(), "{at} {signal} {rest:?}");
            // The watchdog's thread says what is waited for, which may come too late here.
            let waiting = |line: &&String| line.starts_with("gudgeon: waiting up to ");
            let rest: Vec<_> = rest.iter().filter(|line| !waiting(line)).collect();
            assert_eq!(rest, ["returned"], "{at} {signal}");
        }
    }
    assert!(!path.exists(), "the socket's file is left");
}
