//! HTTP requests to the endpoint of a server, each on a connection of its own, with any header and any body.

use std::{collections::VecDeque, time::Duration};

use gudgeon::{
    auth::{
        fetch::{FetchRequest, Reach},
        url::WebUrl,
    },
    framing::{SseDecoder, SseItem},
    transport::{
        Scheme, Url,
        fetch::{self, OpenResponse},
    },
};
use http::{HeaderMap, HeaderName, HeaderValue, Method, header};
use serde_json::Value;
use tokio::time::{Instant, timeout_at};

use super::{End, Exchange, Message};

/// A longer body is not read to its end.
const MAX_BODY: usize = 64 * 1024 * 1024;
/// The time for a stream to end after its response.
const STREAM_END: Duration = Duration::from_secs(1);

/// The endpoint of a server, with the headers that the user gave.
#[derive(Clone, Debug)]
pub struct Address {
    pub url: String,
    headers: HeaderMap,
    /// `true` if the host is this machine.
    pub is_local: bool,
}

/// The head of a response, and its body unless that is a stream of events.
#[derive(Clone, Debug, Default)]
pub struct Head {
    pub status: u16,
    pub headers: HeaderMap,
    pub body: String,
    /// `true` if a stream of events ended soon after the response.
    pub has_ended: bool,
}

impl Head {
    /// Returns a header as text.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }

    /// Returns the media type without its parameters, in lower case.
    pub fn media_type(&self) -> String {
        let kind = self.header("content-type").unwrap_or_default();
        kind.split(';').next().unwrap_or_default().trim().to_ascii_lowercase()
    }

    /// Returns the body if it is a JSON-RPC message.
    pub fn message(&self) -> Option<Message> {
        let message = Message::new(self.body.clone());
        message.value.get("jsonrpc").is_some().then_some(message)
    }

    pub fn is_stream(&self) -> bool {
        self.media_type() == "text/event-stream"
    }
}

/// The headers of one request: `None` leaves out a header that is otherwise sent.
pub type Headers<'a> = &'a [(&'a str, Option<&'a str>)];

impl Address {
    /// Returns `None` unless the scheme is `http` or `https`.
    pub fn new(url: &Url, headers: &[(String, String)]) -> Option<Self> {
        if !matches!(url.scheme(), Scheme::Http | Scheme::Https) {
            return None;
        }
        let headers = headers.iter().filter_map(|(name, value)| {
            Some((HeaderName::try_from(name).ok()?, HeaderValue::try_from(value).ok()?))
        });
        let url = url.with_query();
        let is_local = WebUrl::parse(&url).is_ok_and(|url| url.is_loopback());
        Some(Self { headers: headers.collect(), is_local, url })
    }

    /// Returns another address of the same server, with the headers of the user if it has the same origin.
    pub fn with_url(&self, url: String) -> Self {
        let is_same = match (Url::parse(&self.url), Url::parse(&url)) {
            (Ok(own), Ok(other)) => other.has_origin_of(&own),
            _ => false,
        };
        let headers = if is_same { self.headers.clone() } else { HeaderMap::new() };
        Self { url, headers, is_local: self.is_local }
    }

    /// Returns another address on the same origin, for requests without the headers of the user.
    pub fn at(&self, path: &str) -> String {
        let end = self.url.find("://").map_or(0, |index| index + 3);
        let end = self.url[end..].find(['/', '?']).map_or(self.url.len(), |index| index + end);
        format!("{}{path}", &self.url[..end])
    }

    /// Sends a request and reads the head of the response.
    pub async fn open(
        &self,
        method: Method,
        headers: Headers<'_>,
        body: &str,
        until: Instant,
    ) -> Result<Stream, End> {
        let mut sent = self.headers.clone();
        for (name, value) in headers {
            let name =
                HeaderName::try_from(*name).map_err(|error| End::Failed(error.to_string()))?;
            match value {
                Some(value) => {
                    let value = HeaderValue::try_from(*value);
                    sent.insert(name, value.map_err(|error| End::Failed(error.to_string()))?);
                }
                None => drop(sent.remove(name)),
            }
        }
        let request = FetchRequest {
            method,
            url: self.url.clone(),
            headers: sent,
            body: body.as_bytes().to_vec(),
            max_bytes: MAX_BODY,
            timeout: Duration::MAX,
            reach: Reach::Anywhere,
        };
        match timeout_at(until, fetch::open(request)).await {
            Ok(Ok(response)) => Ok(Stream::new(response)),
            Ok(Err(error)) => Err(End::Failed(error.to_string())),
            Err(_) => Err(End::Silent),
        }
    }

    /// Sends a message by POST and reads until the responses with these ids have come, or the body ends.
    pub async fn post(
        &self,
        text: &str,
        headers: Headers<'_>,
        ids: &[Value],
        limit: Duration,
    ) -> Exchange {
        let mut all = vec![
            (header::CONTENT_TYPE.as_str(), Some("application/json")),
            (header::ACCEPT.as_str(), Some("application/json, text/event-stream")),
        ];
        all.extend_from_slice(headers);
        let started = Instant::now();
        let until = started + limit;
        let mut stream = match self.open(Method::POST, &all, text, until).await {
            Ok(stream) => stream,
            Err(end) => {
                return Exchange { messages: Vec::new(), end, http: None };
            }
        };
        let mut messages = Vec::new();
        let end = loop {
            if !ids.is_empty()
                && ids.iter().all(|id| messages.iter().any(|message: &Message| message.answers(id)))
            {
                break End::Answered;
            }
            match stream.next(until).await {
                Ok(Some(message)) => messages.push(message),
                Ok(None) => break if ids.is_empty() { End::Answered } else { End::Closed },
                Err(end) => break end,
            }
        };
        if end == End::Answered && stream.head.is_stream() {
            let until = Instant::now() + STREAM_END;
            while let Ok(Some(message)) = stream.next(until).await {
                messages.push(message);
            }
            stream.head.has_ended = stream.has_ended;
        }
        Exchange { messages, end, http: Some(stream.head) }
    }
}

/// A message, or an event of a stream that has another name than `message`.
#[derive(Debug)]
pub enum Received {
    Message(Message),
    Other { event: String, data: String },
}

/// A response that is being read.
#[derive(Debug)]
pub struct Stream {
    pub head: Head,
    response: OpenResponse,
    events: SseDecoder,
    pending: VecDeque<Received>,
    read: usize,
    has_ended: bool,
}

impl Stream {
    fn new(response: OpenResponse) -> Self {
        let head = Head {
            status: response.status.as_u16(),
            headers: response.headers.clone(),
            ..Head::default()
        };
        let events = SseDecoder::new(MAX_BODY);
        Self { head, response, events, pending: VecDeque::new(), read: 0, has_ended: false }
    }

    /// Returns the next message; `Ok(None)` at the end of the body.
    pub async fn next(&mut self, until: Instant) -> Result<Option<Message>, End> {
        loop {
            match self.receive(until).await? {
                Some(Received::Message(message)) => return Ok(Some(message)),
                Some(Received::Other { .. }) => (),
                None => return Ok(None),
            }
        }
    }

    /// Returns the next message or event; `Ok(None)` at the end of the body.
    pub async fn receive(&mut self, until: Instant) -> Result<Option<Received>, End> {
        timeout_at(until, self.receive_any()).await.unwrap_or(Err(End::Silent))
    }

    /// Returns the next message or event, without a time limit. Cancel safe.
    pub async fn receive_any(&mut self) -> Result<Option<Received>, End> {
        loop {
            if let Some(received) = self.pending.pop_front() {
                return Ok(Some(received));
            }
            if self.has_ended {
                return Ok(None);
            }
            match self.response.chunk().await {
                None => self.end(),
                Some(Err(error)) => return Err(End::Failed(error.to_string())),
                Some(Ok(chunk)) => {
                    self.read += chunk.len();
                    if self.read > MAX_BODY {
                        return Err(End::Failed(format!(
                            "the body has more than {MAX_BODY} bytes"
                        )));
                    }
                    self.take(&chunk);
                }
            }
        }
    }

    fn take(&mut self, mut chunk: &[u8]) {
        if !self.head.is_stream() {
            self.head.body.push_str(&String::from_utf8_lossy(chunk));
            return;
        }
        while let Some(item) = self.events.next(&mut chunk) {
            // Events without data prepare the client for a reconnect.
            if let SseItem::Event { data, event, .. } = item
                && !data.is_empty()
            {
                self.pending.push_back(match event {
                    Some(event) if event != "message" => Received::Other { event, data },
                    _ => Received::Message(Message::new(data)),
                });
            }
        }
    }

    fn end(&mut self) {
        self.has_ended = true;
        if self.head.is_stream() || self.head.body.trim().is_empty() {
            return;
        }
        let message = Message::new(self.head.body.clone());
        match &message.value {
            Value::Array(batch) => {
                let each = batch.iter().map(|value| Message::new(value.to_string()));
                self.pending = each.map(Received::Message).collect();
            }
            Value::Null => (),
            _ => self.pending.push_back(Received::Message(message)),
        }
    }
}
