//! Subscriptions before 2026-07-28: one request per URI, shared by all subscriptions that contain it.

use super::{Output, Purpose, State, SubscriptionKey, Subscriptions, uris::UriRequest};
use crate::{
    error::{Error, ErrorKind},
    protocol::{Method, Raw, json},
    session::client::Change,
};

impl Subscriptions {
    /// Sends the next request for a URI, if one is needed.
    pub(super) fn step(&mut self, uri: &str) {
        let Some(step) = self.uris.next(uri) else { return };
        let method = match step {
            UriRequest::Subscribe => Method::Subscribe,
            UriRequest::Unsubscribe => Method::Unsubscribe,
        };
        let mut params = json::ObjectWriter::with_capacity(uri.len() + 16);
        params.member("uri", uri);
        let purpose = Purpose::Uri(uri.to_owned(), step);
        self.request(purpose, method, params.finish(), self.timeout);
    }

    pub(super) fn answered(&mut self, uri: &str, step: UriRequest, outcome: Result<Raw, Error>) {
        let waiting = self.uris.answered(uri, step, outcome.is_ok());
        match (step, outcome) {
            (UriRequest::Subscribe, Ok(_)) => {
                for key in waiting {
                    let Some(entry) = self.open.get_mut(&key) else { continue };
                    match &mut entry.state {
                        State::Subscribing(left) => drop(left.remove(uri)),
                        // The URI was subscribed in an earlier session, so changes may have been missed.
                        _ => self
                            .outputs
                            .push_back(Output::Changed(key, Change::Updated(uri.to_owned()))),
                    }
                    self.subscribed(key);
                }
            }
            (UriRequest::Subscribe, Err(error)) => {
                for key in waiting {
                    self.end(key, Some(error.duplicate()));
                }
            }
            (UriRequest::Unsubscribe, Err(error)) => {
                tracing::debug!(%error, uri, "unsubscribing failed");
            }
            (UriRequest::Unsubscribe, Ok(_)) => (),
        }
        self.step(uri);
    }

    /// Marks a subscription as established once the server watches all its URIs.
    pub(super) fn subscribed(&mut self, key: SubscriptionKey) {
        if let Some(entry) = self.open.get_mut(&key)
            && matches!(&entry.state, State::Subscribing(left) if left.is_empty())
        {
            entry.state = State::Subscribed;
            self.opened(key);
        }
    }

    pub(super) fn renewed(&mut self) {
        for uri in self.uris.forgotten() {
            self.step(&uri);
        }
        for (key, entry) in &self.open {
            if matches!(entry.state, State::Subscribed) {
                let lists =
                    entry.interests.all().filter(|change| matches!(change, Change::List(_)));
                self.outputs.extend(lists.map(|change| Output::Changed(*key, change)));
            }
        }
    }

    pub(super) fn stream_lost(&mut self, why: &str) {
        let stream_lost = self
            .open
            .iter()
            .filter(|(_, entry)| matches!(entry.state, State::Subscribing(_) | State::Subscribed));
        for key in stream_lost.map(|(key, _)| *key).collect::<Vec<_>>() {
            self.end(key, Some(Error::new(ErrorKind::Lost, why)));
        }
    }
}
