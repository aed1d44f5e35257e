//! A store that is an object of the host's program.

use std::{
    collections::VecDeque,
    fmt,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use tokio::{runtime::Handle, sync::oneshot, task::AbortHandle, time::sleep};

use crate::{
    clock,
    driver::boxed,
    replier::Replier,
    store::{
        StoreEngine, StoreEvent, StoreListener, StoreOperation, StoreReply, StoreSubscription,
        derived,
    },
    stores::Backoff,
};

/// The methods that an object may have beside `get`, `put` and `take`; those of a group belong together.
pub const GROUPS: [&[&str]; 4] =
    [&["delete"], &["append", "read"], &["publish", "subscribe"], &["lease", "renew", "release"]];

/// A subscription that lasted this long was not broken from the beginning.
const LASTING: Duration = Duration::from_secs(5);

/// Calls the methods of an object of the program.
pub trait StoreObject: Send + Sync {
    /// Begins an operation, which the object has a method for.
    fn run(&self, operation: StoreOperation, reply: Replier<StoreReply>);

    /// Begins to give `feed` what the object's `subscribe` yields, until that ends or [`unsubscribe`](Self::unsubscribe) is called
    /// with the same number. Returns at once.
    fn subscribe(&self, number: u64, topics: Vec<String>, feed: MessageFeed);

    /// Ends a subscription, which may have ended.
    fn unsubscribe(&self, number: u64);
}

/// Takes what the `subscribe` of an object yields. Dropping it says that nothing more comes.
pub struct MessageFeed {
    listener: StoreListener,
    is_connected: AtomicBool,
    /// `true` once nobody listens any more.
    is_over: Arc<AtomicBool>,
    is_first_failure: bool,
    _end: oneshot::Sender<()>,
}

impl MessageFeed {
    /// Says that all messages from now on come; those before may have been lost.
    pub fn connected(&self) {
        self.is_connected.store(true, Ordering::Relaxed);
        self.tell(StoreEvent::Lost);
    }

    /// Takes a message.
    pub fn message(&self, topic: String, message: Vec<u8>) {
        if !self.is_connected.load(Ordering::Relaxed) {
            self.connected();
        }
        self.tell(StoreEvent::Message { topic, message });
    }

    /// Returns `true` if a failure of this subscription is news, because the one before did not fail.
    pub fn is_first_failure(&self) -> bool {
        self.is_first_failure
    }

    fn tell(&self, event: StoreEvent) {
        if !self.is_over.load(Ordering::Relaxed) {
            (self.listener)(event);
        }
    }
}

impl fmt::Debug for MessageFeed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("MessageFeed")
    }
}

/// An object as servers use it. What it lacks is made of `get`, `put` and `take`.
pub(super) struct ObjectStore {
    object: Arc<dyn StoreObject>,
    methods: Vec<String>,
    publications: Arc<Publications>,
}

impl ObjectStore {
    /// Makes the store of an object that has the methods of these names.
    pub(super) fn new(object: Arc<dyn StoreObject>, methods: Vec<String>) -> Self {
        Self { object, methods, publications: Arc::default() }
    }

    fn has(&self, method: &str) -> bool {
        self.methods.iter().any(|name| name == method)
    }
}

impl StoreEngine for ObjectStore {
    fn run(&self, operation: StoreOperation, reply: Replier<StoreReply>) {
        match operation {
            StoreOperation::Publish { .. } if self.has("publish") => {
                self.publications.add(&self.object, operation, reply);
            }
            _ if self.has(operation.name()) => self.object.run(operation, reply),
            _ => {
                let basic: Arc<dyn StoreEngine> = Arc::new(Basic(Arc::clone(&self.object)));
                derived::run(&basic, clock::unix_ms(), operation, reply);
            }
        }
    }

    fn subscribe(&self, topics: Vec<String>, listener: StoreListener) -> Option<StoreSubscription> {
        if !self.has("subscribe") {
            return None;
        }
        let runtime = Handle::try_current().ok()?;
        let is_over = Arc::new(AtomicBool::new(false));
        let object = Arc::clone(&self.object);
        let receiving = runtime.spawn(boxed(receive(object, topics, listener, is_over.clone())));
        Some(StoreSubscription::new(End(receiving.abort_handle(), is_over)))
    }
}

/// The operations that every object has.
struct Basic(Arc<dyn StoreObject>);

impl StoreEngine for Basic {
    fn run(&self, operation: StoreOperation, reply: Replier<StoreReply>) {
        self.0.run(operation, reply);
    }
}

/// Ends a subscription when it is dropped.
struct End(AbortHandle, Arc<AtomicBool>);

impl Drop for End {
    fn drop(&mut self) {
        self.1.store(true, Ordering::Relaxed);
        self.0.abort();
    }
}

/// Subscribes again and again, each time that the subscription ends.
async fn receive(
    object: Arc<dyn StoreObject>,
    topics: Vec<String>,
    listener: StoreListener,
    is_over: Arc<AtomicBool>,
) {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    struct Unsubscribe(Arc<dyn StoreObject>, u64);
    impl Drop for Unsubscribe {
        fn drop(&mut self) {
            self.0.unsubscribe(self.1);
        }
    }
    let (mut backoff, mut is_first_failure) = (Backoff::default(), true);
    loop {
        let (end, ended) = oneshot::channel();
        let feed = MessageFeed {
            listener: Arc::clone(&listener),
            is_connected: AtomicBool::new(false),
            is_over: Arc::clone(&is_over),
            is_first_failure,
            _end: end,
        };
        let (number, begun) = (NEXT.fetch_add(1, Ordering::Relaxed), clock::now());
        let unsubscribe = Unsubscribe(Arc::clone(&object), number);
        object.subscribe(number, topics.clone(), feed);
        // The feed is dropped, and sends nothing.
        let _ = ended.await;
        drop(unsubscribe);
        let lasted = clock::since(begun) >= LASTING;
        if lasted {
            backoff = Backoff::default();
        }
        is_first_failure = lasted;
        sleep(backoff.next()).await;
    }
}

/// The messages that an object is to publish. It gets one after another, so that they keep their order.
#[derive(Default)]
struct Publications(Mutex<Waiting>);

#[derive(Default)]
struct Waiting {
    operations: VecDeque<(StoreOperation, Replier<StoreReply>)>,
    is_running: bool,
}

impl Publications {
    fn add(
        self: &Arc<Self>,
        object: &Arc<dyn StoreObject>,
        operation: StoreOperation,
        reply: Replier<StoreReply>,
    ) {
        let mut waiting = self.lock();
        if waiting.is_running {
            return waiting.operations.push_back((operation, reply));
        }
        waiting.is_running = true;
        drop(waiting);
        self.begin(object, operation, reply);
    }

    fn begin(
        self: &Arc<Self>,
        object: &Arc<dyn StoreObject>,
        operation: StoreOperation,
        reply: Replier<StoreReply>,
    ) {
        let (publications, of_next) = (Arc::clone(self), Arc::clone(object));
        let published = move |done| {
            reply.send(done);
            let mut waiting = publications.lock();
            let next = waiting.operations.pop_front();
            waiting.is_running = next.is_some();
            drop(waiting);
            if let Some((operation, reply)) = next {
                publications.begin(&of_next, operation, reply);
            }
        };
        object.run(operation, Replier::new(published));
    }

    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test that fails here says where")]

    use tokio::sync::mpsc;

    use super::*;

    /// An object whose calls the test answers.
    #[derive(Default)]
    struct Object {
        published: Mutex<Vec<(StoreOperation, Replier<StoreReply>)>>,
        feeds: Mutex<Vec<(u64, MessageFeed)>>,
        unsubscribed: Mutex<Vec<u64>>,
    }

    impl StoreObject for Object {
        fn run(&self, operation: StoreOperation, reply: Replier<StoreReply>) {
            self.published.lock().unwrap().push((operation, reply));
        }

        fn subscribe(&self, number: u64, topics: Vec<String>, feed: MessageFeed) {
            assert_eq!(topics, ["a"]);
            self.feeds.lock().unwrap().push((number, feed));
        }

        fn unsubscribe(&self, number: u64) {
            self.unsubscribed.lock().unwrap().push(number);
        }
    }

    fn store(object: &Arc<Object>, methods: &[&str]) -> ObjectStore {
        let methods = methods.iter().map(|method| (*method).to_owned()).collect();
        ObjectStore::new(Arc::clone(object) as Arc<_>, methods)
    }

    #[tokio::test(start_paused = true)]
    async fn a_broken_subscription_is_made_again_after_a_pause_that_grows() {
        let object = Arc::new(Object::default());
        let (sender, mut events) = mpsc::unbounded_channel();
        let listener = Arc::new(move |event| drop(sender.send(event)));
        let subscription = store(&object, &["publish", "subscribe"])
            .subscribe(vec!["a".into()], listener)
            .unwrap();
        let next = || async {
            loop {
                if let Some(entry) = object.feeds.lock().unwrap().pop() {
                    return entry;
                }
                sleep(Duration::from_millis(1)).await;
            }
        };
        let message = |text: &[u8]| StoreEvent::Message { topic: "a".into(), message: text.into() };
        let (number, feed) = next().await;
        assert!(feed.is_first_failure());
        feed.connected();
        feed.message("a".into(), b"1".into());
        drop(feed);
        assert_eq!(events.recv().await, Some(StoreEvent::Lost));
        assert_eq!(events.recv().await, Some(message(b"1")));
        let mut pauses = Vec::new();
        for _ in 0..8 {
            let begun = tokio::time::Instant::now();
            let (_, feed) = next().await;
            pauses.push(begun.elapsed());
            assert!(!feed.is_first_failure());
        }
        assert!(pauses[0] <= Duration::from_millis(110), "{pauses:?}");
        assert!(pauses[7] >= Duration::from_millis(2_400), "{pauses:?}");
        let (last, feed) = next().await;
        feed.message("a".into(), b"2".into());
        assert_eq!(events.recv().await, Some(StoreEvent::Lost));
        assert_eq!(events.recv().await, Some(message(b"2")));
        drop(subscription);
        while object.unsubscribed.lock().unwrap().last() != Some(&last) {
            sleep(Duration::from_millis(1)).await;
        }
        assert_eq!(object.unsubscribed.lock().unwrap()[0], number);
        feed.message("a".into(), b"3".into());
        assert!(events.try_recv().is_err(), "nobody listens any more");
    }

    #[tokio::test]
    async fn messages_are_published_one_after_another() {
        let object = Arc::new(Object::default());
        let store = store(&object, &["publish", "subscribe"]);
        let (sender, mut replies) = mpsc::unbounded_channel();
        for text in [b"1", b"2", b"3"] {
            let operation = StoreOperation::Publish { topic: "a".into(), message: text.into() };
            let sender = sender.clone();
            store.run(operation, Replier::new(move |reply| drop(sender.send(reply))));
        }
        for text in [b"1", b"2", b"3"] {
            let (operation, reply) = object.published.lock().unwrap().pop().unwrap();
            assert!(object.published.lock().unwrap().is_empty());
            let expected = StoreOperation::Publish { topic: "a".into(), message: text.into() };
            assert_eq!(operation, expected);
            // One that is never answered holds nobody up.
            drop(reply);
            assert!(matches!(replies.recv().await, Some(StoreReply::Failed(_))));
        }
        assert!(object.published.lock().unwrap().is_empty());
    }

    #[tokio::test]
    async fn an_object_without_the_methods_carries_no_messages() {
        let object = Arc::new(Object::default());
        let store = store(&object, &[]);
        assert!(store.subscribe(vec!["a".into()], Arc::new(|_| ())).is_none());
    }
}
