//! Threads for slow handlers, which therefore stall only each other.

use std::{
    collections::VecDeque,
    pin::Pin,
    sync::{
        Arc, Condvar, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU8, Ordering},
    },
    task::{Context, Wake, Waker},
    thread,
    time::Duration,
};

use tokio::runtime::Handle;

use super::run::mark_own_thread;

const MAX_THREADS: usize = 64;
/// The time after which an idle thread ends.
const IDLE: Duration = Duration::from_secs(10);

type Job = Box<dyn FnOnce() + Send>;

/// A thread pool. Unlike tokio's blocking pool it is not waited for at shutdown, so a handler that hangs can't keep
/// the process alive.
#[derive(Clone, Default)]
pub(super) struct Workers {
    pool: Arc<Pool>,
}

#[derive(Default)]
struct Pool {
    state: Mutex<State>,
    wake: Condvar,
}

#[derive(Default)]
struct State {
    jobs: VecDeque<Job>,
    threads: usize,
    idle: usize,
}

/// A future that is polled on the pool's threads.
struct PolledTask {
    pool: Arc<Pool>,
    /// The runtime that provides timers and sockets.
    runtime: Handle,
    state: AtomicU8,
    future: Mutex<Option<Pin<Box<dyn Future<Output = ()> + Send>>>>,
}

// The states of a task.
const WAITING: u8 = 0;
const QUEUED: u8 = 1;
const POLLED: u8 = 2;
/// Woken while being polled.
const POLLED_AND_WOKEN: u8 = 3;

impl Workers {
    /// Polls a future on the pool until it is finished. While the future is pending it occupies no thread.
    pub(super) fn spawn(&self, runtime: Handle, future: impl Future<Output = ()> + Send + 'static) {
        let polled = Arc::new(PolledTask {
            pool: Arc::clone(&self.pool),
            runtime,
            state: AtomicU8::new(WAITING),
            future: Mutex::new(Some(Box::pin(future))),
        });
        polled.wake();
    }
}

impl Wake for PolledTask {
    fn wake(self: Arc<Self>) {
        let next = |state| match state {
            WAITING => Some(QUEUED),
            POLLED => Some(POLLED_AND_WOKEN),
            _ => None,
        };
        let before = self.state.fetch_update(Ordering::AcqRel, Ordering::Acquire, next);
        if before == Ok(WAITING) {
            let pool = Arc::clone(&self.pool);
            pool.run(Box::new(move || self.poll()));
        }
    }
}

impl PolledTask {
    fn poll(self: Arc<Self>) {
        self.state.store(POLLED, Ordering::Release);
        let waker = Waker::from(Arc::clone(&self));
        let mut place = self.future.lock().unwrap_or_else(PoisonError::into_inner);
        let _entered = self.runtime.enter();
        let Some(future) = place.as_mut() else { return };
        if future.as_mut().poll(&mut Context::from_waker(&waker)).is_ready() {
            *place = None;
            return;
        }
        drop(place);
        let before = self.state.swap(WAITING, Ordering::AcqRel);
        if before == POLLED_AND_WOKEN {
            waker.wake();
        }
    }
}

impl Pool {
    fn run(self: &Arc<Self>, job: Job) {
        let mut state = self.lock();
        state.jobs.push_back(job);
        if state.jobs.len() <= state.idle {
            self.wake.notify_one();
        } else if state.threads < MAX_THREADS {
            state.threads += 1;
            drop(state);
            let pool = Arc::clone(self);
            let builder = thread::Builder::new().name("gudgeon-worker".into());
            let work = move || {
                mark_own_thread();
                pool.work();
            };
            if builder.spawn(work).is_err() {
                self.lock().threads -= 1;
            }
        }
    }

    fn work(&self) {
        let mut state = self.lock();
        loop {
            if let Some(job) = state.jobs.pop_front() {
                drop(state);
                job();
                state = self.lock();
                continue;
            }
            state.idle += 1;
            let waited =
                self.wake.wait_timeout(state, IDLE).unwrap_or_else(PoisonError::into_inner);
            state = waited.0;
            state.idle -= 1;
            if waited.1.timed_out() && state.jobs.is_empty() {
                state.threads -= 1;
                return;
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
