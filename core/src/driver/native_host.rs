//! The handlers of an endpoint that are written in Rust although its host is not: another host runs them.

use std::sync::Arc;

use rustc_hash::FxHashSet;

use crate::{
    engine::{Effect, RunId},
    router::Handler,
};

/// Runs the handlers of an endpoint that its own host can't run.
pub(crate) trait NativeHost: Send + Sync {
    /// Returns whether it runs this handler.
    fn owns(&self, handler: &Handler) -> bool;

    /// Takes work for such a handler, in its order. Called under the lock of the endpoint, so it only stores it.
    fn take(&self, effect: Effect);
}

/// The first number of a question that a native handler asks within a run of the other host, which numbers its own from 0.
pub(crate) const FIRST_NATIVE_ASK: u64 = 1 << 32;

/// The native host of an endpoint, and its runs.
#[derive(Default)]
pub(super) struct NativeRuns {
    host: Option<Arc<dyn NativeHost>>,
    runs: FxHashSet<RunId>,
    /// Runs of the other host within which a native handler runs.
    shared: FxHashSet<RunId>,
}

impl NativeRuns {
    pub(super) fn set_host(&mut self, host: Option<Arc<dyn NativeHost>>) {
        self.host = host;
    }

    /// Has both hosts get the work for this run, or no longer.
    pub(super) fn share(&mut self, run: RunId, is_shared: bool) {
        match is_shared {
            true => self.shared.insert(run),
            false => self.shared.remove(&run),
        };
    }

    /// Gives an effect to the native host if it is for one of its handlers; returns it if it is for the other host.
    #[inline]
    pub(super) fn take(&mut self, effect: Effect) -> Option<Effect> {
        match self.host.clone() {
            None => Some(effect),
            Some(host) => self.take_for(&*host, effect),
        }
    }

    fn take_for(&mut self, host: &dyn NativeHost, effect: Effect) -> Option<Effect> {
        let is_native = match &effect {
            Effect::Run(run) if host.owns(&run.handler) => {
                self.runs.insert(run.id);
                true
            }
            Effect::Resume { run, context } if self.shared.contains(run) => {
                host.take(Effect::Resume { run: *run, context: context.clone() });
                false
            }
            Effect::Answered { run, ask, .. } if self.shared.contains(run) => {
                ask.0 >= FIRST_NATIVE_ASK
            }
            Effect::Resume { run, .. } | Effect::Answered { run, .. } => self.runs.contains(run),
            Effect::Cancel(run) => {
                if self.shared.remove(run) {
                    host.take(Effect::Cancel(*run));
                }
                self.runs.remove(run)
            }
            // Only native handlers look after resources of other servers.
            Effect::Subscribed { .. } => true,
            Effect::Run(_)
            | Effect::Host(..)
            | Effect::CancelHost(_)
            | Effect::Span(_)
            | Effect::Log(_) => false,
        };
        if !is_native {
            return Some(effect);
        }
        host.take(effect);
        None
    }

    /// Forgets a run that has ended.
    #[inline]
    pub(super) fn ended(&mut self, run: RunId) {
        if self.host.is_some() {
            self.runs.remove(&run);
            self.shared.remove(&run);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;
    use crate::{
        engine::Run,
        session::{
            asking::AskId,
            server::{CallContext, ClientIdentity},
        },
        wire::Wire,
    };

    /// A host of handlers that are numbers, which keeps what it is given.
    #[derive(Default)]
    struct Numbers(Mutex<Vec<Effect>>);

    impl NativeHost for Numbers {
        fn owns(&self, handler: &Handler) -> bool {
            handler.is::<u8>()
        }

        fn take(&self, effect: Effect) {
            self.0.lock().unwrap().push(effect);
        }
    }

    fn context() -> CallContext {
        let wire = Wire::spelled(crate::protocol::Revision::LATEST, None);
        CallContext::new(wire, Arc::new(ClientIdentity::default()), None)
    }

    fn run(id: u64, handler: Handler) -> Effect {
        let (id, input, context) = (RunId(id), "{}".into(), context());
        let (is_notification, middleware_frame) = (false, None);
        Effect::Run(Box::new(Run {
            id,
            handler,
            input,
            context,
            is_notification,
            middleware_frame,
            subject: None,
        }))
    }

    fn answered(run: u64, ask: u64) -> Effect {
        let outcome = Box::new(Ok(crate::protocol::json::raw("{}".into())));
        Effect::Answered { run: RunId(run), ask: AskId(ask), outcome }
    }

    fn resumed(run: u64) -> Effect {
        Effect::Resume { run: RunId(run), context: Box::new(context()) }
    }

    #[test]
    fn each_host_gets_the_work_for_its_own_handlers() {
        let host = Arc::new(Numbers::default());
        let mut runs = NativeRuns::default();
        runs.set_host(Some(Arc::clone(&host) as _));
        assert!(runs.take(run(1, Arc::new("text"))).is_some());
        assert!(runs.take(run(2, Arc::new(7_u8))).is_none());
        for (id, is_native) in [(1, false), (2, true)] {
            for effect in [resumed(id), answered(id, 0), Effect::Cancel(RunId(id))] {
                assert_eq!(runs.take(effect).is_none(), is_native, "{id}");
            }
        }
        assert_eq!(host.0.lock().unwrap().len(), 4);
        assert!(runs.take(answered(2, 0)).is_some(), "a run that was cancelled is nobody's");
    }

    #[test]
    fn within_a_run_of_the_other_host_each_gets_its_own_answers_and_both_the_end() {
        let host = Arc::new(Numbers::default());
        let mut runs = NativeRuns::default();
        runs.set_host(Some(Arc::clone(&host) as _));
        assert!(runs.take(run(1, Arc::new("text"))).is_some());
        runs.share(RunId(1), true);
        assert!(runs.take(answered(1, 0)).is_some());
        assert!(runs.take(answered(1, FIRST_NATIVE_ASK)).is_none());
        assert!(runs.take(resumed(1)).is_some());
        assert!(runs.take(Effect::Cancel(RunId(1))).is_some());
        assert_eq!(host.0.lock().unwrap().len(), 3, "an answer, the new request, and the end");
    }
}
