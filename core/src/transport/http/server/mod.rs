//! The HTTP/1.1 server: hyper moves the bytes, the endpoint handles the requests.

mod answer;
mod body;
mod connection;
mod stream;
mod watch;

#[cfg(feature = "websocket")]
use std::sync::OnceLock;
use std::{
    convert::Infallible,
    net::IpAddr,
    pin::{Pin, pin},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use bytes::Bytes;
use http::{Method, Request, Response, StatusCode, Version, header};
use http_body::Body;
use hyper::{body::Incoming, server::conn::http1::Parts};
use tokio::{
    io::AsyncWriteExt,
    sync::{Notify, watch::Receiver},
};

pub use self::answer::AnswerBody;
use self::answer::{Awaited, ResponseQueue};
#[cfg(feature = "websocket")]
use self::watch::Watched;
pub(crate) use self::{
    connection::{Answered, HeadLimits, serve_requests},
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
    remote: Option<IpAddr>,
    mut stage: Receiver<Stage>,
) {
    let line = Arc::new(Line {
        watch: Watch::new(peers.timeouts),
        remote,
        #[cfg(feature = "websocket")]
        client: OnceLock::new(),
        kept: Mutex::default(),
        is_kept: Notify::new(),
    });
    let limits = HeadLimits { head: peers.max_headers, buffer: peers.max_headers.max(BUFFER) };
    let respond = {
        let (peers, line) = (Arc::clone(&peers), Arc::clone(&line));
        move |request| -> Answered {
            let (peers, line) = (Arc::clone(&peers), Arc::clone(&line));
            Box::pin(async move { Ok(exchange(&peers, &line, request).await) })
        }
    };
    let mut connection = serve_requests(stream, &line.watch, limits, respond);
    {
        let mut expired = pin!(line.watch.expired());
        loop {
            let is_closing = tokio::select! {
                ended = &mut connection => {
                    if let Err(error) = ended {
                        tracing::debug!(%error, "a connection broke");
                    }
                    return;
                }
                () = line.is_kept.notified() => break,
                () = expired.as_mut() => return,
                changed = stage.changed() => changed.is_ok() && *stage.borrow() == Stage::Closing,
            };
            match is_closing {
                true => Pin::new(&mut connection).graceful_shutdown(),
                false => return,
            }
        }
    }
    let Some(answer) = line.lock().take() else { return };
    let Parts {
        io,
        #[cfg(feature = "websocket")]
        read_buf,
        ..
    } = connection.into_parts();
    let io = io.into_inner();
    // Kept out of the connection's future, to keep that small.
    match answer.status() {
        #[cfg(feature = "websocket")]
        StatusCode::SWITCHING_PROTOCOLS => {
            let client = line.client.get().cloned().unwrap_or_default();
            let client = websocket::Client { remote: line.remote, ..client };
            Box::pin(switch(peers, io, client, answer, read_buf, stage)).await;
        }
        _ => {
            #[cfg(feature = "websocket")]
            drop(read_buf);
            Box::pin(stream::write(io, answer, &line.watch, &mut stage)).await;
        }
    }
}

/// A connection.
pub(crate) struct Line {
    watch: Arc<Watch>,
    /// The address of the client.
    remote: Option<IpAddr>,
    /// The sender of the request to become a message connection, if it was authenticated.
    #[cfg(feature = "websocket")]
    client: OnceLock<websocket::Client>,
    /// A streaming response that takes over the connection, so that hyper and its buffers can be dropped.
    kept: Mutex<Option<Response<AnswerBody>>>,
    is_kept: Notify,
}

impl Line {
    fn lock(&self) -> MutexGuard<'_, Option<Response<AnswerBody>>> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Hands the response over to the connection's task, which continues without hyper. Never returns.
    async fn keep(&self, answer: Response<AnswerBody>) -> ! {
        *self.lock() = Some(answer);
        self.is_kept.notify_one();
        match std::future::pending::<Infallible>().await {}
    }
}

async fn exchange(peers: &Peers, line: &Line, request: Request<Incoming>) -> Response<AnswerBody> {
    line.watch.busy();
    #[cfg(feature = "auth")]
    let mut request = request;
    #[cfg(feature = "auth")]
    if peers.endpoint.auth().is_some() {
        let arrival = peers.endpoint.admission().arrival(peers.port);
        request.extensions_mut().insert(arrival);
    }
    // Otherwise hyper holds a part of an earlier response, or of `100 Continue`.
    let may_keep = request.version() == Version::HTTP_11
        && !request.headers().contains_key(header::EXPECT)
        && !line.watch.is_stuck();
    #[cfg(feature = "websocket")]
    let request = match may_keep && request.method() == Method::GET {
        true => {
            let (head, body) = request.into_parts();
            if websocket::is_asked_for(&head) && body.is_end_stream() {
                let admitted = peers.endpoint.admit_upgrade(&head);
                let shaken = admitted.and_then(|()| websocket::shake_hands(&head));
                #[cfg(feature = "auth")]
                let shaken = match shaken {
                    Ok(headers) => {
                        let endpoint = &peers.endpoint;
                        let (admission, auth) = (endpoint.admission(), endpoint.auth());
                        let caller = authenticate_upgrade(admission, auth, &head, line.remote);
                        Box::pin(caller).await.map(|caller| {
                            if let Some(Caller { principal, expires }) = caller {
                                let (principal, remote) = (Some(principal), line.remote);
                                let client = websocket::Client { principal, remote, expires };
                                // A connection becomes a WebSocket once.
                                let _ = line.client.set(client);
                            }
                            headers
                        })
                    }
                    refusal => refusal,
                };
                match shaken {
                    Ok(headers) => line.keep(AnswerBody::switching(headers)).await,
                    Err(refusal) => {
                        line.watch.idle();
                        return AnswerBody::response(refusal);
                    }
                }
            }
            Request::from_parts(head, body)
        }
        false => request,
    };
    let answer = answer(&peers.endpoint, Some(line), peers.timeouts, request).await;
    match may_keep && answer.body().is_subscription() {
        true => line.keep(answer).await,
        false => answer,
    }
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

/// Handles a request, with any HTTP server. `line`: the connection, if it is our own.
pub(crate) async fn answer<B: Body>(
    endpoint: &Arc<HostedEndpoint>,
    line: Option<&Line>,
    timeouts: Timeouts,
    request: Request<B>,
) -> Response<AnswerBody> {
    let (head, body) = request.into_parts();
    let waits_for_leave = head.headers.contains_key(header::EXPECT);
    let mut head = match endpoint.admission().head(head) {
        Ok(head) => head,
        Err(refusal) => {
            body::discard(body, endpoint.admission().max_body(), waits_for_leave).await;
            line.inspect(|line| line.watch.idle());
            return AnswerBody::response(refusal);
        }
    };
    if let Some(remote) = line.and_then(|line| line.remote) {
        head.set_remote(remote);
    }
    #[cfg(feature = "auth")]
    if let Some(auth) = endpoint.auth()
        && let Err(refused) = authenticate_request(Some(auth), &mut head).await
    {
        body::discard(body, head.max_body(), waits_for_leave).await;
        line.inspect(|line| line.watch.idle());
        return AnswerBody::response(head.refuse(&refused));
    }
    let (ledgers, client) = (endpoint.ledgers(), head.client_key());
    let mut unfinished = Holding::new(&ledgers.input, client);
    let limit = head.max_body();
    let body = match body::read(body, limit, timeouts, waits_for_leave, &mut unfinished).await {
        Ok(body) => body,
        Err(refused) => {
            line.inspect(|line| line.watch.idle());
            return AnswerBody::response(head.refuse(&refused));
        }
    };
    let is_subscription = head.is_subscription();
    let unread = Holding::new(&ledgers.unread, client);
    let queue = ResponseQueue::new(line.map(|line| Arc::clone(&line.watch)), unread);
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
