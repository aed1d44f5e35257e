#![allow(clippy::unwrap_used, reason = "a test that fails here says where")]

use std::{
    io::{Read, Write},
    net::TcpListener,
    os::unix::net::UnixStream,
    process::{Child, Command, Stdio},
    sync::{Arc, Condvar, Mutex},
    thread,
    time::{Duration, Instant},
};

use super::*;
use crate::{
    store::StoreEvent,
    stores::tests::{
        ENOUGH, Folder, begin, failure, get, lease, message, next, publish, put, release, renew,
        run, subscribe,
    },
    testing::check_store,
};

/// A server with a socket in a folder.
struct Server {
    folder: Folder,
    process: Option<Child>,
}

impl Server {
    /// Starts a server; `None`, with a word, where none is installed.
    fn start() -> Option<Self> {
        let mut server = Self { folder: Folder::new(), process: None };
        server.restart().then_some(server)
    }

    /// Starts the server, without what it had stored. Returns `false` if none is installed.
    fn restart(&mut self) -> bool {
        self.stop();
        let mut command = Command::new("redis-server");
        command.args(["--port", "0", "--save", "", "--appendonly", "no", "--unixsocket"]);
        command.arg(self.folder.path("s")).arg("--dir").arg(self.folder.path(""));
        let Ok(process) = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn() else {
            eprintln!("redis-server is not installed, so the store in Redis is not tested");
            return false;
        };
        self.process = Some(process);
        let begun = Instant::now();
        while self.client().get_connection().is_err() {
            assert!(begun.elapsed() < ENOUGH, "redis-server does not start");
            thread::sleep(Duration::from_millis(10));
        }
        true
    }

    fn stop(&mut self) {
        if let Some(mut process) = self.process.take() {
            process.kill().unwrap();
            process.wait().unwrap();
        }
    }

    fn url(&self) -> String {
        format!("redis+unix://{}", self.folder.path("s").display())
    }

    fn store(&self) -> RedisStore {
        RedisStore::connect(&self.url()).unwrap()
    }

    fn client(&self) -> Client {
        Client::open(self.url()).unwrap()
    }

    /// Sends a command.
    fn command(&self, words: &[&str]) {
        let mut connection = self.client().get_connection().unwrap();
        let mut command = ::redis::cmd(words[0]);
        command.arg(&words[1..]).exec(&mut connection).unwrap();
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop();
    }
}

/// Repeats an operation until it succeeds.
fn until_done(store: &RedisStore, operation: &StoreOperation) -> StoreReply {
    let begun = Instant::now();
    loop {
        match run(store, operation.clone()) {
            StoreReply::Failed(reason) => assert!(begun.elapsed() < ENOUGH, "{reason}"),
            reply => return reply,
        }
        thread::sleep(Duration::from_millis(10));
    }
}

#[tokio::test]
async fn it_keeps_the_rules() {
    let Some(server) = Server::start() else { return };
    check_store(Arc::new(server.store())).await.unwrap();
}

#[test]
fn messages_reach_other_processes() {
    let Some(server) = Server::start() else { return };
    let (one, two) = (server.store(), server.store());
    let (_subscription, events) = subscribe(&one);
    assert_eq!(next(&events), StoreEvent::Lost);
    for number in 0..100 {
        assert_eq!(run(&two, publish(&[number])), StoreReply::Published);
    }
    for number in 0..100 {
        assert_eq!(next(&events), message(&[number]));
    }
}

#[test]
fn a_server_that_is_away_or_comes_back_empty_fails_only_what_needs_it() {
    let Some(mut server) = Server::start() else { return };
    let store = server.store();
    server.stop();
    let (_subscription, events) = subscribe(&store);
    let reason = failure(&store, get("a"));
    assert!(reason.starts_with(&format!("{}: no connection: ", server.url())), "{reason}");
    server.restart();
    let StoreReply::Leased(first) = until_done(&store, &lease("one")) else { panic!() };
    assert_eq!(next(&events), StoreEvent::Lost);
    assert!(matches!(run(&store, put("a")), StoreReply::Stored(_)));
    server.restart();
    let StoreReply::Leased(second) = until_done(&store, &lease("two")) else { panic!() };
    assert!(second > first, "{second} after {first}");
    assert_eq!(run(&store, get("a")), StoreReply::Found(None));
    assert_eq!(next(&events), StoreEvent::Lost);
    assert_eq!(run(&store, publish(b"1")), StoreReply::Published);
    assert_eq!(next(&events), message(b"1"));
}

#[test]
fn what_a_server_refuses_is_a_failure_with_its_reason() {
    let Some(server) = Server::start() else { return };
    let store = server.store();
    server.command(&["LPUSH", "gudgeon:value:list", "1"]);
    server.command(&["LPUSH", "gudgeon:log:list", "1"]);
    server.command(&["SET", "gudgeon:value:text", "1"]);
    server.command(&["ACL", "SETUSER", "reader", "on", ">s3cret", "~*", "+get"]);
    let read = StoreOperation::Read { log: "list".into(), after: 0 };
    assert!(matches!(run(&store, read), StoreReply::Events(events) if events.is_empty()));
    let with = |login: &str| RedisStore::connect(&format!("{}?{login}", server.url())).unwrap();
    let reader = with("user=reader&pass=s3cret");
    assert_eq!(run(&reader, get("a")), StoreReply::Found(None));
    let mut failures = vec![
        ("WRONGTYPE", failure(&store, get("list"))),
        ("WRONGTYPE", failure(&store, put("list"))),
        ("something else is stored there", failure(&store, get("text"))),
        ("NOPERM", failure(&reader, put("a"))),
        ("", failure(&with("user=reader&pass=wr0ng"), get("a"))),
    ];
    server.command(&["CONFIG", "SET", "maxmemory", "1"]);
    failures.push(("OOM", failure(&store, put("a"))));
    for (wanted, reason) in failures {
        assert!(reason.starts_with(&server.url()) && reason.contains(wanted), "{reason}");
        assert!(!reason.contains("s3cret") && !reason.contains("wr0ng"), "{reason}");
    }
    server.command(&["CONFIG", "SET", "maxmemory", "0"]);
    assert!(matches!(run(&store, put("a")), StoreReply::Stored(_)));
}

#[test]
fn a_server_that_never_replies_holds_a_bounded_number_of_operations_for_a_bounded_time() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("redis://:s3cret@{}/3", listener.local_addr().unwrap());
    let store = RedisStore::with_deadline(&url, Duration::from_millis(500)).unwrap();
    let waiting: Vec<_> = (0..MAX_UNDER_WAY).map(|_| begin(&store, get("a"))).collect();
    let refused = failure(&store, get("a"));
    for reply in waiting {
        let StoreReply::Failed(reason) = reply.recv_timeout(ENOUGH).unwrap() else { panic!() };
        let is_late = reason.contains("no connection within") || reason.contains("no reply within");
        assert!(is_late && !reason.contains("s3cret"), "{reason}");
    }
    assert!(refused.contains("1024 operations are under way"), "{refused}");
}

/// A way to a server on which replies can be held up.
struct Relay {
    url: String,
    is_open: Arc<(Mutex<bool>, Condvar)>,
}

impl Relay {
    fn new(server: &Server) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("redis://{}", listener.local_addr().unwrap());
        let is_open = Arc::new((Mutex::new(true), Condvar::new()));
        let (socket, gate) = (server.folder.path("s"), Arc::clone(&is_open));
        thread::spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                let Ok(server) = UnixStream::connect(&socket) else { continue };
                let gate = Arc::clone(&gate);
                Self::pass(client.try_clone().unwrap(), server.try_clone().unwrap(), || ());
                Self::pass(server, client, move || {
                    let is_open = gate.0.lock().unwrap();
                    drop(gate.1.wait_while(is_open, |is_open| !*is_open).unwrap());
                });
            }
        });
        Self { url, is_open }
    }

    fn pass(
        mut from: impl Read + Send + 'static,
        mut to: impl Write + Send + 'static,
        wait: impl Fn() + Send + 'static,
    ) {
        thread::spawn(move || {
            let mut bytes = [0; 4096];
            while let Ok(length) = from.read(&mut bytes)
                && length > 0
            {
                wait();
                if to.write_all(&bytes[..length]).is_err() {
                    return;
                }
            }
        });
    }

    fn set_open(&self, is_open: bool) {
        *self.is_open.0.lock().unwrap() = is_open;
        self.is_open.1.notify_all();
    }
}

#[test]
fn replies_that_come_too_late_are_for_nobody() {
    let Some(server) = Server::start() else { return };
    let relay = Relay::new(&server);
    let store = RedisStore::with_deadline(&relay.url, Duration::from_millis(500)).unwrap();
    assert!(matches!(until_done(&store, &put("a")), StoreReply::Stored(_)));
    relay.set_open(false);
    let late = failure(&store, get("a"));
    assert!(late.ends_with("no reply within 500ms"), "{late}");
    relay.set_open(true);
    // The reply that was late is not taken for the one to this.
    assert_eq!(until_done(&store, &get("b")), StoreReply::Found(None));
    assert!(matches!(until_done(&store, &get("a")), StoreReply::Found(Some(_))));
}

#[test]
fn who_lost_a_lease_has_an_old_token_and_can_not_take_it_back() {
    let Some(server) = Server::start() else { return };
    let (one, two) = (server.store(), server.store());
    let StoreReply::Leased(old) = run(&one, lease("one")) else { panic!() };
    assert_eq!(run(&two, lease("two")), StoreReply::Held);
    assert_eq!(run(&one, renew("one")), StoreReply::Leased(old));
    // Its time is over while its owner stands still.
    server.command(&["PEXPIRE", "gudgeon:lease:lease", "0"]);
    let StoreReply::Leased(new) = run(&two, lease("two")) else { panic!() };
    assert!(new > old, "{new} after {old}");
    for late in [renew("one"), lease("one")] {
        assert_eq!(run(&one, late), StoreReply::Held);
    }
    assert_eq!(run(&one, release("one")), StoreReply::Released);
    assert_eq!(run(&two, renew("two")), StoreReply::Leased(new));
}

#[test]
fn numbers_grow_although_the_clock_of_the_server_is_set_back() {
    let Some(server) = Server::start() else { return };
    // From the time when the clock was ahead.
    let ahead: u64 = 6_000_000_000_000_000;
    server.command(&["SET", "gudgeon:number", &ahead.to_string()]);
    let store = server.store();
    let StoreReply::Stored(first) = run(&store, put("a")) else { panic!() };
    let StoreReply::Leased(second) = run(&store, lease("one")) else { panic!() };
    assert!(ahead < first && first < second, "{first}, {second}");
}

#[test]
fn a_url_is_refused_without_showing_it() {
    for url in [
        "redis://:s3cret@localhost:99999",
        "redis://:s3cret@localhost/database",
        "redis://:s3cret@",
        "s3cret",
    ] {
        let error = RedisStore::connect(url).unwrap_err().to_string();
        assert!(error.starts_with("the URL of the store is not like redis://"), "{error}");
        assert!(!error.contains("s3cret"), "{error}");
    }
    for url in ["redis", "rediss", "valkey", "valkeys"] {
        let store = RedisStore::connect(&format!("{url}://ada:s3cret@localhost:6380/2")).unwrap();
        assert_eq!(format!("{store:?}"), format!("RedisStore(\"{url}://localhost:6380\")"));
    }
}
