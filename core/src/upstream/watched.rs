//! The resources of an upstream server whose updates are passed on.

use std::collections::VecDeque;

use futures_util::{StreamExt as _, stream::select_all};

use crate::{
    client::{Change, Client, Subscription},
    clock,
    error::Error,
    log_limit::LogLimit,
};

/// The resources of a list whose updates are passed on, and again those that are in no list.
const MAX_WATCHED: usize = 1_000;
/// The resources with a subscription each, from which on they get one together.
const MAX_SINGLE: usize = 16;
/// The subscriptions that are tried before other news of the server is looked at.
const MAX_AT_ONCE: usize = 32;

/// Subscriptions to the resources that are listed, and to others that clients have subscribed to.
#[derive(Default)]
pub(super) struct Watched {
    listed: Vec<String>,
    listed_has_changed: bool,
    of_list: Option<Subscription>,
    others: Others,
    log: LogLimit,
}

/// Resources that are in no list. A server may refuse one of them, which must not keep the others from being watched.
#[derive(Default)]
struct Others {
    /// Those that were not tried yet.
    wanted: VecDeque<String>,
    /// Those that are watched, the oldest first.
    watched: VecDeque<String>,
    together: Option<Subscription>,
    single: Vec<Subscription>,
}

impl Watched {
    /// Watches these resources, which are listed.
    pub(super) fn listed(&mut self, uris: Vec<String>) {
        self.listed = uris.into_iter().take(MAX_WATCHED).collect();
        self.listed_has_changed = true;
    }

    /// Watches a resource that a client has subscribed to, in place of the oldest one if there are many.
    pub(super) fn wanted(&mut self, uri: String) {
        if self.listed.contains(&uri) {
            return;
        }
        self.others.want(uri);
    }

    /// Subscribes to what is to be watched. What was watched before is not lost in between. Returns whether there is more to do.
    pub(super) async fn watch(&mut self, client: &Client, server: &str) -> bool {
        if std::mem::take(&mut self.listed_has_changed) {
            match watch(client, &self.listed).await {
                // The one before ends now.
                Ok(subscription) => self.of_list = subscription,
                Err(error) => self.warn(server, &error),
            }
        }
        let before = self.others.single.len();
        for _ in 0..MAX_AT_ONCE {
            let Some(uri) = self.others.wanted.pop_front() else { break };
            match watch(client, std::slice::from_ref(&uri)).await {
                Ok(None) => (),
                Ok(Some(subscription)) => {
                    self.others.watched.push_back(uri);
                    self.others.single.push(subscription);
                }
                Err(error) => self.warn(server, &error),
            }
        }
        let single = self.others.single.len();
        if single > before && single > MAX_SINGLE {
            let uris: Vec<_> = self.others.watched.iter().cloned().collect();
            match watch(client, &uris).await {
                Ok(subscription) => {
                    self.others.together = subscription;
                    self.others.single.clear();
                }
                Err(error) => self.warn(server, &error),
            }
        }
        !self.others.wanted.is_empty()
    }

    /// Waits for the next resource that is updated. Returns `None` if a subscription failed.
    pub(super) async fn next_update(&mut self) -> Option<String> {
        let single = self.others.single.iter_mut();
        let all = single.chain(&mut self.others.together).chain(&mut self.of_list);
        match select_all(all).next().await {
            Some(Ok(Change::Updated(uri))) => Some(uri),
            Some(Ok(Change::List(_))) => None,
            Some(Err(error)) => {
                tracing::warn!(%error, "updates of an upstream server's resources go unnoticed");
                None
            }
            // All that there were have ended.
            None => std::future::pending().await,
        }
    }

    fn warn(&mut self, server: &str, error: &Error) {
        if let Some(left_out) = self.log.due(clock::unix()) {
            tracing::warn!(
                ?server, %error,
                "updates of an upstream server's resources go unnoticed{left_out}"
            );
        }
    }
}

impl Others {
    fn want(&mut self, uri: String) {
        if self.watched.contains(&uri) || self.wanted.contains(&uri) {
            return;
        }
        if self.wanted.len() + self.watched.len() == MAX_WATCHED {
            let oldest = self.watched.pop_front().or_else(|| self.wanted.pop_front());
            // Its own subscription is among the first, and the one that it shares is made again without it.
            if oldest.is_some() && self.together.is_none() && !self.single.is_empty() {
                self.single.remove(0);
            }
        }
        self.wanted.push_back(uri);
    }
}

/// Subscribes to these resources; `None` if there are none, or the server does not tell of updates.
async fn watch(client: &Client, uris: &[String]) -> Result<Option<Subscription>, Error> {
    if uris.is_empty() || !client.server().notifies_of_updates() {
        return Ok(None);
    }
    client.subscribe(uris.iter().cloned().map(Change::Updated)).await.map(Some)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn uri(number: usize) -> String {
        format!("a://{number}")
    }

    #[test]
    fn the_resources_that_are_in_no_list_are_bounded_and_the_oldest_goes() {
        let mut watched = Watched::default();
        watched.listed(vec![uri(0)]);
        for number in 0..=MAX_WATCHED + 1 {
            watched.wanted(uri(number));
            watched.wanted(uri(number));
        }
        let wanted = &watched.others.wanted;
        assert_eq!((wanted.len(), wanted.front()), (MAX_WATCHED, Some(&uri(2))));
        watched.others.watched = std::mem::take(&mut watched.others.wanted);
        watched.wanted(uri(3));
        assert!(watched.others.wanted.is_empty(), "it is watched already");
        watched.wanted(uri(0));
        assert!(watched.others.wanted.is_empty(), "it is listed");
        watched.wanted(uri(MAX_WATCHED + 2));
        let others = &watched.others;
        assert_eq!((others.wanted.len(), others.watched.front()), (1, Some(&uri(3))));
    }
}
