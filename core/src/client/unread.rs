//! The queue between those who report changes and the stream that reads them.

use std::{
    sync::{Mutex, MutexGuard},
    task::{Context, Poll, Waker},
};

use tokio::sync::Notify;

use super::connected::lock;
use crate::{error::Error, peer::subscriptions::Changes, session::client::Change};

/// Changes that were not read yet.
pub(super) trait Unread {
    type Item;

    /// Returns the next change or the end, without waiting.
    fn take(&mut self) -> Poll<Option<Self::Item>>;

    /// Returns whether [`Unread::take`] returns a change or the end.
    fn is_ready(&self) -> bool;
}

/// A queue whose reader waits by polling or by awaiting.
#[derive(Debug)]
pub(super) struct UnreadQueue<T> {
    state: Mutex<State<T>>,
    arrived: Notify,
}

#[derive(Debug)]
struct State<T> {
    unread: T,
    /// The waker of the task that polls the stream.
    waker: Option<Waker>,
}

impl<T: Unread> UnreadQueue<T> {
    pub(super) fn new(unread: T) -> Self {
        Self { state: Mutex::new(State { unread, waker: None }), arrived: Notify::new() }
    }

    /// Changes what is queued and wakes the reader.
    pub(super) fn update(&self, change: impl FnOnce(&mut T)) {
        let mut state = self.lock();
        change(&mut state.unread);
        let waker = state.waker.take();
        drop(state);
        self.arrived.notify_waiters();
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    /// Returns the next change or the end if there is one, without waiting.
    pub(super) fn try_next(&self) -> Poll<Option<T::Item>> {
        self.lock().unread.take()
    }

    /// Waits for the next change or the end.
    pub(super) async fn next(&self) -> Option<T::Item> {
        loop {
            self.ready().await;
            if let Poll::Ready(next) = self.try_next() {
                return next;
            }
        }
    }

    /// Waits until [`UnreadQueue::try_next`] returns a change or the end.
    pub(super) async fn ready(&self) {
        loop {
            let mut arrived = std::pin::pin!(self.arrived.notified());
            arrived.as_mut().enable();
            if self.lock().unread.is_ready() {
                return;
            }
            arrived.await;
        }
    }

    pub(super) fn poll_next(&self, context: &mut Context<'_>) -> Poll<Option<T::Item>> {
        let mut state = self.lock();
        let next = state.unread.take();
        if next.is_pending() {
            state.waker = Some(context.waker().clone());
        }
        next
    }

    fn lock(&self) -> MutexGuard<'_, State<T>> {
        lock(&self.state)
    }
}

impl Unread for Changes {
    type Item = Result<Change, Error>;

    fn take(&mut self) -> Poll<Option<Self::Item>> {
        self.take()
    }

    fn is_ready(&self) -> bool {
        self.is_ready()
    }
}
