//! The subscriptions of one process to the topics of a store.

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
};

use crate::store::{StoreEvent, StoreListener, StoreSubscription};

/// The maximum number of messages that wait for listeners, and of their bytes. Above it they are lost.
const MAX_WAITING: usize = 10_000;
const MAX_WAITING_BYTES: usize = 16 * 1024 * 1024;

/// The listeners of topics. Each message is delivered by the thread that brought it, or by the one that delivers already, so that
/// messages keep their order and no lock is held while a listener runs.
pub(super) struct Topics {
    state: Mutex<State>,
    /// Told after a subscription begins or ends.
    changed: Box<dyn Fn() + Send + Sync>,
}

#[derive(Default)]
struct State {
    subscriptions: BTreeMap<u64, Subscription>,
    next: u64,
    waiting: VecDeque<Waiting>,
    bytes: usize,
    is_delivering: bool,
}

struct Subscription {
    topics: BTreeSet<String>,
    listener: StoreListener,
    is_connected: bool,
}

enum Waiting {
    Message { topic: String, message: Vec<u8> },
    Lost(u64),
}

/// Ends a subscription when it is dropped.
struct End(Weak<Topics>, u64);

/// Lets another thread deliver after a listener panicked.
struct Delivering<'a>(&'a Topics);

impl Topics {
    pub(super) fn new(changed: impl Fn() + Send + Sync + 'static) -> Arc<Self> {
        Arc::new(Self { state: Mutex::default(), changed: Box::new(changed) })
    }

    /// Adds a subscription, which is not connected yet.
    pub(super) fn subscribe(
        self: &Arc<Self>,
        topics: Vec<String>,
        listener: StoreListener,
    ) -> StoreSubscription {
        let mut state = self.lock();
        let number = state.next;
        state.next += 1;
        let topics = topics.into_iter().collect();
        let subscription = Subscription { topics, listener, is_connected: false };
        state.subscriptions.insert(number, subscription);
        drop(state);
        (self.changed)();
        StoreSubscription::new(End(Arc::downgrade(self), number))
    }

    /// Returns all topics that somebody listens to.
    #[cfg(any(test, feature = "redis", feature = "sqlite"))]
    pub(super) fn names(&self) -> BTreeSet<String> {
        let state = self.lock();
        state.subscriptions.values().flat_map(|entry| entry.topics.iter().cloned()).collect()
    }

    /// Returns the subscriptions that are not connected.
    pub(super) fn unconnected(&self) -> Vec<u64> {
        let state = self.lock();
        let unconnected = state.subscriptions.iter().filter(|(_, entry)| !entry.is_connected);
        unconnected.map(|(number, _)| *number).collect()
    }

    /// Tells subscriptions that they are connected now: messages before this may have been lost.
    pub(super) fn connected(&self, numbers: &[u64]) {
        let mut state = self.lock();
        for number in numbers {
            if let Some(entry) = state.subscriptions.get_mut(number) {
                entry.is_connected = true;
                state.waiting.push_back(Waiting::Lost(*number));
            }
        }
        self.deliver(state);
    }

    /// Notes that the connection of all subscriptions is broken.
    #[cfg(any(feature = "redis", feature = "sqlite"))]
    pub(super) fn disconnected(&self) {
        for entry in self.lock().subscriptions.values_mut() {
            entry.is_connected = false;
        }
    }

    /// Delivers a message.
    pub(super) fn publish(&self, topic: String, message: Vec<u8>) {
        let mut state = self.lock();
        let bytes = state.bytes + topic.len() + message.len();
        if state.waiting.len() >= MAX_WAITING || bytes > MAX_WAITING_BYTES {
            state.waiting.clear();
            state.bytes = 0;
            let lost: Vec<_> = state.subscriptions.keys().copied().map(Waiting::Lost).collect();
            state.waiting.extend(lost);
        } else {
            state.bytes = bytes;
            state.waiting.push_back(Waiting::Message { topic, message });
        }
        self.deliver(state);
    }

    fn deliver<'a>(&'a self, mut state: MutexGuard<'a, State>) {
        if state.is_delivering {
            return;
        }
        state.is_delivering = true;
        let delivering = Delivering(self);
        while let Some(waiting) = state.waiting.pop_front() {
            let (listeners, event) = match waiting {
                Waiting::Lost(number) => {
                    let entry = state.subscriptions.get(&number);
                    (
                        entry.map(|entry| entry.listener.clone()).into_iter().collect(),
                        StoreEvent::Lost,
                    )
                }
                Waiting::Message { topic, message } => {
                    state.bytes -= topic.len() + message.len();
                    let entries = state.subscriptions.values();
                    let listening = entries.filter(|entry| entry.topics.contains(&topic));
                    let listeners: Vec<_> = listening.map(|entry| entry.listener.clone()).collect();
                    (listeners, StoreEvent::Message { topic, message })
                }
            };
            drop(state);
            for listener in listeners {
                listener(event.clone());
            }
            state = self.lock();
        }
        state.is_delivering = false;
        // The thread that takes the lock next may deliver, so this must not say so again.
        std::mem::forget(delivering);
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for End {
    fn drop(&mut self) {
        let Some(topics) = self.0.upgrade() else { return };
        let ended = topics.lock().subscriptions.remove(&self.1);
        // What the listener holds is dropped without the lock.
        drop(ended);
        (topics.changed)();
    }
}

impl Drop for Delivering<'_> {
    fn drop(&mut self) {
        self.0.lock().is_delivering = false;
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test that fails here says where")]

    use super::*;

    fn message(topic: &str, message: &[u8]) -> StoreEvent {
        StoreEvent::Message { topic: topic.into(), message: message.into() }
    }

    #[test]
    fn a_listener_that_publishes_gets_its_message_after_the_others() {
        let topics = Topics::new(|| ());
        let seen = Arc::new(Mutex::new(Vec::new()));
        let (events, publisher) = (Arc::clone(&seen), Arc::downgrade(&topics));
        let listener = Arc::new(move |event: StoreEvent| {
            if event == message("a", b"1") {
                publisher.upgrade().unwrap().publish("a".into(), b"2".into());
            }
            events.lock().unwrap().push(event);
        });
        let one = topics.subscribe(vec!["a".into(), "b".into()], listener.clone());
        let two = topics.subscribe(vec!["b".into()], listener);
        topics.connected(&topics.unconnected());
        topics.publish("a".into(), b"1".into());
        topics.publish("c".into(), b"3".into());
        drop(one);
        topics.publish("b".into(), b"4".into());
        let expected = [
            StoreEvent::Lost,
            StoreEvent::Lost,
            message("a", b"1"),
            message("a", b"2"),
            message("b", b"4"),
        ];
        assert_eq!(*seen.lock().unwrap(), expected);
        drop(two);
        assert!(topics.names().is_empty());
    }

    #[test]
    fn messages_that_wait_are_bounded_and_their_loss_is_told() {
        let topics = Topics::new(|| ());
        let seen = Arc::new(Mutex::new(Vec::new()));
        let (events, publisher) = (Arc::clone(&seen), Arc::downgrade(&topics));
        let listener = Arc::new(move |event: StoreEvent| {
            if event == message("a", b"first") {
                let topics = publisher.upgrade().unwrap();
                for _ in 0..=MAX_WAITING {
                    topics.publish("a".into(), b"more".into());
                }
                topics.publish("a".into(), b"last".into());
            }
            events.lock().unwrap().push(event);
        });
        let _subscription = topics.subscribe(vec!["a".into()], listener);
        topics.publish("a".into(), b"first".into());
        let expected = [message("a", b"first"), StoreEvent::Lost, message("a", b"last")];
        assert_eq!(*seen.lock().unwrap(), expected);
        assert_eq!(topics.lock().bytes, 0);
    }
}
