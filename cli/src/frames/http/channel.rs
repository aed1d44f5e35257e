//! One connection to a server, and the HTTP exchanges that use it.

use std::{
    collections::{HashMap, VecDeque},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Instant,
};

use gudgeon::protocol::code;
use serde_json::json;
use tokio::sync::{mpsc, watch};

use crate::frames::{
    Connection, Ended,
    message::{Kind, RawObject, error, notification},
};

const SUBSCRIPTION_ID: &str = "io.modelcontextprotocol/subscriptionId";
const PROGRESS_TOKEN: &str = "progressToken";
/// The most messages that wait until the client opens its stream; the oldest ones are dropped.
const MAX_BACKLOG: usize = 1000;

/// A message for an exchange.
pub(super) enum Event {
    Message(Vec<u8>),
    /// The response, which ends the exchange.
    Response(Vec<u8>),
}

/// A connection to a server.
pub(super) struct Channel {
    state: Mutex<State>,
    /// True if several clients share the connection, whose ids and progress tokens may be the same.
    is_shared: bool,
    is_closed: watch::Sender<bool>,
}

struct State {
    /// `None` once the connection is closed.
    to_server: Option<mpsc::UnboundedSender<Vec<u8>>>,
    next: u64,
    /// The requests in progress, by the id that the server sees.
    exchanges: HashMap<String, Exchange>,
    /// The stream for messages that belong to no request.
    own_stream: Option<mpsc::UnboundedSender<Event>>,
    backlog: VecDeque<Vec<u8>>,
    used: Instant,
}

/// A request in progress.
struct Exchange {
    number: u64,
    /// The id and the progress token of the client, as JSON text.
    id: String,
    token: Option<String>,
    is_subscription: bool,
    events: mpsc::UnboundedSender<Event>,
}

/// The client's side of a request. Dropping it before the response cancels the request where the revision says so.
pub(super) struct Pending {
    channel: Arc<Channel>,
    /// The id that the server sees.
    id: String,
    pub(super) events: mpsc::UnboundedReceiver<Event>,
}

impl Channel {
    pub(super) fn new(connection: Connection, is_shared: bool) -> Arc<Self> {
        let Connection { to_server, mut from_server, ended } = connection;
        let channel = Arc::new(Self {
            state: Mutex::new(State {
                to_server: Some(to_server),
                next: 0,
                exchanges: HashMap::new(),
                own_stream: None,
                backlog: VecDeque::new(),
                used: Instant::now(),
            }),
            is_shared,
            is_closed: watch::Sender::new(false),
        });
        let other = Arc::clone(&channel);
        tokio::spawn(async move {
            while let Some(frame) = from_server.recv().await {
                other.received(frame);
            }
            other.lock().to_server = None;
            other.fail_all(&ended.await.unwrap_or_default());
            other.is_closed.send_replace(true);
        });
        channel
    }

    pub(super) fn is_open(&self) -> bool {
        self.lock().to_server.is_some()
    }

    /// Returns the time since a client used the connection; `None` while one does.
    pub(super) fn idle_since(&self) -> Option<Instant> {
        let state = self.lock();
        let has_stream = state.own_stream.as_ref().is_some_and(|stream| !stream.is_closed());
        (state.exchanges.is_empty() && !has_stream).then_some(state.used)
    }

    /// Sends a notification or a response.
    pub(super) fn send(&self, frame: Vec<u8>) {
        let mut state = self.lock();
        state.used = Instant::now();
        state.send(frame);
    }

    /// Sends a request; `id` is its id.
    pub(super) fn request(self: &Arc<Self>, mut message: RawObject, id: String) -> Pending {
        let (sender, events) = mpsc::unbounded_channel();
        let mut state = self.lock();
        state.used = Instant::now();
        state.next += 1;
        let number = state.next;
        let token = message.meta(PROGRESS_TOKEN);
        let is_subscription =
            message.string("method").is_some_and(|method| method == "subscriptions/listen");
        let mut seen = id.clone();
        if self.is_shared {
            seen = number.to_string();
            message.set_json("id", &seen);
            if token.is_some() {
                message.set_meta(PROGRESS_TOKEN, &seen);
            }
        }
        let exchange = Exchange { number, id, token, is_subscription, events: sender };
        state.exchanges.insert(seen.clone(), exchange);
        state.send(message.into_bytes());
        drop(state);
        Pending { channel: Arc::clone(self), id: seen, events }
    }

    /// Opens the stream for messages that belong to no request; an earlier one ends.
    pub(super) fn open_stream(&self) -> mpsc::UnboundedReceiver<Event> {
        let (sender, events) = mpsc::unbounded_channel();
        let mut state = self.lock();
        for frame in std::mem::take(&mut state.backlog) {
            // The receiver is here.
            let _ = sender.send(Event::Message(frame));
        }
        state.own_stream = Some(sender);
        events
    }

    /// Ends the connection and waits until the server has ended.
    pub(super) async fn close(&self) {
        self.lock().to_server = None;
        // The sender is in this value.
        let _ = self.is_closed.subscribe().wait_for(|is_closed| *is_closed).await;
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Passes a message of the server on to the exchange that it belongs to.
    fn received(&self, frame: Vec<u8>) {
        let Some(mut message) = RawObject::parse(&frame) else {
            return crate::output::stray("the server", &frame);
        };
        let mut state = self.lock();
        match message.kind() {
            Kind::Response { id } => {
                let Some(exchange) = state.exchanges.remove(&id) else { return };
                if self.is_shared {
                    message.set_json("id", &exchange.id);
                }
                let response = self.spelled(frame, message);
                let _ = exchange.events.send(Event::Response(response));
            }
            Kind::Notification { method } => {
                let key = match method == "notifications/progress" {
                    true => message.object("params").and_then(|params| {
                        params.get(PROGRESS_TOKEN).map(|token| token.get().to_owned())
                    }),
                    false => message.meta(SUBSCRIPTION_ID),
                };
                let found = key.as_ref().and_then(|key| match self.is_shared {
                    true => state.exchanges.get(key),
                    false => state
                        .exchanges
                        .iter()
                        .find(|(id, exchange)| exchange.token.as_ref() == Some(key) || *id == key)
                        .map(|found| found.1),
                });
                let Some(exchange) = found else {
                    return state.deliver_any(frame, self.is_shared);
                };
                if self.is_shared {
                    if method == "notifications/progress" {
                        let mut params = message.object("params").unwrap_or_default();
                        params
                            .set_json(PROGRESS_TOKEN, exchange.token.as_deref().unwrap_or("null"));
                        message.set("params", &params);
                    } else {
                        message.set_meta(SUBSCRIPTION_ID, &exchange.id);
                    }
                }
                let _ = exchange.events.send(Event::Message(self.spelled(frame, message)));
            }
            Kind::Request { .. } => state.deliver_any(frame, self.is_shared),
            Kind::Other => (),
        }
    }

    /// Returns the original bytes where nothing had to be replaced.
    fn spelled(&self, frame: Vec<u8>, message: RawObject) -> Vec<u8> {
        if self.is_shared { message.into_bytes() } else { frame }
    }

    fn fail_all(&self, ended: &Ended) {
        let mut state = self.lock();
        let mut why = "the server has ended".to_owned();
        if let Some(code) = ended.code {
            why = format!("{why} with exit code {code}");
        }
        if !ended.stderr.is_empty() {
            why = format!("{why}; the end of its standard error:\n{}", ended.stderr);
        }
        for (_, exchange) in state.exchanges.drain() {
            let response = error(&exchange.id, code::INTERNAL_ERROR, &why);
            let _ = exchange.events.send(Event::Response(response));
        }
        state.own_stream = None;
    }
}

impl State {
    fn send(&self, frame: Vec<u8>) {
        if let Some(sender) = &self.to_server {
            // Where the server is gone, the exchanges fail.
            let _ = sender.send(frame);
        }
    }

    /// Sends a message that names no request: to the client's own stream, else to its latest request, else it waits.
    fn deliver_any(&mut self, frame: Vec<u8>, is_shared: bool) {
        if let Some(stream) = &self.own_stream
            && !stream.is_closed()
        {
            let _ = stream.send(Event::Message(frame));
            return;
        }
        let requests = self.exchanges.values().filter(|exchange| !exchange.is_subscription);
        if let Some(exchange) = requests.max_by_key(|exchange| exchange.number) {
            let _ = exchange.events.send(Event::Message(frame));
        } else if !is_shared {
            if self.backlog.len() == MAX_BACKLOG {
                self.backlog.pop_front();
            }
            self.backlog.push_back(frame);
        }
    }
}

impl Drop for Pending {
    fn drop(&mut self) {
        let mut state = self.channel.lock();
        // In a session a closed exchange is not a cancellation: its response is dropped.
        if self.channel.is_shared && state.exchanges.remove(&self.id).is_some() {
            let id: serde_json::Value = serde_json::from_str(&self.id).unwrap_or_default();
            state.send(notification("notifications/cancelled", &json!({ "requestId": id })));
        }
    }
}
