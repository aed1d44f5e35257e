//! A client session on a scripted connection, with a manual clock.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use gudgeon::{
    error::Error,
    protocol::{ClientCapabilities, Implementation, Method, MethodName, Raw, Revision, json},
    session::client::{
        ClientConfig, ClientSession, Input, Output, RequestKey, RequestOptions, ServerIdentity,
    },
};
use serde_json::{Value, json};

pub(crate) struct Scripted {
    pub(crate) session: ClientSession,
    pub(crate) now: Instant,
}

pub(crate) fn config(revisions: &[Revision]) -> ClientConfig {
    ClientConfig {
        info: Implementation::new("probe", "1"),
        capabilities: ClientCapabilities {
            roots: Some(gudgeon::protocol::RootsCapability { list_changed: Some(true) }),
            ..ClientCapabilities::default()
        },
        revisions: revisions.to_vec(),
        last_revision: None,
        dialect: None,
        probe_timeout: Some(Duration::from_secs(5)),
        connect_timeout: Some(Duration::from_secs(60)),
        log_level: None,
    }
}

impl Scripted {
    pub(crate) fn new(config: ClientConfig) -> Self {
        Self { session: ClientSession::new(Arc::new(config)), now: Instant::now() }
    }

    pub(crate) fn start(revisions: &[Revision]) -> Self {
        let mut scripted = Self::new(config(revisions));
        scripted.feed(Input::Start);
        scripted
    }

    /// Speaks 2025-11-25 with every capability.
    pub(crate) fn legacy() -> Self {
        let mut scripted = Self::start(&[Revision::V2025_11_25]);
        scripted.sent();
        scripted.receive(&initialize_result(1, "2025-11-25"));
        scripted.drain();
        scripted
    }

    /// Speaks 2026-07-28 with every capability.
    pub(crate) fn modern() -> Self {
        let mut scripted = Self::start(&[Revision::V2026_07_28]);
        scripted.sent();
        scripted.receive(&discover_result(1, &["2026-07-28"]));
        scripted.drain();
        scripted
    }

    pub(crate) fn feed(&mut self, input: Input<'_>) {
        self.session.handle(self.now, input);
    }

    pub(crate) fn receive(&mut self, frame: &Value) {
        self.feed(Input::Frame(frame.to_string().as_bytes()));
    }

    pub(crate) fn request(
        &mut self,
        key: u64,
        method: Method,
        params: &str,
        options: RequestOptions,
    ) {
        let method = MethodName::Standard(method);
        self.feed(Input::Request { key: RequestKey(key), method, params, options });
    }

    /// Moves the clock; true when the session's deadline came on the way.
    pub(crate) fn advance(&mut self, by: Duration) -> bool {
        self.now += by;
        let due = self.session.deadline().is_some_and(|deadline| deadline <= self.now);
        if due {
            self.feed(Input::Tick);
        }
        due
    }

    pub(crate) fn drain(&mut self) -> Vec<Output> {
        std::iter::from_fn(|| self.session.poll()).collect()
    }

    /// The next output, which must be a frame.
    pub(crate) fn sent(&mut self) -> Value {
        match self.session.poll() {
            Some(Output::Send(frame)) => serde_json::from_slice(&frame).expect("a frame is JSON"),
            other => panic!("expected a frame, got {other:?}"),
        }
    }

    pub(crate) fn ready(&mut self) -> Arc<ServerIdentity> {
        match self.session.poll() {
            Some(Output::Ready(identity)) => identity,
            other => panic!("expected Ready, got {other:?}"),
        }
    }

    pub(crate) fn failed(&mut self) -> Error {
        match self.session.poll() {
            Some(Output::Failed(error)) => error,
            other => panic!("expected Failed, got {other:?}"),
        }
    }

    pub(crate) fn done(&mut self) -> (u64, Result<Raw, Error>) {
        match self.session.poll() {
            Some(Output::Done(RequestKey(key), outcome)) => (key, outcome),
            other => panic!("expected Done, got {other:?}"),
        }
    }

    pub(crate) fn silent(&mut self) {
        if let Some(output) = self.session.poll() {
            panic!("expected silence, got {output:?}");
        }
    }
}

pub(crate) fn capabilities() -> Value {
    json!({"tools": {}, "prompts": {}, "resources": {"subscribe": true}, "logging": {}, "completions": {}})
}

pub(crate) fn initialize_result(id: u64, version: &str) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "result": {
        "protocolVersion": version, "capabilities": capabilities(),
        "serverInfo": {"name": "old", "version": "1"}, "instructions": "be kind",
    }})
}

pub(crate) fn discover_result(id: u64, versions: &[&str]) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "result": {
        "resultType": "complete", "supportedVersions": versions, "capabilities": capabilities(),
        "instructions": "be kind",
        "_meta": {"io.modelcontextprotocol/serverInfo": {"name": "new", "version": "2"}},
    }})
}

pub(crate) fn error(id: u64, code: i64, data: Option<Value>) -> Value {
    let mut error = json!({"code": code, "message": "no"});
    if let Some(data) = data {
        error["data"] = data;
    }
    json!({"jsonrpc": "2.0", "id": id, "error": error})
}

pub(crate) fn raw(value: &Value) -> Raw {
    json::raw(value.to_string())
}

/// Options with these time limits: without an answer or progress, and in all.
pub(crate) fn seconds(timeout: u64, max: u64) -> RequestOptions {
    RequestOptions {
        timeout: Some(Duration::from_secs(timeout)),
        max_timeout: Some(Duration::from_secs(max)),
        wants_progress: false,
        is_passed_on: false,
        times: None,
    }
}
