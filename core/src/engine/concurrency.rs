//! The concurrency limits of tools. Calls above the limit wait in a queue.

use std::collections::{HashMap, VecDeque};

use super::id::CallId;

/// The running and the queued calls of each tool with a limit.
#[derive(Debug, Default)]
pub(super) struct ConcurrencyLimits(HashMap<String, Queue>);

#[derive(Debug, Default)]
struct Queue {
    running: usize,
    waiting: VecDeque<CallId>,
}

impl ConcurrencyLimits {
    /// Returns whether a call may run now; otherwise it is queued.
    pub(super) fn enter(&mut self, tool: &str, limit: usize, call: CallId) -> bool {
        let queue = self.0.entry(tool.to_owned()).or_default();
        let has_room = queue.running < limit.max(1);
        if has_room {
            queue.running += 1;
        } else {
            queue.waiting.push_back(call);
        }
        has_room
    }

    /// Ends one run of a tool. Returns the next queued call, which may run in its place.
    pub(super) fn leave(&mut self, tool: &str) -> Option<CallId> {
        let queue = self.0.get_mut(tool)?;
        let next = queue.waiting.pop_front();
        if next.is_none() {
            queue.running -= 1;
            if queue.running == 0 {
                self.0.remove(tool);
            }
        }
        next
    }

    /// Removes a call from the queue.
    pub(super) fn forget(&mut self, tool: &str, call: CallId) {
        if let Some(queue) = self.0.get_mut(tool)
            && let Some(at) = queue.waiting.iter().position(|queued| *queued == call)
        {
            queue.waiting.remove(at);
        }
    }

    /// Returns whether no call runs or waits.
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}
