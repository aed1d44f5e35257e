//! The monitor, which passes the lead on when a handler blocks the leader, and handlers that wait for their client.

use std::{
    collections::VecDeque,
    sync::{Arc, PoisonError},
    time::Duration,
};

use crate::{
    pool::{IS_OURS, LEADS},
    stream::{Pool, Stream, Task},
};

/// The interval of the monitor. A handler blocks the leader if it still runs after two intervals.
pub(crate) const MONITOR_TICK: Duration = Duration::from_millis(1);
/// The number of intervals without a handler after which the monitor sleeps.
const MONITOR_PATIENCE: u32 = 25;

impl Stream {
    /// The main function of the monitor.
    pub(crate) fn watch(self: &Arc<Self>) {
        let mut pool = self.pool();
        let (mut last, mut quiet) = (0, 0);
        while !pool.stopped {
            self.wake_sleeping_leader(&mut pool);
            match &pool.running {
                Some(handler) if pool.serial == last && handler.is_preemptible() => {
                    handler.stalled();
                    self.hand_over(&mut pool);
                    drop(pool);
                    self.server.try_flush();
                    pool = self.pool();
                    continue;
                }
                Some(_) => (last, quiet) = (pool.serial, 0),
                None => quiet += 1,
            }
            pool = if quiet > MONITOR_PATIENCE {
                quiet = 0;
                pool.monitor_sleeps = true;
                self.monitor.wait(pool).unwrap_or_else(PoisonError::into_inner)
            } else {
                self.monitor
                    .wait_timeout(pool, MONITOR_TICK)
                    .unwrap_or_else(PoisonError::into_inner)
                    .0
            };
        }
    }

    /// Called before a handler waits for its client: if it runs on the leader, the lead is passed on, and the thread
    /// does not count as working until the handler resumes.
    pub(crate) fn enter_blocking(self: &Arc<Self>) -> BlockingGuard {
        let counts = IS_OURS.get();
        let mut pool = self.pool();
        pool.blocked += usize::from(counts);
        if LEADS.get() == Some(pool.epoch)
            && let Some(handler) = pool.running.clone()
        {
            handler.stalled();
            self.hand_over(&mut pool);
        }
        if !pool.handed.is_empty() {
            self.call_worker(&mut pool);
        }
        BlockingGuard { stream: Arc::clone(self), counts }
    }

    /// Passes the lead on, because a handler blocks the leader; the rest of its batch is taken over.
    fn hand_over(self: &Arc<Self>, pool: &mut Pool) {
        pool.epoch += 1;
        pool.running = None;
        pool.lead_is_vacant = true;
        // The rest of the batch may contain more calls of the blocking handler.
        let (handed, inline) =
            pool.inline.drain(..).partition(|task: &Task| task.handler().wants_worker());
        pool.inline = inline;
        if pool.idle > pool.handed.len() {
            self.pool_changed.notify_one();
        } else {
            // If no thread can be started, the blocked one leads again when it returns.
            drop(self.spawn(pool));
        }
        let handed: VecDeque<Task> = handed;
        for task in handed {
            pool.handed.push_back(task);
            self.call_worker(pool);
        }
    }
}

/// Marks a thread as waiting for its client; dropped when it resumes.
pub(crate) struct BlockingGuard {
    stream: Arc<Stream>,
    counts: bool,
}

impl Drop for BlockingGuard {
    fn drop(&mut self) {
        self.stream.pool().blocked -= usize::from(self.counts);
    }
}
