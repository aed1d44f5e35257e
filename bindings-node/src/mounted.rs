//! An endpoint driven by a host's event loop: requests in, parts of responses out, and a timer.

use std::{
    collections::HashMap,
    fmt,
    sync::{
        Arc, Mutex, OnceLock, Weak,
        atomic::{AtomicUsize, Ordering},
    },
    time::Instant,
};

use gudgeon::{
    bindings::http_options::HttpOptions,
    driver::{Backend, EndpointServer, Outbox, Work},
    error::Error,
    http::{AdmittedHead, EndpointConfig, ExchangeId, Part, Refused},
    protocol::Principal,
};
use http::{HeaderName, HeaderValue, Method, Uri, request::Parts};
use napi::bindgen_prelude::{Buffer, Uint8ArraySlice};
use napi_derive::napi;

use crate::{
    error::misuse,
    handler::Handler,
    served_components::ServedComponents,
    shared::{ServerIo, Shared, Wake, lock, milliseconds_until},
    work_queue::{NativeWorkQueue, integer},
};

/// The header with the number of the host's request, added for handlers; a client's own header of this name is overwritten.
pub(crate) const REQUEST: HeaderName = HeaderName::from_static("gudgeon-request");

/// A piece of an answer.
#[napi(object)]
pub struct NativePart {
    /// The number of the request.
    pub request: f64,
    /// Present in the first part only, like the headers: names and values in turn.
    pub status: Option<u16>,
    pub headers: Option<Vec<String>>,
    pub body: Option<Buffer>,
    /// `true` if more parts of this response follow.
    pub more: bool,
}

#[napi]
#[derive(Debug)]
pub struct NativeMounted {
    shared: Arc<Shared>,
    server: Arc<EndpointServer<Handler>>,
    waiting: Arc<Waiting>,
    /// Requests whose body is being read.
    admitted: Mutex<HashMap<u64, AdmittedHead>>,
}

#[napi]
impl NativeMounted {
    /// Returns the work queue of its handlers; call it once, because the endpoint ends with it.
    #[napi(catch_unwind)]
    pub fn work_queue(&self) -> NativeWorkQueue {
        NativeWorkQueue::new(Arc::clone(&self.shared), None)
    }

    /// The maximum length of a request body, in bytes.
    #[napi(catch_unwind)]
    pub fn max_body(&self) -> f64 {
        f64::from(u32::try_from(self.server.admission().max_body()).unwrap_or(u32::MAX))
    }

    /// Checks the head of a request, before its body is read. Each line of `headers` is a name or a value; `principal` is JSON;
    /// `remote` is the client's address.
    /// Returns the response if the request is refused. Otherwise call `request` or `refuse` with the same number.
    #[napi(catch_unwind)]
    pub fn head(
        &self,
        number: f64,
        method: String,
        target: String,
        headers: String,
        principal: Option<String>,
        remote: Option<String>,
    ) -> napi::Result<Option<NativePart>> {
        let mut head = head(&method, &target, &headers);
        head.headers.insert(REQUEST, integer(number).into());
        if let Some(principal) = principal {
            head.extensions.insert(Arc::new(principal_from(&principal)?));
        }
        Ok(match self.server.admission().head(head) {
            Ok(mut head) => {
                if let Some(remote) = remote.and_then(|it| it.parse().ok()) {
                    head.set_remote(remote);
                }
                lock(&self.admitted).insert(integer(number), head);
                None
            }
            Err(refusal) => Some(piece(number, refusal)),
        })
    }

    /// Handles a request whose head was admitted. Returns the number of the exchange, which `disconnected` takes.
    #[napi(catch_unwind)]
    pub fn request(&self, number: f64, body: Uint8ArraySlice<'_>) -> napi::Result<f64> {
        let head = self.take_admitted(number)?;
        let (waiting, unread) = (Arc::clone(&self.waiting), Arc::default());
        let outbox = HostOutbox { request: number, waiting, unread };
        let (exchange, work) = self.server.request(head, &body, Box::new(outbox));
        self.shared.push(work);
        #[allow(clippy::cast_precision_loss, reason = "requests are numbered from 1")]
        let exchange = exchange.0 as f64;
        Ok(exchange)
    }

    /// Returns the response to a request whose head was admitted and whose body is too long or did not come.
    #[napi(catch_unwind)]
    pub fn refuse(&self, number: f64) -> napi::Result<NativePart> {
        let refused = self.take_admitted(number)?.refuse(&Refused::BodyTooLarge);
        Ok(piece(0.0, refused))
    }

    /// Cancels a request, because its client disconnected.
    #[napi(catch_unwind)]
    pub fn disconnected(&self, exchange: f64) {
        self.shared.push(self.server.disconnected(ExchangeId(integer(exchange))));
    }

    /// Reports that too much of this response is unread, so that a subscription ends.
    #[napi(catch_unwind)]
    pub fn lagging(&self, exchange: f64) {
        self.shared.push(self.server.lagging(ExchangeId(integer(exchange))));
    }

    /// Returns the new parts of responses, in order.
    #[napi(catch_unwind)]
    pub fn take_parts(&self) -> Vec<NativePart> {
        let mut parts = lock(&self.waiting.parts);
        for waiting in &*parts {
            waiting.unread.store(0, Ordering::Relaxed);
        }
        let parts = std::mem::take(&mut *parts);
        parts.into_iter().map(|it| piece(it.request, it.part)).collect()
    }

    /// Returns the milliseconds until `tick` must be called, if that is earlier than reported before.
    #[napi(catch_unwind)]
    pub fn take_alarm(&self) -> Option<f64> {
        lock(&self.waiting.alarm).take().map(milliseconds_until)
    }

    #[napi(catch_unwind)]
    pub fn tick(&self) {
        self.shared.push(self.server.tick());
    }
}

impl NativeMounted {
    pub(crate) fn open(
        served: &ServedComponents,
        options: &str,
        wake: Wake<true>,
    ) -> napi::Result<Self> {
        let given = HttpOptions::parse(options.as_bytes()).map_err(misuse)?;
        let anywhere = EndpointConfig { path: None, ..EndpointConfig::default() };
        let config = given.endpoint(anywhere);
        let waiting = Arc::new(Waiting::default());
        let (shared, endpoint) = served.open(|components, filter| {
            let endpoint = EndpointServer::new(components, config);
            let io = Mounted { server: Arc::clone(&endpoint), waiting: Arc::clone(&waiting) };
            (Arc::new(Shared::new(Arc::new(io), filter, wake)), endpoint)
        });
        // Set once, here.
        let _ = waiting.shared.set(Arc::downgrade(&shared));
        Ok(Self { shared, server: endpoint, waiting, admitted: Mutex::default() })
    }

    fn take_admitted(&self, number: f64) -> napi::Result<AdmittedHead> {
        let admitted = lock(&self.admitted).remove(&integer(number));
        admitted
            .ok_or_else(|| napi::Error::from_reason("no request with this number is being read"))
    }
}

/// The parts that wait for the host's event loop.
#[derive(Debug, Default)]
struct Waiting {
    parts: Mutex<Vec<WaitingPart>>,
    alarm: Mutex<Option<Instant>>,
    shared: OnceLock<Weak<Shared>>,
}

impl Waiting {
    fn wake(&self) {
        if let Some(shared) = self.shared.get().and_then(Weak::upgrade) {
            shared.wake();
        }
    }
}

#[derive(Debug)]
struct WaitingPart {
    request: f64,
    part: Part,
    /// The number of unread bytes of this response.
    unread: Arc<AtomicUsize>,
}

struct HostOutbox {
    request: f64,
    waiting: Arc<Waiting>,
    unread: Arc<AtomicUsize>,
}

impl Outbox for HostOutbox {
    fn unread(&self) -> usize {
        self.unread.load(Ordering::Relaxed)
    }

    fn deliver(&mut self, part: Part) {
        let bytes = match &part {
            Part::Head { body, .. } => body.len(),
            Part::Bytes(bytes) => bytes.len(),
            Part::End => 0,
        };
        let mut parts = lock(&self.waiting.parts);
        self.unread.fetch_add(bytes, Ordering::Relaxed);
        let unread = Arc::clone(&self.unread);
        parts.push(WaitingPart { request: self.request, part, unread });
        let is_first = parts.len() == 1;
        drop(parts);
        if is_first {
            self.waiting.wake();
        }
    }
}

struct Mounted {
    server: Arc<EndpointServer<Handler>>,
    waiting: Arc<Waiting>,
}

impl ServerIo for Mounted {
    fn backend(&self) -> &dyn Backend<Handler> {
        &*self.server
    }

    /// New parts wake the event loop themselves.
    fn flush(&self) {}

    /// The server reports changes of its deadline itself.
    fn rescheduled(&self) {}

    fn wake_at(&self, deadline: Instant) {
        *lock(&self.waiting.alarm) = Some(deadline);
        self.waiting.wake();
    }

    /// Unread bytes are bounded, because clients that do not read are disconnected.
    fn has_room(&self) -> bool {
        true
    }

    fn unwritten(&self) -> usize {
        lock(&self.waiting.parts).len()
    }

    fn pause(&self) -> Work<Handler> {
        self.server.shut_down()
    }

    fn stop(&self) {}
}

impl fmt::Debug for Mounted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Mounted").field("server", &self.server).finish_non_exhaustive()
    }
}

/// Reads a principal from JSON.
pub(crate) fn principal_from(json: &str) -> napi::Result<Principal> {
    let invalid = |it| misuse(Error::misuse(format!("the principal is invalid: {it}")));
    serde_json::from_str(json).map_err(invalid)
}

fn piece(request: f64, part: Part) -> NativePart {
    let body = |bytes: Vec<u8>| (!bytes.is_empty()).then(|| bytes.into());
    match part {
        Part::Head { status, headers, body: bytes, more } => {
            let mut lines = Vec::with_capacity(headers.len() * 2);
            for (name, value) in &headers {
                lines.push(name.as_str().to_owned());
                // Bytes beyond ASCII are Latin-1, as everywhere in HTTP.
                lines.push(value.as_bytes().iter().copied().map(char::from).collect());
            }
            let status = Some(status.as_u16());
            NativePart { request, status, headers: Some(lines), body: body(bytes), more }
        }
        Part::Bytes(bytes) => {
            NativePart { request, status: None, headers: None, body: body(bytes), more: true }
        }
        Part::End => NativePart { request, status: None, headers: None, body: None, more: false },
    }
}

/// Returns the head of a request that the host has already checked; invalid parts are replaced, not dropped.
fn head(method: &str, target: &str, headers: &str) -> Parts {
    let (mut head, ()) = http::Request::new(()).into_parts();
    head.method = Method::from_bytes(method.as_bytes()).unwrap_or(Method::TRACE);
    head.uri = target.parse().unwrap_or_else(|_| Uri::from_static("/"));
    let mut lines = headers.split('\n');
    while let (Some(name), Some(value)) = (lines.next(), lines.next()) {
        let Ok(name) = HeaderName::from_bytes(name.as_bytes()) else { continue };
        let bytes: Vec<u8> = value.chars().map(|it| u8::try_from(it).unwrap_or(b'?')).collect();
        let value = HeaderValue::from_bytes(&bytes).unwrap_or(HeaderValue::from_static("?"));
        head.headers.append(name, value);
    }
    head
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_head_keeps_every_header_whatever_its_value() {
        let head = head("POST", "/mcp?a=1", "Origin\nevil\u{1}\nX-A\nü\nX-A\n2");
        assert_eq!(head.method, Method::POST);
        assert_eq!((head.uri.path(), head.uri.query()), ("/mcp", Some("a=1")));
        assert_eq!(head.headers["origin"], "?");
        let all: Vec<_> = head.headers.get_all("x-a").iter().map(HeaderValue::as_bytes).collect();
        assert_eq!(all, [&b"\xfc"[..], b"2"]);
        assert_eq!(super::head("?!\n", "http://[", "").uri.path(), "/");
    }

    #[test]
    fn pieces_tell_whether_more_follows() {
        let first = Part::Head {
            status: http::StatusCode::OK,
            headers: [(http::header::CONTENT_TYPE, HeaderValue::from_static("a/b"))]
                .into_iter()
                .collect(),
            body: Vec::new(),
            more: true,
        };
        let first = piece(3.0, first);
        assert_eq!((first.request, first.status, first.more), (3.0, Some(200), true));
        assert_eq!(first.headers.unwrap(), ["content-type", "a/b"]);
        assert!(first.body.is_none());
        assert!(!piece(3.0, Part::End).more);
    }
}
