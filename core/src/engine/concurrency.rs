//! The concurrency limits of tools. Calls above the limit wait in a queue.

use std::collections::{HashMap, VecDeque};

use super::id::CallId;

/// The running and the queued calls of each tool with a limit.
#[derive(Debug, Default)]
pub(super) struct Lines(HashMap<String, Line>);

#[derive(Debug, Default)]
struct Line {
    running: usize,
    waiting: VecDeque<CallId>,
}

impl Lines {
    /// Returns whether a call may run now; otherwise it is queued.
    pub(super) fn enter(&mut self, tool: &str, limit: usize, call: CallId) -> bool {
        let line = self.0.entry(tool.to_owned()).or_default();
        let has_room = line.running < limit.max(1);
        if has_room {
            line.running += 1;
        } else {
            line.waiting.push_back(call);
        }
        has_room
    }

    /// Ends one run of a tool. Returns the next queued call, which may run in its place.
    pub(super) fn leave(&mut self, tool: &str) -> Option<CallId> {
        let line = self.0.get_mut(tool)?;
        let next = line.waiting.pop_front();
        if next.is_none() {
            line.running -= 1;
            if line.running == 0 {
                self.0.remove(tool);
            }
        }
        next
    }

    /// Removes a call from the queue.
    pub(super) fn forget(&mut self, tool: &str, call: CallId) {
        if let Some(line) = self.0.get_mut(tool)
            && let Some(at) = line.waiting.iter().position(|queued| *queued == call)
        {
            line.waiting.remove(at);
        }
    }

    /// Returns whether no call runs or waits.
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}
