//! Handlers that wait for answers which come with a later request (Multi Round-Trip Requests): parked, by the name of
//! the round that their client holds in its state.
//!
//! The table is bounded. Whoever has to leave it is run again from its top when the answers come, so a handler that
//! forbids that is never made to leave before its time is over.

use std::{
    collections::{BTreeMap, HashMap},
    time::{Duration, Instant},
};

use super::{request_state::RoundId, running::Running};
use crate::{
    error::Fault,
    protocol::{Question, Raw},
    router::{Failure, Job, Reply, RoundLimits},
    session::{CallId, CallMap, asking::AskId, server::CallContext},
};

/// Bytes that all parked handlers may hold.
const MAX_BYTES: usize = 64 * 1024 * 1024;
/// What one costs beside what it was given and has asked.
const BASE_WEIGHT: usize = 4 * 1024;
/// Requests that may wait for one run.
const MAX_JOINED: usize = 16;
/// A century, where no clock can say how long a handler may wait.
const FOR_EVER: Duration = Duration::from_secs(100 * 365 * 24 * 60 * 60);

#[derive(Debug, Default)]
pub(crate) struct Parking {
    rounds: HashMap<RoundId, Round>,
    /// The oldest first.
    ages: BTreeMap<u64, RoundId>,
    handlers: CallMap<RoundId>,
    next: u64,
    bytes: usize,
    threads: usize,
    joined: usize,
}

/// A handler that waits.
#[derive(Debug)]
pub(crate) struct Parked {
    /// The call under which its shell knows it.
    pub(crate) handler: CallId,
    pub(crate) running: Running,
    /// What its client is asked.
    pub(crate) open: Vec<(AskId, Question)>,
    /// What its client has answered of this round, or why it is not asked any more.
    pub(crate) answered: Vec<(AskId, Result<Raw, Fault>)>,
    /// What it asked since; `is_ready` when that should go out.
    pub(crate) later: Vec<(AskId, Question)>,
    pub(crate) is_ready: bool,
    /// It went on without the answers, and has finished.
    pub(crate) outcome: Option<Result<Reply, Failure>>,
    /// What is left of its time.
    pub(crate) left: Option<Duration>,
    /// It holds a thread.
    pub(crate) blocks: bool,
}

#[derive(Debug)]
struct Round {
    age: u64,
    expires: Instant,
    place: Place,
}

#[derive(Debug)]
enum Place {
    Waiting {
        parked: Box<Parked>,
        weight: usize,
    },
    /// The answers were brought; these requests wait for what comes of it, too.
    Taken {
        joined: Vec<CallContext>,
    },
}

/// What a round's name stands for.
#[derive(Debug)]
pub(crate) enum Claimed {
    Waiting(Box<Parked>),
    /// The handler runs for another request with the same answers: this one gets the same reply.
    Joined,
    /// Nothing, or nothing any more.
    Unknown,
    Crowded,
}

impl Parking {
    /// Requests that wait for what comes of another.
    pub(crate) fn joined(&self) -> usize {
        self.joined
    }

    /// Whether one more could wait, if need be in place of another.
    pub(crate) fn has_room(&self, limits: &RoundLimits, blocks: bool) -> bool {
        let waiting = self.handlers.len();
        let is_free = waiting < limits.park_limit
            && self.bytes < MAX_BYTES
            && (!blocks || self.threads < limits.park_threads);
        is_free || (limits.park_limit > 0 && self.oldest(blocks).is_some())
    }

    /// A handler waits from now on. Those that had to leave for it, perhaps itself, are to be stopped.
    pub(crate) fn park(
        &mut self,
        now: Instant,
        limits: &RoundLimits,
        round: RoundId,
        parked: Box<Parked>,
    ) -> Vec<CallId> {
        let blocks = parked.blocks;
        let until = now.checked_add(limits.park_ttl).unwrap_or_else(|| now + FOR_EVER);
        self.insert(until, round, parked);
        let mut left = Vec::new();
        loop {
            let too_many = self.handlers.len() > limits.park_limit || self.bytes > MAX_BYTES;
            let too_many_threads = blocks && self.threads > limits.park_threads;
            if !too_many && !too_many_threads {
                return left;
            }
            let Some(round) = self.oldest(too_many_threads && !too_many) else { return left };
            left.extend(self.remove(round).map(|it| it.handler));
        }
    }

    /// Whether what waits for this round's answers is what would run again: a registered handler, or middleware around what
    /// the core says, where that handler is gone.
    pub(crate) fn suits(&self, round: RoundId, job: &Job) -> bool {
        match self.rounds.get(&round).map(|it| &it.place) {
            Some(Place::Waiting { parked, .. }) => {
                parked.running.result_builder.runs_handler() == job.result_builder.runs_handler()
            }
            _ => true,
        }
    }

    /// Who brings answers to a round asks for its handler.
    pub(crate) fn claim(&mut self, round: RoundId, context: &CallContext) -> Claimed {
        let Some(Round { place, .. }) = self.rounds.get_mut(&round) else {
            return Claimed::Unknown;
        };
        match place {
            Place::Taken { joined } if joined.len() >= MAX_JOINED => Claimed::Crowded,
            Place::Taken { joined } => {
                joined.push(context.clone());
                self.joined += 1;
                Claimed::Joined
            }
            Place::Waiting { .. } => {
                let taken = Place::Taken { joined: Vec::new() };
                let Place::Waiting { parked, weight } = std::mem::replace(place, taken) else {
                    return Claimed::Unknown;
                };
                self.forget(&parked, weight);
                Claimed::Waiting(parked)
            }
        }
    }

    /// What came of a claimed round is known: the requests that wait for it too.
    pub(crate) fn release(&mut self, round: RoundId) -> Vec<CallId> {
        let Some(Round { age, place: Place::Taken { joined }, .. }) = self.rounds.remove(&round)
        else {
            return Vec::new();
        };
        self.ages.remove(&age);
        self.joined -= joined.len();
        joined.into_iter().map(|it| it.call).collect()
    }

    /// The request that a handler runs for was given up: another that waits for the same takes its place.
    pub(crate) fn promote(&mut self, round: RoundId) -> Option<CallContext> {
        let Some(Round { place: Place::Taken { joined }, .. }) = self.rounds.get_mut(&round) else {
            return None;
        };
        let next = joined.pop()?;
        self.joined -= 1;
        Some(next)
    }

    /// A request that waits for another's run was given up.
    pub(crate) fn leave(&mut self, call: CallId) -> bool {
        if self.joined == 0 {
            return false;
        }
        for round in self.rounds.values_mut() {
            if let Place::Taken { joined } = &mut round.place
                && let Some(at) = joined.iter().position(|it| it.call == call)
            {
                joined.swap_remove(at);
                self.joined -= 1;
                return true;
            }
        }
        false
    }

    /// The parked handler that its shell knows by this call.
    pub(crate) fn get_mut(&mut self, handler: CallId) -> Option<&mut Parked> {
        let round = self.handlers.get(&handler)?;
        match &mut self.rounds.get_mut(round)?.place {
            Place::Waiting { parked, .. } => Some(parked),
            Place::Taken { .. } => None,
        }
    }

    /// A handler is gone before its answers came. Whether it waited.
    pub(crate) fn abandon(&mut self, handler: CallId) -> bool {
        let round = self.handlers.get(&handler).copied();
        round.is_some_and(|it| self.remove(it).is_some())
    }

    pub(crate) fn deadline(&self) -> Option<Instant> {
        // A round that was claimed keeps its age and is passed over when its time comes.
        self.ages.values().next().and_then(|it| self.rounds.get(it)).map(|it| it.expires)
    }

    /// Those whose time is over.
    pub(crate) fn expire(&mut self, now: Instant) -> Vec<CallId> {
        let mut over = Vec::new();
        while let Some((&age, &round)) = self.ages.first_key_value()
            && self.rounds.get(&round).is_none_or(|it| it.expires <= now)
        {
            self.ages.remove(&age);
            over.extend(self.remove(round).map(|it| it.handler));
        }
        over
    }

    /// Nobody will come back.
    pub(crate) fn clear(&mut self) -> Vec<CallId> {
        let waiting: Vec<_> = self.handlers.values().copied().collect();
        waiting.into_iter().filter_map(|it| self.remove(it)).map(|it| it.handler).collect()
    }

    fn insert(&mut self, expires: Instant, round: RoundId, parked: Box<Parked>) {
        let weight = parked.weight();
        self.bytes += weight;
        self.threads += usize::from(parked.blocks);
        self.handlers.insert(parked.handler, round);
        let age = self.next;
        self.next += 1;
        self.ages.insert(age, round);
        let place = Place::Waiting { parked, weight };
        self.rounds.insert(round, Round { age, expires, place });
    }

    /// Takes out one that waits; of a claimed round nothing.
    fn remove(&mut self, round: RoundId) -> Option<Box<Parked>> {
        if !matches!(self.rounds.get(&round)?.place, Place::Waiting { .. }) {
            return None;
        }
        let Round { age, place: Place::Waiting { parked, weight }, .. } =
            self.rounds.remove(&round)?
        else {
            return None;
        };
        self.ages.remove(&age);
        self.forget(&parked, weight);
        Some(parked)
    }

    fn forget(&mut self, parked: &Parked, weight: usize) {
        self.bytes -= weight;
        self.threads -= usize::from(parked.blocks);
        self.handlers.remove(&parked.handler);
    }

    /// The oldest that may be run again, or the oldest of these that holds a thread.
    fn oldest(&self, blocking: bool) -> Option<RoundId> {
        let may_leave = |round: &&RoundId| match self.rounds.get(round).map(|it| &it.place) {
            Some(Place::Waiting { parked, .. }) => {
                !parked.running.result_builder.forbids_replay() && (!blocking || parked.blocks)
            }
            _ => false,
        };
        self.ages.values().find(may_leave).copied()
    }
}

impl Parked {
    fn weight(&self) -> usize {
        let questions: usize = self.open.iter().map(|(_, it)| it.params.get().len()).sum();
        // What came with the request is kept beside the input that was made of it.
        let kept = self.running.kept.as_ref().map_or(0, |it| {
            it.input.len() + it.context.weight.max(it.input.len()) + it.recorded.weight()
        });
        BASE_WEIGHT + questions + kept
    }
}
