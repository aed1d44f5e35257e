//! The work that an endpoint gives its host.

use std::{
    collections::{VecDeque, vec_deque},
    iter::Chain,
    option,
    time::Instant,
};

use crate::{
    engine::{Computation, Computed, Effect, Run, RunId, Ticket},
    log_events::LogEvent,
};

/// Work for the host, in the order in which the engine decided it. A run whose call was cancelled before the host took it is not
/// in it, nor is a request that is not needed any more.
#[derive(Debug, Default)]
#[must_use = "handlers that are not run are never answered"]
pub struct Work {
    /// The first effect. Mostly it is the only one, which then takes no memory of its own.
    first: Option<Effect>,
    rest: VecDeque<Effect>,
    /// The new time of the next tick, which is earlier than before.
    pub wake: Option<Instant>,
}

impl FromIterator<Effect> for Work {
    fn from_iter<I: IntoIterator<Item = Effect>>(effects: I) -> Self {
        let mut work = Self::default();
        for effect in effects {
            work.push(effect);
        }
        work
    }
}

impl IntoIterator for Work {
    type Item = Effect;
    type IntoIter = Chain<option::IntoIter<Effect>, vec_deque::IntoIter<Effect>>;

    fn into_iter(self) -> Self::IntoIter {
        self.first.into_iter().chain(self.rest)
    }
}

impl Work {
    pub fn is_empty(&self) -> bool {
        self.has_no_effects() && self.wake.is_none()
    }

    /// Returns the handlers that are to be run.
    pub fn runs(&self) -> impl Iterator<Item = &Run> {
        self.first.iter().chain(&self.rest).filter_map(|effect| match effect {
            Effect::Run(run) => Some(&**run),
            _ => None,
        })
    }

    /// Returns the handlers that are to be run, for changes of their inputs.
    pub fn runs_mut(&mut self) -> impl Iterator<Item = &mut Run> {
        self.first.iter_mut().chain(&mut self.rest).filter_map(|effect| match effect {
            Effect::Run(run) => Some(&mut **run),
            _ => None,
        })
    }

    /// Takes out the events for the log for which `keeps` returns `false`.
    pub fn retain_reports(&mut self, mut keeps: impl FnMut(&LogEvent) -> bool) {
        let mut stays = |effect: &Effect| !matches!(effect, Effect::Log(event) if !keeps(event));
        self.first = self.first.take().filter(&mut stays);
        self.rest.retain(stays);
    }

    /// Takes what comes first.
    pub fn pop(&mut self) -> Option<Effect> {
        self.first.take().or_else(|| self.rest.pop_front())
    }

    /// Adds the work of another input.
    pub fn extend(&mut self, other: Self) {
        let wake = [self.wake, other.wake].into_iter().flatten().min();
        if self.has_no_effects() {
            *self = other;
        } else {
            for effect in other {
                self.push(effect);
            }
        }
        self.wake = wake;
    }

    pub(super) fn push(&mut self, effect: Effect) {
        let is_over = match effect {
            Effect::Cancel(run) => self.take_back(run),
            Effect::CancelHost(ticket) => self.take_request_back(ticket),
            _ => false,
        };
        if is_over {
            return;
        }
        match self.has_no_effects() {
            true => self.first = Some(effect),
            false => self.rest.push_back(effect),
        }
    }

    /// Takes back a handler that has not begun. Returns `false` if it has, and for a notification, which nobody takes back.
    fn take_back(&mut self, run: RunId) -> bool {
        self.remove(
            |effect| matches!(effect, Effect::Run(it) if it.id == run && !it.is_notification),
        )
    }

    fn take_request_back(&mut self, ticket: Ticket) -> bool {
        self.remove(|effect| matches!(effect, Effect::Host(it, _) if *it == ticket))
    }

    fn remove(&mut self, is_it: impl Fn(&Effect) -> bool) -> bool {
        if self.first.take_if(|effect| is_it(effect)).is_some() {
            return true;
        }
        let place = self.rest.iter().position(is_it);
        place.and_then(|at| self.rest.remove(at)).is_some()
    }

    fn has_no_effects(&self) -> bool {
        self.first.is_none() && self.rest.is_empty()
    }
}

/// The work of one input, and what is done without the lock.
#[derive(Debug)]
#[must_use = "what is not computed is never answered"]
pub struct EndpointStep {
    pub(super) work: Work,
    /// `None` for most inputs, so that a step is small.
    pub(super) unlocked: Option<Box<Unlocked>>,
}

/// Things to do once the lock is released.
#[derive(Debug, Default)]
pub(super) struct Unlocked {
    /// Computations that may take long.
    pub(super) computations: Vec<Computation>,
    /// Events that are written.
    pub(super) events: Vec<LogEvent>,
}

impl EndpointStep {
    pub(super) fn new(work: Work) -> Self {
        Self { work, unlocked: None }
    }

    /// Returns the work that is ready, and the rest, which may take long, if there is any.
    pub(crate) fn split(self) -> (Work, Option<Self>) {
        let Self { work, unlocked } = self;
        let rest = unlocked.filter(|unlocked| {
            debug_assert!(
                unlocked.events.is_empty(),
                "they were written when the lock was released"
            );
            !unlocked.computations.is_empty()
        });
        (work, rest.map(|rest| Self { work: Work::default(), unlocked: Some(rest) }))
    }

    /// Adds the step of another input.
    pub(super) fn extend(&mut self, other: Self) {
        self.work.extend(other.work);
        if let Some(other) = other.unlocked {
            let unlocked = self.unlocked();
            unlocked.computations.extend(other.computations);
            unlocked.events.extend(other.events);
        }
    }

    /// Runs the computations outside the lock; `handle` handles each result under it.
    #[inline]
    pub(super) fn finish(mut self, handle: impl FnMut(Box<Computed>) -> Self) -> Work {
        if self.unlocked.is_some() {
            self.compute(handle);
        }
        self.work
    }

    /// Returns what is done once the lock is released, for additions.
    pub(super) fn unlocked(&mut self) -> &mut Unlocked {
        self.unlocked.get_or_insert_default()
    }

    fn compute(&mut self, mut handle: impl FnMut(Box<Computed>) -> Self) {
        while let Some(unlocked) = self.unlocked.take() {
            debug_assert!(
                unlocked.events.is_empty(),
                "they were written when the lock was released"
            );
            for computation in unlocked.computations {
                self.extend(handle(computation.run()));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn the_earlier_of_two_ticks_is_kept() {
        let now = crate::clock::now();
        let later = now + Duration::from_secs(1);
        for (first, second, kept) in [
            (Some(now), Some(later), Some(now)),
            (Some(later), Some(now), Some(now)),
            (None, Some(later), Some(later)),
            (Some(later), None, Some(later)),
            (None, None, None),
        ] {
            let mut work = Work { wake: first, ..Work::default() };
            work.extend(Work { wake: second, ..Work::default() });
            assert_eq!(work.wake, kept);
        }
    }
}
