//! An HTTP response on its way from the endpoint to hyper.

use std::{
    fmt, io,
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context, Poll, Waker},
};

use bytes::Bytes;
use http::{HeaderMap, Response, StatusCode};
use http_body::{Body, Frame, SizeHint};

use super::watch::Watch;
use crate::{
    driver::{Holding, HostedEndpoint, Outbox, Unread},
    http::{ExchangeId, Part},
};

/// With more unread bytes than this, the response is aborted.
const MAX_UNREAD: usize = 4 * 1024 * 1024;

/// The queue between the endpoint, which fills it, and hyper, which empties it.
pub(super) struct ResponseQueue {
    queued: Mutex<Queued>,
    /// The watch of the connection, or of the stream of HTTP/2; `None` if another server owns the connection.
    watch: Option<Arc<Watch>>,
}

struct Queued {
    head: Option<Head>,
    /// The queued bytes of a stream, after the head.
    bytes: Vec<u8>,
    /// The number of pieces that they were delivered in.
    parts: usize,
    /// The count of what is queued.
    unread: Holding,
    is_complete: bool,
    is_given_up: bool,
    waker: Option<Waker>,
}

struct Head {
    status: StatusCode,
    headers: HeaderMap,
    body: Vec<u8>,
    more: bool,
}

/// Bytes that are counted until they are written.
struct Counted {
    bytes: Vec<u8>,
    _unread: Holding,
}

impl ResponseQueue {
    pub(super) fn new(watch: Option<Arc<Watch>>, unread: Holding) -> Arc<Self> {
        let queued = Queued {
            head: None,
            bytes: Vec::new(),
            parts: 0,
            unread,
            is_complete: false,
            is_given_up: false,
            waker: None,
        };
        Arc::new(Self { queued: Mutex::new(queued), watch })
    }

    fn lock(&self) -> MutexGuard<'_, Queued> {
        self.queued.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Aborts a response for whose bytes there is no room.
    fn refuse_unread(&self, queued: &mut Queued) {
        tracing::warn!(
            "closing a connection, because the unread answers of all clients reach the limit"
        );
        queued.give_up(self.watch.as_deref());
    }

    /// Polls for the head, with its body as counted bytes.
    fn poll_head(&self, context: &mut Context<'_>) -> Poll<(Head, Bytes)> {
        let mut queued = self.lock();
        match queued.head.take() {
            Some(mut head) => {
                let body = queued.counted(std::mem::take(&mut head.body));
                // Events that follow the head stay in the queue.
                let rest = queued.bytes.len();
                if !queued.unread.set(rest) {
                    queued.give_up(self.watch.as_deref());
                }
                Poll::Ready((head, body))
            }
            // The server is shutting down and dropped this call.
            None if queued.is_complete => {
                let (status, headers) = (StatusCode::SERVICE_UNAVAILABLE, HeaderMap::new());
                Poll::Ready((Head { status, headers, body: Vec::new(), more: false }, Bytes::new()))
            }
            None => {
                queued.wait(context);
                Poll::Pending
            }
        }
    }

    /// Takes all queued bytes at once, so that they are sent in one piece.
    fn poll_bytes(&self, context: &mut Context<'_>) -> Poll<Option<Result<Bytes, io::Error>>> {
        let mut queued = self.lock();
        if queued.is_given_up {
            Poll::Ready(Some(Err(io::Error::new(
                io::ErrorKind::ConnectionAborted,
                "the client left too much of the response unread",
            ))))
        } else if !queued.bytes.is_empty() {
            let bytes = std::mem::take(&mut queued.bytes);
            queued.parts = 0;
            Poll::Ready(Some(Ok(queued.counted(bytes))))
        } else if queued.is_complete {
            Poll::Ready(None)
        } else {
            queued.wait(context);
            Poll::Pending
        }
    }
}

impl Queued {
    fn wait(&mut self, context: &mut Context<'_>) {
        match &mut self.waker {
            Some(waker) => waker.clone_from(context.waker()),
            None => self.waker = Some(context.waker().clone()),
        }
    }

    /// Returns bytes that leave the queue, counted until they are dropped. Nothing else in the queue is counted any more.
    fn counted(&mut self, bytes: Vec<u8>) -> Bytes {
        let mut unread = self.unread.take();
        // The count includes these bytes, so they have room.
        let _ = unread.set(bytes.len());
        match unread.is_empty() {
            true => bytes.into(),
            false => Bytes::from_owner(Counted { bytes, _unread: unread }),
        }
    }

    /// Discards the rest of the response.
    fn give_up(&mut self, watch: Option<&Watch>) {
        self.is_given_up = true;
        self.bytes = Vec::new();
        self.parts = 0;
        self.unread.clear();
        if let Some(watch) = watch {
            watch.cut();
        }
    }
}

impl AsRef<[u8]> for Counted {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Outbox for Arc<ResponseQueue> {
    fn unread(&self) -> Unread {
        let queued = self.lock();
        Unread { parts: queued.parts, bytes: queued.bytes.len() }
    }

    fn deliver(&mut self, part: Part) {
        let mut queued = self.lock();
        let part = match part {
            Part::Head { body, more: false, .. } if !queued.unread.set(body.len()) => {
                Part::without_room(body.len())
            }
            part => part,
        };
        match part {
            Part::Head { status, headers, mut body, more } => {
                if !queued.unread.set(body.len()) {
                    body = Vec::new();
                    self.refuse_unread(&mut queued);
                }
                queued.head = Some(Head { status, headers, body, more });
                queued.is_complete = !more;
            }
            Part::Bytes(_) if queued.is_given_up => (),
            Part::Bytes(_) if queued.bytes.len() > MAX_UNREAD => {
                tracing::warn!("closing a connection whose client left {MAX_UNREAD} bytes unread");
                queued.give_up(self.watch.as_deref());
            }
            Part::Bytes(bytes) => {
                let of_head = queued.head.as_ref().map_or(0, |head| head.body.len());
                let length = of_head + queued.bytes.len() + bytes.len();
                if queued.unread.set(length) {
                    queued.parts += 1;
                    match queued.bytes.is_empty() {
                        true => queued.bytes = bytes,
                        false => queued.bytes.extend_from_slice(&bytes),
                    }
                } else {
                    self.refuse_unread(&mut queued);
                }
            }
            Part::End => queued.is_complete = true,
        }
        let waker = queued.waker.take();
        drop(queued);
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

/// Informs the endpoint if the client disconnects before the response is complete.
pub(super) struct Awaited {
    endpoint: Arc<HostedEndpoint>,
    exchange: ExchangeId,
    queue: Arc<ResponseQueue>,
    /// `true` if the response, should it be a stream, lasts until the client leaves.
    is_subscription: bool,
}

impl Awaited {
    pub(super) fn new(
        endpoint: Arc<HostedEndpoint>,
        exchange: ExchangeId,
        queue: Arc<ResponseQueue>,
        is_subscription: bool,
    ) -> Self {
        Self { endpoint, exchange, queue, is_subscription }
    }

    /// Waits for the head of the response.
    pub(super) async fn response(self) -> Response<AnswerBody> {
        let (head, first) = std::future::poll_fn(|context| self.queue.poll_head(context)).await;
        let Head { status, headers, more, .. } = head;
        let body = match more {
            true => AnswerBody { first, rest: Some(Box::new(self)) },
            false => AnswerBody { first, rest: None },
        };
        response(status, headers, body)
    }
}

impl Drop for Awaited {
    fn drop(&mut self) {
        if !self.queue.lock().is_complete {
            self.endpoint.disconnected(self.exchange);
        }
        if let Some(watch) = &self.queue.watch {
            watch.idle();
        }
    }
}

/// The body of a response: JSON or an event stream.
#[must_use = "it is the answer"]
pub struct AnswerBody {
    first: Bytes,
    rest: Option<Box<Awaited>>,
}

impl AnswerBody {
    /// Creates the response after which the connection switches protocols.
    pub(super) fn switching(headers: HeaderMap) -> Response<Self> {
        let body = Self { first: Bytes::new(), rest: None };
        response(StatusCode::SWITCHING_PROTOCOLS, headers, body)
    }

    /// Returns whether the body is a stream that lasts until the client leaves.
    pub(super) fn is_subscription(&self) -> bool {
        self.rest.as_ref().is_some_and(|rest| rest.is_subscription)
    }

    /// Creates a response from a single part.
    pub(crate) fn response(part: Part) -> Response<Self> {
        match part {
            Part::Head { status, headers, body, .. } => {
                response(status, headers, Self { first: body.into(), rest: None })
            }
            Part::Bytes(_) | Part::End => {
                let body = Self { first: Bytes::new(), rest: None };
                response(StatusCode::INTERNAL_SERVER_ERROR, HeaderMap::new(), body)
            }
        }
    }
}

fn response(status: StatusCode, headers: HeaderMap, body: AnswerBody) -> Response<AnswerBody> {
    let mut response = Response::new(body);
    *response.status_mut() = status;
    *response.headers_mut() = headers;
    response
}

impl Body for AnswerBody {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, io::Error>>> {
        if !self.first.is_empty() {
            let first = std::mem::take(&mut self.first);
            return Poll::Ready(Some(Ok(Frame::data(first))));
        }
        match &self.rest {
            None => Poll::Ready(None),
            Some(rest) => {
                rest.queue.poll_bytes(context).map(|next| next.map(|read| read.map(Frame::data)))
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        self.first.is_empty() && self.rest.is_none()
    }

    fn size_hint(&self) -> SizeHint {
        match self.rest {
            None => SizeHint::with_exact(self.first.len() as u64),
            Some(_) => SizeHint::default(),
        }
    }
}

impl fmt::Debug for AnswerBody {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AnswerBody")
            .field("is_stream", &self.rest.is_some())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::driver::ledger::Ledger;

    const SIZE: usize = 3 * 1024 * 1024;

    fn head(body: Vec<u8>) -> Part {
        Part::Head { status: StatusCode::OK, headers: HeaderMap::new(), body, more: true }
    }

    #[test]
    fn events_behind_a_head_stay_counted_until_they_are_written() {
        let ledger = Ledger::new(64 * 1024 * 1024, 16 * 1024);
        let mut queue = ResponseQueue::new(None, Holding::new(&ledger, None));
        queue.deliver(head(b"event".to_vec()));
        queue.deliver(Part::Bytes(vec![b'x'; SIZE]));
        queue.deliver(Part::End);
        let mut context = Context::from_waker(Waker::noop());
        let Poll::Ready((_, first)) = queue.poll_head(&mut context) else { panic!("no head") };
        assert_eq!(first, "event");
        drop(first);
        assert!(ledger.total() > SIZE - 32 * 1024, "{}", ledger.total());
        let Poll::Ready(Some(Ok(rest))) = queue.poll_bytes(&mut context) else { panic!("no rest") };
        assert!(ledger.total() > SIZE - 32 * 1024, "{}", ledger.total());
        drop(rest);
        assert_eq!(ledger.total(), 0);
    }

    #[test]
    fn a_first_event_without_room_aborts_the_response() {
        let ledger = Ledger::new(1024 * 1024, 0);
        let mut queue = ResponseQueue::new(None, Holding::new(&ledger, None));
        queue.deliver(head(vec![b'x'; SIZE]));
        let mut context = Context::from_waker(Waker::noop());
        let Poll::Ready((_, first)) = queue.poll_head(&mut context) else { panic!("no head") };
        assert!(first.is_empty());
        assert!(matches!(queue.poll_bytes(&mut context), Poll::Ready(Some(Err(_)))));
        assert_eq!(ledger.total(), 0);
    }
}
