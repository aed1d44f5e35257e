//! A session with the server under examination, in one revision: requests with the envelope that the revision requires.

use std::{collections::BTreeSet, time::Duration};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use gudgeon::Revision;
use http::Method;
use serde_json::{Map, Value, json};
use tokio::time::Instant;

use super::{
    observe::Observer,
    wire::{
        End, Exchange, Message, Server, Wire,
        http::{Head, Headers, Stream},
        stdio::ProcessWire,
    },
};
use crate::failure::Failure;

/// The time that a response may take after the response to a later request.
const GRACE: Duration = Duration::from_secs(1);

/// The same where there should be no response.
const SHORT_GRACE: Duration = Duration::from_millis(200);

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
    wire: Wire,
    /// The result of `initialize` or `server/discover`.
    pub greeting: Value,
    /// The id that the server assigned, over HTTP.
    pub id: Option<String>,
    next_id: u64,
    pub observer: Observer,
}

/// A response to a request, as the specification allows it.
#[derive(Clone, Debug)]
pub enum Reply {
    Result(Value),
    Error {
        code: i64,
        error: Value,
    },
    /// No response, or one that is not JSON-RPC; the exchange says what arrived instead.
    Missing,
}

impl Reply {
    fn of(exchange: &Exchange, id: &Value) -> Self {
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
    pub fn connect(server: &Server, revision: Revision, limits: Limits) -> Result<Self, Failure> {
        let wire = match server {
            Server::Command(command) => Wire::Process(Box::new(ProcessWire::start(command)?)),
            Server::Address(address) => Wire::Address(address.clone()),
        };
        Ok(Self {
            server: server.clone(),
            revision,
            limits,
            wire,
            greeting: Value::Null,
            id: None,
            next_id: 1,
            observer: Observer::default(),
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
    pub async fn initialize(&mut self, version: &str) -> (Exchange, Reply) {
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
            let header = exchange.http.as_ref().and_then(|it| it.header("mcp-session-id"));
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
    pub async fn discover(&mut self) -> (Exchange, Reply) {
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
    pub async fn request(&mut self, method: &str, params: Value) -> (Exchange, Reply) {
        let id = self.new_id();
        let text = self.request_text(&id, method, params);
        self.exchange(&text, &id, self.limits.response).await
    }

    /// Returns a result of a request, or what came instead.
    pub async fn result(&mut self, method: &str, params: Value) -> Result<Value, String> {
        let (exchange, reply) = self.request(method, params).await;
        match reply {
            Reply::Result(result) => Ok(result),
            _ => Err(format!("{method}: {}", exchange.observed())),
        }
    }

    /// Returns the text of a request, with the members of `_meta` that the revision requires.
    pub fn request_text(&self, id: &Value, method: &str, params: Value) -> String {
        let params = self.with_meta(params);
        let mut text = Map::new();
        text.insert("jsonrpc".into(), "2.0".into());
        text.insert("id".into(), id.clone());
        text.insert("method".into(), method.into());
        if params.as_object().is_some_and(|it| !it.is_empty()) {
            text.insert("params".into(), params);
        }
        Value::Object(text).to_string()
    }

    /// Adds the members of `_meta` that the revision requires on every request.
    pub fn with_meta(&self, mut params: Value) -> Value {
        if self.is_modern()
            && let Some(params) = params.as_object_mut()
        {
            let meta = params.entry("_meta").or_insert_with(|| json!({}));
            for (name, value) in [
                ("protocolVersion", json!(self.revision.to_string())),
                (
                    "clientInfo",
                    json!({"name": "gudgeon-doctor", "version": env!("CARGO_PKG_VERSION")}),
                ),
                ("clientCapabilities", json!({})),
            ] {
                let name = format!("io.modelcontextprotocol/{name}");
                if meta.get(&name).is_none() {
                    meta[name] = value;
                }
            }
        }
        params
    }

    pub fn new_id(&mut self) -> Value {
        self.next_id += 1;
        Value::from(self.next_id)
    }

    /// Sends a text and waits for the response with this id.
    pub async fn exchange(&mut self, text: &str, id: &Value, limit: Duration) -> (Exchange, Reply) {
        let exchange = self.raw(text, Some(id), limit, &[]).await;
        let reply = Reply::of(&exchange, id);
        (exchange, reply)
    }

    /// Sends a text over HTTP with further headers and waits for the response with this id. Over stdio the headers are
    /// not sent.
    pub async fn exchange_with(
        &mut self,
        text: &str,
        id: &Value,
        headers: Headers<'_>,
    ) -> (Exchange, Reply) {
        let exchange = self.raw(text, Some(id), self.limits.response, headers).await;
        let reply = Reply::of(&exchange, id);
        (exchange, reply)
    }

    /// Sends a text that may be answered with any response or with none. Over stdio, a request is sent behind it: a server
    /// that has answered that one, and nothing else within a second, does not answer the text.
    pub async fn provoke(&mut self, text: &str, id: Option<&Value>) -> Exchange {
        self.provoke_within(text, id, GRACE).await
    }

    /// Sends a text that should not be answered.
    pub async fn provoke_silence(&mut self, text: &str) -> Exchange {
        self.provoke_within(text, None, SHORT_GRACE).await
    }

    async fn provoke_within(
        &mut self,
        text: &str,
        id: Option<&Value>,
        grace: Duration,
    ) -> Exchange {
        if matches!(self.wire, Wire::Address(_)) {
            return self.raw(text, id, self.limits.response, &[]).await;
        }
        let started = Instant::now();
        let behind = self.new_id();
        let probe = if self.is_modern() { "server/discover" } else { "ping" };
        let probe = self.request_text(&behind, probe, json!({}));
        self.observer.sent(text);
        self.observer.sent(&probe);
        let mut messages = Vec::new();
        for text in [text, &probe] {
            if let Wire::Process(process) = &mut self.wire
                && let Err(reason) = process.send(text).await
            {
                let end = End::Failed(reason);
                return Exchange { messages, end, http: None };
            }
        }
        let mut until = started + self.limits.response;
        let mut is_probe_answered = false;
        let end = loop {
            if is_probe_answered && messages.iter().any(Message::is_response) {
                break End::Answered;
            }
            let Wire::Process(process) = &mut self.wire else { break End::Closed };
            match process.next(until).await {
                Ok(None) => break End::Silent,
                Err(()) => break End::Closed,
                Ok(Some(message)) => {
                    self.observer.received(&message);
                    self.answer(&message).await;
                    if message.answers(&behind) {
                        is_probe_answered = true;
                        until = Instant::now() + grace;
                    } else {
                        messages.push(message);
                    }
                }
            }
        };
        Exchange { messages, end, http: None }
    }

    /// Sends a notification, or a response, that needs no answer.
    pub async fn send(&mut self, text: &str) -> Exchange {
        match &mut self.wire {
            Wire::Process(process) => {
                self.observer.sent(text);
                let end = match process.send(text).await {
                    Ok(()) => End::Answered,
                    Err(reason) => End::Failed(reason),
                };
                Exchange { messages: Vec::new(), end, http: None }
            }
            Wire::Address(_) => self.raw(text, None, self.limits.response, &[]).await,
        }
    }

    /// Sends a text and reads until the response with this id, or all messages of an HTTP response without one.
    pub async fn raw(
        &mut self,
        text: &str,
        id: Option<&Value>,
        limit: Duration,
        headers: Headers<'_>,
    ) -> Exchange {
        self.observer.sent(text);
        if let Wire::Address(address) = &self.wire {
            let standard = self.headers(text);
            let mut all: Vec<_> =
                standard.iter().map(|(name, value)| (*name, Some(value.as_str()))).collect();
            all.extend_from_slice(headers);
            let ids: Vec<_> = id.into_iter().cloned().collect();
            let exchange = address.post(text, &all, &ids, limit).await;
            // With an error status, a body of another kind than JSON-RPC is allowed.
            let is_error = exchange.http.as_ref().is_some_and(|it| it.status >= 400);
            let messages = exchange.messages.iter();
            messages
                .filter(|it| !is_error || it.value.get("jsonrpc").is_some())
                .for_each(|it| self.observer.received(it));
            return exchange;
        }
        let started = Instant::now();
        let until = started + limit;
        let mut messages = Vec::new();
        let sent = match &mut self.wire {
            Wire::Process(process) => process.send(text).await,
            Wire::Address(_) => Ok(()),
        };
        let end = match (sent, id) {
            (Err(reason), _) => End::Failed(reason),
            (Ok(()), None) => End::Answered,
            (Ok(()), Some(id)) => self.collect(id, until, &mut messages).await,
        };
        Exchange { messages, end, http: None }
    }

    /// Reads the messages of a process until a response.
    pub async fn collect(
        &mut self,
        id: &Value,
        until: Instant,
        messages: &mut Vec<Message>,
    ) -> End {
        loop {
            let Wire::Process(process) = &mut self.wire else { return End::Closed };
            match process.next(until).await {
                Ok(None) => return End::Silent,
                Err(()) => return End::Closed,
                Ok(Some(message)) => {
                    self.observer.received(&message);
                    self.answer(&message).await;
                    let is_last = message.answers(id);
                    messages.push(message);
                    if is_last {
                        return End::Answered;
                    }
                }
            }
        }
    }

    /// Reads the messages of a process until one of them is the last that is wanted, or the time is over.
    pub async fn watch(
        &mut self,
        limit: Duration,
        mut is_last: impl FnMut(&Message) -> bool,
    ) -> Vec<Message> {
        let until = Instant::now() + limit;
        let mut messages = Vec::new();
        while let Wire::Process(process) = &mut self.wire
            && let Ok(Some(message)) = process.next(until).await
        {
            self.observer.received(&message);
            let is_wanted = is_last(&message);
            messages.push(message);
            if is_wanted {
                break;
            }
        }
        messages
    }

    /// Opens a subscription; returns its first message, and over HTTP the head of its stream, which is closed then.
    pub async fn subscribe(&mut self, text: &str, id: &Value) -> (Option<Message>, Option<Head>) {
        let limit = self.limits.response;
        self.observer.sent(text);
        let Wire::Address(address) = &self.wire else {
            if let Wire::Process(process) = &mut self.wire
                && process.send(text).await.is_err()
            {
                return (None, None);
            }
            let belongs = |it: &Message| {
                it.answers(id) || it.method().is_some_and(|it| it.contains("subscriptions"))
            };
            let messages = self.watch(limit, belongs).await;
            return (messages.into_iter().rfind(belongs), None);
        };
        let standard = self.headers(text);
        let mut all = vec![
            ("content-type", Some("application/json")),
            ("accept", Some("application/json, text/event-stream")),
        ];
        all.extend(standard.iter().map(|(name, value)| (*name, Some(value.as_str()))));
        let until = Instant::now() + limit;
        match address.open(Method::POST, &all, text, until).await {
            Ok(mut stream) => {
                let message = stream.next(until).await.ok().flatten();
                if let Some(message) = &message {
                    self.observer.received(message);
                }
                (message, Some(stream.head))
            }
            Err(_) => (None, None),
        }
    }

    /// Answers a request of the server: `ping` with a result, and everything else as unknown, because the doctor declares
    /// no capability.
    async fn answer(&mut self, message: &Message) {
        let (Some(method), Some(id)) = (message.method(), message.value.get("id")) else { return };
        let text = match method {
            "ping" => json!({"jsonrpc": "2.0", "id": id, "result": {}}),
            _ => {
                json!({"jsonrpc": "2.0", "id": id, "error": {"code": -32601, "message": "Method not found"}})
            }
        };
        if let Wire::Process(process) = &mut self.wire {
            // A closed connection is noticed by the next read.
            let _ = process.send(&text.to_string()).await;
        }
    }

    /// Returns the headers that a correct client sends with a text.
    pub fn headers(&self, text: &str) -> Vec<(&'static str, String)> {
        let value: Value = serde_json::from_str(text).unwrap_or_default();
        let method = value.get("method").and_then(Value::as_str).unwrap_or_default();
        let mut headers = Vec::new();
        if let Some(id) = &self.id {
            headers.push(("mcp-session-id", id.clone()));
        }
        if self.is_modern() {
            headers.push(("mcp-protocol-version", self.revision.to_string()));
            if !method.is_empty() {
                headers.push(("mcp-method", method.to_owned()));
            }
            let name = match method {
                "tools/call" | "prompts/get" => value["params"]["name"].as_str(),
                "resources/read" => value["params"]["uri"].as_str(),
                _ => None,
            };
            headers.extend(name.map(|it| ("mcp-name", header_value(it))));
        } else if method != "initialize" && self.revision >= Revision::V2025_06_18 {
            headers.push(("mcp-protocol-version", self.revision.to_string()));
        }
        headers
    }

    /// Opens a stream of events by GET.
    pub async fn get(&mut self) -> Result<Stream, End> {
        let Wire::Address(address) = &self.wire else { return Err(End::Closed) };
        let headers = self.headers("");
        let mut all = vec![("accept", Some("text/event-stream"))];
        all.extend(headers.iter().map(|(name, value)| (*name, Some(value.as_str()))));
        address.open(Method::GET, &all, "", Instant::now() + self.limits.response).await
    }

    /// Ends an HTTP session. Returns the status.
    pub async fn delete(&mut self) -> Option<u16> {
        let Wire::Address(address) = &self.wire else { return None };
        let headers = self.headers("");
        let all: Vec<_> =
            headers.iter().map(|(name, value)| (*name, Some(value.as_str()))).collect();
        let until = Instant::now() + self.limits.response;
        let stream = address.open(Method::DELETE, &all, "", until).await.ok()?;
        Some(stream.head.status)
    }

    /// Closes standard input; returns whether the server exited within the limit. `None` over HTTP.
    pub async fn close(self, limit: Duration) -> (Option<bool>, Observer) {
        let mut observer = self.observer;
        match self.wire {
            Wire::Process(process) => {
                let (has_exited, rest) = process.close(limit).await;
                for message in &rest {
                    observer.received(message);
                }
                (Some(has_exited), observer)
            }
            Wire::Address(_) => (None, observer),
        }
    }

    /// Ends the session without another message.
    pub async fn kill(self) -> Observer {
        if let Wire::Process(process) = self.wire {
            process.kill().await;
        }
        self.observer
    }

    /// Returns the last lines of the server's standard error.
    pub fn stderr(&self) -> String {
        match &self.wire {
            Wire::Process(process) => process.stderr(),
            Wire::Address(_) => String::new(),
        }
    }

    /// Follows all pages of a list. Returns the items, and whether a cursor came twice or a page failed.
    pub async fn list(&mut self, method: &str, member: &str) -> List {
        let mut list = List::default();
        let mut seen = BTreeSet::new();
        let mut cursor: Option<String> = None;
        loop {
            let params = cursor.as_ref().map_or_else(|| json!({}), |it| json!({"cursor": it}));
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
                    // What came after the first page came twice.
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

/// Encodes the value of `Mcp-Name` (2026-07-28, Streamable HTTP, "Value Encoding").
pub fn header_value(text: &str) -> String {
    let is_plain = text.bytes().all(|it| matches!(it, b' '..=b'~'))
        && text.trim() == text
        && !(text.starts_with("=?base64?") && text.ends_with("?="));
    if is_plain { text.to_owned() } else { format!("=?base64?{}?=", STANDARD.encode(text)) }
}
