//! Tools that may run only so many calls at once: the others wait in line.

use std::collections::{HashMap, VecDeque};

use super::{parking::Parked, running::Kept};
use crate::{
    router::{Job, ResultBuilder},
    session::{CallId, server::CallContext},
};

/// A call that is ready to run.
#[derive(Debug)]
pub(crate) enum Ready {
    Start(Job, CallContext, Option<Box<Kept>>),
    /// It goes on, with the answers that this request brought.
    Resume(Box<Parked>, CallContext),
    /// It goes on: its client has answered requests.
    GoOn(CallId),
}

#[derive(Debug, Default)]
pub(crate) struct Gates {
    tools: HashMap<String, Gate>,
    weight: usize,
    /// How many of those that wait are parked handlers.
    resuming: usize,
    /// How many of them are counted among those that run.
    going_on: usize,
}

#[derive(Debug, Default)]
struct Gate {
    running: usize,
    waiting: VecDeque<Ready>,
}

impl Gates {
    /// Gives the job back when it may run now; otherwise keeps it until another leaves.
    pub(crate) fn enter(&mut self, tool: &str, limit: usize, call: Ready) -> Option<Ready> {
        let gate = self.tools.entry(tool.to_owned()).or_default();
        if gate.running < limit.max(1) {
            gate.running += 1;
            return Some(call);
        }
        self.weight += call.weight();
        self.resuming += usize::from(call.is_resume());
        self.going_on += usize::from(call.goes_on());
        gate.waiting.push_back(call);
        None
    }

    /// One call is over: the next in line, if any, may run in its place.
    pub(crate) fn leave(&mut self, tool: &str) -> Option<Ready> {
        let gate = self.tools.get_mut(tool)?;
        let next = gate.waiting.pop_front();
        if next.is_none() {
            gate.running -= 1;
            if gate.running == 0 {
                self.tools.remove(tool);
            }
        }
        self.weight -= next.as_ref().map_or(0, Ready::weight);
        self.resuming -= usize::from(next.as_ref().is_some_and(Ready::is_resume));
        self.going_on -= usize::from(next.as_ref().is_some_and(Ready::goes_on));
        next
    }

    /// Takes out a call that was cancelled while it waited.
    pub(crate) fn forget(&mut self, call: CallId) -> Option<Ready> {
        for gate in self.tools.values_mut() {
            if let Some(at) = gate.waiting.iter().position(|it| it.call() == call) {
                let ready = gate.waiting.remove(at)?;
                self.weight -= ready.weight();
                self.resuming -= usize::from(ready.is_resume());
                self.going_on -= usize::from(ready.goes_on());
                return Some(ready);
            }
        }
        None
    }

    /// A handler that waits in line with its answers.
    pub(crate) fn resuming(&mut self, handler: CallId) -> Option<&mut Parked> {
        if self.resuming == 0 {
            return None;
        }
        let waiting = self.tools.values_mut().flat_map(|it| &mut it.waiting);
        waiting.into_iter().find_map(|ready| match ready {
            Ready::Resume(parked, _) if parked.handler == handler => Some(&mut **parked),
            _ => None,
        })
    }

    /// Takes it out, with the request that brought its answers.
    pub(crate) fn take_resuming(&mut self, handler: CallId) -> Option<(Box<Parked>, CallContext)> {
        if self.resuming == 0 {
            return None;
        }
        let is_it =
            |ready: &Ready| matches!(ready, Ready::Resume(parked, _) if parked.handler == handler);
        let call = self.tools.values().flat_map(|it| &it.waiting).find(|it| is_it(it))?.call();
        match self.forget(call)? {
            Ready::Resume(parked, context) => Some((parked, context)),
            Ready::Start(..) | Ready::GoOn(_) => None,
        }
    }

    /// Calls that wait in line, but for those that are counted among those that run.
    pub(crate) fn len(&self) -> usize {
        self.tools.values().map(|it| it.waiting.len()).sum::<usize>() - self.going_on
    }

    /// Bytes of input that wait in line.
    pub(crate) fn weight(&self) -> usize {
        self.weight
    }
}

impl Ready {
    /// The tool that it has to wait for, and how many calls of it may run at once.
    pub(crate) fn limit(&self) -> Option<(String, usize)> {
        match self {
            Self::Start(job, ..) => limit(&job.result_builder),
            Self::Resume(parked, _) => limit(&parked.running.result_builder),
            Self::GoOn(_) => None,
        }
    }

    pub(crate) fn call(&self) -> CallId {
        match self {
            Self::Start(_, context, _) | Self::Resume(_, context) => context.call,
            Self::GoOn(call) => *call,
        }
    }

    fn goes_on(&self) -> bool {
        matches!(self, Self::GoOn(_))
    }

    fn is_resume(&self) -> bool {
        matches!(self, Self::Resume(..))
    }

    pub(crate) fn weight(&self) -> usize {
        match self {
            Self::Start(job, context, _) => job.input.len().max(context.weight),
            Self::Resume(parked, _) => parked.running.weight,
            // It is counted with those that run.
            Self::GoOn(_) => 0,
        }
    }
}

/// The tool whose limit a run counts against, and how many calls of it may run at once.
pub(crate) fn limit(result_builder: &ResultBuilder) -> Option<(String, usize)> {
    match result_builder {
        ResultBuilder::Tool(component) => {
            component.concurrency.map(|limit| (component.tool.name.clone(), limit))
        }
        _ => None,
    }
}
