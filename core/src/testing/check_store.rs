//! The checks of a store: here those of values, and the others in [`checks`].

mod checks;

use std::{sync::Arc, time::Duration};

use tokio::{
    sync::oneshot,
    time::{sleep, timeout},
};

use self::checks::Checks;
use crate::{
    clock,
    error::Error,
    replier::Replier,
    store::{Expect, StoreEngine, StoreOperation, StoreReply},
    stores::{OwnStore, Store},
};

const LONG: Duration = Duration::from_secs(600);
const SHORT: Duration = Duration::from_secs(1);
/// The time limit for an operation, and for the end of a value whose `ttl` is over.
const LIMIT: Duration = Duration::from_secs(15);
const PAUSE: Duration = Duration::from_millis(100);
/// The number of operations of a race.
const RACERS: usize = 8;

const ALL_BYTES: &[u8] = &{
    let mut bytes = [0; 256];
    let mut at = 0;
    while at < 256 {
        #[expect(clippy::cast_possible_truncation, reason = "it is below 256")]
        let byte = at as u8;
        bytes[at] = byte;
        at += 1;
    }
    bytes
};

/// A step: the rule that it checks, the key, the operation, and the reply that the rule demands.
type StoreCheckStep = (&'static str, &'static str, Act, Want);

#[derive(Clone, Copy)]
enum Act {
    Get,
    /// Reads until the value has ended.
    Wait,
    Take,
    Put(&'static [u8], Duration, If),
    /// Performs an operation several times at once.
    Race(&'static Act),
}

/// The expectation of a `put`.
#[derive(Clone, Copy)]
enum If {
    Any,
    Absent,
    /// The version of the key's n-th value in this run; a version that no value had if there are fewer.
    Version(usize),
}

#[derive(Clone, Copy)]
enum Want {
    Nothing,
    /// From `get`: with the version of the last `put`.
    Value(&'static [u8]),
    /// A version that is greater than that of each former value of the key.
    Stored,
    Conflict,
    /// One operation of a race succeeds, and the others find that it did.
    Winner,
}

use self::{Act::*, If::*, Want::*};

const STEPS: &[StoreCheckStep] = &[
    ("get of a key without a value must return nothing", "a", Get, Nothing),
    ("take of a key without a value must return nothing", "a", Take, Nothing),
    (
        "put with a version must be a conflict if the key has no value",
        "a",
        Put(b"0", LONG, Version(9)),
        Conflict,
    ),
    (
        "put with expect absent must store a value of any bytes if the key has none",
        "a",
        Put(ALL_BYTES, LONG, Absent),
        Stored,
    ),
    ("get must return the bytes and the version of put", "a", Get, Value(ALL_BYTES)),
    (
        "put with expect absent must be a conflict if the key has a value",
        "a",
        Put(b"1", LONG, Absent),
        Conflict,
    ),
    ("put that is a conflict must not change the value", "a", Get, Value(ALL_BYTES)),
    (
        "put with expect any must replace a value, also by an empty one",
        "a",
        Put(b"", LONG, Any),
        Stored,
    ),
    ("get must return an empty value, with its version", "a", Get, Value(b"")),
    (
        "put with the version of a former value must be a conflict",
        "a",
        Put(b"2", LONG, Version(0)),
        Conflict,
    ),
    ("put with the version of the value must replace it", "a", Put(b"3", LONG, Version(1)), Stored),
    ("get must return the value that was put last, with its version", "a", Get, Value(b"3")),
    ("keys that begin in the same way must be independent", "a:b/~%", Get, Nothing),
    ("take must return the value", "a", Take, Value(b"3")),
    ("take must remove the value", "a", Get, Nothing),
    ("take must return a value once", "a", Take, Nothing),
    (
        "put with the version of a value that was taken must be a conflict",
        "a",
        Put(b"4", LONG, Version(2)),
        Conflict,
    ),
    (
        "a value must have a greater version than one that was taken",
        "a",
        Put(b"5", LONG, Absent),
        Stored,
    ),
    ("take must return the value", "a", Take, Value(b"5")),
    ("put must store a value for a second", "short", Put(b"1", SHORT, Absent), Stored),
    ("put must store a value for ten minutes", "long", Put(b"1", LONG, Absent), Stored),
    ("put must store a value for a second", "renewed", Put(b"1", SHORT, Absent), Stored),
    (
        "put with expect any must replace a value and its ttl",
        "renewed",
        Put(b"2", LONG, Any),
        Stored,
    ),
    ("a value must end with its ttl", "short", Wait, Nothing),
    ("take of a value that has ended must return nothing", "short", Take, Nothing),
    (
        "put with expect absent must store a value if the former one has ended",
        "short",
        Put(b"2", LONG, Absent),
        Stored,
    ),
    ("take must return the value", "short", Take, Value(b"2")),
    ("a value must not end before its ttl", "long", Take, Value(b"1")),
    ("a value must not end with the ttl of the one that it replaced", "renewed", Take, Value(b"2")),
    (
        "one of several put with expect absent must store its value",
        "race",
        Race(&Put(b"1", LONG, Absent)),
        Winner,
    ),
    (
        "one of several put with the version of the value must replace it",
        "race",
        Race(&Put(b"2", LONG, Version(0))),
        Winner,
    ),
    ("one of several take must return the value", "race", Race(&Take), Winner),
];

/// Checks that a store of the program's own does what servers rely on: its replies, versions, the ends of values, logs and
/// leases, one winner among concurrent operations, and messages if it carries any. It takes some seconds, may run beside the store's other users, and leaves
/// nothing behind for longer than a second. Errors with the first rule that the store does not keep.
///
/// ```
/// use std::sync::Arc;
///
/// use gudgeon::{server::MemoryStore, testing::check_store};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), gudgeon::Error> {
/// check_store(Arc::new(MemoryStore::default())).await?;
/// # Ok(())
/// # }
/// ```
pub async fn check_store(store: Arc<dyn Store>) -> Result<(), Error> {
    check_engine(Arc::new(OwnStore(store))).await
}

/// Checks the store of a host as [`check_store`] does.
pub async fn check_engine(store: Arc<dyn StoreEngine>) -> Result<(), Error> {
    check_within(&*store, LIMIT).await
}

async fn check_within(store: &dyn StoreEngine, limit: Duration) -> Result<(), Error> {
    let mut random = [0; 8];
    getrandom::fill(&mut random).map_err(|error| Error::misuse(error.to_string()))?;
    let prefix = format!("gudgeon:check:{:016x}:", u64::from_be_bytes(random));
    // The versions of the values that each key has had.
    let mut versions: Vec<(&str, Vec<u64>)> = Vec::new();
    let begun = clock::now();
    for &(rule, key, act, want) in STEPS {
        if !versions.iter().any(|(name, _)| *name == key) {
            versions.push((key, Vec::new()));
        }
        let Some((_, known)) = versions.iter_mut().find(|(name, _)| *name == key) else { continue };
        let operation = act.operation(format!("{prefix}{key}"), known);
        let replies = loop {
            let replies = run(store, &operation, act.count(), limit).await;
            let waits = matches!((act, &replies[..]), (Wait, [StoreReply::Found(Some(_))]));
            if !waits || clock::since(begun) > limit {
                break replies;
            }
            sleep(PAUSE).await;
        };
        if !want.is_met(&replies, known) {
            let message =
                format!("check_store: {rule}; {}() replied {replies:?}", operation.name());
            return Err(Error::misuse(message));
        }
        let stored = replies.iter().filter_map(|reply| match reply {
            StoreReply::Stored(version) => Some(*version),
            _ => None,
        });
        known.extend(stored);
    }
    let checks = Checks { store, prefix: &prefix, limit };
    checks.delete().await?;
    checks.logs().await?;
    checks.leases().await?;
    checks.messages().await
}

/// Carries out an operation several times at once.
async fn run(
    store: &dyn StoreEngine,
    operation: &StoreOperation,
    count: usize,
    limit: Duration,
) -> Vec<StoreReply> {
    let begin = |_| {
        let (sender, reply) = oneshot::channel();
        store.run(operation.clone(), Replier::new(move |answer| drop(sender.send(answer))));
        reply
    };
    let waiting: Vec<_> = (0..count).map(begin).collect();
    let mut replies = Vec::new();
    for reply in waiting {
        replies.push(match timeout(limit, reply).await {
            Ok(Ok(reply)) => reply,
            _ => StoreReply::Failed(format!("no reply within {limit:?}")),
        });
    }
    replies
}

impl Act {
    fn operation(self, key: String, versions: &[u64]) -> StoreOperation {
        match self {
            Get | Wait => StoreOperation::Get { key },
            Take => StoreOperation::Take { key },
            Put(value, ttl, expect) => {
                let expect = match expect {
                    Any => Expect::Any,
                    Absent => Expect::Absent,
                    Version(number) => Expect::Version(versions.get(number).copied().unwrap_or(7)),
                };
                StoreOperation::Put { key, value: value.into(), ttl, expect }
            }
            Race(act) => act.operation(key, versions),
        }
    }

    fn count(self) -> usize {
        match self {
            Race(_) => RACERS,
            _ => 1,
        }
    }
}

impl Want {
    fn is_met(self, replies: &[StoreReply], versions: &[u64]) -> bool {
        let is_new = |version: &u64| versions.iter().all(|former| version > former);
        match (self, replies) {
            (Nothing, [StoreReply::Found(None) | StoreReply::Taken(None)])
            | (Conflict, [StoreReply::Conflict]) => true,
            (Value(value), [StoreReply::Taken(Some(taken))]) => taken == value,
            (Value(value), [StoreReply::Found(Some((found, version)))]) => {
                found == value && versions.last() == Some(version)
            }
            (Stored, [StoreReply::Stored(version)]) => is_new(version),
            (Winner, replies) => {
                let won = |reply: &&StoreReply| match reply {
                    StoreReply::Stored(version) => is_new(version),
                    StoreReply::Taken(taken) => taken.is_some(),
                    _ => false,
                };
                let lost = |reply: &&StoreReply| {
                    matches!(reply, StoreReply::Conflict | StoreReply::Taken(None))
                };
                replies.iter().filter(won).count() == 1
                    && replies.iter().filter(lost).count() == RACERS - 1
            }
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test that fails here says where")]

    use std::sync::Mutex;

    use super::*;
    use crate::{
        store::{BoxFuture, StoreEvent, StoreListener, StoreSubscription, memory::Memory},
        stores::MemoryStore,
    };

    /// A store in memory whose operations and replies are changed.
    struct Changed<F>(Mutex<Memory>, F);

    impl<F> StoreEngine for Changed<F>
    where
        F: Fn(&mut Memory, StoreOperation) -> StoreReply + Send + Sync,
    {
        fn run(&self, operation: StoreOperation, reply: Replier<StoreReply>) {
            reply.send(self.1(&mut self.0.lock().unwrap(), operation));
        }
    }

    async fn check(
        change: impl Fn(&mut Memory, StoreOperation) -> StoreReply + Send + Sync + 'static,
    ) -> String {
        let checked = check_engine(Arc::new(Changed(Mutex::default(), change))).await;
        checked.map_or_else(|error| error.to_string(), |()| String::new())
    }

    fn handle(memory: &mut Memory, operation: StoreOperation) -> StoreReply {
        memory.handle(clock::now(), operation)
    }

    #[tokio::test(start_paused = true)]
    async fn a_store_that_keeps_the_rules_passes() {
        assert_eq!(check(handle).await, "");
        check_store(Arc::new(MemoryStore::default())).await.unwrap();
    }

    /// A store of a program with the methods that every store needs.
    struct Basic(MemoryStore);

    impl Store for Basic {
        fn get(&self, key: String) -> BoxFuture<Option<(Vec<u8>, u64)>> {
            self.0.get(key)
        }

        fn put(
            &self,
            key: String,
            value: Vec<u8>,
            ttl: Duration,
            expect: Expect,
        ) -> BoxFuture<Option<u64>> {
            self.0.put(key, value, ttl, expect)
        }

        fn take(&self, key: String) -> BoxFuture<Option<Vec<u8>>> {
            self.0.take(key)
        }
    }

    #[tokio::test(start_paused = true)]
    async fn what_a_store_lacks_is_made_of_three_operations() {
        let store: Arc<dyn Store> = Arc::new(Basic(MemoryStore::default()));
        check_store(Arc::clone(&store)).await.unwrap();
        let engine = OwnStore(store);
        assert!(engine.subscribe(vec!["a".into()], Arc::new(|_| ())).is_none());
        let (topic, message) = ("a".to_owned(), Vec::new());
        let publish = StoreOperation::Publish { topic, message };
        let replies = run(&engine, &publish, 1, LIMIT).await;
        assert_eq!(replies, [StoreReply::Failed("this store carries no messages".into())]);
    }

    /// A store in memory whose messages arrive in another way.
    struct Messages(MemoryStore, fn(StoreListener, StoreEvent));

    impl StoreEngine for Messages {
        fn run(&self, operation: StoreOperation, reply: Replier<StoreReply>) {
            self.0.run(operation, reply);
        }

        fn subscribe(
            &self,
            topics: Vec<String>,
            listener: StoreListener,
        ) -> Option<StoreSubscription> {
            let change = self.1;
            let changed = Arc::new(move |event| change(listener.clone(), event));
            StoreEngine::subscribe(&self.0, topics, changed)
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_store_that_loses_or_repeats_messages_is_found() {
        for (change, rule) in [
            (
                (|listener, event| {
                    if event != StoreEvent::Lost {
                        listener(event);
                    }
                }) as fn(StoreListener, StoreEvent),
                "subscribe must first report that it is connected, and that messages may be lost",
            ),
            (
                |listener, event| {
                    listener(event.clone());
                    listener(event);
                },
                "a listener must get the messages of a topic once and in their order",
            ),
            (
                |listener, event| {
                    if !matches!(&event, StoreEvent::Message { message, .. } if message[0] == 7) {
                        listener(event);
                    }
                },
                "a listener must get every message while it is connected",
            ),
        ] {
            let store = Messages(MemoryStore::default(), change);
            let found = check_engine(Arc::new(store)).await.unwrap_err().to_string();
            assert!(found.contains(rule), "{found}, not {rule}");
        }
    }

    #[tokio::test(start_paused = true)]
    #[allow(clippy::too_many_lines, reason = "it is a table of rules")]
    async fn a_store_that_does_not_keep_a_rule_is_found() {
        let put = |memory: &mut Memory, mut operation, change: fn(&mut Duration, &mut Expect)| {
            if let StoreOperation::Put { ttl, expect, .. } = &mut operation {
                change(ttl, expect);
            }
            handle(memory, operation)
        };
        let found = [
            check(|_, _| StoreReply::Failed("it is away".into())).await,
            check(move |memory, operation| {
                put(memory, operation, |_, expect| *expect = Expect::Any)
            })
            .await,
            check(move |memory, operation| {
                put(memory, operation, |_, expect| {
                    if matches!(expect, Expect::Version(_)) {
                        *expect = Expect::Any;
                    }
                })
            })
            .await,
            check(|memory, operation| match operation {
                StoreOperation::Take { key } => match handle(memory, StoreOperation::Get { key }) {
                    StoreReply::Found(found) => StoreReply::Taken(found.map(|(value, _)| value)),
                    other => other,
                },
                other => handle(memory, other),
            })
            .await,
            check(|memory, operation| match handle(memory, operation) {
                StoreReply::Stored(_) => StoreReply::Stored(1),
                StoreReply::Found(found) => StoreReply::Found(found.map(|(value, _)| (value, 1))),
                other => other,
            })
            .await,
            check(|memory, operation| match handle(memory, operation) {
                StoreReply::Stored(version) => StoreReply::Stored(1_000 - version),
                StoreReply::Found(found) => {
                    StoreReply::Found(found.map(|(value, version)| (value, 1_000 - version)))
                }
                other => other,
            })
            .await,
            check(|memory, operation| match handle(memory, operation) {
                StoreReply::Found(found) => {
                    StoreReply::Found(found.map(|(value, _)| (value.to_ascii_lowercase(), 1)))
                }
                other => other,
            })
            .await,
            check(move |memory, operation| {
                put(memory, operation, |ttl, _| *ttl = (*ttl).min(SHORT))
            })
            .await,
            check(|memory, operation| match operation {
                StoreOperation::Delete { .. } => StoreReply::Deleted,
                other => handle(memory, other),
            })
            .await,
            check(|memory, mut operation| {
                if let StoreOperation::Append { max_events, .. } = &mut operation {
                    *max_events = 100;
                }
                handle(memory, operation)
            })
            .await,
            check(|memory, operation| match handle(memory, operation) {
                StoreReply::Gone => StoreReply::Events(Vec::new()),
                other => other,
            })
            .await,
            check(|memory, mut operation| {
                if let StoreOperation::Lease { owner, .. } | StoreOperation::Renew { owner, .. } =
                    &mut operation
                {
                    "everybody".clone_into(owner);
                }
                handle(memory, operation)
            })
            .await,
            check(|memory, operation| match handle(memory, operation) {
                StoreReply::Leased(_) => StoreReply::Leased(1),
                other => other,
            })
            .await,
        ];
        for (found, rule) in found.iter().zip([
            "get of a key without a value must return nothing; get() replied [Failed(\"it is away\")]",
            "put with a version must be a conflict if the key has no value",
            "put with a version must be a conflict if the key has no value",
            "take must remove the value",
            "put with expect any must replace a value, also by an empty one",
            "put with expect any must replace a value, also by an empty one",
            "get must return the bytes and the version of put",
            "a value must not end before its ttl",
            "delete must remove a value, if there is one",
            "append must remove the oldest events above max_events, and read tell that it did",
            "read of an unknown log must return no events after 0, and miss some after others",
            "renew must be refused if the owner does not have the lease",
            "lease must return a token that is greater than each earlier one of the key",
        ]) {
            assert!(found.contains(rule), "{found}, not {rule}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_store_that_hangs_or_keeps_values_for_ever_is_found() {
        struct Hangs(Mutex<Vec<Replier<StoreReply>>>);
        impl StoreEngine for Hangs {
            fn run(&self, _: StoreOperation, reply: Replier<StoreReply>) {
                self.0.lock().unwrap().push(reply);
            }
        }
        let hangs = Hangs(Mutex::default());
        let found = check_within(&hangs, PAUSE).await.unwrap_err().to_string();
        assert!(found.contains("no reply within 100ms"), "{found}");
        let keeps =
            Changed(Mutex::default(), |memory: &mut Memory, mut operation: StoreOperation| {
                if let StoreOperation::Put { ttl, .. } = &mut operation {
                    *ttl = LONG;
                }
                handle(memory, operation)
            });
        let found = check_within(&keeps, SHORT * 2).await.unwrap_err().to_string();
        assert!(found.contains("a value must end with its ttl"), "{found}");
    }
}
