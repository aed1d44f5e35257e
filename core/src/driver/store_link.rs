//! The connection of an endpoint to its store: it carries out operations, and brings the messages of other processes.

use std::sync::{
    Arc,
    atomic::{AtomicBool, AtomicU64, Ordering},
};

use tokio::sync::{Notify, mpsc};

use super::{EndpointServer, Work, measured_store::MeasuredStore, sealed_store::SealedStore};
use crate::{
    clock,
    http::StoreTicket,
    log_events::{EventKind, LogEvent},
    log_limit::LogLimit,
    metrics::Metrics,
    replier::Replier,
    store::{StoreEngine, StoreEvent, StoreListener, StoreOperation, StoreReply},
};

/// The maximum number of operations and messages that wait.
const MAX_WAITING: usize = 4_096;
/// The maximum number of operations that are under way.
const MAX_RUNNING: usize = 1_024;
/// The topic of the messages between processes.
const MESSAGES: &str = "messages";

/// An operation that an endpoint begins, or a message to other processes.
enum Request {
    Operation(StoreTicket, StoreOperation),
    Message(Vec<u8>),
}

/// The end of a link at the endpoint. It never blocks.
pub(super) struct StoreQueue {
    requests: mpsc::Sender<Request>,
    store: Arc<SealedStore>,
}

/// A link that carries nothing yet.
pub(super) struct StoreLink {
    store: Arc<SealedStore>,
    /// The beginning of all names in the store.
    scope: String,
    metrics: Arc<Metrics>,
    queue: mpsc::Sender<Request>,
    requests: mpsc::Receiver<Request>,
}

impl StoreQueue {
    /// Creates a link to a store, in which all names begin with `scope`.
    pub(super) fn new(
        (store, scope): (SealedStore, String),
        metrics: Arc<Metrics>,
    ) -> (Self, StoreLink) {
        let (queue, requests) = mpsc::channel(MAX_WAITING);
        let store = Arc::new(store);
        let own = Self { requests: queue.clone(), store: Arc::clone(&store) };
        (own, StoreLink { store, scope, metrics, queue, requests })
    }

    /// Replaces the keys with which the contents of the store are sealed.
    pub(super) fn set_keys(&self, keys: &[Vec<u8>]) {
        self.store.set_keys(keys);
    }

    /// Begins an operation. Returns the reply if it can't be carried out.
    pub(super) fn begin(
        &self,
        ticket: StoreTicket,
        operation: StoreOperation,
    ) -> Option<StoreReply> {
        let failed = || StoreReply::Failed("too many operations wait for the store".into());
        self.requests.try_send(Request::Operation(ticket, operation)).is_err().then(failed)
    }
}

impl StoreLink {
    /// Carries out the operations of an endpoint for as long as it is polled. `has_group`: the processes of this machine exchange
    /// messages in another way. `perform` does the work that results from an input.
    pub(super) async fn run(
        self,
        server: Arc<EndpointServer>,
        has_group: bool,
        perform: impl Fn(Work),
    ) {
        let Self { store, scope, metrics, queue, mut requests } = self;
        let sealed: Arc<dyn StoreEngine> = Arc::clone(&store) as Arc<_>;
        let process = server.process();
        let (done, mut replies) = mpsc::unbounded_channel();
        let (listener, mut events) = mpsc::channel(MAX_WAITING);
        let has_lost = Arc::new(AtomicBool::new(false));
        let unreadable = Arc::new(Unreadable::default());
        let subscribe = || {
            let listener = listen(listener, Arc::clone(&has_lost));
            let (count, topics) = (Arc::clone(&unreadable), vec![format!("{scope}{MESSAGES}")]);
            store.subscribe(topics, listener, move || count.add())
        };
        // It lasts as long as this function.
        let subscription = (!has_group).then(subscribe);
        match &subscription {
            None => (),
            Some(Some(_)) => share(&server, queue),
            Some(None) => {
                server.write_event(&LogEvent::new(EventKind::StoreWithoutMessages, ""));
            }
        }
        let store = MeasuredStore::new(&sealed, &metrics);
        let (mut running, mut limit) = (0, LogLimit::default());
        loop {
            tokio::select! {
                Some((ticket, reply)) = replies.recv() => {
                    running -= 1;
                    if let StoreReply::Failed(reason) = &reply
                        && let Some(left_out) = limit.due(clock::unix())
                    {
                        tracing::error!("the store failed: {reason}{left_out}");
                    }
                    if let Some(ticket) = ticket {
                        perform(server.stored(ticket, reply));
                    }
                }
                Some(event) = events.recv() => {
                    if has_lost.swap(false, Ordering::Relaxed) {
                        perform(server.messages_lost());
                    }
                    match event {
                        StoreEvent::Message { message, .. } => {
                            if let Some((sender, message)) = message.split_first_chunk()
                                && u64::from_le_bytes(*sender) != process
                            {
                                perform(server.published(message));
                            }
                        }
                        StoreEvent::Lost => perform(server.messages_lost()),
                    }
                }
                () = unreadable.added.notified() => {
                    let count = unreadable.count.swap(0, Ordering::Relaxed);
                    perform(server.messages_unreadable(count));
                }
                Some(request) = requests.recv(), if running < MAX_RUNNING => {
                    let (ticket, operation) = match request {
                        Request::Operation(ticket, operation) => (Some(ticket), operation),
                        Request::Message(message) => {
                            let message = [&process.to_le_bytes()[..], &message].concat();
                            (None, StoreOperation::Publish { topic: MESSAGES.into(), message })
                        }
                    };
                    running += 1;
                    let done = mpsc::UnboundedSender::clone(&done);
                    store.run(operation.within(&scope), Replier::new(move |reply| {
                        // The endpoint may be gone.
                        let _ = done.send((ticket, reply));
                    }));
                }
            }
        }
    }
}

/// The messages that can't be opened and that the endpoint has not heard of. They take no memory, however many come.
#[derive(Default)]
struct Unreadable {
    count: AtomicU64,
    added: Notify,
}

impl Unreadable {
    fn add(&self) {
        self.count.fetch_add(1, Ordering::Relaxed);
        self.added.notify_one();
    }
}

/// Returns a function that takes the messages of other processes and does not block.
fn listen(events: mpsc::Sender<StoreEvent>, has_lost: Arc<AtomicBool>) -> StoreListener {
    Arc::new(move |event| {
        if events.try_send(event).is_err() {
            has_lost.store(true, Ordering::Relaxed);
        }
    })
}

/// Has the endpoint send messages to other processes.
fn share(server: &EndpointServer, queue: mpsc::Sender<Request>) {
    let mut limit = LogLimit::default();
    server.share(Box::new(move |message| {
        if queue.try_send(Request::Message(message)).is_err()
            && let Some(left_out) = limit.due(clock::unix())
        {
            tracing::warn!("a message to the other processes was dropped: too many wait{left_out}");
        }
    }));
}

#[cfg(all(test, feature = "bindings"))]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test that fails here says where")]

    use std::{sync::Mutex, time::Instant};

    use super::*;
    use crate::{
        engine::Start,
        http::{Endpoint, EndpointConfig},
        protocol::Implementation,
        router::{Components, ServerFacts},
        store::{SharedStore, StoreSubscription},
    };

    /// A store that begins operations and never replies, and whose messages the test sends.
    #[derive(Default)]
    struct Silent {
        begun: Mutex<Vec<Replier<StoreReply>>>,
        listener: Mutex<Option<StoreListener>>,
    }

    impl StoreEngine for Silent {
        fn run(&self, _: StoreOperation, reply: Replier<StoreReply>) {
            self.begun.lock().unwrap().push(reply);
        }

        fn subscribe(&self, _: Vec<String>, listener: StoreListener) -> Option<StoreSubscription> {
            *self.listener.lock().unwrap() = Some(listener);
            Some(StoreSubscription::new(()))
        }
    }

    fn components() -> Arc<Components> {
        Arc::new(Components::new(ServerFacts::from(Implementation::new("house", "1"))))
    }

    fn config(store: &Arc<Silent>) -> EndpointConfig {
        let store = SharedStore(Arc::clone(store) as Arc<dyn StoreEngine>);
        EndpointConfig { store: Some(store), ..EndpointConfig::default() }
    }

    async fn let_run() {
        for _ in 0..100 {
            tokio::task::yield_now().await;
        }
    }

    #[tokio::test]
    async fn operations_that_wait_are_bounded() {
        let store = Arc::new(Silent::default());
        let start = Start { now: Instant::now(), unix: 0, seed: [0; 32], test_mode: None };
        let endpoint = Endpoint::new(components(), config(&store), &start);
        let (keys, seed, scope) = endpoint.store_keys();
        let sealed = SealedStore::new(Arc::clone(&store) as Arc<_>, keys, seed);
        let (queue, link) = StoreQueue::new((sealed, scope), Arc::clone(endpoint.metrics()));
        let begin = |number: usize| {
            let operation = StoreOperation::Get { key: number.to_string() };
            queue.begin(StoreTicket(number as u64), operation)
        };
        assert!((0..MAX_WAITING).all(|number| begin(number).is_none()));
        let full = StoreReply::Failed("too many operations wait for the store".into());
        assert_eq!(begin(MAX_WAITING), Some(full));
        let server = EndpointServer::new(components(), config(&store));
        let running = tokio::spawn(link.run(server, false, |_| ()));
        let_run().await;
        assert_eq!(store.begun.lock().unwrap().len(), MAX_RUNNING);
        assert!(begin(MAX_WAITING).is_none(), "there is room again");
        running.abort();
    }

    #[tokio::test]
    async fn messages_that_wait_are_bounded_and_their_loss_is_told() {
        let (events, mut waiting) = mpsc::channel(MAX_WAITING);
        let has_lost = Arc::new(AtomicBool::new(false));
        let listener = listen(events, Arc::clone(&has_lost));
        for _ in 0..MAX_WAITING {
            listener(StoreEvent::Lost);
        }
        assert!(!has_lost.load(Ordering::Relaxed));
        listener(StoreEvent::Lost);
        assert!(has_lost.load(Ordering::Relaxed));
        assert!(waiting.recv().await.is_some());
    }
}
