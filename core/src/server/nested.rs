//! Native handlers that run within runs of another host, such as the reads of resources by a handler in Python.

use std::sync::Mutex;

use rustc_hash::FxHashMap;

use super::{Context, run::lock};
use crate::{driver::FIRST_NATIVE_ASK, engine::RunId, session::asking::AskId};

/// The numbers that the questions of one native handler may have.
const QUESTIONS: u64 = 1 << 20;

/// The contexts of native handlers, by the run within which they run.
#[derive(Default)]
pub(super) struct Nested(Mutex<State>);

#[derive(Default)]
struct State {
    contexts: FxHashMap<RunId, Vec<Context>>,
    /// The number of handlers that were added.
    added: u64,
}

impl Nested {
    /// Adds a handler, whose questions get numbers of their own. Calls `first` if no other one of the run is there, before another
    /// one is removed.
    pub(super) fn add(&self, run: RunId, context: &Context, first: impl FnOnce()) {
        let mut state = lock(&self.0);
        context.ask_from(FIRST_NATIVE_ASK + state.added * QUESTIONS);
        state.added += 1;
        let contexts = state.contexts.entry(run).or_default();
        contexts.push(context.clone());
        if contexts.len() == 1 {
            first();
        }
    }

    /// Removes a handler that has ended. Calls `last` if no other one of the run is there, before another one is added.
    pub(super) fn remove(&self, run: RunId, context: &Context, last: impl FnOnce()) {
        let mut state = lock(&self.0);
        let Some(contexts) = state.contexts.get_mut(&run) else { return };
        contexts.retain(|other| !other.is_same(context));
        if contexts.is_empty() {
            state.contexts.remove(&run);
            last();
        }
    }

    /// Returns the handlers of a run.
    pub(super) fn of_run(&self, run: RunId) -> Vec<Context> {
        lock(&self.0).contexts.get(&run).cloned().unwrap_or_default()
    }

    /// Returns the handler of a run that asked this question.
    pub(super) fn asker(&self, run: RunId, ask: AskId) -> Option<Context> {
        let state = lock(&self.0);
        let contexts = state.contexts.get(&run)?;
        contexts.iter().find(|context| context.waits_for(ask)).cloned()
    }

    /// Removes the handlers of a run, or of all runs.
    pub(super) fn take(&self, run: Option<RunId>) -> Vec<Context> {
        let mut state = lock(&self.0);
        match run {
            Some(run) => state.contexts.remove(&run).unwrap_or_default(),
            None => state.contexts.drain().flat_map(|(_, contexts)| contexts).collect(),
        }
    }
}
