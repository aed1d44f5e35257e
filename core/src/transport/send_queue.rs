//! A connection of an endpoint that carries whole messages, for any transport.

use std::{
    net::IpAddr,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use bytes::Bytes;
use tokio::{sync::Notify, time::timeout};

use super::off_thread::{LARGE, off_connection_thread};
use crate::{
    driver::{Holding, HostedEndpoint, Outbox, Rest, Unread},
    framing::{Frame, LineDecoder, TooLong},
    http::{ConnectionId, Part},
    protocol::{ClientKey, Principal},
};

/// With more unwritten bytes than this, reading pauses: a peer that does not read can't send either.
const MAX_UNWRITTEN: usize = 4 * 1024 * 1024;

/// A message connection; dropping it closes it.
pub(crate) struct Connected {
    endpoint: Arc<HostedEndpoint>,
    id: ConnectionId,
    send_queue: Arc<SendQueue>,
}

/// The queue of frames to send to the peer.
#[derive(Debug)]
pub(crate) struct SendQueue {
    queue: Mutex<Queue>,
    to_write: Notify,
    written: Notify,
}

#[derive(Debug)]
struct Queue {
    frames: Vec<Vec<u8>>,
    /// The total size of frames that are queued, or taken and not written yet.
    bytes: usize,
    /// The count of these bytes.
    unread: Holding,
    is_over: bool,
    /// `true` if it is over because the access token of the connection has expired.
    has_expired: bool,
}

impl Connected {
    pub(crate) fn open(
        endpoint: Arc<HostedEndpoint>,
        principal: Option<Arc<Principal>>,
        remote: Option<IpAddr>,
    ) -> Self {
        let client = ClientKey::new(principal.as_deref(), remote);
        let unread = Holding::new(&endpoint.ledgers().unread, client);
        let send_queue = SendQueue::new(unread);
        let id = endpoint.connect(principal, remote, Box::new(Arc::clone(&send_queue)));
        Self { endpoint, id, send_queue }
    }

    pub(crate) fn send_queue(&self) -> Arc<SendQueue> {
        Arc::clone(&self.send_queue)
    }

    /// Ends the connection at this time, when its access token expires.
    #[cfg(all(feature = "auth", feature = "websocket"))]
    pub(crate) fn expire_at(&self, at: std::time::Instant) {
        self.endpoint.expire_at(self.id, at);
    }

    /// Handles a frame; a long one on another thread.
    pub(crate) async fn take_frame(&self, frame: Bytes) {
        if frame.len() > LARGE {
            let (endpoint, id) = (Arc::clone(&self.endpoint), self.id);
            let take = move || run_now(endpoint.frame(id, &Frame::Line(&frame)));
            return off_connection_thread(&self.endpoint, take).await;
        }
        self.run_elsewhere(self.endpoint.frame(self.id, &Frame::Line(&frame))).await;
    }

    /// Answers a frame that was discarded because of its length.
    pub(crate) fn refuse_too_long(&self, message: TooLong<'_>) {
        run_now(self.endpoint.frame(self.id, &Frame::TooLong(message)));
    }

    /// Handles the lines in the first `count` bytes of a chunk; a long line on another thread.
    pub(crate) async fn take_lines(
        &self,
        decoder: &mut LineDecoder,
        chunk: &mut Vec<u8>,
        count: usize,
    ) {
        let is_end = || memchr::memchr(b'\n', &chunk[..count]).is_some();
        if decoder.held() + count > LARGE && is_end() {
            let (endpoint, id) = (Arc::clone(&self.endpoint), self.id);
            let mut input = (decoder.take(), std::mem::take(chunk));
            let take = move || {
                run_now(endpoint.lines(id, &mut input.0, &input.1[..count]));
                input
            };
            (*decoder, *chunk) = off_connection_thread(&self.endpoint, take).await;
            return;
        }
        self.run_elsewhere(self.endpoint.lines(self.id, decoder, &chunk[..count])).await;
    }

    /// Handles the end of input; a last line without its end counts.
    pub(crate) fn take_last_line(&self, decoder: &mut LineDecoder) {
        if let Some(frame) = decoder.finish() {
            run_now(self.endpoint.frame(self.id, &frame));
        }
    }

    /// Waits while too many bytes are unanswered or unwritten; this applies back pressure to the reader.
    pub(crate) async fn has_room(&self) {
        self.send_queue.has_room().await;
        if self.endpoint.is_full_for(self.id) {
            self.endpoint.has_room(self.id).await;
        }
    }

    /// Runs the part of an input's work that may take long on another thread.
    async fn run_elsewhere(&self, rest: Option<Rest>) {
        if let Some(rest) = rest {
            off_connection_thread(&self.endpoint, rest).await;
        }
    }

    /// Marks the end of input and waits up to `grace` for pending calls to be answered.
    pub(crate) async fn finish(&self, grace: Duration) {
        self.endpoint.end_of_input(self.id);
        let _ = timeout(grace, self.endpoint.has_answered(self.id)).await;
    }
}

fn run_now(rest: Option<Rest>) {
    if let Some(rest) = rest {
        rest();
    }
}

impl Drop for Connected {
    fn drop(&mut self) {
        self.endpoint.connection_closed(self.id);
        self.send_queue.end();
    }
}

impl SendQueue {
    fn new(unread: Holding) -> Arc<Self> {
        let queue =
            Queue { frames: Vec::new(), bytes: 0, unread, is_over: false, has_expired: false };
        Arc::new(Self { queue: Mutex::new(queue), to_write: Notify::new(), written: Notify::new() })
    }

    /// Moves the queued frames into `frames`, which must be empty; returns `false` at the end.
    pub(crate) async fn take(&self, frames: &mut Vec<Vec<u8>>) -> bool {
        loop {
            {
                let mut queue = self.lock();
                if !queue.frames.is_empty() {
                    std::mem::swap(&mut queue.frames, frames);
                    return true;
                }
                if queue.is_over {
                    return false;
                }
            }
            self.to_write.notified().await;
        }
    }

    /// Records that so many bytes of frames were written.
    pub(crate) fn wrote(&self, bytes: usize) {
        self.lock().remove(bytes);
        self.written.notify_waiters();
    }

    /// Returns whether the queue is closed because the access token of the connection has expired.
    #[cfg(feature = "websocket")]
    pub(crate) fn has_expired(&self) -> bool {
        self.lock().has_expired
    }

    /// Closes the queue for new frames.
    pub(crate) fn end(&self) {
        self.lock().is_over = true;
        self.to_write.notify_one();
        self.written.notify_waiters();
    }

    async fn has_room(&self) {
        loop {
            let mut written = std::pin::pin!(self.written.notified());
            written.as_mut().enable();
            {
                let queue = self.lock();
                if queue.bytes <= MAX_UNWRITTEN || queue.is_over {
                    return;
                }
            }
            written.await;
        }
    }

    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Queue {
    /// Counts so many bytes more. Returns whether there is room for them among those of all clients.
    fn add(&mut self, bytes: usize) -> bool {
        self.bytes += bytes;
        self.unread.set(self.bytes)
    }

    fn remove(&mut self, bytes: usize) {
        self.bytes -= bytes;
        // Fewer bytes than before always have room.
        let _ = self.unread.set(self.bytes);
    }
}

impl Outbox for Arc<SendQueue> {
    fn unread(&self) -> Unread {
        let queue = self.lock();
        Unread { parts: queue.frames.len(), bytes: queue.bytes }
    }

    fn deliver(&mut self, part: Part) {
        match part {
            Part::Bytes(frame) => {
                let mut queue = self.lock();
                if queue.is_over {
                    return;
                }
                let has_room = queue.add(frame.len());
                queue.frames.push(frame);
                if !has_room {
                    tracing::warn!(
                        "closing a connection whose client left {} bytes unread",
                        queue.bytes
                    );
                    let dropped = queue.frames.drain(..).map(|frame| frame.len()).sum();
                    queue.remove(dropped);
                    queue.is_over = true;
                }
                drop(queue);
                self.to_write.notify_one();
            }
            Part::End => self.end(),
            // Responses on a message connection have no head.
            Part::Head { .. } => (),
        }
    }

    fn expire(&mut self) {
        self.lock().has_expired = true;
        self.end();
    }
}
