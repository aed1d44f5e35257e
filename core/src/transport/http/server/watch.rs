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
}

impl Watch {
    pub(crate) fn new(timeouts: Timeouts) -> Arc<Self> {
        let state = State { phase: Phase::Idle, since: clock::now(), stuck: None };
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
            Phase::Idle => Some(state.since + self.timeouts.idle),
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

    fn wrote(&self, offered: usize, taken: usize) {
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
}

impl<S: AsyncRead + Unpin> AsyncRead for Watched<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let polled = Pin::new(&mut self.stream).poll_read(context, buffer);
        if buffer.filled().len() > before {
            self.watch.read();
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
