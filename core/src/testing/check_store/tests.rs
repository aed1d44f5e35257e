//! Stores that do not keep a rule.

#![allow(clippy::unwrap_used, reason = "a test that fails here says where")]

use std::sync::Mutex;

use super::*;
use crate::{
    store::{BoxFuture, Expect, StoreEvent, StoreListener, StoreSubscription, memory::Memory},
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
    let checked = check_engine(Arc::new(Changed(Mutex::default(), change)), "check").await;
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
    assert!(StoreEngine::subscribe(&engine, vec!["a".into()], Arc::new(|_| ())).is_none());
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

    fn subscribe(&self, topics: Vec<String>, listener: StoreListener) -> Option<StoreSubscription> {
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
        let found = check_engine(Arc::new(store), "check").await.unwrap_err().to_string();
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
        check(move |memory, operation| put(memory, operation, |_, expect| *expect = Expect::Any))
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
        check(move |memory, operation| put(memory, operation, |ttl, _| *ttl = (*ttl).min(SHORT)))
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
    let keeps = Changed(Mutex::default(), |memory: &mut Memory, mut operation: StoreOperation| {
        if let StoreOperation::Put { ttl, .. } = &mut operation {
            *ttl = LONG;
        }
        handle(memory, operation)
    });
    let found = check_within(&keeps, SHORT * 2).await.unwrap_err().to_string();
    assert!(found.contains("a value must end with its ttl"), "{found}");
}
