//! A store whose operations are measured. Every use of a store by a server passes through here.

use std::sync::Arc;

use crate::{
    clock,
    metrics::Metrics,
    replier::Replier,
    store::{StoreEngine, StoreOperation, StoreReply},
};

/// A store with the metrics of its server.
pub(crate) struct MeasuredStore<'a> {
    store: &'a Arc<dyn StoreEngine>,
    metrics: &'a Arc<Metrics>,
}

impl<'a> MeasuredStore<'a> {
    pub(crate) fn new(store: &'a Arc<dyn StoreEngine>, metrics: &'a Arc<Metrics>) -> Self {
        Self { store, metrics }
    }
}

impl StoreEngine for MeasuredStore<'_> {
    fn run(&self, operation: StoreOperation, reply: Replier<StoreReply>) {
        if !self.metrics.is_on() {
            return self.store.run(operation, reply);
        }
        let (name, begun, metrics) = (operation.name(), clock::now(), Arc::clone(self.metrics));
        let measured = move |answer: StoreReply| {
            metrics.stored(name, outcome(&answer), clock::since(begun));
            reply.send(answer);
        };
        self.store.run(operation, Replier::new(measured));
    }
}

fn outcome(reply: &StoreReply) -> &'static str {
    match reply {
        StoreReply::Conflict | StoreReply::Held => "conflict",
        StoreReply::Failed(_) => "error",
        _ => "ok",
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;

    /// A store that keeps what it is asked.
    #[derive(Default)]
    struct Slow(Mutex<Vec<Replier<StoreReply>>>);

    impl StoreEngine for Slow {
        fn run(&self, _: StoreOperation, reply: Replier<StoreReply>) {
            self.0.lock().expect("one thread").push(reply);
        }
    }

    #[test]
    fn operations_are_counted_by_name_and_outcome_when_the_reply_comes() {
        let slow = Arc::new(Slow::default());
        let (store, metrics): (Arc<dyn StoreEngine>, _) = (slow.clone(), Arc::default());
        let store = MeasuredStore::new(&store, &metrics);
        let get = || StoreOperation::Get { key: "a".into() };
        store.run(get(), Replier::new(|_| ()));
        metrics.turn_on();
        let answers = Arc::new(Mutex::new(Vec::new()));
        for _ in 0..3 {
            let answers = Arc::clone(&answers);
            let keep = move |answer| answers.lock().expect("one thread").push(answer);
            store.run(get(), Replier::new(keep));
        }
        let waiting = std::mem::take(&mut *slow.0.lock().expect("one thread"));
        let mut waiting = waiting.into_iter();
        let [unmeasured, found, conflict, lost] = [(); 4].map(|()| waiting.next().expect("four"));
        unmeasured.send(StoreReply::Found(None));
        let count = || {
            let text = crate::metrics::text(&metrics.snapshot());
            let counts = text.lines().filter(|line| line.contains("store_duration_seconds_count"));
            counts.map(str::to_owned).collect::<Vec<_>>()
        };
        assert_eq!(count(), [""; 0]);
        found.send(StoreReply::Found(None));
        conflict.send(StoreReply::Conflict);
        // A store that loses an operation answers that it has failed.
        drop(lost);
        assert_eq!(
            count(),
            ["conflict", "error", "ok"].map(|outcome| format!(
                "gudgeon_store_duration_seconds_count{{operation=\"get\",outcome=\"{outcome}\"}} 1"
            ))
        );
        assert_eq!(answers.lock().expect("one thread").len(), 3);
    }
}
