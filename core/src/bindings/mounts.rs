//! An endpoint that a host application drives: its threads, such as that of an event loop, do no work that may take long.
//! The endpoint has no tokio runtime unless it authenticates callers, so these are threads of its own.

use std::{
    collections::VecDeque,
    fmt,
    num::NonZero,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    thread::{Builder, available_parallelism},
};

use crate::driver::{EndpointServer, EndpointStep, Work};

type Job = Box<dyn FnOnce() + Send>;

/// Threads for the computations of mounted endpoints that may take long, at most one for each processor. They start when they
/// are needed and end when there is nothing to do. Clones share them.
#[derive(Clone)]
pub struct ComputationThreads(Arc<Threads>);

struct Threads {
    max: usize,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// Each belongs to a request in flight, which limits them.
    waiting: VecDeque<Job>,
    running: usize,
}

impl Default for ComputationThreads {
    fn default() -> Self {
        let max = available_parallelism().map_or(1, NonZero::get);
        Self(Arc::new(Threads { max, state: Mutex::default() }))
    }
}

impl ComputationThreads {
    /// Runs the work of a step at once, and on another thread what may take long and the work that results from it.
    pub fn finish(
        &self,
        server: &Arc<EndpointServer>,
        step: EndpointStep,
        run: impl Fn(Work) + Send + 'static,
    ) {
        let (work, rest) = step.split();
        run(work);
        if let Some(rest) = rest {
            let server = Arc::clone(server);
            self.run(Box::new(move || run(server.finish(rest))));
        }
    }

    fn run(&self, job: Job) {
        let mut state = self.0.lock();
        state.waiting.push_back(job);
        if state.running == self.0.max {
            return;
        }
        state.running += 1;
        drop(state);
        let threads = Arc::clone(&self.0);
        let thread = Builder::new().name("gudgeon-checks".into());
        if thread.spawn(move || threads.work()).is_err() {
            self.0.work();
        }
    }
}

impl Threads {
    fn work(&self) {
        loop {
            let mut state = self.lock();
            let Some(job) = state.waiting.pop_front() else {
                state.running -= 1;
                return;
            };
            drop(state);
            // The hook for panics has reported it. Others must not wait for this thread in vain.
            let _ = catch_unwind(AssertUnwindSafe(job));
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for ComputationThreads {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ComputationThreads").field("max", &self.0.max).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::{
        sync::mpsc::{channel, sync_channel},
        thread,
    };

    use super::*;

    #[test]
    fn no_more_threads_than_processors_run_and_a_panic_holds_nobody_up() {
        let threads = ComputationThreads::default();
        let (started, starts) = channel();
        let (release, released) = sync_channel::<()>(0);
        let released = Arc::new(Mutex::new(released));
        for number in 0..3 * threads.0.max {
            let (started, released) = (started.clone(), Arc::clone(&released));
            threads.run(Box::new(move || {
                let _ = started.send(thread::current().id());
                let _ = released.lock().map(|receiver| receiver.recv());
                assert_ne!(number, 0, "it is reported and ends nothing else");
            }));
            assert!(threads.0.lock().running <= threads.0.max);
        }
        for _ in 0..3 * threads.0.max {
            assert!(release.send(()).is_ok());
        }
        drop(started);
        assert_eq!(starts.iter().count(), 3 * threads.0.max);
        while threads.0.lock().running > 0 {
            thread::yield_now();
        }
    }
}
