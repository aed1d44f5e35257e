//! Connections of HTTP/2. Each request has a stream, which is a task with a watch of its own: a client, or a proxy of many clients,
//! that leaves one answer unread loses that stream, and no other one.

mod paced;
mod runtime;

use std::{
    convert::Infallible,
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use http::{Request, Response};
use hyper::{body::Incoming, server::conn::http2, service::Service};
use tokio::sync::watch::Receiver;

use self::{
    paced::PacedBody,
    runtime::{Streams, TokioTimer},
};
#[cfg(feature = "auth")]
use super::note_arrival;
use super::{
    AnswerBody, Requester, answer,
    watch::{Watch, Watched},
};
use crate::{
    clock,
    driver::{Boxed, Holding},
    http::{Part, Peer},
    protocol::ClientKey,
    transport::{
        ByteStream,
        http::HyperIo,
        listen::{Peers, Stage},
    },
};

/// The maximum number of open streams of a connection. A proxy opens another connection for more.
const MAX_STREAMS: u32 = 128;
/// The bytes that a client may send on a stream, and on all streams of a connection, before the server has read any of them.
const STREAM_WINDOW: u32 = 128 * 1024;
const CONNECTION_WINDOW: u32 = 256 * 1024;
/// The number of requests that a connection may take back before they are answered, beyond the number of its answers. To start and
/// cancel a call costs the client much less than the server.
const MAX_TAKEN_BACK: usize = 256;

/// Serves a connection until it ends.
pub(crate) async fn serve(
    peers: Arc<Peers>,
    stream: Box<dyn ByteStream>,
    peer: Peer,
    mut stage: Receiver<Stage>,
) {
    // What came before may have read the stage.
    stage.mark_changed();
    let watch = Watch::new(peers.timeouts);
    watch.has_streams();
    let connection =
        Http2Connection { watch: Arc::clone(&watch), peer, taken_back: AtomicUsize::new(0), peers };
    let connection = Arc::new(connection);
    let idle = connection.peers.timeouts.idle;
    let serving = http2::Builder::new(Streams(Arc::clone(&connection)))
        .timer(TokioTimer)
        .max_concurrent_streams(MAX_STREAMS)
        .initial_stream_window_size(STREAM_WINDOW)
        .initial_connection_window_size(CONNECTION_WINDOW)
        .max_header_list_size(connection.peers.max_headers.try_into().unwrap_or(u32::MAX))
        // A client that has gone without a word answers no ping.
        .keep_alive_interval(idle)
        .keep_alive_timeout(idle)
        .serve_connection(HyperIo::new(Watched::new(stream, &watch)), Responder);
    let mut serving = pin!(serving);
    let mut expired = pin!(watch.expired());
    loop {
        let reached = tokio::select! {
            ended = &mut serving => {
                if let Err(error) = ended {
                    tracing::debug!(%error, "a connection broke");
                }
                return;
            }
            () = expired.as_mut() => return,
            changed = stage.changed() => changed.map_or(Stage::Closed, |()| *stage.borrow()),
        };
        match reached {
            Stage::Open => (),
            // The client is told to send further requests elsewhere; those that it sent before it reads that are served.
            Stage::Draining | Stage::Closing => serving.as_mut().graceful_shutdown(),
            Stage::Closed => return,
        }
    }
}

/// A connection.
struct Http2Connection {
    watch: Arc<Watch>,
    peer: Peer,
    /// The number of requests that were taken back, less the answers.
    taken_back: AtomicUsize,
    peers: Arc<Peers>,
}

impl Http2Connection {
    fn answered(&self) {
        let less = |count: usize| count.checked_sub(1);
        let _ = self.taken_back.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less);
    }

    fn was_taken_back(&self) {
        if self.taken_back.fetch_add(1, Ordering::Relaxed) >= MAX_TAKEN_BACK {
            if let Some(left_out) = self.peers.log().due(clock::unix()) {
                tracing::warn!(
                    "closing a connection whose client took back {MAX_TAKEN_BACK} requests more than it had answers{left_out}"
                );
            }
            self.watch.cut();
        }
    }
}

/// An open stream.
struct Http2Stream {
    watch: Arc<Watch>,
    connection: Arc<Http2Connection>,
    /// The place of a connection; `None` if there is no more room. A stream counts as one, so that clients of HTTP/2 get no more than
    /// others.
    place: Option<Holding>,
}

impl Http2Stream {
    fn begin(connection: Arc<Http2Connection>) -> Self {
        let peers = &connection.peers;
        connection.watch.stream_began();
        let client = ClientKey::new(None, connection.peer.address());
        let mut place = Holding::new(&peers.endpoint.ledgers().connections, client);
        let place = place.set(1).then_some(place);
        let watch = Watch::new(peers.timeouts);
        watch.busy();
        Self { watch, connection, place }
    }
}

impl Drop for Http2Stream {
    fn drop(&mut self) {
        self.connection.watch.stream_ended();
    }
}

/// The future of a response.
type Answered = Boxed<Result<Response<PacedBody>, Infallible>>;

/// The function that answers the requests of a connection.
struct Responder;

impl Service<Request<Incoming>> for Responder {
    type Response = Response<PacedBody>;
    type Error = Infallible;
    type Future = Answered;

    fn call(&self, request: Request<Incoming>) -> Answered {
        Box::pin(async move { Ok(exchange(request).await) })
    }
}

/// Answers a request, in the task of its stream.
async fn exchange(request: Request<Incoming>) -> Response<PacedBody> {
    let stream = runtime::current_stream();
    let Http2Connection { peers, peer, .. } = &*stream.connection;
    #[cfg(feature = "auth")]
    let mut request = request;
    #[cfg(feature = "auth")]
    note_arrival(peers, &mut request);
    let mut attempt = Attempt { connection: &stream.connection, is_answered: false };
    let answer = match stream.place {
        Some(_) => {
            let from = Requester { peer: *peer, watch: &stream.watch };
            answer(&peers.endpoint, Some(from), peers.timeouts, request).await
        }
        None => AnswerBody::response(Part::unavailable(
            "this client has too many open requests: send this one again later",
        )),
    };
    attempt.is_answered = true;
    answer.map(|body| PacedBody::new(body, &stream.watch))
}

/// Notes whether a request is answered, or taken back before.
struct Attempt<'a> {
    connection: &'a Http2Connection,
    is_answered: bool,
}

impl Drop for Attempt<'_> {
    fn drop(&mut self) {
        match self.is_answered {
            true => self.connection.answered(),
            false => self.connection.was_taken_back(),
        }
    }
}
