//! The subscriptions of a client in both eras. Since 2026-07-28 each is a long-running `subscriptions/listen`, which
//! is repeated when its connection breaks; before, `resources/subscribe` is sent once per URI for all subscriptions
//! that contain it.

mod changes;
mod interests;
mod listening;
mod uris;
mod watching;

use std::{
    collections::{BTreeMap, BTreeSet, HashMap, VecDeque},
    time::{Duration, Instant},
};

use self::uris::{UriRequest, Uris};
pub use self::{changes::Changes, interests::Interests};
use crate::{
    error::{Error, ErrorKind},
    protocol::{Method, Raw, SubscriptionFilter},
    session::client::{Change, RequestKey, ServerIdentity},
};

/// A bit that is set in the keys of all requests of this state machine.
const OURS: u64 = 1 << 63;

/// The id of a subscription, chosen by the caller and never reused.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct SubscriptionKey(pub u64);

/// Settings of a subscription.
#[derive(Clone, Copy, Debug, Default)]
#[cfg_attr(not(feature = "bindings"), non_exhaustive)]
pub struct SubscriptionSettings {
    /// The time limit for the server's acknowledgement; `None` means no limit.
    pub timeout: Option<Duration>,
    /// True if the subscription is re-established also after the server ended it.
    pub outlives_end: bool,
    /// True if it replaces a broken subscription: everything it covers is reported as changed, because changes may
    /// have been missed.
    pub may_have_missed: bool,
}

/// An input of the state machine.
#[derive(Debug)]
pub enum Input<'a> {
    /// Opens a subscription.
    Open {
        key: SubscriptionKey,
        interests: Interests,
        settings: SubscriptionSettings,
        server: &'a ServerIdentity,
    },
    /// Closes a subscription; no more events are emitted for it.
    Close(SubscriptionKey),
    /// The outcome of an [`Output::Request`].
    Done(RequestKey, Result<Raw, Error>),
    /// The server acknowledged this part of the filter.
    Acknowledged(RequestKey, SubscriptionFilter),
    /// A change notification, with the `subscriptions/listen` that it belongs to or, before 2026-07-28, `None`.
    Changed(Option<RequestKey>, Change),
    /// A new server session was started; it knows of no subscriptions.
    Renewed,
    /// The server's notifications can no longer be received, with the reason.
    StreamLost(&'a str),
    /// The time of [`Subscriptions::deadline`] has come.
    Tick,
    /// The connection was closed, with the reason; `None` if this side closed it.
    Closed(Option<&'a str>),
}

/// An output of the state machine.
#[derive(Debug)]
pub enum Output {
    /// A request to send; `params` is a JSON object.
    Request {
        key: RequestKey,
        method: Method,
        params: String,
        timeout: Option<Duration>,
    },
    /// A request to cancel; its outcome is ignored.
    Cancel(RequestKey),
    /// The subscription is established; changes are reported from now on.
    Opened(SubscriptionKey),
    Changed(SubscriptionKey, Change),
    /// The subscription ended, with the error unless the server ended it regularly.
    Ended(SubscriptionKey, Option<Error>),
}

/// The state machine of all subscriptions of a client.
#[derive(Debug, Default)]
pub struct Subscriptions {
    open: BTreeMap<SubscriptionKey, Entry>,
    uris: Uris,
    requests: HashMap<RequestKey, Purpose>,
    sent: u64,
    /// The time limit for requests about a URI.
    timeout: Option<Duration>,
    outputs: VecDeque<Output>,
    /// True once the connection is closed.
    is_closed: bool,
    /// The reason for the close; `None` if this side closed the connection.
    closed_by: Option<String>,
}

#[derive(Debug)]
struct Entry {
    interests: Interests,
    settings: SubscriptionSettings,
    state: State,
    /// True once [`Output::Opened`] was emitted.
    is_open: bool,
    /// The number of consecutive failed attempts.
    attempts: u32,
}

#[derive(Debug)]
enum State {
    /// The server has not acknowledged the subscription yet.
    Asking {
        request: RequestKey,
        due: Option<Instant>,
    },
    Listening {
        request: RequestKey,
        since: Instant,
    },
    /// The request is repeated at this time.
    Broken {
        until: Instant,
    },
    /// The URIs whose `resources/subscribe` is still unanswered.
    Subscribing(BTreeSet<String>),
    Subscribed,
}

/// The purpose of a request.
#[derive(Debug)]
enum Purpose {
    Listen(SubscriptionKey),
    Uri(String, UriRequest),
}

impl Subscriptions {
    /// Returns whether the request was made by this state machine.
    pub fn sent(key: RequestKey) -> bool {
        key.0 & OURS != 0
    }

    /// Processes an input.
    pub fn handle(&mut self, now: Instant, input: Input<'_>) {
        match input {
            Input::Open { key, interests, settings, server } => {
                self.begin(now, key, interests, settings, server);
            }
            Input::Close(key) => self.close(key),
            Input::Done(key, outcome) => match self.requests.remove(&key) {
                Some(Purpose::Listen(key)) => self.listen_ended(now, key, outcome),
                Some(Purpose::Uri(uri, step)) => self.answered(&uri, step, outcome),
                None => (),
            },
            Input::Acknowledged(request, kept) => self.acknowledged(now, request, &kept),
            Input::Changed(listen, change) => self.notified(listen, &change),
            Input::Renewed => self.renewed(),
            Input::StreamLost(why) => self.stream_lost(why),
            Input::Tick => self.tick(now),
            Input::Closed(why) => {
                if !std::mem::replace(&mut self.is_closed, true) {
                    self.closed_by = why.map(ToOwned::to_owned);
                }
                self.requests.clear();
                self.uris.clear();
                for (key, _) in std::mem::take(&mut self.open) {
                    self.report_closed(key);
                }
            }
        }
    }

    /// Returns the next output; `None` if there is none.
    pub fn poll(&mut self) -> Option<Output> {
        self.outputs.pop_front()
    }

    /// Returns the time at which [`Input::Tick`] is due.
    pub fn deadline(&self) -> Option<Instant> {
        self.open.values().filter_map(|entry| entry.state.due()).min()
    }

    fn begin(
        &mut self,
        now: Instant,
        key: SubscriptionKey,
        interests: Interests,
        settings: SubscriptionSettings,
        server: &ServerIdentity,
    ) {
        if self.is_closed {
            return self.report_closed(key);
        }
        if let Err(error) = server.check_filter(&interests.filter()) {
            return self.outputs.push_back(Output::Ended(key, Some(error)));
        }
        self.timeout = settings.timeout;
        let state = if server.has_listen() {
            self.listen(now, key, &interests, settings.timeout)
        } else {
            let left = interests.uris().filter(|uri| !self.uris.want(uri, key));
            State::Subscribing(left.cloned().collect())
        };
        let entry = Entry { interests, settings, state, is_open: false, attempts: 0 };
        let uris: Vec<_> = match &entry.state {
            State::Subscribing(left) => left.iter().cloned().collect(),
            _ => Vec::new(),
        };
        self.open.insert(key, entry);
        for uri in uris {
            self.step(&uri);
        }
        self.subscribed(key);
    }

    fn close(&mut self, key: SubscriptionKey) {
        let Some(entry) = self.open.remove(&key) else { return };
        if let Some(request) = entry.state.request()
            && self.requests.remove(&request).is_some()
        {
            self.outputs.push_back(Output::Cancel(request));
        }
        for uri in entry.interests.uris() {
            self.uris.leave(uri, key);
            self.step(uri);
        }
    }

    /// Ends a subscription that the caller has not closed.
    fn end(&mut self, key: SubscriptionKey, why: Option<Error>) {
        self.close(key);
        self.outputs.push_back(Output::Ended(key, why));
    }

    fn report_closed(&mut self, key: SubscriptionKey) {
        let why = self.closed_by.as_ref().map(|reason| Error::new(ErrorKind::Lost, reason.clone()));
        self.outputs.push_back(Output::Ended(key, why));
    }

    fn opened(&mut self, key: SubscriptionKey) {
        let Some(entry) = self.open.get_mut(&key) else { return };
        let is_again = std::mem::replace(&mut entry.is_open, true);
        if !is_again {
            self.outputs.push_back(Output::Opened(key));
        }
        if is_again || entry.attempts > 0 || entry.settings.may_have_missed {
            let all = entry.interests.all().map(|change| Output::Changed(key, change));
            self.outputs.extend(all);
        }
    }

    fn tick(&mut self, now: Instant) {
        let due =
            self.open.iter().filter(|(_, entry)| entry.state.due().is_some_and(|due| due <= now));
        for key in due.map(|(key, _)| *key).collect::<Vec<_>>() {
            let Some(entry) = self.open.get(&key) else { continue };
            match entry.state {
                State::Asking { request, .. } => {
                    self.requests.remove(&request);
                    self.outputs.push_back(Output::Cancel(request));
                    let limit = entry.settings.timeout.unwrap_or_default().as_secs_f64();
                    let message = format!("subscriptions/listen: not acknowledged in {limit} s");
                    let error = Error::new(ErrorKind::Timeout, message);
                    self.failed(now, key, error.limited_by("timeout"));
                }
                _ => self.listen_again(now, key),
            }
        }
    }

    fn notified(&mut self, listen: Option<RequestKey>, change: &Change) {
        let Some(request) = listen else {
            let interested = self.open.iter().filter(|(_, entry)| entry.interests.cover(change));
            let changes = interested.map(|(key, _)| Output::Changed(*key, change.clone()));
            return self.outputs.extend(changes);
        };
        let Some(Purpose::Listen(key)) = self.requests.get(&request) else { return };
        let Some(entry) = self.open.get_mut(key) else { return };
        if entry.interests.allow(change) {
            entry.attempts = 0;
            self.outputs.push_back(Output::Changed(*key, change.clone()));
        } else {
            tracing::debug!(?change, "dropped a notification that the client did not subscribe to");
        }
    }

    fn request(
        &mut self,
        purpose: Purpose,
        method: Method,
        params: String,
        timeout: Option<Duration>,
    ) -> RequestKey {
        let key = RequestKey(OURS | self.sent);
        self.sent += 1;
        self.requests.insert(key, purpose);
        self.outputs.push_back(Output::Request { key, method, params, timeout });
        key
    }
}

impl State {
    fn due(&self) -> Option<Instant> {
        match self {
            Self::Asking { due, .. } => *due,
            Self::Broken { until } => Some(*until),
            _ => None,
        }
    }

    fn request(&self) -> Option<RequestKey> {
        match self {
            Self::Asking { request, .. } | Self::Listening { request, .. } => Some(*request),
            _ => None,
        }
    }
}
