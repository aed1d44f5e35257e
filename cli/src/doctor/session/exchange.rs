//! Sends texts to the server and receives its messages. Standard streams and HTTP+SSE have one connection for all of them;
//! over Streamable HTTP each text has an HTTP request of its own.

use std::time::Duration;

use http::Method;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::{Observer, RpcReply, Session};
use crate::doctor::wire::{
    End, Exchange, Message, SessionTransport,
    http::{Head, Headers, Stream},
    sse::SseWire,
};

/// The time that a response may take after the response to a later request.
const GRACE: Duration = Duration::from_secs(1);

/// The same limit for a message that should get no response.
const SHORT_GRACE: Duration = Duration::from_millis(200);

impl Session {
    /// Sends a message and waits for the response with this id.
    pub async fn exchange(
        &mut self,
        text: &str,
        id: &Value,
        limit: Duration,
    ) -> (Exchange, RpcReply) {
        let exchange = self.raw(text, Some(id), limit, &[]).await;
        let reply = RpcReply::from_exchange(&exchange, id);
        (exchange, reply)
    }

    /// Sends a message over HTTP with further headers and waits for the response with this id. Over stdio the headers are
    /// not sent.
    pub async fn exchange_with(
        &mut self,
        text: &str,
        id: &Value,
        headers: Headers<'_>,
    ) -> (Exchange, RpcReply) {
        let exchange = self.raw(text, Some(id), self.limits.response, headers).await;
        let reply = RpcReply::from_exchange(&exchange, id);
        (exchange, reply)
    }

    /// Sends a message that may get any response or none. On a connection, a request is sent behind it: a server
    /// that has answered that one, and nothing else within a second, does not answer the message.
    pub async fn provoke(&mut self, text: &str, id: Option<&Value>) -> Exchange {
        self.provoke_within(text, id, GRACE).await
    }

    /// Sends a message that should get no response.
    pub async fn provoke_silence(&mut self, text: &str) -> Exchange {
        self.provoke_within(text, None, SHORT_GRACE).await
    }

    async fn provoke_within(
        &mut self,
        text: &str,
        id: Option<&Value>,
        grace: Duration,
    ) -> Exchange {
        if matches!(self.wire, SessionTransport::Address(_)) {
            return self.raw(text, id, self.limits.response, &[]).await;
        }
        let started = Instant::now();
        let behind = self.new_id();
        let probe = if self.is_modern() { "server/discover" } else { "ping" };
        let probe = self.request_text(&behind, probe, json!({}));
        self.observer.sent(text);
        self.observer.sent(&probe);
        let mut messages = Vec::new();
        let sent = match self.wire.send(text).await {
            Ok(refusal) => self.wire.send(&probe).await.map(|_| refusal),
            Err(reason) => Err(reason),
        };
        let http = match sent {
            Ok(refusal) => refusal,
            Err(reason) => return Exchange { messages, end: End::Failed(reason), http: None },
        };
        messages.extend(http.as_ref().and_then(Head::message));
        let mut until = started + self.limits.response;
        let mut is_probe_answered = false;
        let end = loop {
            if is_probe_answered && (http.is_some() || messages.iter().any(Message::is_response)) {
                break End::Answered;
            }
            match self.wire.next(until).await {
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
        Exchange { messages, end, http }
    }

    /// Sends a notification, or a response, that needs no answer.
    pub async fn send(&mut self, text: &str) -> Exchange {
        self.raw(text, None, self.limits.response, &[]).await
    }

    /// Sends a message and reads until the response with this id, or all messages of an HTTP response without one.
    pub async fn raw(
        &mut self,
        text: &str,
        id: Option<&Value>,
        limit: Duration,
        headers: Headers<'_>,
    ) -> Exchange {
        self.observer.sent(text);
        if let SessionTransport::Address(address) = &self.wire {
            let standard = self.headers(text);
            let mut all: Vec<_> =
                standard.iter().map(|(name, value)| (*name, Some(value.as_str()))).collect();
            all.extend_from_slice(headers);
            let ids: Vec<_> = id.into_iter().cloned().collect();
            let exchange = address.post(text, &all, &ids, limit).await;
            // With an error status, a body of another kind than JSON-RPC is allowed.
            let is_error = exchange.http.as_ref().is_some_and(|head| head.status >= 400);
            let messages = exchange.messages.iter();
            messages
                .filter(|message| !is_error || message.value.get("jsonrpc").is_some())
                .for_each(|message| self.observer.received(message));
            return exchange;
        }
        let until = Instant::now() + limit;
        let mut messages = Vec::new();
        let sent = self.wire.send(text).await;
        let (end, http) = match (sent, id) {
            (Err(reason), _) => (End::Failed(reason), None),
            (Ok(Some(refusal)), _) => {
                messages.extend(refusal.message());
                (End::Answered, Some(refusal))
            }
            (Ok(None), None) => (End::Answered, None),
            (Ok(None), Some(id)) => (self.collect(id, until, &mut messages).await, None),
        };
        Exchange { messages, end, http }
    }

    /// Reads the messages of an open connection until a response.
    pub async fn collect(
        &mut self,
        id: &Value,
        until: Instant,
        messages: &mut Vec<Message>,
    ) -> End {
        loop {
            match self.wire.next(until).await {
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

    /// Reads the messages of an open connection until one of them is the last that is wanted, or the time is over.
    pub async fn watch(
        &mut self,
        limit: Duration,
        mut is_last: impl FnMut(&Message) -> bool,
    ) -> Vec<Message> {
        let until = Instant::now() + limit;
        let mut messages = Vec::new();
        while let Ok(Some(message)) = self.wire.next(until).await {
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
        let SessionTransport::Address(address) = &self.wire else {
            if self.wire.send(text).await.is_err() {
                return (None, None);
            }
            let belongs = |message: &Message| {
                message.answers(id)
                    || message.method().is_some_and(|method| method.contains("subscriptions"))
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
        // A closed connection is noticed by the next read.
        let _ = self.wire.send(&text.to_string()).await;
    }

    /// Opens a stream of events by GET.
    pub async fn get(&mut self) -> Result<Stream, End> {
        let SessionTransport::Address(address) = &self.wire else { return Err(End::Closed) };
        let headers = self.headers("");
        let mut all = vec![("accept", Some("text/event-stream"))];
        all.extend(headers.iter().map(|(name, value)| (*name, Some(value.as_str()))));
        address.open(Method::GET, &all, "", Instant::now() + self.limits.response).await
    }

    /// Ends an HTTP session. Returns the status.
    pub async fn delete(&mut self) -> Option<u16> {
        let SessionTransport::Address(address) = &self.wire else { return None };
        let headers = self.headers("");
        let all: Vec<_> =
            headers.iter().map(|(name, value)| (*name, Some(value.as_str()))).collect();
        let until = Instant::now() + self.limits.response;
        let stream = address.open(Method::DELETE, &all, "", until).await.ok()?;
        Some(stream.head.status)
    }

    /// Returns the connection over HTTP+SSE.
    pub fn sse(&mut self) -> Option<&mut SseWire> {
        if let SessionTransport::Sse(stream) = &mut self.wire { Some(stream) } else { None }
    }

    /// Closes standard input; returns whether the server exited within the limit. `None` over HTTP.
    pub async fn close(self, limit: Duration) -> (Option<bool>, Observer) {
        let mut observer = self.observer;
        match self.wire {
            SessionTransport::Process(process) => {
                let (has_exited, rest) = process.close(limit).await;
                for message in &rest {
                    observer.received(message);
                }
                (Some(has_exited), observer)
            }
            SessionTransport::Sse(_) | SessionTransport::Address(_) => (None, observer),
        }
    }

    /// Ends the session without another message.
    pub async fn kill(self) -> Observer {
        if let SessionTransport::Process(process) = self.wire {
            process.kill().await;
        }
        self.observer
    }

    /// Returns the last lines of the server's standard error.
    pub fn stderr(&self) -> String {
        match &self.wire {
            SessionTransport::Process(process) => process.stderr(),
            SessionTransport::Sse(_) | SessionTransport::Address(_) => String::new(),
        }
    }
}
