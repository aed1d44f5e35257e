//! A minimal HTTP server that can misbehave like real ones.
#![allow(clippy::needless_pass_by_value, reason = "what is said reads better without ampersands")]

use std::{
    collections::HashMap,
    fmt::Write,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use gudgeon::transport::memory_network::{HOST, MemoryListener};

use serde_json::Value;
use tokio::{
    io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader, DuplexStream},
    time::Instant,
};

#[derive(Clone, Debug)]
pub(crate) struct Seen {
    pub(crate) method: String,
    pub(crate) path: String,
    pub(crate) headers: HashMap<String, String>,
    pub(crate) body: Value,
    /// The number of its connection, from 0.
    pub(crate) connection: usize,
    pub(crate) at: Instant,
}

impl Seen {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(String::as_str)
    }

    /// The JSON-RPC method; `GET`, `DELETE` where there is no body.
    pub(crate) fn rpc(&self) -> String {
        self.body["method"].as_str().unwrap_or(&self.method).to_owned()
    }

    /// A reply whose body is the result of this request.
    pub(crate) fn result(&self, result: Value) -> Answer {
        Answer::json(200, self.response(result))
    }

    pub(crate) fn response(&self, result: Value) -> Value {
        serde_json::json!({"jsonrpc": "2.0", "id": self.body["id"], "result": result})
    }

    pub(crate) fn error(&self, status: u16, code: i64, data: Value) -> Answer {
        let error = serde_json::json!({"code": code, "message": "refused", "data": data});
        let body = serde_json::json!({"jsonrpc": "2.0", "id": self.body["id"], "error": error});
        Answer::json(status, body)
    }
}

#[derive(Clone, Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) steps: Vec<BodyStep>,
}

/// The behaviour of a streamed body.
#[derive(Clone, Debug)]
pub(crate) enum BodyStep {
    Bytes(String),
    Wait(u64),
    /// Stays open until the client goes.
    Hold,
    /// Closes the connection in the middle of the body.
    Break,
    /// Sends as events what others put there, until the client goes.
    Feed(Arc<Mutex<Vec<Value>>>),
}

impl Answer {
    pub(crate) fn text(status: u16, text: &str) -> Self {
        Self { status, headers: Vec::new(), steps: vec![BodyStep::Bytes(text.into())] }
            .with("Content-Type", "text/plain")
    }

    pub(crate) fn empty(status: u16) -> Self {
        Self { status, headers: Vec::new(), steps: Vec::new() }
    }

    pub(crate) fn json(status: u16, body: Value) -> Self {
        Self { status, headers: Vec::new(), steps: vec![BodyStep::Bytes(body.to_string())] }
            .with("Content-Type", "application/json")
    }

    pub(crate) fn events(steps: Vec<BodyStep>) -> Self {
        Self { status: 200, headers: Vec::new(), steps }.with("Content-Type", "text/event-stream")
    }

    /// Never gets done.
    pub(crate) fn hold(mut self) -> Self {
        self.steps.push(BodyStep::Hold);
        self
    }

    pub(crate) fn with(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.into(), value.into()));
        self
    }
}

pub(crate) fn event(message: &Value) -> BodyStep {
    BodyStep::Bytes(format!("event: message\ndata: {message}\n\n"))
}

pub(crate) fn event_with_id(id: &str, message: &Value) -> BodyStep {
    BodyStep::Bytes(format!("id: {id}\ndata: {message}\n\n"))
}

/// A server in memory, on a port of its own.
pub(crate) struct Mock {
    pub(crate) url: String,
    pub(crate) port: u16,
    seen: Arc<Mutex<Vec<Seen>>>,
    connections: Arc<AtomicUsize>,
    /// Replies whose connection the client closed before their end.
    dropped: Arc<AtomicUsize>,
    task: tokio::task::JoinHandle<()>,
}

impl Drop for Mock {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Mock {
    #[allow(clippy::unused_async, reason = "it starts a task, which needs a runtime")]
    pub(crate) async fn start(answer: impl Fn(&Seen) -> Answer + Send + Sync + 'static) -> Self {
        let listener = MemoryListener::bind(0).expect("a port");
        let port = listener.port();
        let seen = Arc::new(Mutex::new(Vec::new()));
        let connections = Arc::new(AtomicUsize::new(0));
        let dropped = Arc::new(AtomicUsize::new(0));
        let answer = Arc::new(answer);
        let (log, count, drops) =
            (Arc::clone(&seen), Arc::clone(&connections), Arc::clone(&dropped));
        let task = tokio::spawn(async move {
            let mut served = tokio::task::JoinSet::new();
            loop {
                let stream = listener.accept().await;
                let number = count.fetch_add(1, Ordering::Relaxed);
                served.spawn(serve(
                    stream,
                    number,
                    Arc::clone(&answer),
                    Arc::clone(&log),
                    Arc::clone(&drops),
                ));
            }
        });
        let url = format!("http://{HOST}:{port}/mcp");
        Self { url, port, seen, connections, dropped, task }
    }

    pub(crate) fn seen(&self) -> Vec<Seen> {
        self.seen.lock().expect("no panic").clone()
    }

    /// JSON-RPC methods in the order they came; `GET` and `DELETE` for these.
    pub(crate) fn methods(&self) -> Vec<String> {
        self.seen().iter().map(Seen::rpc).collect()
    }

    pub(crate) fn requests(&self, rpc: &str) -> Vec<Seen> {
        self.seen().into_iter().filter(|request| request.rpc() == rpc).collect()
    }

    pub(crate) fn connections(&self) -> usize {
        self.connections.load(Ordering::Relaxed)
    }

    /// Drops a call that is not answered, a little after its request has been received.
    pub(crate) async fn drop_received<T>(&self, rpc: &str, call: impl Future<Output = T>) {
        let received = async {
            eventually(|| self.requests(rpc).len() == 1).await;
            tokio::time::sleep(Duration::from_millis(100)).await;
        };
        tokio::select! {
            _ = call => panic!("it was answered"),
            () = received => {}
        }
    }

    pub(crate) fn dropped(&self) -> usize {
        self.dropped.load(Ordering::Relaxed)
    }
}

async fn serve(
    stream: DuplexStream,
    connection: usize,
    answer: Arc<impl Fn(&Seen) -> Answer>,
    log: Arc<Mutex<Vec<Seen>>>,
    dropped: Arc<AtomicUsize>,
) {
    let mut stream = BufReader::new(stream);
    while let Some(mut seen) = read(&mut stream).await {
        seen.connection = connection;
        log.lock().expect("no panic").push(seen.clone());
        let reply = answer(&seen);
        let closes = reply.headers.iter().any(|(_, value)| value == "close");
        if !write(&mut stream, reply, &dropped).await || closes {
            break;
        }
    }
}

async fn read(stream: &mut BufReader<DuplexStream>) -> Option<Seen> {
    let mut line = String::new();
    stream.read_line(&mut line).await.ok()?;
    let mut words = line.split_whitespace();
    let (method, path) = (words.next()?.to_owned(), words.next()?.to_owned());
    let mut headers = HashMap::new();
    loop {
        let mut line = String::new();
        stream.read_line(&mut line).await.ok()?;
        let Some((name, value)) = line.trim_end().split_once(':') else { break };
        let before = headers.insert(name.to_ascii_lowercase(), value.trim().to_owned());
        assert!(before.is_none(), "{name} is there twice");
    }
    let length = headers.get("content-length").map_or(0, |value| value.parse().expect("a length"));
    let mut body = vec![0; length];
    stream.read_exact(&mut body).await.ok()?;
    let body = serde_json::from_slice(&body).unwrap_or(Value::Null);
    Some(Seen { method, path, headers, body, connection: 0, at: Instant::now() })
}

/// Waits until the client sends more or disconnects.
async fn hold(stream: &mut BufReader<DuplexStream>, dropped: &AtomicUsize) {
    let mut byte = [0];
    if !matches!(stream.read(&mut byte).await, Ok(1)) {
        dropped.fetch_add(1, Ordering::Relaxed);
    }
}

/// Returns whether the connection stays open.
async fn write(stream: &mut BufReader<DuplexStream>, reply: Answer, dropped: &AtomicUsize) -> bool {
    let mut head = format!("HTTP/1.1 {} Whatever\r\n", reply.status);
    for (name, value) in &reply.headers {
        let _ = write!(head, "{name}: {value}\r\n");
    }
    let is_stream = reply.headers.iter().any(|(_, value)| value == "text/event-stream");
    if is_stream {
        head.push_str("Transfer-Encoding: chunked\r\n\r\n");
        if stream.write_all(head.as_bytes()).await.is_err() {
            return false;
        }
    } else {
        let body: String = reply
            .steps
            .iter()
            .map(|step| if let BodyStep::Bytes(text) = step { text.as_str() } else { "" })
            .collect();
        for step in &reply.steps {
            match step {
                BodyStep::Wait(wait) => tokio::time::sleep(Duration::from_millis(*wait)).await,
                BodyStep::Hold => {
                    hold(stream, dropped).await;
                    return false;
                }
                BodyStep::Break => return false,
                BodyStep::Bytes(_) | BodyStep::Feed(_) => (),
            }
        }
        let _ = write!(head, "Content-Length: {}\r\n\r\n{body}", body.len());
        return stream.write_all(head.as_bytes()).await.is_ok();
    }
    for step in reply.steps {
        match step {
            BodyStep::Bytes(text) => {
                let chunk = format!("{:x}\r\n{text}\r\n", text.len());
                if stream.write_all(chunk.as_bytes()).await.is_err() {
                    dropped.fetch_add(1, Ordering::Relaxed);
                    return false;
                }
            }
            BodyStep::Wait(wait) => tokio::time::sleep(Duration::from_millis(wait)).await,
            BodyStep::Hold => {
                hold(stream, dropped).await;
                return false;
            }
            BodyStep::Break => return false,
            BodyStep::Feed(source) => loop {
                let waiting = std::mem::take(&mut *source.lock().expect("no panic"));
                for message in waiting {
                    let text = format!("event: message\ndata: {message}\n\n");
                    let chunk = format!("{:x}\r\n{text}\r\n", text.len());
                    let _ = stream.write_all(chunk.as_bytes()).await;
                }
                let mut byte = [0];
                let gone = tokio::time::timeout(Duration::from_millis(5), stream.read(&mut byte));
                if gone.await.is_ok() {
                    dropped.fetch_add(1, Ordering::Relaxed);
                    return false;
                }
            },
        }
    }
    stream.write_all(b"0\r\n\r\n").await.is_ok()
}

/// Waits until a condition holds.
pub(crate) async fn eventually(condition: impl Fn() -> bool) {
    let holds = async {
        while !condition() {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(10), holds).await.expect("it happens within 10 s");
}

pub(crate) fn discovery() -> Value {
    serde_json::json!({
        "resultType": "complete",
        "supportedVersions": ["2026-07-28"],
        "capabilities": {"tools": {}, "resources": {}, "prompts": {}},
        "ttlMs": 0, "cacheScope": "private",
        "_meta": {"io.modelcontextprotocol/serverInfo": {"name": "mock", "version": "1"}},
    })
}

pub(crate) fn initialized(version: &str) -> Value {
    serde_json::json!({
        "protocolVersion": version,
        "capabilities": {"tools": {}, "resources": {}, "prompts": {}, "logging": {}},
        "serverInfo": {"name": "mock", "version": "1"},
    })
}

pub(crate) fn tool(name: &str, schema: Value) -> Value {
    serde_json::json!({"name": name, "inputSchema": schema})
}

pub(crate) fn tool_list(tools: &[Value]) -> Value {
    serde_json::json!({"resultType": "complete", "tools": tools, "ttlMs": 0, "cacheScope": "private"})
}

pub(crate) fn text_result(text: &str) -> Value {
    serde_json::json!({"resultType": "complete", "content": [{"type": "text", "text": text}]})
}
