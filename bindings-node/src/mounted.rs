//! An endpoint driven by a host's event loop: requests in, parts of responses out, and a timer.

use std::{
    collections::HashMap,
    fmt,
    net::IpAddr,
    sync::{Arc, Mutex, OnceLock, Weak},
    time::Instant,
};

use gudgeon::{
    auth::server::config::AuthConfig,
    bindings::{
        auth_runtime::AuthRuntime, http_options::HttpOptions, incoming_body::IncomingBody,
        mounts::ComputationThreads, store_runtime::StoreRuntime,
    },
    driver::{self, EndpointServer, Outbox, Work},
    error::Error,
    http::{AdmittedHead, Arrival, EndpointConfig, ExchangeId, MountPoint, Part, Peer, Refused},
    protocol::{Principal, TraceContext},
    store::SharedStore,
};
use http::HeaderName;
use napi::{
    Env,
    bindgen_prelude::{Either, Object, Uint8ArraySlice},
};
use napi_derive::napi;

use crate::{
    error::{io, misuse},
    http_message::{NativePart, cut, head, length, piece},
    served_components::ServedComponents,
    shared::{ServerIo, Shared, Wake, lock, milliseconds_until},
    unread::{Unread, UnreadResponses},
    work_queue::{NativeWorkQueue, integer},
};

/// The header with the number of the host's request, added for handlers; a client's own header of this name is overwritten.
pub(crate) const REQUEST: HeaderName = HeaderName::from_static("gudgeon-request");

/// The place at which a request arrived, as far as the host knows it.
#[napi(object, object_to_js = false)]
#[derive(Debug)]
pub struct NativeArrival {
    /// The address of this machine to which it came. Unknown, it counts as that of the loopback interface.
    pub address: Option<String>,
    pub port: Option<u16>,
    /// The prefix of the path below which the host has mounted the endpoint; it may be empty.
    pub prefix: String,
    /// `true` if clients reach the host by https.
    pub is_encrypted: bool,
}

/// The trace context that is active in the host.
#[napi(object, object_to_js = false)]
#[derive(Debug)]
pub struct NativeTrace {
    pub traceparent: Option<String>,
    pub tracestate: Option<String>,
    pub baggage: Option<String>,
}

/// The requests whose body is being read, by number.
type AllAdmitted = Arc<Mutex<HashMap<u64, Admitted>>>;

#[napi]
#[derive(Debug)]
pub struct NativeMounted {
    shared: Arc<Shared>,
    server: Arc<EndpointServer>,
    waiting: Arc<Waiting>,
    admitted: AllAdmitted,
    /// Run what would hold up the event loop.
    threads: ComputationThreads,
    /// Authenticates callers; `None` if everybody may call.
    auth: Option<AuthRuntime>,
    /// Carries the operations on the store; `None` without one.
    _store: Option<StoreRuntime>,
    /// Responses of which the host reports what is read.
    unread: UnreadResponses,
}

#[derive(Debug)]
struct Admitted {
    head: AdmittedHead,
    /// The body, if it comes in several parts.
    body: Option<IncomingBody>,
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

    /// Returns `true` if callers have to be authenticated.
    #[napi(catch_unwind)]
    pub fn has_auth(&self) -> bool {
        self.auth.is_some()
    }

    /// Returns the response to a request for `health` or `ready` that came before the server's lifespan was entered; null for a
    /// request with another path.
    #[napi(catch_unwind)]
    pub fn probe_before_start(&self, method: String, target: String) -> Option<NativePart> {
        let head = head(&method, &target, "");
        let answer = self.server.admission().probe(&head.method, head.uri.path(), false);
        answer.map(|answer| piece(0.0, answer, false))
    }

    /// Checks the head of a request, before its body is read. Each line of `headers` is a name or a value; `principal` is JSON;
    /// `peer` is the address of the other side of the connection, or `unix`. `arrival` is needed if callers have to be authenticated;
    /// `trace` is the context of the span that is active in the host.
    /// Returns the response if the request is refused. Otherwise call `authenticate`, where that is needed, and then `request` or
    /// `refuse` with the same number.
    #[napi(catch_unwind)]
    #[allow(clippy::too_many_arguments, reason = "one call a request")]
    pub fn head(
        &self,
        number: f64,
        method: String,
        target: String,
        headers: String,
        principal: Option<String>,
        peer: Option<String>,
        arrival: Option<NativeArrival>,
        trace: Option<NativeTrace>,
    ) -> napi::Result<Option<NativePart>> {
        let mut head = head(&method, &target, &headers);
        if let Some(NativeTrace { traceparent, tracestate, baggage }) = trace {
            head.extensions.insert(TraceContext::new(traceparent, tracestate, baggage));
        }
        head.headers.insert(REQUEST, integer(number).into());
        if let Some(principal) = principal {
            head.extensions.insert(Arc::new(principal_from(&principal)?));
        }
        if let Some(NativeArrival { address, port, prefix, is_encrypted }) = arrival {
            let is_loopback = |address: IpAddr| address.to_canonical().is_loopback();
            let via_loopback = address.is_none_or(|address| address.parse().is_ok_and(is_loopback));
            head.extensions.insert(Arrival { via_loopback, port });
            head.extensions.insert(MountPoint { prefix, is_encrypted });
        }
        let admission = self.server.admission();
        let remote = admission.client_address(&mut head, peer.as_deref().and_then(Peer::parse));
        Ok(match admission.head_from(head, remote) {
            Ok(head) => {
                lock(&self.admitted).insert(integer(number), Admitted { head, body: None });
                None
            }
            Err(refusal) => Some(piece(number, refusal, false)),
        })
    }

    /// Authenticates the sender of a request whose head was admitted. Returns, or resolves to, the response if the sender is
    /// refused, and null otherwise.
    #[napi(catch_unwind, ts_return_type = "NativePart | Promise<NativePart | null> | null")]
    pub fn authenticate<'env>(
        &self,
        env: &'env Env,
        number: f64,
    ) -> napi::Result<Either<Option<NativePart>, Object<'env>>> {
        let Some(auth) = &self.auth else { return Ok(Either::A(None)) };
        let Admitted { mut head, body } = self.take_admitted(number)?;
        let (server, all) = (Arc::clone(&self.server), Arc::clone(&self.admitted));
        let authenticated = async move {
            match server.authenticate(&mut head).await {
                Ok(()) => {
                    lock(&all).insert(integer(number), Admitted { head, body });
                    None
                }
                Err(refusal) => Some(piece(number, refusal, false)),
            }
        };
        let running = match auth.begin(authenticated) {
            Ok(refusal) => return Ok(Either::A(refusal)),
            Err(running) => running,
        };
        let (deferred, promise) = env.create_deferred()?;
        auth.finish(running, move |refusal| deferred.resolve(move |_| Ok(refusal)));
        Ok(Either::B(promise))
    }

    /// Handles a request whose head was admitted. Returns the number of the exchange, which `disconnected` takes.
    #[napi(catch_unwind)]
    pub fn request(&self, number: f64, body: Uint8ArraySlice<'_>) -> napi::Result<f64> {
        let Admitted { head, body: incoming } = self.take_admitted(number)?;
        let unread = Unread::new(self.server.unread_answers(&head));
        let outbox = HostOutbox { request: number, waiting: Arc::clone(&self.waiting), unread };
        let (exchange, step) = self.server.begin_request(head, &body, Box::new(outbox));
        drop(incoming);
        let shared = Arc::clone(&self.shared);
        self.threads.finish(&self.server, step, move |work| shared.push(work));
        #[allow(clippy::cast_precision_loss, reason = "requests are numbered from 1")]
        let exchange = exchange.0 as f64;
        Ok(exchange)
    }

    /// Counts the bytes received of a body that is not complete. Returns the milliseconds within which more must come, or
    /// `null` if clients together send too much; the request must be refused then.
    #[napi(catch_unwind)]
    pub fn received(&self, number: f64, bytes: f64) -> napi::Result<Option<f64>> {
        let mut all = lock(&self.admitted);
        let Admitted { head, body } = all.get_mut(&integer(number)).ok_or_else(not_being_read)?;
        let body = body.get_or_insert_with(|| IncomingBody::new(&self.server, head));
        let bytes = usize::try_from(integer(bytes)).unwrap_or(usize::MAX);
        Ok(body.received(bytes).ok().map(|time| time.as_secs_f64() * 1000.0))
    }

    /// Returns the response to a request whose head was admitted and whose body is `too long`, `too slow`, `too much`, as
    /// those of all clients together, or did not come.
    #[napi(catch_unwind)]
    pub fn refuse(&self, number: f64, reason: String) -> napi::Result<NativePart> {
        let refused = match reason.as_str() {
            "too long" => Refused::BodyTooLarge,
            "too slow" => Refused::BodyTooSlow,
            "too much" => Refused::TooMuchInput,
            _ => Refused::BodyBroken,
        };
        Ok(piece(0.0, self.take_admitted(number)?.head.refuse(&refused), false))
    }

    /// Sets the number of bytes of a response that the host holds. Returns `false` if there is no room for them: its
    /// connection must be closed.
    #[napi(catch_unwind)]
    pub fn unread(&self, number: f64, bytes: f64) -> bool {
        self.unread.report(integer(number), usize::try_from(integer(bytes)).unwrap_or(usize::MAX))
    }

    /// Cancels a request, because its client disconnected.
    #[napi(catch_unwind)]
    pub fn disconnected(&self, exchange: f64) {
        self.shared.push(self.server.disconnected(ExchangeId(integer(exchange))));
    }

    /// Reports that too much of this response is unread, so that a subscription ends.
    #[napi(catch_unwind)]
    pub fn lagging(&self, exchange: f64) {
        self.shared.push(self.server.cut_subscriptions(ExchangeId(integer(exchange))));
    }

    /// Returns the new parts of responses, in order.
    #[napi(catch_unwind)]
    pub fn take_parts(&self) -> Vec<NativePart> {
        let parts = std::mem::take(&mut *lock(&self.waiting.parts));
        parts.into_iter().map(|part| self.hand_over(part)).collect()
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
        (auth, store): (Option<Arc<AuthConfig>>, Option<SharedStore>),
        wake: Wake<true>,
    ) -> napi::Result<Self> {
        served.components().check_without_routes().map_err(misuse)?;
        let given = HttpOptions::parse(options.as_bytes()).map_err(misuse)?;
        let anywhere = EndpointConfig { path: None, ..EndpointConfig::default() };
        let mut config = given.endpoint(anywhere);
        (config.auth, config.store) = (auth, store);
        let waiting = Arc::new(Waiting::default());
        let (shared, endpoint) = served.open(|components| {
            let endpoint = EndpointServer::new(components, config);
            let mounted = Mounted { server: Arc::clone(&endpoint), waiting: Arc::clone(&waiting) };
            (Arc::new(Shared::new(Arc::new(mounted), served.clone(), wake)), endpoint)
        });
        // Set once, here.
        let _ = waiting.shared.set(Arc::downgrade(&shared));
        let auth = AuthRuntime::start(&endpoint)
            .map_err(|error| io("no thread could be started to authenticate callers", error))?;
        let serving = Arc::downgrade(&shared);
        let store = StoreRuntime::start(&endpoint, move |work| {
            if let Some(shared) = serving.upgrade() {
                shared.push(work);
            }
        })
        .map_err(|error| io("no thread could be started for the store", error))?;
        let (admitted, threads, unread) = Default::default();
        Ok(Self {
            shared,
            server: endpoint,
            waiting,
            admitted,
            threads,
            auth,
            _store: store,
            unread,
        })
    }

    fn take_admitted(&self, number: f64) -> napi::Result<Admitted> {
        lock(&self.admitted).remove(&integer(number)).ok_or_else(not_being_read)
    }

    fn hand_over(&self, waiting: WaitingPart) -> NativePart {
        let WaitingPart { request, part, unread } = waiting;
        let Some(part) = part else { return cut(request) };
        let is_counted = unread.take(length(&part));
        if is_counted {
            self.unread.insert(integer(request), unread);
        }
        piece(request, part, is_counted)
    }
}

fn not_being_read() -> napi::Error {
    napi::Error::from_reason("no request with this number is being read")
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
    /// `None` if the connection must be closed.
    part: Option<Part>,
    unread: Unread,
}

struct HostOutbox {
    request: f64,
    waiting: Arc<Waiting>,
    unread: Unread,
}

impl Outbox for HostOutbox {
    fn unread(&self) -> driver::Unread {
        self.unread.waiting()
    }

    fn deliver(&mut self, part: Part) {
        let bytes = length(&part);
        let part = match part {
            part if self.unread.add(bytes) => Some(part),
            Part::Head { more: false, .. } => Some(Part::without_room(bytes)),
            _ if self.unread.cut() => None,
            _ => return,
        };
        let mut parts = lock(&self.waiting.parts);
        let unread = self.unread.clone();
        parts.push(WaitingPart { request: self.request, part, unread });
        let is_first = parts.len() == 1;
        drop(parts);
        if is_first {
            self.waiting.wake();
        }
    }
}

struct Mounted {
    server: Arc<EndpointServer>,
    waiting: Arc<Waiting>,
}

impl ServerIo for Mounted {
    fn endpoint(&self) -> &Arc<EndpointServer> {
        &self.server
    }

    fn has_several_clients(&self) -> bool {
        true
    }

    /// New parts wake the event loop themselves.
    fn flush(&self) {}

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

    fn pause(&self) -> Work {
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
    let invalid = |error| misuse(Error::misuse(format!("the principal is invalid: {error}")));
    serde_json::from_str(json).map_err(invalid)
}
