//! HTTP requests as clients of each era send them, for tables that change a part of one.

#![allow(clippy::needless_pass_by_value, reason = "`json!` at the call reads best by value")]

use std::fmt;

use serde_json::{Value, json};

pub(crate) const BOTH: &str = "application/json, text/event-stream";

/// A request, whose `Host` is `localhost`.
#[derive(Clone)]
pub(crate) struct Request {
    pub(crate) method: &'static str,
    pub(crate) path: String,
    /// Names in lower case, and values.
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl Request {
    pub(crate) fn new(method: &'static str, path: &str) -> Self {
        Self { method, path: path.into(), headers: Vec::new(), body: Vec::new() }
    }

    /// A POST that accepts both kinds of response.
    pub(crate) fn post(body: impl ToString) -> Self {
        Self::new("POST", "/mcp")
            .header("content-type", "application/json")
            .header("accept", BOTH)
            .body(body.to_string())
    }

    /// A stateless request, with the headers that belong to it. Its id is 1.
    pub(crate) fn modern(method: &str, params: Value) -> Self {
        let name = params["name"].as_str().or(params["uri"].as_str()).map(ToOwned::to_owned);
        let request = Self::post(modern_body(method, params))
            .header("mcp-protocol-version", "2026-07-28")
            .header("mcp-method", method);
        match name {
            Some(name) => request.header("mcp-name", &name),
            None => request,
        }
    }

    /// A POST of a session.
    pub(crate) fn of_session(session: &str, body: &Value) -> Self {
        Self::post(body).header("mcp-session-id", session)
    }

    /// A POST of each era with this body: a stateless request, and one of a session.
    pub(crate) fn of_both_eras(session: &str, body: impl AsRef<[u8]>) -> [Self; 2] {
        let modern = Self::modern("tools/list", json!({}));
        let legacy = Self::of_session(session, &Value::Null);
        [modern, legacy.header("mcp-protocol-version", "2025-11-25")]
            .map(|request| request.body(body.as_ref()))
    }

    /// A GET or DELETE of a session.
    pub(crate) fn bare(method: &'static str, session: &str) -> Self {
        Self::new(method, "/mcp")
            .header("accept", "text/event-stream")
            .header("mcp-session-id", session)
    }

    pub(crate) fn at(mut self, path: &str) -> Self {
        path.clone_into(&mut self.path);
        self
    }

    pub(crate) fn body(mut self, body: impl Into<Vec<u8>>) -> Self {
        self.body = body.into();
        self
    }

    /// Replaces a header.
    pub(crate) fn header(self, name: &str, value: &str) -> Self {
        self.without(name).also(name, value)
    }

    /// Adds a header, which may be there already.
    pub(crate) fn also(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.into(), value.into()));
        self
    }

    pub(crate) fn without(mut self, name: &str) -> Self {
        self.headers.retain(|(other, _)| other != name);
        self
    }

    /// Returns the id that a response must have: that of a request, as far as it can be read.
    pub(crate) fn id(&self) -> Value {
        let body: Value = serde_json::from_slice(&self.body).unwrap_or_default();
        let id = &body["id"];
        let is_response = !body["result"].is_null() || !body["error"].is_null();
        let is_id = id.is_string() || id.is_i64() || id.is_u64();
        if is_id && !is_response { id.clone() } else { Value::Null }
    }
}

impl fmt::Debug for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let body = String::from_utf8_lossy(&self.body);
        let shown: String = body.chars().take(300).collect();
        write!(f, "{} {} {:?} {shown}", self.method, self.path, self.headers)
    }
}

/// Returns the body of a stateless request, with the keys of `_meta` that it must have.
pub(crate) fn modern_body(method: &str, mut params: Value) -> Value {
    if params["_meta"].is_null() {
        params["_meta"] = json!({});
    }
    let meta = &mut params["_meta"];
    for (key, value) in
        [("protocolVersion", json!("2026-07-28")), ("clientCapabilities", json!({}))]
    {
        let key = format!("io.modelcontextprotocol/{key}");
        if meta[&key].is_null() {
            meta[&key] = value;
        }
    }
    json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
}

/// Returns a JSON-RPC request with the id 1.
pub(crate) fn message(method: &str, params: Value) -> Value {
    json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
}

pub(crate) fn notification(method: &str, params: Value) -> Value {
    json!({"jsonrpc": "2.0", "method": method, "params": params})
}

/// Returns an `initialize` of this revision.
pub(crate) fn initialize(revision: &str) -> Value {
    let info = json!({"name": "c", "version": "1"});
    let params = json!({"protocolVersion": revision, "capabilities": {}, "clientInfo": info});
    message("initialize", params)
}
