//! Resources that the server watches for the client; each is subscribed once for all subscriptions that contain it
//! (before 2026-07-28).

use std::collections::{BTreeMap, BTreeSet};

use super::SubscriptionKey;

#[derive(Debug, Default)]
pub(super) struct Uris {
    known: BTreeMap<String, Watched>,
}

#[derive(Debug, Default)]
struct Watched {
    by: BTreeSet<SubscriptionKey>,
    state: WatchState,
}

/// The server's state for a URI. The next request is sent after the response to the last one, because two could
/// overtake each other.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
enum WatchState {
    #[default]
    Nothing,
    Subscribing,
    Subscribed,
    Unsubscribing,
}

/// The next request for a URI.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum UriRequest {
    Subscribe,
    Unsubscribe,
}

impl Uris {
    /// Adds a subscription of a URI. Returns whether the server watches the URI already.
    pub(super) fn want(&mut self, uri: &str, key: SubscriptionKey) -> bool {
        let watched = self.known.entry(uri.to_owned()).or_default();
        watched.by.insert(key);
        watched.state == WatchState::Subscribed
    }

    pub(super) fn leave(&mut self, uri: &str, key: SubscriptionKey) {
        if let Some(watched) = self.known.get_mut(uri) {
            watched.by.remove(&key);
        }
    }

    pub(super) fn next(&mut self, uri: &str) -> Option<UriRequest> {
        let watched = self.known.get_mut(uri)?;
        let (state, step) = match (watched.state, watched.by.is_empty()) {
            (WatchState::Nothing, false) => (WatchState::Subscribing, UriRequest::Subscribe),
            (WatchState::Subscribed, true) => (WatchState::Unsubscribing, UriRequest::Unsubscribe),
            (WatchState::Nothing, true) => {
                self.known.remove(uri);
                return None;
            }
            _ => return None,
        };
        watched.state = state;
        Some(step)
    }

    /// Processes the server's response. Returns the subscriptions to inform; after a rejection they no longer want
    /// the URI.
    pub(super) fn answered(
        &mut self,
        uri: &str,
        step: UriRequest,
        is_done: bool,
    ) -> Vec<SubscriptionKey> {
        let Some(watched) = self.known.get_mut(uri) else { return Vec::new() };
        match (step, is_done) {
            (UriRequest::Subscribe, true) => {
                watched.state = WatchState::Subscribed;
                watched.by.iter().copied().collect()
            }
            (UriRequest::Subscribe, false) => {
                watched.state = WatchState::Nothing;
                std::mem::take(&mut watched.by).into_iter().collect()
            }
            (UriRequest::Unsubscribe, _) => {
                watched.state = WatchState::Nothing;
                Vec::new()
            }
        }
    }

    /// Marks all URIs as not subscribed, because the server's session is new. Returns the URIs to subscribe again.
    pub(super) fn forgotten(&mut self) -> Vec<String> {
        let held =
            self.known.iter_mut().filter(|(_, watched)| watched.state == WatchState::Subscribed);
        let held = held.map(|(uri, watched)| {
            watched.state = WatchState::Nothing;
            uri.clone()
        });
        held.collect()
    }

    pub(super) fn clear(&mut self) {
        self.known.clear();
    }
}
