//! A store whose contents only the servers with the same keys can read.

use std::{
    fmt,
    sync::{
        Arc, PoisonError, RwLock,
        atomic::{AtomicU64, Ordering},
    },
};

use crate::{
    engine::{
        derive,
        key_ring::{KeyRing, NONCE},
    },
    replier::Replier,
    store::{
        StoreEngine, StoreEvent, StoreListener, StoreOperation, StoreReply, StoreSubscription,
    },
};

/// Seals every value, event and message before a store gets it, and opens it on the way back. What is sealed is bound to its key,
/// log or topic, and to the server that the keys are of.
pub(super) struct SealedStore {
    engine: Arc<dyn StoreEngine>,
    keys: Arc<RwLock<KeyRing>>,
    seed: [u8; 32],
    sealed: AtomicU64,
}

impl SealedStore {
    /// Seals what a store gets with these keys. `seed` is secret random bytes that nothing else has, neither another process.
    pub(super) fn new(engine: Arc<dyn StoreEngine>, keys: KeyRing, seed: [u8; 32]) -> Self {
        let keys = Arc::new(RwLock::new(keys));
        Self { engine, keys, seed, sealed: AtomicU64::new(0) }
    }

    /// Replaces the keys. The first seals from now on, and all of them open.
    pub(super) fn set_keys(&self, keys: &[Vec<u8>]) {
        let mut ring = self.keys.write().unwrap_or_else(PoisonError::into_inner);
        *ring = ring.with_keys(keys);
    }

    /// Subscribes as [`StoreEngine::subscribe`] does. `unreadable` is called for each message that can't be opened.
    pub(super) fn subscribe(
        &self,
        topics: Vec<String>,
        listener: StoreListener,
        unreadable: impl Fn() + Send + Sync + 'static,
    ) -> Option<StoreSubscription> {
        let keys = Arc::clone(&self.keys);
        let open = move |event| match event {
            StoreEvent::Message { topic, message } => {
                match ring(&keys).open(&of_topic(&topic), &message) {
                    Some(message) => listener(StoreEvent::Message { topic, message }),
                    None => unreadable(),
                }
            }
            StoreEvent::Lost => listener(StoreEvent::Lost),
        };
        self.engine.subscribe(topics, Arc::new(open))
    }

    fn seal(&self, place: &str, bytes: &[u8]) -> Option<Vec<u8>> {
        let number = self.sealed.fetch_add(1, Ordering::Relaxed);
        let mut nonce = [0; NONCE];
        let length = nonce.len();
        nonce.copy_from_slice(&derive(&self.seed, "nonce of a store", number)[..length]);
        ring(&self.keys).seal(place, &nonce, bytes)
    }

    /// Seals what an operation carries. Returns the place that its reply is bound to; `None` without a key.
    fn seal_operation(&self, operation: &mut StoreOperation) -> Option<String> {
        let (place, bytes) = match operation {
            StoreOperation::Put { key, value, .. } => (of_key(key), value),
            StoreOperation::Append { log, event, max_bytes, .. } => {
                // The limit is that of the events, without what sealing adds to one.
                *max_bytes = max_bytes.saturating_add(OVERHEAD);
                (of_log(log), event)
            }
            StoreOperation::Publish { topic, message } => (of_topic(topic), message),
            StoreOperation::Get { key } | StoreOperation::Take { key } => return Some(of_key(key)),
            StoreOperation::Read { log, .. } => return Some(of_log(log)),
            _ => return Some(String::new()),
        };
        *bytes = self.seal(&place, bytes)?;
        Some(place)
    }
}

/// The bytes by which sealing makes a text longer.
const OVERHEAD: u64 = NONCE as u64 + 16;

impl StoreEngine for SealedStore {
    fn run(&self, mut operation: StoreOperation, reply: Replier<StoreReply>) {
        let Some(place) = self.seal_operation(&mut operation) else {
            return reply.send(StoreReply::Failed("there is no key to seal with".into()));
        };
        let keys = ring(&self.keys);
        let open = move |done| reply.send(open_reply(&keys, &place, done));
        self.engine.run(operation, Replier::new(open));
    }
}

impl fmt::Debug for SealedStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SealedStore")
    }
}

fn ring(keys: &RwLock<KeyRing>) -> KeyRing {
    keys.read().unwrap_or_else(PoisonError::into_inner).clone()
}

fn open_reply(keys: &KeyRing, place: &str, reply: StoreReply) -> StoreReply {
    let open = |sealed: &[u8]| keys.open(place, sealed);
    let opened = match reply {
        StoreReply::Found(Some((sealed, version))) => {
            open(&sealed).map(|value| StoreReply::Found(Some((value, version))))
        }
        StoreReply::Taken(Some(sealed)) => {
            open(&sealed).map(|value| StoreReply::Taken(Some(value)))
        }
        StoreReply::Events(events) => events
            .iter()
            .map(|(number, event)| Some((*number, open(event)?)))
            .collect::<Option<_>>()
            .map(StoreReply::Events),
        other => Some(other),
    };
    opened.unwrap_or_else(|| {
        StoreReply::Failed(
            "a value of the store is sealed with a key that this server does not have, or was changed: all \
             servers with one store need the same keys"
                .into(),
        )
    })
}

fn of_key(key: &str) -> String {
    format!("value {key}")
}

fn of_log(log: &str) -> String {
    format!("log {log}")
}

fn of_topic(topic: &str) -> String {
    format!("topic {topic}")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test that fails here says where")]

    use std::{
        sync::{Mutex, mpsc},
        time::{Duration, Instant},
    };

    use super::*;
    use crate::store::{Expect, memory::Memory};

    const TTL: Duration = Duration::from_secs(10);

    /// A store that delivers each message at once, and shows what it was given.
    struct Plain {
        memory: Mutex<Memory>,
        now: Instant,
        listener: Mutex<Option<StoreListener>>,
        given: Mutex<Vec<StoreOperation>>,
    }

    impl StoreEngine for Plain {
        fn run(&self, operation: StoreOperation, reply: Replier<StoreReply>) {
            self.given.lock().unwrap().push(operation.clone());
            if let StoreOperation::Publish { topic, message } = operation {
                if let Some(listener) = &*self.listener.lock().unwrap() {
                    listener(StoreEvent::Message { topic, message });
                }
                return reply.send(StoreReply::Published);
            }
            let done = self.memory.lock().unwrap().handle(self.now, operation);
            reply.send(done);
        }

        fn subscribe(&self, _: Vec<String>, listener: StoreListener) -> Option<StoreSubscription> {
            *self.listener.lock().unwrap() = Some(listener);
            Some(StoreSubscription::new(()))
        }
    }

    fn plain() -> Arc<Plain> {
        Arc::new(Plain {
            memory: Mutex::default(),
            now: Instant::now(),
            listener: Mutex::default(),
            given: Mutex::default(),
        })
    }

    fn sealed(plain: &Arc<Plain>, keys: &[&str], server: &str) -> SealedStore {
        let keys = KeyRing::new(keys).of_server(server);
        SealedStore::new(Arc::clone(plain) as Arc<_>, keys, [7; 32])
    }

    fn run(store: &SealedStore, operation: StoreOperation) -> StoreReply {
        let (sender, reply) = mpsc::channel();
        store.run(operation, Replier::new(move |done| sender.send(done).unwrap()));
        reply.recv().unwrap()
    }

    fn put(key: &str) -> StoreOperation {
        let (key, value) = (key.into(), b"a secret".into());
        StoreOperation::Put { key, value, ttl: TTL, expect: Expect::Any }
    }

    fn append(log: &str) -> StoreOperation {
        let (log, event) = (log.into(), b"a secret".into());
        StoreOperation::Append { log, event, max_events: 9, max_bytes: 999, ttl: TTL }
    }

    fn get(key: &str) -> StoreOperation {
        StoreOperation::Get { key: key.into() }
    }

    fn read(log: &str) -> StoreOperation {
        StoreOperation::Read { log: log.into(), after: 0 }
    }

    #[test]
    fn a_store_sees_nothing_that_it_was_given() {
        let plain = plain();
        let store = sealed(&plain, &["key"], "shelf");
        for operation in [put("a"), put("a"), append("a")] {
            run(&store, operation);
        }
        let secret = || b"a secret".to_vec();
        assert_eq!(run(&store, get("a")), StoreReply::Found(Some((secret(), 2))));
        assert_eq!(run(&store, read("a")), StoreReply::Events(vec![(1, secret())]));
        let take = StoreOperation::Take { key: "a".into() };
        assert_eq!(run(&store, take), StoreReply::Taken(Some(secret())));
        let seen = Arc::new(Mutex::new(Vec::new()));
        let events = Arc::clone(&seen);
        let listener = Arc::new(move |event| events.lock().unwrap().push(event));
        let subscription = store.subscribe(vec!["a".into()], listener, || panic!("it has the key"));
        assert!(subscription.is_some());
        let publish = StoreOperation::Publish { topic: "a".into(), message: secret() };
        assert_eq!(run(&store, publish), StoreReply::Published);
        let message = StoreEvent::Message { topic: "a".into(), message: secret() };
        assert_eq!(*seen.lock().unwrap(), [message]);
        let given = plain.given.lock().unwrap();
        let sent: Vec<_> = given
            .iter()
            .filter_map(|operation| match operation {
                StoreOperation::Put { value, .. } => Some(value),
                StoreOperation::Append { event, .. } => Some(event),
                StoreOperation::Publish { message, .. } => Some(message),
                _ => None,
            })
            .collect();
        assert_eq!(sent.len(), 4);
        for (place, bytes) in sent.iter().enumerate() {
            assert!(!bytes.windows(6).any(|part| part == b"secret"));
            assert!(
                !sent[..place].contains(bytes),
                "the same text is sealed differently each time"
            );
        }
    }

    #[test]
    fn what_is_sealed_for_another_place_or_with_another_key_is_a_failure_that_says_so() {
        let plain = plain();
        let store = sealed(&plain, &["key"], "shelf");
        run(&store, put("a"));
        run(&store, append("a"));
        let moved = {
            let given = plain.given.lock().unwrap();
            let StoreOperation::Put { value, .. } = &given[0] else { panic!("{:?}", given[0]) };
            let (key, value) = ("b".to_owned(), value.clone());
            StoreOperation::Put { key, value, ttl: TTL, expect: Expect::Any }
        };
        plain.memory.lock().unwrap().handle(plain.now, moved);
        let rotated = sealed(&plain, &["new", "key"], "shelf");
        assert!(matches!(run(&rotated, get("a")), StoreReply::Found(Some(_))));
        let failures = [
            run(&store, get("b")),
            run(&sealed(&plain, &["other"], "shelf"), get("a")),
            run(&sealed(&plain, &["other"], "shelf"), read("a")),
            run(&sealed(&plain, &["key"], "another server"), get("a")),
        ];
        for failure in failures {
            let StoreReply::Failed(reason) = failure else { panic!("{failure:?}") };
            assert!(reason.contains("a key that this server does not have"), "{reason}");
        }
        let seen = Arc::new(AtomicU64::new(0));
        let count = Arc::clone(&seen);
        let unreadable = move || {
            count.fetch_add(1, Ordering::Relaxed);
        };
        let listener = Arc::new(|event| panic!("{event:?}"));
        sealed(&plain, &["other"], "shelf").subscribe(vec!["a".into()], listener, unreadable);
        let publish = StoreOperation::Publish { topic: "a".into(), message: b"1".into() };
        run(&store, publish);
        assert_eq!(seen.load(Ordering::Relaxed), 1);
    }
}
