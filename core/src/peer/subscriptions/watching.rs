//! Before 2026-07-28: a URI is asked for once, however many want to hear of it.

use super::{Output, Purpose, State, SubscriptionKey, Subscriptions, uris::Step};
use crate::{
    error::{Error, ErrorKind},
    protocol::{Method, Raw, json},
    session::client::Change,
};

impl Subscriptions {
    /// Tells the server what it has to know of a URI next.
    pub(super) fn step(&mut self, uri: &str) {
        let Some(step) = self.uris.next(uri) else { return };
        let method = match step {
            Step::Subscribe => Method::Subscribe,
            Step::Unsubscribe => Method::Unsubscribe,
        };
        let mut params = json::ObjectWriter::with_capacity(uri.len() + 16);
        params.member("uri", uri);
        let purpose = Purpose::Uri(uri.to_owned(), step);
        self.request(purpose, method, params.finish(), self.timeout);
    }

    pub(super) fn answered(&mut self, uri: &str, step: Step, outcome: Result<Raw, Error>) {
        let waiting = self.uris.answered(uri, step, outcome.is_ok());
        match (step, outcome) {
            (Step::Subscribe, Ok(_)) => {
                for key in waiting {
                    let Some(entry) = self.open.get_mut(&key) else { continue };
                    match &mut entry.state {
                        State::Subscribing(left) => drop(left.remove(uri)),
                        // It was watched before: by a session that is gone.
                        _ => self
                            .outputs
                            .push_back(Output::Changed(key, Change::Updated(uri.to_owned()))),
                    }
                    self.subscribed(key);
                }
            }
            (Step::Subscribe, Err(error)) => {
                for key in waiting {
                    self.end(key, Some(copy(&error)));
                }
            }
            (Step::Unsubscribe, Err(error)) => {
                tracing::debug!(%error, uri, "a subscription could not be taken back");
            }
            (Step::Unsubscribe, Ok(_)) => (),
        }
        self.step(uri);
    }

    /// It stands when the last of its URIs is watched.
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
                let lists = entry.interests.all().filter(|it| matches!(it, Change::List(_)));
                self.outputs.extend(lists.map(|it| Output::Changed(*key, it)));
            }
        }
    }

    pub(super) fn deaf(&mut self, why: &str) {
        let deaf = self
            .open
            .iter()
            .filter(|(_, it)| matches!(it.state, State::Subscribing(_) | State::Subscribed));
        for key in deaf.map(|(key, _)| *key).collect::<Vec<_>>() {
            self.end(key, Some(Error::new(ErrorKind::Lost, why)));
        }
    }
}

/// The same error for one more; what it came from stays with the first.
fn copy(error: &Error) -> Error {
    Error {
        hint: error.hint.clone(),
        target: error.target.clone(),
        phase: error.phase,
        code: error.code,
        data: error.data.clone(),
        http_status: error.http_status,
        exit_status: error.exit_status,
        stderr: error.stderr.clone(),
        ..Error::new(error.kind, error.message.clone())
    }
}
