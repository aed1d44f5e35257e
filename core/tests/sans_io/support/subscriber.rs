//! The state machine of a client's subscriptions, with a manual clock and a scripted server.

use std::{
    collections::VecDeque,
    time::{Duration, Instant},
};

use gudgeon::{
    error::{Error, ErrorKind},
    peer::subscriptions::{
        Input, Interests, Output, SubscriptionKey, SubscriptionSettings, Subscriptions,
    },
    protocol::{Implementation, Method, Raw, Revision, SubscriptionFilter, json},
    session::client::{Change, RequestKey, ServerIdentity},
};

pub(crate) const TIMEOUT: Duration = Duration::from_secs(60);

pub(crate) struct Scripted {
    pub(crate) machine: Subscriptions,
    pub(crate) server: ServerIdentity,
    pub(crate) now: Instant,
    /// Requests that were not answered yet.
    pub(crate) requests: VecDeque<(RequestKey, Method, String)>,
    pub(crate) rest: VecDeque<Output>,
    pub(crate) next: u64,
}

pub(crate) fn everything() -> SubscriptionFilter {
    SubscriptionFilter::default().tools().uri("a:/b").uri("a:/c")
}

pub(crate) fn updated(uri: &str) -> Change {
    Change::Updated(uri.into())
}

pub(crate) fn lost() -> Error {
    Error::new(ErrorKind::Lost, "it broke")
}

pub(crate) fn done() -> Raw {
    json::raw("{}".into())
}

/// A server that can tell of everything but its prompts.
pub(crate) fn identity(revision: Revision) -> ServerIdentity {
    let capabilities = r#"{"tools":{"listChanged":true},"resources":{"subscribe":true}}"#;
    ServerIdentity {
        info: Implementation::new("server", "1"),
        revision,
        dialect: None,
        capabilities: json::raw(capabilities.into()),
        instructions: None,
    }
}

impl Scripted {
    pub(crate) fn new(revision: Revision) -> Self {
        Self {
            machine: Subscriptions::default(),
            server: identity(revision),
            now: Instant::now(),
            requests: VecDeque::new(),
            rest: VecDeque::new(),
            next: 0,
        }
    }

    pub(crate) fn modern() -> Self {
        Self::new(Revision::V2026_07_28)
    }

    pub(crate) fn legacy() -> Self {
        Self::new(Revision::V2025_11_25)
    }

    pub(crate) fn open(&mut self, filter: &SubscriptionFilter) -> SubscriptionKey {
        self.open_with(filter, SubscriptionSettings::default())
    }

    pub(crate) fn open_with(
        &mut self,
        filter: &SubscriptionFilter,
        settings: SubscriptionSettings,
    ) -> SubscriptionKey {
        let key = SubscriptionKey(self.next);
        self.next += 1;
        let settings = SubscriptionSettings { timeout: Some(TIMEOUT), ..settings };
        let interests = Interests::from_filter(filter).unwrap();
        let server = self.server.clone();
        self.feed(Input::Open { key, interests, settings, server: &server });
        key
    }

    /// Listens, acknowledged in full.
    pub(crate) fn listening(
        &mut self,
        settings: SubscriptionSettings,
    ) -> (SubscriptionKey, RequestKey) {
        let key = self.open_with(&everything(), settings);
        let request = self.asked(Method::Listen).0;
        self.feed(Input::Acknowledged(request, everything()));
        assert!(matches!(self.rest.pop_front(), Some(Output::Opened(opened)) if opened == key));
        (key, request)
    }

    pub(crate) fn feed(&mut self, input: Input<'_>) {
        self.machine.handle(self.now, input);
        while let Some(output) = self.machine.poll() {
            match output {
                Output::Request { key, method, params, .. } => {
                    self.requests.push_back((key, method, params));
                }
                output => self.rest.push_back(output),
            }
        }
    }

    pub(crate) fn answer(&mut self, request: RequestKey, outcome: Result<Raw, Error>) {
        self.feed(Input::Done(request, outcome));
    }

    /// The oldest request, which must be of this method.
    pub(crate) fn asked(&mut self, method: Method) -> (RequestKey, String) {
        let (key, asked, params) = self.requests.pop_front().expect("a request");
        assert_eq!(asked, method);
        (key, params)
    }

    /// Moves the clock; deadlines on the way are kept.
    pub(crate) fn advance(&mut self, by: Duration) {
        let end = self.now + by;
        while let Some(due) = self.machine.deadline().filter(|deadline| *deadline <= end) {
            self.now = due;
            self.feed(Input::Tick);
        }
        self.now = end;
    }

    pub(crate) fn changes(&mut self) -> Vec<(SubscriptionKey, Change)> {
        let told = std::mem::take(&mut self.rest).into_iter();
        told.map(|output| match output {
            Output::Changed(key, change) => (key, change),
            other => panic!("expected changes, got {other:?}"),
        })
        .collect()
    }

    pub(crate) fn ended(&mut self) -> (SubscriptionKey, Option<Error>) {
        match self.rest.pop_front() {
            Some(Output::Ended(key, why)) => (key, why),
            other => panic!("expected an end, got {other:?}"),
        }
    }

    pub(crate) fn silent(&self) {
        assert!(
            self.requests.is_empty() && self.rest.is_empty(),
            "{:?} {:?}",
            self.requests,
            self.rest
        );
    }
}
