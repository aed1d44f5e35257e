//! Properties of subscriptions that hold for any behaviour of the server.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::{Duration, Instant},
};

use gudgeon::{
    error::{Error, ErrorKind},
    peer::subscriptions::{
        Input, Interests, Output, SubscriptionKey, SubscriptionSettings, Subscriptions,
    },
    protocol::{Method, Revision, SubscriptionFilter, json},
    session::client::{Change, ListKind, RequestKey, ServerIdentity},
};
use proptest::prelude::*;

use crate::support::subscriber::identity;

#[derive(Clone, Debug)]
enum SubscriptionStep {
    /// The URIs, as bits, and true to subscribe to the tools.
    Open(u8, bool),
    Close(usize),
    /// The index of a request in flight, and its outcome.
    Answer(usize, Ending),
    Acknowledge(usize, bool),
    Tell(Option<usize>, u8),
    Renew,
    Wait(u64),
}

#[derive(Clone, Copy, Debug)]
enum Ending {
    Well,
    Lost,
    Refused,
}

fn steps() -> impl Strategy<Value = Vec<SubscriptionStep>> {
    let ending = prop_oneof![Just(Ending::Well), Just(Ending::Lost), Just(Ending::Refused)];
    let step = prop_oneof![
        (0..8_u8, any::<bool>()).prop_map(|(uris, tools)| SubscriptionStep::Open(uris, tools)),
        (0..6_usize).prop_map(SubscriptionStep::Close),
        (0..6_usize, ending).prop_map(|(at, how)| SubscriptionStep::Answer(at, how)),
        (0..6_usize, prop::bool::weighted(0.9))
            .prop_map(|(at, all)| SubscriptionStep::Acknowledge(at, all)),
        (prop::option::of(0..6_usize), 0..4_u8)
            .prop_map(|(at, what)| SubscriptionStep::Tell(at, what)),
        Just(SubscriptionStep::Renew),
        (0..70_000_u64).prop_map(SubscriptionStep::Wait),
    ];
    prop::collection::vec(step, 0..60)
}

fn uri(n: u8) -> String {
    format!("a:/{n}")
}

fn filter(uris: u8, tools: bool) -> SubscriptionFilter {
    let start = SubscriptionFilter::default();
    let start = if tools || uris == 0 { start.tools() } else { start };
    (0..3).filter(|n| uris & (1 << n) != 0).fold(start, |filter, n| filter.uri(uri(n)))
}

/// A client and all that was said to it and by it.
struct World {
    machine: Subscriptions,
    server: ServerIdentity,
    now: Instant,
    in_flight: Vec<(RequestKey, Method, String)>,
    /// The URIs that a legacy server watches.
    watched: BTreeSet<String>,
    alive: BTreeMap<SubscriptionKey, SubscriptionFilter>,
    opened: BTreeSet<SubscriptionKey>,
    next: u64,
}

impl World {
    fn new(revision: Revision) -> Self {
        Self {
            machine: Subscriptions::default(),
            server: identity(revision),
            now: Instant::now(),
            in_flight: Vec::new(),
            watched: BTreeSet::new(),
            alive: BTreeMap::new(),
            opened: BTreeSet::new(),
            next: 0,
        }
    }

    fn feed(&mut self, input: Input<'_>) {
        self.machine.handle(self.now, input);
        while let Some(output) = self.machine.poll() {
            match output {
                Output::Request { key, method, params, .. } => {
                    let about_it = self.in_flight.iter().filter(|(_, _, other)| *other == params);
                    let is_legacy = method != Method::Listen;
                    assert!(
                        !is_legacy || about_it.count() == 0,
                        "two words could overtake each other"
                    );
                    self.in_flight.push((key, method, params));
                }
                Output::Cancel(key) => {
                    let before = self.in_flight.len();
                    self.in_flight.retain(|(other, ..)| *other != key);
                    assert_eq!(self.in_flight.len() + 1, before, "it was in flight");
                }
                Output::Opened(key) => {
                    assert!(self.alive.contains_key(&key) && self.opened.insert(key));
                }
                Output::Changed(key, _) => assert!(self.alive.contains_key(&key)),
                Output::Ended(key, _) => assert!(self.alive.remove(&key).is_some()),
            }
        }
    }

    fn answer(&mut self, at: usize, how: Ending) {
        let (key, method, params) = self.in_flight.remove(at);
        let uri = params.split('"').nth(3).unwrap_or_default().to_owned();
        match (method, how) {
            (Method::Subscribe, Ending::Well) => drop(self.watched.insert(uri)),
            // Notifications of a subscription that it keeps anyway are ignored.
            (Method::Unsubscribe, _) => drop(self.watched.remove(&uri)),
            _ => (),
        }
        let outcome = match how {
            Ending::Well => Ok(json::raw("{}".into())),
            Ending::Lost => Err(Error::new(ErrorKind::Lost, "lost")),
            Ending::Refused => Err(Error::new(ErrorKind::Protocol, "refused")),
        };
        self.feed(Input::Done(key, outcome));
    }

    fn acknowledge(&mut self, at: usize, in_full: bool) {
        let (key, method, params) = self.in_flight[at].clone();
        if method == Method::Listen {
            let asked: serde_json::Value = serde_json::from_str(&params).unwrap();
            let asked: SubscriptionFilter =
                serde_json::from_value(asked["notifications"].clone()).unwrap();
            let kept = if in_full { asked } else { SubscriptionFilter::default() };
            self.feed(Input::Acknowledged(key, kept));
        }
    }

    fn take(&mut self, step: &SubscriptionStep) {
        let flying = self.in_flight.len();
        match *step {
            SubscriptionStep::Open(uris, tools) => {
                let (key, filter) = (SubscriptionKey(self.next), filter(uris, tools));
                self.next += 1;
                self.alive.insert(key, filter.clone());
                let settings = SubscriptionSettings {
                    timeout: Some(Duration::from_secs(60)),
                    ..SubscriptionSettings::default()
                };
                let interests = Interests::from_filter(&filter).unwrap();
                let server = self.server.clone();
                self.feed(Input::Open { key, interests, settings, server: &server });
            }
            SubscriptionStep::Close(at) => {
                if let Some(key) = self.alive.keys().nth(at).copied() {
                    self.alive.remove(&key);
                    self.feed(Input::Close(key));
                }
            }
            SubscriptionStep::Answer(at, how) if flying > 0 => self.answer(at % flying, how),
            SubscriptionStep::Acknowledge(at, in_full) if flying > 0 => {
                self.acknowledge(at % flying, in_full);
            }
            SubscriptionStep::Tell(at, what) => {
                let change = match what {
                    3 => Change::List(ListKind::Tools),
                    n => Change::Updated(uri(n)),
                };
                let listen = at.and_then(|at| self.in_flight.get(at)).map(|(key, ..)| *key);
                self.feed(Input::Changed(listen, change));
            }
            SubscriptionStep::Renew if self.server.revision != Revision::V2026_07_28 => {
                self.watched.clear();
                self.feed(Input::Renewed);
            }
            SubscriptionStep::Wait(ms) => {
                let end = self.now + Duration::from_millis(ms);
                while let Some(due) = self.machine.deadline().filter(|deadline| *deadline <= end) {
                    self.now = self.now.max(due);
                    self.feed(Input::Tick);
                }
                self.now = end;
            }
            _ => (),
        }
    }

    /// Makes the server accept all requests from now on.
    fn settle(&mut self) {
        loop {
            let listens = |request: &&(RequestKey, Method, String)| request.1 == Method::Listen;
            if let Some(at) =
                self.in_flight.iter().position(|(_, method, _)| *method != Method::Listen)
            {
                self.answer(at, Ending::Well);
            } else if self.machine.deadline().is_some() {
                let asking: Vec<_> = self.in_flight.iter().filter(listens).cloned().collect();
                for (key, ..) in asking {
                    if let Some(at) = self.in_flight.iter().position(|(other, ..)| *other == key) {
                        self.acknowledge(at, true);
                    }
                }
                self.take(&SubscriptionStep::Wait(500));
            } else {
                return;
            }
        }
    }
}

proptest! {
    #[test]
    fn exactly_the_subscribed_changes_are_delivered_in_the_end(
        steps in steps(),
        revision in prop_oneof![Just(Revision::V2025_11_25), Just(Revision::V2026_07_28)],
    ) {
        let mut world = World::new(revision);
        for step in &steps {
            world.take(step);
        }
        world.settle();
        for key in world.alive.keys() {
            prop_assert!(world.opened.contains(key), "{key:?} stands");
        }
        if revision == Revision::V2026_07_28 {
            prop_assert_eq!(world.in_flight.len(), world.alive.len(), "each listens once");
        } else {
            let uris = world.alive.values().filter_map(|filter| filter.resource_subscriptions.clone()).flatten();
            prop_assert_eq!(&world.watched, &uris.collect::<BTreeSet<_>>());
        }
        world.feed(Input::Closed(Some("gone")));
        prop_assert!(world.alive.is_empty() && world.machine.deadline().is_none());
    }
}
