//! The table of all calls with their states, and the totals of their number and bytes.

use std::{
    cmp::Reverse,
    collections::BinaryHeap,
    ops::{AddAssign, SubAssign},
    time::Instant,
};

use rustc_hash::FxHashMap;

use super::{
    id::{CallId, Origin, PeerId, RunId, Ticket},
    state::{Routed, Running, State},
};
use crate::{protocol::ClientKey, session::InboundKey};

/// The number of deadlines of ended calls above which they are removed.
const MAX_STALE_DEADLINES: usize = 1_024;

/// A request or a notification that is being handled.
#[derive(Debug)]
pub(super) struct Call {
    pub(super) peer: PeerId,
    /// The request's number in its session. The request of a suspended handler may be answered already.
    pub(super) key: InboundKey,
    client: Option<ClientKey>,
    /// Bytes of input.
    pub(super) weight: usize,
    /// The time at which the state ends by itself.
    pub(super) deadline: Option<Instant>,
    pub(super) state: State,
}

/// The number and bytes of what is kept for calls.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Load {
    /// Requests that wait for their answer.
    pub requests: usize,
    /// Requests among them that wait for an answer of their client.
    pub asking: usize,
    /// Notifications that handlers run for.
    pub notifications: usize,
    /// Bytes of these requests and notifications.
    pub bytes: usize,
    /// Handlers that wait for a later request.
    pub suspended: usize,
    pub suspended_bytes: usize,
    /// The threads that these hold.
    pub suspended_threads: usize,
}

/// All calls. Every change of a call passes through here, so that the totals are right.
#[derive(Debug, Default)]
pub(super) struct CallTable {
    calls: FxHashMap<CallId, Call>,
    runs: FxHashMap<RunId, CallId>,
    /// Requests to the host that have no reply yet.
    tickets: FxHashMap<Ticket, CallId>,
    deadlines: BinaryHeap<Reverse<(Instant, CallId)>>,
    load: Load,
    by_client: FxHashMap<ClientKey, Load>,
    next_call: u64,
    next_run: u64,
    next_ticket: u64,
}

impl CallTable {
    /// Returns the number of a new call.
    pub(super) fn number(&mut self) -> CallId {
        let call = CallId(self.next_call);
        self.next_call += 1;
        call
    }

    /// Inserts or replaces a call.
    pub(super) fn put(
        &mut self,
        origin: Origin,
        weight: usize,
        deadline: Option<Instant>,
        state: State,
    ) {
        let Origin { call: id, peer, key, client } = origin;
        let call = Call { peer, key, client, weight, deadline, state };
        let after = call.load();
        self.deadlines.extend(deadline.map(|deadline| Reverse((deadline, id))));
        if let Some(replaced) = self.calls.insert(id, call) {
            self.subtract(replaced.client, replaced.load());
        }
        self.add(client, after);
    }

    pub(super) fn get(&self, id: CallId) -> Option<&Call> {
        self.calls.get(&id)
    }

    /// Returns the running or suspended handler of a call.
    pub(super) fn running(&self, id: CallId) -> Option<&Running> {
        self.calls.get(&id)?.state.running()
    }

    /// Returns the names of the components and routes whose handlers run, in no order.
    pub(super) fn all_running(&self) -> impl Iterator<Item = String> {
        self.calls.values().filter_map(|call| match &call.state {
            State::Running(running) => Some(running.result_builder.place()),
            State::Routed(Routed { route, .. }) => Some(route.place()),
            _ => None,
        })
    }

    /// Changes a call.
    pub(super) fn update<R>(
        &mut self,
        id: CallId,
        change: impl FnOnce(&mut Call) -> R,
    ) -> Option<R> {
        let call = self.calls.get_mut(&id)?;
        let (before, until) = (call.load(), call.deadline);
        let result = change(call);
        let (after, deadline, client) = (call.load(), call.deadline, call.client);
        if before != after {
            self.subtract(client, before);
            self.add(client, after);
        }
        if deadline != until {
            self.deadlines.extend(deadline.map(|deadline| Reverse((deadline, id))));
            self.remove_stale_deadlines();
        }
        Some(result)
    }

    /// Changes the running or suspended handler of a call.
    pub(super) fn update_running<R>(
        &mut self,
        id: CallId,
        change: impl FnOnce(&mut Running) -> R,
    ) -> Option<R> {
        self.update(id, |call| call.state.running_mut().map(change)).flatten()
    }

    pub(super) fn remove(&mut self, id: CallId) -> Option<Call> {
        let call = self.calls.remove(&id)?;
        self.subtract(call.client, call.load());
        self.remove_stale_deadlines();
        Some(call)
    }

    /// Begins a run of a call's handler.
    pub(super) fn begin_run(&mut self, call: CallId) -> RunId {
        let run = RunId(self.next_run);
        self.next_run += 1;
        self.runs.insert(run, call);
        run
    }

    /// Returns the call that a handler runs for.
    pub(super) fn call_of(&self, run: RunId) -> Option<CallId> {
        self.runs.get(&run).copied()
    }

    /// Binds a run to another call.
    pub(super) fn rebind(&mut self, run: RunId, call: CallId) {
        if let Some(bound) = self.runs.get_mut(&run) {
            *bound = call;
        }
    }

    /// Ends a run. Returns `false` if it had ended before.
    pub(super) fn end_run(&mut self, run: RunId) -> bool {
        self.runs.remove(&run).is_some()
    }

    /// Issues the ticket of a new request to the host on behalf of a call.
    pub(super) fn issue_ticket(&mut self, call: CallId) -> Ticket {
        let ticket = Ticket(self.next_ticket);
        self.next_ticket += 1;
        self.tickets.insert(ticket, call);
        ticket
    }

    /// Ends a request to the host. Returns its call, or `None` if it had ended before.
    pub(super) fn take_ticket(&mut self, ticket: Ticket) -> Option<CallId> {
        self.tickets.remove(&ticket)
    }

    /// Returns the number of requests to the host without a reply.
    pub(super) fn tickets(&self) -> usize {
        self.tickets.len()
    }

    pub(super) fn load(&self) -> Load {
        self.load
    }

    /// Returns what is kept for one client.
    pub(super) fn load_of(&self, client: ClientKey) -> Load {
        self.by_client.get(&client).copied().unwrap_or_default()
    }

    /// Returns the number of clients that have calls.
    pub(super) fn clients(&self) -> usize {
        self.by_client.len()
    }

    /// Adds what a call holds to the totals.
    fn add(&mut self, client: Option<ClientKey>, load: Load) {
        self.load += load;
        if let Some(client) = client {
            *self.by_client.entry(client).or_default() += load;
        }
    }

    /// Subtracts what a call held from the totals.
    fn subtract(&mut self, client: Option<ClientKey>, load: Load) {
        self.load -= load;
        if let Some(client) = client
            && let Some(of_client) = self.by_client.get_mut(&client)
        {
            *of_client -= load;
            if *of_client == Load::default() {
                self.by_client.remove(&client);
            }
        }
    }

    /// Returns whether nothing of any call is kept.
    pub(super) fn is_empty(&self) -> bool {
        self.calls.is_empty()
            && self.runs.is_empty()
            && self.tickets.is_empty()
            && self.by_client.is_empty()
    }

    pub(super) fn deadline(&self) -> Option<Instant> {
        self.deadlines.peek().map(|Reverse((at, _))| *at)
    }

    /// Returns the next call whose deadline has come.
    pub(super) fn expired(&mut self, now: Instant) -> Option<CallId> {
        while let Some(Reverse((at, call))) = self.deadlines.peek().copied()
            && at <= now
        {
            self.deadlines.pop();
            if is_current(&self.calls, at, call) {
                return Some(call);
            }
        }
        None
    }

    fn remove_stale_deadlines(&mut self) {
        let Self { deadlines, calls, .. } = self;
        while let Some(Reverse((at, call))) = deadlines.peek()
            && !is_current(calls, *at, *call)
        {
            deadlines.pop();
        }
        if deadlines.len() > MAX_STALE_DEADLINES + 2 * calls.len() {
            deadlines.retain(|Reverse((at, call))| is_current(calls, *at, *call));
        }
    }
}

fn is_current(calls: &FxHashMap<CallId, Call>, at: Instant, call: CallId) -> bool {
    calls.get(&call).is_some_and(|call| call.deadline == Some(at))
}

impl Call {
    /// Returns the call with this number and the request that it answers.
    pub(super) fn origin(&self, id: CallId) -> Origin {
        Origin { call: id, peer: self.peer, key: self.key, client: self.client }
    }

    fn load(&self) -> Load {
        let bytes = self.weight;
        match &self.state {
            State::Notified(_) => Load { notifications: 1, bytes, ..Load::default() },
            State::Suspended(suspended) => suspended.load(bytes),
            State::Running(running) => {
                let asking = usize::from(running.is_asking());
                Load { requests: 1, asking, bytes, ..Load::default() }
            }
            State::AwaitingHost(..) | State::Joined(_) | State::Queued(_) | State::Routed(_) => {
                Load { requests: 1, bytes, ..Load::default() }
            }
        }
    }
}

impl AddAssign for Load {
    fn add_assign(&mut self, other: Self) {
        self.requests += other.requests;
        self.asking += other.asking;
        self.notifications += other.notifications;
        self.bytes += other.bytes;
        self.suspended += other.suspended;
        self.suspended_bytes += other.suspended_bytes;
        self.suspended_threads += other.suspended_threads;
    }
}

impl SubAssign for Load {
    fn sub_assign(&mut self, other: Self) {
        self.requests -= other.requests;
        self.asking -= other.asking;
        self.notifications -= other.notifications;
        self.bytes -= other.bytes;
        self.suspended -= other.suspended;
        self.suspended_bytes -= other.suspended_bytes;
        self.suspended_threads -= other.suspended_threads;
    }
}
