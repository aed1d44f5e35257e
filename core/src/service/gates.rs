//! Tools that may run only so many calls at once: the others wait in line.

use std::collections::{HashMap, VecDeque};

use super::running::Kept;
use crate::{
    router::Job,
    session::{CallId, server::CallContext},
};

/// A call that is ready to run.
pub(super) type Ready = (Job, CallContext, Option<Box<Kept>>);

#[derive(Debug, Default)]
pub(super) struct Gates {
    tools: HashMap<String, Gate>,
    weight: usize,
}

#[derive(Debug, Default)]
struct Gate {
    running: usize,
    waiting: VecDeque<Ready>,
}

impl Gates {
    /// Gives the job back when it may run now; otherwise keeps it until another leaves.
    pub(super) fn enter(&mut self, tool: &str, limit: usize, call: Ready) -> Option<Ready> {
        let gate = self.tools.entry(tool.to_owned()).or_default();
        if gate.running < limit.max(1) {
            gate.running += 1;
            return Some(call);
        }
        self.weight += call.0.input.len();
        gate.waiting.push_back(call);
        None
    }

    /// One call is over: the next in line, if any, may run in its place.
    pub(super) fn leave(&mut self, tool: &str) -> Option<Ready> {
        let gate = self.tools.get_mut(tool)?;
        let next = gate.waiting.pop_front();
        if next.is_none() {
            gate.running -= 1;
            if gate.running == 0 {
                self.tools.remove(tool);
            }
        }
        self.weight -= next.as_ref().map_or(0, |(job, ..)| job.input.len());
        next
    }

    /// Drops a call that was cancelled while it waited.
    pub(super) fn forget(&mut self, call: CallId) {
        for gate in self.tools.values_mut() {
            if let Some(at) = gate.waiting.iter().position(|(_, context, _)| context.call == call) {
                self.weight -= gate.waiting.remove(at).map_or(0, |(job, ..)| job.input.len());
            }
        }
    }

    /// Calls that wait in line.
    pub(super) fn len(&self) -> usize {
        self.tools.values().map(|it| it.waiting.len()).sum()
    }

    /// Bytes of input that wait in line.
    pub(super) fn weight(&self) -> usize {
        self.weight
    }
}
