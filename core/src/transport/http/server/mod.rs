//! The HTTP server: hyper moves the bytes, the endpoint handles the requests. A connection begins as one of HTTP/1.1, unless TLS
//! has agreed upon HTTP/2.

mod answer;
mod body;
mod connection;
mod http2;
mod preface;
mod stream;
mod watch;

#[cfg(feature = "websocket")]
use std::sync::OnceLock;
use std::{
    convert::Infallible,
    net::SocketAddr,
    pin::{Pin, pin},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use bytes::Bytes;
use http::{HeaderValue, Method, Request, Response, StatusCode, Version, header};
use http_body::Body;
use hyper::{body::Incoming, server::conn::http1::Parts};
use tokio::{
    io::AsyncWriteExt,
    sync::{Notify, watch::Receiver},
    time::{Sleep, sleep},
};

pub use self::answer::AnswerBody;
use self::answer::{Awaited, ResponseQueue};
#[cfg(feature = "websocket")]
use self::watch::Watched;
pub(crate) use self::{
    connection::{Answered, HeadLimits, serve_requests},
    http2::serve as serve_http2,
    watch::Watch,
};
#[cfg(feature = "auth")]
use crate::driver::authenticate_request;
#[cfg(feature = "websocket")]
use crate::transport::websocket::server as websocket;
#[cfg(all(feature = "auth", feature = "websocket"))]
use crate::{auth::server::authenticator::Caller, driver::authenticate_upgrade};
use crate::{
    driver::{Holding, HostedEndpoint},
    http::Peer,
    transport::{
        ByteStream,
        listen::{Peers, Stage},
        off_thread::{LARGE, off_connection_thread},
        timeouts::Timeouts,
    },
};

/// The maximum size of hyper's buffer for a connection, without heads.
const BUFFER: usize = 64 * 1024;

/// Serves a connection until it ends.
pub(crate) async fn serve(
    peers: Arc<Peers>,
    stream: Box<dyn ByteStream>,
    peer: Peer,
    mut stage: Receiver<Stage>,
) {
    let connection = Arc::new(Http1Connection {
        watch: Watch::new(peers.timeouts),
        peer,
        #[cfg(feature = "websocket")]
        client: OnceLock::new(),
        detached: Mutex::default(),
        was_detached: Notify::new(),
    });
    let limits = HeadLimits { head: peers.max_headers, buffer: peers.max_headers.max(BUFFER) };
    let respond = {
        let (peers, connection) = (Arc::clone(&peers), Arc::clone(&connection));
        move |request| -> Answered {
            let (peers, connection) = (Arc::clone(&peers), Arc::clone(&connection));
            Box::pin(async move { Ok(exchange(&peers, &connection, request).await) })
        }
    };
    let mut serving = serve_requests(stream, &connection.watch, limits, respond);
    {
        let mut expired = pin!(connection.watch.expired());
        // Allocated at the shutdown only, to keep the future small.
        let mut linger: Option<Pin<Box<Sleep>>> = None;
        loop {
            let reached = tokio::select! {
                ended = &mut serving => match ended {
                    Err(error) if error.is_parse_version_h2() => break,
                    Err(error) => return tracing::debug!(%error, "a connection broke"),
                    Ok(()) => return,
                },
                () = connection.was_detached.notified() => break,
                () = expired.as_mut() => return,
                changed = stage.changed() => changed.map_or(Stage::Closed, |()| *stage.borrow()),
                () = elapsed(&mut linger) => Stage::Closing,
            };
            match reached {
                Stage::Open | Stage::Draining => (),
                Stage::Closing if may_linger(&peers, &connection, linger.is_none()) => {
                    linger = Some(Box::pin(sleep(peers.linger)));
                }
                Stage::Closing => {
                    linger = None;
                    Pin::new(&mut serving).graceful_shutdown();
                }
                Stage::Closed => return,
            }
        }
    }
    let answer = connection.lock().take();
    let Parts { io, read_buf, .. } = serving.into_parts();
    let io = io.into_inner();
    let Some(answer) = answer else {
        // Not between two requests, where a proxy could have passed it on from somebody else.
        if io.preface.is_complete() {
            let stream = preface::unread(read_buf, io.stream);
            Box::pin(serve_http2(peers, stream, peer, stage)).await;
        }
        return;
    };
    // Kept out of the connection's future, to keep that small.
    match answer.status() {
        #[cfg(feature = "websocket")]
        StatusCode::SWITCHING_PROTOCOLS => {
            let client = connection.client.get().cloned().unwrap_or_default();
            Box::pin(switch(peers, io, client, answer, read_buf, stage)).await;
        }
        _ => {
            drop(read_buf);
            Box::pin(stream::write(io, answer, &connection.watch, &mut stage)).await;
        }
    }
}

/// Returns whether a connection stays open for a request that may be on its way: hyper closes one without a request at once, and
/// one on which a part of a head has arrived. `is_first`: it has not waited yet.
fn may_linger(peers: &Peers, connection: &Http1Connection, is_first: bool) -> bool {
    let waits = match is_first {
        true => !connection.watch.is_busy(),
        false => connection.watch.has_begun_head(),
    };
    waits && !peers.linger.is_zero()
}

/// Waits for a timer; never returns without one.
async fn elapsed(timer: &mut Option<Pin<Box<Sleep>>>) {
    match timer {
        Some(timer) => timer.as_mut().await,
        None => std::future::pending().await,
    }
}

/// A connection.
pub(crate) struct Http1Connection {
    watch: Arc<Watch>,
    peer: Peer,
    /// The sender of the request to become a message connection.
    #[cfg(feature = "websocket")]
    client: OnceLock<websocket::Client>,
    /// A streaming response that takes over the connection, so that hyper and its buffers can be dropped.
    detached: Mutex<Option<Response<AnswerBody>>>,
    was_detached: Notify,
}

impl Http1Connection {
    fn lock(&self) -> MutexGuard<'_, Option<Response<AnswerBody>>> {
        self.detached.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Hands the response over to the connection's task, which continues without hyper. Never returns.
    async fn detach(&self, answer: Response<AnswerBody>) -> ! {
        *self.lock() = Some(answer);
        self.was_detached.notify_one();
        match std::future::pending::<Infallible>().await {}
    }
}

async fn exchange(
    peers: &Peers,
    connection: &Http1Connection,
    request: Request<Incoming>,
) -> Response<AnswerBody> {
    connection.watch.busy();
    #[cfg(feature = "auth")]
    let mut request = request;
    #[cfg(feature = "auth")]
    note_arrival(peers, &mut request);
    // Otherwise hyper holds a part of an earlier response, or of `100 Continue`.
    let may_keep = request.version() == Version::HTTP_11
        && !request.headers().contains_key(header::EXPECT)
        && !connection.watch.is_stuck();
    #[cfg(feature = "websocket")]
    let request = match may_keep && request.method() == Method::GET {
        true => {
            let (mut head, body) = request.into_parts();
            if websocket::is_asked_for(&head) && body.is_end_stream() {
                let peer = Some(connection.peer);
                let remote = peers.endpoint.admission().client_address(&mut head, peer);
                let client = websocket::Client { remote, ..websocket::Client::default() };
                #[cfg(feature = "auth")]
                let mut client = client;
                let admitted = peers.endpoint.admit_upgrade(&head, remote);
                let shaken = admitted.and_then(|()| websocket::shake_hands(&head));
                #[cfg(feature = "auth")]
                let shaken = match shaken {
                    Ok(headers) => {
                        let endpoint = &peers.endpoint;
                        let (admission, auth) = (endpoint.admission(), endpoint.auth());
                        let caller = authenticate_upgrade(admission, auth, &head, remote);
                        Box::pin(caller).await.map(|caller| {
                            if let Some(Caller { principal, expires }) = caller {
                                (client.principal, client.expires) = (Some(principal), expires);
                            }
                            headers
                        })
                    }
                    refusal => refusal,
                };
                match shaken {
                    Ok(headers) => {
                        // A connection becomes a WebSocket once.
                        let _ = connection.client.set(client);
                        connection.detach(AnswerBody::switching(headers)).await;
                    }
                    Err(refusal) => {
                        connection.watch.idle();
                        return last_while_draining(peers, AnswerBody::response(refusal));
                    }
                }
            }
            Request::from_parts(head, body)
        }
        false => request,
    };
    let from = Requester { peer: connection.peer, watch: &connection.watch };
    let answer = answer(&peers.endpoint, Some(from), peers.timeouts, request).await;
    match may_keep && answer.body().is_subscription() {
        true => connection.detach(answer).await,
        false => last_while_draining(peers, answer),
    }
}

/// Adds where the request arrived, for the URL of the server.
#[cfg(feature = "auth")]
fn note_arrival(peers: &Peers, request: &mut Request<Incoming>) {
    if peers.endpoint.auth().is_some() {
        let arrival = peers.endpoint.admission().arrival(peers.port);
        request.extensions_mut().insert(arrival);
    }
}

/// Has the connection close after a response of a server whose shutdown has begun, so that clients connect to another one.
fn last_while_draining(peers: &Peers, mut answer: Response<AnswerBody>) -> Response<AnswerBody> {
    if peers.endpoint.admission().is_draining() {
        answer.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
    }
    answer
}

/// Continues the connection as a WebSocket.
#[cfg(feature = "websocket")]
async fn switch(
    peers: Arc<Peers>,
    mut io: Watched<Box<dyn ByteStream>>,
    client: websocket::Client,
    answer: Response<AnswerBody>,
    read: Bytes,
    stage: Receiver<Stage>,
) {
    let head = stream::head(&answer);
    let written = tokio::time::timeout(peers.timeouts.idle, io.write_all(&head)).await;
    if let Ok(Ok(())) = written {
        websocket::serve(peers, io.stream, client, read, stage).await;
    }
}

/// The other side of a connection of our own.
#[derive(Clone, Copy)]
pub(crate) struct Requester<'a> {
    peer: Peer,
    /// The watch of the connection, or of the stream of HTTP/2.
    watch: &'a Arc<Watch>,
}

/// Handles a request, with any HTTP server. `from`: its sender, if the connection is our own.
pub(crate) async fn answer<B: Body>(
    endpoint: &Arc<HostedEndpoint>,
    from: Option<Requester<'_>>,
    timeouts: Timeouts,
    request: Request<B>,
) -> Response<AnswerBody> {
    let (mut head, body) = request.into_parts();
    let peer = match from {
        Some(from) => Some(from.peer),
        None => head.extensions.get().map(|address: &SocketAddr| Peer::Address(address.ip())),
    };
    let remote = endpoint.admission().client_address(&mut head, peer);
    let waits_for_leave = head.headers.contains_key(header::EXPECT);
    #[cfg_attr(
        not(feature = "auth"),
        expect(unused_mut, reason = "only authentication changes it")
    )]
    let mut head = match endpoint.admission().head_from(head, remote) {
        Ok(head) => head,
        Err(refusal) => {
            body::discard(body, endpoint.admission().max_body(), waits_for_leave).await;
            from.inspect(|from| from.watch.idle());
            return AnswerBody::response(refusal);
        }
    };
    #[cfg(feature = "auth")]
    if let Some(auth) = endpoint.auth()
        && let Err(refused) = authenticate_request(Some(auth), &mut head).await
    {
        body::discard(body, head.max_body(), waits_for_leave).await;
        from.inspect(|from| from.watch.idle());
        return AnswerBody::response(head.refuse(&refused));
    }
    let (ledgers, client) = (endpoint.ledgers(), head.client_key());
    let mut unfinished = Holding::new(&ledgers.input, client);
    let limit = head.max_body();
    let body = match body::read(body, limit, timeouts, waits_for_leave, &mut unfinished).await {
        Ok(body) => body,
        Err(refused) => {
            from.inspect(|from| from.watch.idle());
            return AnswerBody::response(head.refuse(&refused));
        }
    };
    let is_subscription = head.is_subscription();
    let unread = Holding::new(&ledgers.unread, client);
    let queue = ResponseQueue::new(from.map(|from| Arc::clone(from.watch)), unread);
    let is_large = body.len() > LARGE;
    let handler = Arc::clone(endpoint);
    let handle = move || {
        let (exchange, rest) = handler.request(head, &body, Box::new(Arc::clone(&queue)));
        drop((body, unfinished));
        (Awaited::new(handler, exchange, queue, is_subscription), rest)
    };
    let awaited = if is_large {
        let handle_all = move || {
            let (awaited, rest) = handle();
            if let Some(rest) = rest {
                rest();
            }
            awaited
        };
        off_connection_thread(endpoint, handle_all).await
    } else {
        let (awaited, rest) = handle();
        if let Some(rest) = rest {
            off_connection_thread(endpoint, rest).await;
        }
        awaited
    };
    awaited.response().await
}
