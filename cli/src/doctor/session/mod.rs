//! A session with the server under examination, in one revision: requests with the envelope that the revision requires.

mod envelope;
mod exchange;

use std::{collections::BTreeSet, time::Duration};

use gudgeon::Revision;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::{
    observe::Observer,
    wire::{Exchange, Server, SessionTransport},
};
use crate::failure::Failure;

/// The time limits of a run.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// For the first response of a process.
    pub start: Duration,
    /// For each further response.
    pub response: Duration,
}

/// An open session.
#[derive(Debug)]
pub struct Session {
    pub server: Server,
    pub revision: Revision,
    pub limits: Limits,
    wire: SessionTransport,
    /// The result of `initialize` or `server/discover`.
    pub greeting: Value,
    /// The id that the server assigned, over HTTP.
    pub id: Option<String>,
    next_id: u64,
    pub observer: Observer,
}

/// A response to a request, as the specification allows it.
#[derive(Clone, Debug)]
pub enum RpcReply {
    Result(Value),
    Error {
        code: i64,
        error: Value,
    },
    /// No response, or one that is not JSON-RPC; the exchange says what arrived instead.
    Missing,
}

impl RpcReply {
    fn from_exchange(exchange: &Exchange, id: &Value) -> Self {
        let Some(message) = exchange.response(id) else { return Self::Missing };
        if let Some(result) = message.value.get("result") {
            return Self::Result(result.clone());
        }
        let error = message.value.get("error").cloned().unwrap_or_default();
        match error.get("code").and_then(Value::as_i64) {
            Some(code) => Self::Error { code, error },
            None => Self::Missing,
        }
    }

    pub fn result(&self) -> Option<&Value> {
        if let Self::Result(result) = self { Some(result) } else { None }
    }

    pub fn code(&self) -> Option<i64> {
        if let Self::Error { code, .. } = self { Some(*code) } else { None }
    }
}

impl Session {
    /// Connects without a handshake.
    pub async fn connect(
        server: &Server,
        revision: Revision,
        limits: Limits,
    ) -> Result<Self, Failure> {
        let wire = server.connect(Instant::now() + limits.start).await?;
        let mut observer = Observer::default();
        observer.is_modern = revision > Revision::LATEST_LEGACY;
        observer.is_stdio = server.is_stdio();
        Ok(Self {
            server: server.clone(),
            revision,
            limits,
            wire,
            greeting: Value::Null,
            id: None,
            next_id: 1,
            observer,
        })
    }

    pub fn is_modern(&self) -> bool {
        self.revision > Revision::LATEST_LEGACY
    }

    /// Returns a capability that the server declared.
    pub fn capability(&self, name: &str) -> Option<&Value> {
        self.greeting.get("capabilities")?.get(name)
    }

    /// Sends `initialize`, and `notifications/initialized` if the server speaks the revision.
    pub async fn initialize(&mut self, version: &str) -> (Exchange, RpcReply) {
        let params = json!({
            "protocolVersion": version,
            "capabilities": {},
            "clientInfo": {"name": "gudgeon-doctor", "version": env!("CARGO_PKG_VERSION")},
        });
        let id = self.new_id();
        let text = json!({"jsonrpc": "2.0", "id": id, "method": "initialize", "params": params});
        let (exchange, reply) = self.exchange(&text.to_string(), &id, self.limits.start).await;
        if let Some(result) = reply.result() {
            self.greeting = result.clone();
            let header = exchange.http.as_ref().and_then(|head| head.header("mcp-session-id"));
            self.id = header.map(str::to_owned);
            if result.get("protocolVersion").and_then(Value::as_str) == Some(version) {
                let text = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
                self.send(&text.to_string()).await;
            }
        }
        self.observer.greet(&self.greeting);
        (exchange, reply)
    }

    /// Sends `server/discover`.
    pub async fn discover(&mut self) -> (Exchange, RpcReply) {
        let id = self.new_id();
        let text = self.request_text(&id, "server/discover", json!({}));
        let (exchange, reply) = self.exchange(&text, &id, self.limits.start).await;
        if let Some(result) = reply.result() {
            self.greeting = result.clone();
        }
        self.observer.greet(&self.greeting);
        (exchange, reply)
    }

    /// Sends a request and waits for the response.
    pub async fn request(&mut self, method: &str, params: Value) -> (Exchange, RpcReply) {
        let id = self.new_id();
        let text = self.request_text(&id, method, params);
        self.exchange(&text, &id, self.limits.response).await
    }

    /// Returns a result of a request, or what came instead.
    pub async fn result(&mut self, method: &str, params: Value) -> Result<Value, String> {
        let (exchange, reply) = self.request(method, params).await;
        match reply {
            RpcReply::Result(result) => Ok(result),
            _ => Err(format!("{method}: {}", exchange.observed())),
        }
    }

    pub fn new_id(&mut self) -> Value {
        self.next_id += 1;
        Value::from(self.next_id)
    }

    /// Follows all pages of a list. Returns the items, and whether a cursor came twice or a page failed.
    pub async fn list(&mut self, method: &str, member: &str) -> List {
        let mut list = List::default();
        let mut seen = BTreeSet::new();
        let mut cursor: Option<String> = None;
        loop {
            let params =
                cursor.as_ref().map_or_else(|| json!({}), |cursor| json!({"cursor": cursor}));
            let (exchange, reply) = self.request(method, params).await;
            let Some(result) = reply.result() else {
                list.failure = Some((exchange.observed(), reply.code()));
                return list;
            };
            list.pages.push(result.clone());
            let items = result.get(member).and_then(Value::as_array);
            list.items.extend(items.into_iter().flatten().cloned());
            match result.get("nextCursor").and_then(Value::as_str) {
                Some(next) if !seen.insert(next.to_owned()) => {
                    list.repeats = Some(next.to_owned());
                    // The components after the first page came twice.
                    let first = list.pages[0].get(member).and_then(Value::as_array);
                    list.items = first.cloned().unwrap_or_default();
                    return list;
                }
                Some(next) if list.pages.len() < 50 => cursor = Some(next.to_owned()),
                _ => return list,
            }
        }
    }
}

/// All pages of a list that were read.
#[derive(Debug, Default)]
pub struct List {
    pub items: Vec<Value>,
    pub pages: Vec<Value>,
    /// The answer that arrived instead of a page, and the code of the error.
    pub failure: Option<(String, Option<i64>)>,
    /// A cursor that came twice.
    pub repeats: Option<String>,
}
