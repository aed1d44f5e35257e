//! Listening servers that remember used `DPoP` proofs together, in a store of the program's own (RFC 9449, section 11.1).

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, SystemTime},
};

use gudgeon::{
    Error, Listening, Server,
    error::ErrorKind,
    server::{Expect, MemoryStore, Store, auth::Jwt},
    store::BoxFuture,
    testing::check_store,
};
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::support::{
    issuer::{ISSUER, RESOURCE, Signer, key_set},
    memory,
};

/// The servers of one address: an issuer's tokens are bound to the key of their holder.
struct Replicas {
    issuer: Signer,
    holder: Signer,
    unix: u64,
}

impl Replicas {
    fn new() -> Self {
        let since_1970 = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap();
        let (issuer, holder) = (Signer::new("one"), Signer::new("holder"));
        Self { issuer, holder, unix: since_1970.as_secs() }
    }

    async fn start(&self, store: Option<Arc<dyn Store>>) -> Listening {
        let keys = Some(serde_json::from_slice(&key_set(&[&self.issuer])).unwrap());
        let tokens = Jwt { issuer: ISSUER.into(), keys, ..Jwt::default() };
        let server = Server::new("shelf").tool("who", || async { "" }).options(|options| {
            options.store = store;
            options.http.auth = vec![tokens.into()];
            options.http.public_url = Some(RESOURCE.into());
        });
        server.listen(memory::HTTP).await.unwrap()
    }

    /// The headers of a request, with a proof of this id.
    fn credentials(&self, id: &str) -> String {
        let jkt = self.holder.thumbprint();
        let token = self
            .issuer
            .token(json!({ "cnf": { "jkt": jkt }, "iat": self.unix, "exp": self.unix + 300 }));
        let proof = self.holder.proof(&token, json!({ "jti": id, "iat": self.unix }));
        format!("Authorization: DPoP {token}\r\nDPoP: {proof}\r\n")
    }
}

/// Pings a server. Returns the head of its answer in lower case.
async fn ping(listening: &Listening, credentials: &str) -> String {
    let address = listening.url().strip_prefix("http://").unwrap().strip_suffix("/mcp").unwrap();
    let body = r#"{"jsonrpc":"2.0","id":1,"method":"server/discover","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"c","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}}}"#;
    let request = format!(
        "POST /mcp HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\nContent-Type: application/json\r\n\
         Accept: application/json, text/event-stream\r\nMCP-Protocol-Version: 2026-07-28\r\n\
         Mcp-Method: server/discover\r\n{credentials}Content-Length: {}\r\n\r\n{body}",
        body.len()
    );
    let mut stream = memory::connect(listening.url());
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    answer.split_once("\r\n\r\n").unwrap().0.to_ascii_lowercase()
}

#[tokio::test(start_paused = true)]
async fn a_proof_that_one_server_has_seen_is_refused_by_another() {
    let replicas = Replicas::new();
    let store: Arc<dyn Store> = Arc::new(MemoryStore::default());
    let one = replicas.start(Some(Arc::clone(&store))).await;
    let other = replicas.start(Some(store)).await;
    let used = replicas.credentials("1");
    assert!(ping(&one, &used).await.starts_with("http/1.1 200 "));
    for again in [&other, &one] {
        let answer = ping(again, &used).await;
        assert!(
            answer.starts_with("http/1.1 401 ") && answer.contains("was used before"),
            "{answer}"
        );
    }
    assert!(ping(&other, &replicas.credentials("2")).await.starts_with("http/1.1 200 "));
    // Without a store, each server remembers its own.
    let [one, other] = [replicas.start(None).await, replicas.start(None).await];
    for server in [&one, &other] {
        assert!(ping(server, &used).await.starts_with("http/1.1 200 "));
        assert!(ping(server, &used).await.contains("was used before"));
    }
}

/// A store that fails until it is enabled.
#[derive(Default)]
struct Away {
    works: AtomicBool,
    panics: AtomicBool,
    memory: MemoryStore,
    puts: Mutex<Vec<(String, Duration)>>,
}

impl Store for Away {
    fn get(&self, key: String) -> BoxFuture<Option<(Vec<u8>, u64)>> {
        self.memory.get(key)
    }

    fn put(
        &self,
        key: String,
        value: Vec<u8>,
        ttl: Duration,
        expect: Expect,
    ) -> BoxFuture<Option<u64>> {
        assert!(!self.panics.load(Ordering::SeqCst), "on purpose");
        self.puts.lock().unwrap().push((key.clone(), ttl));
        if self.works.load(Ordering::SeqCst) {
            return self.memory.put(key, value, ttl, expect);
        }
        Box::pin(async { Err(Error::new(ErrorKind::Lost, "the database is away")) })
    }

    fn take(&self, key: String) -> BoxFuture<Option<Vec<u8>>> {
        self.memory.take(key)
    }
}

#[tokio::test(start_paused = true)]
async fn a_store_that_fails_refuses_requests_for_a_while() {
    let replicas = Replicas::new();
    let store = Arc::new(Away::default());
    let server = replicas.start(Some(Arc::clone(&store) as _)).await;
    for panics in [false, true] {
        store.panics.store(panics, Ordering::SeqCst);
        let answer = ping(&server, &replicas.credentials("1")).await;
        assert!(
            answer.starts_with("http/1.1 503 ") && answer.contains("retry-after: "),
            "{answer}"
        );
        assert!(!answer.contains("database"), "{answer}");
    }
    store.panics.store(false, Ordering::SeqCst);
    store.works.store(true, Ordering::SeqCst);
    assert!(ping(&server, &replicas.credentials("1")).await.starts_with("http/1.1 200 "));
    for (key, ttl) in &*store.puts.lock().unwrap() {
        assert!(
            key.starts_with("gudgeon:dpop:") && *ttl <= Duration::from_secs(360),
            "{key} {ttl:?}"
        );
    }
}

/// A store whose operations never end.
struct Hangs;

impl Store for Hangs {
    fn get(&self, _: String) -> BoxFuture<Option<(Vec<u8>, u64)>> {
        Box::pin(std::future::pending())
    }

    fn put(&self, _: String, _: Vec<u8>, _: Duration, _: Expect) -> BoxFuture<Option<u64>> {
        Box::pin(std::future::pending())
    }

    fn take(&self, _: String) -> BoxFuture<Option<Vec<u8>>> {
        Box::pin(std::future::pending())
    }
}

#[tokio::test(start_paused = true)]
async fn a_store_that_hangs_refuses_requests_and_delays_no_others() {
    let replicas = Replicas::new();
    let server = Arc::new(replicas.start(Some(Arc::new(Hangs))).await);
    let hanging: Vec<_> = (0..300)
        .map(|number| {
            let (server, credentials) =
                (Arc::clone(&server), replicas.credentials(&number.to_string()));
            tokio::spawn(async move { ping(&server, &credentials).await })
        })
        .collect();
    assert!(ping(&server, "").await.starts_with("http/1.1 401 "));
    for answer in hanging {
        let answer = answer.await.unwrap();
        assert!(
            answer.starts_with("http/1.1 503 ") && answer.contains("retry-after: "),
            "{answer}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn the_store_in_memory_keeps_the_rules() {
    check_store(Arc::new(MemoryStore::default())).await.unwrap();
    check_store(Arc::new(Away { works: true.into(), ..Away::default() })).await.unwrap();
    let error = check_store(Arc::new(Away::default())).await.unwrap_err().to_string();
    assert!(
        error.contains("put with a version") && error.contains("the database is away"),
        "{error}"
    );
}
