//! Threads for handlers that were seen to keep theirs for long: so they stall each other at most.

use std::{
    collections::VecDeque,
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    thread,
    time::Duration,
};

const MAX_THREADS: usize = 64;
/// A thread without work ends after this long.
const IDLE: Duration = Duration::from_secs(10);

type Job = Box<dyn FnOnce() + Send>;

/// Unlike tokio's blocking pool it is never waited for, so a handler that hangs can't keep the process from ending.
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

impl Workers {
    pub(super) fn run(&self, job: impl FnOnce() + Send + 'static) {
        let mut state = self.pool.lock();
        state.jobs.push_back(Box::new(job));
        if state.jobs.len() <= state.idle {
            self.pool.wake.notify_one();
        } else if state.threads < MAX_THREADS {
            state.threads += 1;
            drop(state);
            let pool = Arc::clone(&self.pool);
            let builder = thread::Builder::new().name("gudgeon-worker".into());
            if builder.spawn(move || pool.work()).is_err() {
                self.pool.lock().threads -= 1;
            }
        }
    }
}

impl Pool {
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
