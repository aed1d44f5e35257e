//! Closes connections whose peer is too slow: missing heads, idle connections, unread responses.

use std::{
    io,
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context, Poll},
    time::Instant,
};

use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    sync::Notify,
};

use super::preface::Preface;
use crate::{clock, transport::timeouts::Timeouts};

/// The activity of a connection.
#[derive(Debug)]
pub(crate) struct Watch {
    timeouts: Timeouts,
    state: Mutex<State>,
    cut: Notify,
}

#[derive(Debug)]
struct State {
    phase: Phase,
    since: Instant,
    /// The open streams of an HTTP/2 connection.
    streams: usize,
    /// The time since which the peer leaves data unread, and the bytes that it has read since.
    stuck: Option<(Instant, usize)>,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Phase {
    Idle,
    /// A part of a request's head was received.
    Head,
    /// A request is being read or answered.
    Busy,
    /// An HTTP/2 connection has no open stream. What arrives may be a ping.
    Quiet,
}

impl Watch {
    pub(crate) fn new(timeouts: Timeouts) -> Arc<Self> {
        let state = State { phase: Phase::Idle, since: clock::now(), streams: 0, stuck: None };
        Arc::new(Self { timeouts, state: Mutex::new(state), cut: Notify::new() })
    }

    /// Records that a request's head is complete.
    pub(crate) fn busy(&self) {
        self.lock().phase = Phase::Busy;
    }

    /// Records that its response is complete.
    pub(crate) fn idle(&self) {
        let mut state = self.lock();
        state.phase = Phase::Idle;
        state.since = clock::now();
    }

    /// Records that the connection is one of HTTP/2.
    pub(super) fn has_streams(&self) {
        let mut state = self.lock();
        state.phase = Phase::Quiet;
        state.since = clock::now();
    }

    /// Records that a stream of an HTTP/2 connection has begun.
    pub(super) fn stream_began(&self) {
        let mut state = self.lock();
        state.streams += 1;
        state.phase = Phase::Busy;
    }

    /// Records that a stream of an HTTP/2 connection has ended.
    pub(super) fn stream_ended(&self) {
        let mut state = self.lock();
        state.streams -= 1;
        if state.streams == 0 {
            state.phase = Phase::Quiet;
            state.since = clock::now();
        }
    }

    /// Returns whether a request is being read or answered.
    pub(super) fn is_busy(&self) -> bool {
        self.lock().phase == Phase::Busy
    }

    /// Returns whether a part of a request's head was received.
    pub(super) fn has_begun_head(&self) -> bool {
        self.lock().phase == Phase::Head
    }

    /// Returns whether the peer leaves data unread.
    pub(super) fn is_stuck(&self) -> bool {
        self.lock().stuck.is_some()
    }

    /// Closes the connection now.
    pub(super) fn cut(&self) {
        self.cut.notify_one();
    }

    /// Returns when the connection must be closed.
    pub(crate) async fn expired(&self) {
        let often = self.timeouts.header.min(self.timeouts.idle);
        loop {
            let now = clock::now();
            let deadline = self.deadline();
            if deadline.is_some_and(|deadline| deadline <= now) {
                return;
            }
            // A phase that starts later lasts at least this long.
            let wake = deadline.map_or(now + often, |deadline| deadline.min(now + often));
            tokio::select! {
                () = tokio::time::sleep_until(wake.into()) => (),
                () = self.cut.notified() => return,
            }
        }
    }

    fn deadline(&self) -> Option<Instant> {
        let state = self.lock();
        let unread = state.stuck.map(|(since, taken)| since + self.timeouts.for_bytes(taken));
        let unsent = match state.phase {
            Phase::Idle | Phase::Quiet => Some(state.since + self.timeouts.idle),
            Phase::Head => Some(state.since + self.timeouts.header),
            Phase::Busy => None,
        };
        [unread, unsent].into_iter().flatten().min()
    }

    fn read(&self) {
        let mut state = self.lock();
        if state.phase == Phase::Idle {
            state.phase = Phase::Head;
            state.since = clock::now();
        }
    }

    /// Records how many of the bytes that the peer is offered it has taken.
    pub(super) fn wrote(&self, offered: usize, taken: usize) {
        let mut state = self.lock();
        if taken >= offered {
            state.stuck = None;
        } else {
            let stuck = state.stuck.get_or_insert_with(|| (clock::now(), 0));
            stuck.1 += taken;
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A stream whose progress is watched.
pub(crate) struct Watched<S> {
    pub(super) stream: S,
    pub(super) watch: Arc<Watch>,
    pub(super) preface: Preface,
}

impl<S> Watched<S> {
    pub(super) fn new(stream: S, watch: &Arc<Watch>) -> Self {
        Self { stream, watch: Arc::clone(watch), preface: Preface::default() }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Watched<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let this = &mut *self;
        let stream = Pin::new(&mut this.stream);
        let polled = match this.preface.is_decided() {
            true => stream.poll_read(context, buffer),
            false => this.preface.poll_read(stream, context, buffer),
        };
        if buffer.filled().len() > before || this.preface.is_begun() {
            this.watch.read();
        }
        polled
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Watched<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let polled = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.watch.wrote(bytes.len(), taken(&polled));
        polled
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let polled = Pin::new(&mut self.stream).poll_write_vectored(context, slices);
        self.watch.wrote(slices.iter().map(|slice| slice.len()).sum(), taken(&polled));
        polled
    }
}

fn taken(polled: &Poll<io::Result<usize>>) -> usize {
    match polled {
        Poll::Ready(Ok(count)) => *count,
        Poll::Ready(Err(_)) | Poll::Pending => 0,
    }
}
