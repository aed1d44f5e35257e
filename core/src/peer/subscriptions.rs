//! What a client is subscribed to, in both eras: one long `subscriptions/listen` each since 2026-07-28, which is sent
//! again when it breaks; before, `resources/subscribe` once for a URI, however many want to hear of it.

mod changes;
mod interests;
mod listening;
mod uris;
mod watching;

use std::{
    collections::{BTreeMap, BTreeSet, HashMap, VecDeque},
    time::{Duration, Instant},
};

use self::uris::{Step, Uris};
pub use self::{changes::Changes, interests::Interests};
use crate::{
    error::{Error, ErrorKind},
    protocol::{Method, Raw, SubscriptionFilter},
    session::client::{Change, RequestKey, ServerIdentity},
};

/// Requests of this machine have keys with this bit.
const OURS: u64 = 1 << 63;

/// A subscription's number, chosen by the shell: never used twice.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct SubscriptionKey(pub u64);

/// How a subscription is kept.
#[derive(Clone, Copy, Debug, Default)]
pub struct SubscriptionSettings {
    /// How long the server may take to agree; `None` waits for ever.
    pub timeout: Option<Duration>,
    /// It is taken up again when the server ends it, too.
    pub outlives_end: bool,
    /// It goes on from one that broke: everything that it wants to hear of may have changed since.
    pub may_have_missed: bool,
}

/// What the shell tells the machine.
#[derive(Debug)]
pub enum Input<'a> {
    /// Somebody wants to hear of this.
    Open {
        key: SubscriptionKey,
        interests: Interests,
        settings: SubscriptionSettings,
        server: &'a ServerIdentity,
    },
    /// Nobody does any more: nothing more comes for it.
    Close(SubscriptionKey),
    /// The outcome of an [`Output::Request`].
    Done(RequestKey, Result<Raw, Error>),
    /// What of a filter the server keeps.
    Acknowledged(RequestKey, SubscriptionFilter),
    /// Something changed; the server told this `subscriptions/listen`, or nobody in particular.
    Told(Option<RequestKey>, Change),
    /// The server's session was begun anew: it knows of no subscription.
    Renewed,
    /// What the server says unasked does not arrive any more, and why.
    Deaf(&'a str),
    /// The time of the deadline has come.
    Tick,
    /// The connection is gone, and why; `None` when this side closed it.
    Closed(Option<&'a str>),
}

/// What the machine asks of the shell.
#[derive(Debug)]
pub enum Output {
    /// Send this; `params` is a JSON object.
    Request {
        key: RequestKey,
        method: Method,
        params: String,
        timeout: Option<Duration>,
    },
    /// Nobody waits for this request any more.
    Cancel(RequestKey),
    /// From now on changes are heard.
    Opened(SubscriptionKey),
    Changed(SubscriptionKey, Change),
    /// There will be no more, and why, unless the server ended it well.
    Ended(SubscriptionKey, Option<Error>),
}

/// The state machine.
#[derive(Debug, Default)]
pub struct Subscriptions {
    open: BTreeMap<SubscriptionKey, Entry>,
    uris: Uris,
    requests: HashMap<RequestKey, Purpose>,
    sent: u64,
    /// How long the server may take to answer for a URI.
    timeout: Option<Duration>,
    outputs: VecDeque<Output>,
    /// The connection is gone.
    is_closed: bool,
    /// Why it is gone; nothing where this side closed it.
    closed_by: Option<String>,
}

#[derive(Debug)]
struct Entry {
    interests: Interests,
    settings: SubscriptionSettings,
    state: State,
    /// Whoever asked for it was told that it stands.
    is_open: bool,
    /// Attempts in a row that came to nothing.
    attempts: u32,
}

#[derive(Debug)]
enum State {
    /// The server has not agreed yet.
    Asking {
        request: RequestKey,
        due: Option<Instant>,
    },
    Listening {
        request: RequestKey,
        since: Instant,
    },
    /// Sent again then.
    Broken {
        until: Instant,
    },
    /// These URIs are not watched yet.
    Subscribing(BTreeSet<String>),
    Subscribed,
}

/// What a request is for.
#[derive(Debug)]
enum Purpose {
    Listen(SubscriptionKey),
    Uri(String, Step),
}

impl Subscriptions {
    /// Whether this machine asked for the request.
    pub fn sent(key: RequestKey) -> bool {
        key.0 & OURS != 0
    }

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
            Input::Told(listen, change) => self.told(listen, &change),
            Input::Renewed => self.renewed(),
            Input::Deaf(why) => self.deaf(why),
            Input::Tick => self.tick(now),
            Input::Closed(why) => {
                if !std::mem::replace(&mut self.is_closed, true) {
                    self.closed_by = why.map(ToOwned::to_owned);
                }
                self.requests.clear();
                self.uris.clear();
                for (key, _) in std::mem::take(&mut self.open) {
                    self.say_closed(key);
                }
            }
        }
    }

    pub fn poll(&mut self) -> Option<Output> {
        self.outputs.pop_front()
    }

    /// When [`Input::Tick`] is due.
    pub fn deadline(&self) -> Option<Instant> {
        self.open.values().filter_map(|it| it.state.due()).min()
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
            return self.say_closed(key);
        }
        if let Err(error) = server.check_filter(&interests.filter()) {
            return self.outputs.push_back(Output::Ended(key, Some(error)));
        }
        self.timeout = settings.timeout;
        let state = if server.has_listen() {
            self.listen(now, key, &interests, settings.timeout)
        } else {
            let left = interests.uris().filter(|it| !self.uris.want(it, key));
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

    /// Ends a subscription that was not left.
    fn end(&mut self, key: SubscriptionKey, why: Option<Error>) {
        self.close(key);
        self.outputs.push_back(Output::Ended(key, why));
    }

    fn say_closed(&mut self, key: SubscriptionKey) {
        let why = self.closed_by.as_ref().map(|it| Error::new(ErrorKind::Lost, it.clone()));
        self.outputs.push_back(Output::Ended(key, why));
    }

    fn opened(&mut self, key: SubscriptionKey) {
        let Some(entry) = self.open.get_mut(&key) else { return };
        let is_again = std::mem::replace(&mut entry.is_open, true);
        if !is_again {
            self.outputs.push_back(Output::Opened(key));
        }
        if is_again || entry.attempts > 0 || entry.settings.may_have_missed {
            let all = entry.interests.all().map(|it| Output::Changed(key, it));
            self.outputs.extend(all);
        }
    }

    fn tick(&mut self, now: Instant) {
        let due = self.open.iter().filter(|(_, it)| it.state.due().is_some_and(|it| it <= now));
        for key in due.map(|(key, _)| *key).collect::<Vec<_>>() {
            let Some(entry) = self.open.get(&key) else { continue };
            match entry.state {
                State::Asking { request, .. } => {
                    self.requests.remove(&request);
                    self.outputs.push_back(Output::Cancel(request));
                    let limit = entry.settings.timeout.unwrap_or_default().as_secs_f64();
                    let message = format!("subscriptions/listen: not acknowledged in {limit} s");
                    let error = Error::new(ErrorKind::Timeout, message);
                    self.failed(now, key, error.with_hint("timeout sets the limit"));
                }
                _ => self.listen_again(now, key),
            }
        }
    }

    fn told(&mut self, listen: Option<RequestKey>, change: &Change) {
        let Some(request) = listen else {
            let hearing = self.open.iter().filter(|(_, it)| it.interests.cover(change));
            let told = hearing.map(|(key, _)| Output::Changed(*key, change.clone()));
            return self.outputs.extend(told);
        };
        let Some(Purpose::Listen(key)) = self.requests.get(&request) else { return };
        let Some(entry) = self.open.get_mut(key) else { return };
        if entry.interests.allow(change) {
            entry.attempts = 0;
            self.outputs.push_back(Output::Changed(*key, change.clone()));
        } else {
            tracing::debug!(?change, "the server tells of what was not asked for: dropped");
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
