//! The resources of an upstream server whose updates are passed on.

use std::collections::{BTreeSet, VecDeque};

use crate::{
    client::{Change, Client, Subscription},
    error::{Error, ErrorKind},
};

/// The resources of a list whose updates are passed on, and again those that are in no list.
const MAX_WATCHED: usize = 1_000;

/// Subscriptions to the resources that are listed, and to others that clients have subscribed to.
#[derive(Default)]
pub(super) struct Watched {
    listed: Part,
    others: Part,
}

#[derive(Default)]
struct Part {
    /// In the order in which they came.
    uris: VecDeque<String>,
    subscription: Option<Subscription>,
    /// The subscription has other resources.
    is_outdated: bool,
}

impl Watched {
    /// Watches these resources, which are listed.
    pub(super) fn listed(&mut self, uris: Vec<String>) {
        self.listed.uris = uris.into_iter().take(MAX_WATCHED).collect();
        // A server that has just been reached again does not know of the subscription.
        self.listed.is_outdated = true;
        let listed: BTreeSet<&String> = self.listed.uris.iter().collect();
        self.others.uris.retain(|uri| !listed.contains(uri));
        self.others.is_outdated = true;
    }

    /// Watches a resource that a client has subscribed to, in place of the oldest one if there are many.
    pub(super) fn wanted(&mut self, uri: String) {
        if self.listed.uris.contains(&uri) || self.others.uris.contains(&uri) {
            return;
        }
        if self.others.uris.len() == MAX_WATCHED {
            self.others.uris.pop_front();
        }
        self.others.uris.push_back(uri);
        self.others.is_outdated = true;
    }

    /// Subscribes to what is to be watched. What was watched before is not lost in between.
    pub(super) async fn watch(&mut self, client: &Client, server: &str) {
        let warn = |error: &Error| {
            tracing::warn!(
                ?server, %error,
                "updates of an upstream server's resources go unnoticed"
            );
        };
        if let Err(error) = self.listed.subscribe(client).await {
            warn(&error);
        }
        while let Err(error) = self.others.subscribe(client).await {
            warn(&error);
            // The server may refuse one of them. The others were watched before the last one came.
            if is_of_connection(&error) || self.others.uris.pop_back().is_none() {
                return;
            }
            self.others.is_outdated = true;
        }
    }

    /// Returns the next resource that was updated; `None` if a subscription has ended.
    pub(super) async fn next_update(&mut self) -> Option<String> {
        tokio::select! {
            uri = self.listed.next() => uri,
            uri = self.others.next() => uri,
        }
    }
}

impl Part {
    async fn subscribe(&mut self, client: &Client) -> Result<(), Error> {
        if !std::mem::take(&mut self.is_outdated) {
            return Ok(());
        }
        self.subscription = match self.uris.is_empty() || !client.server().notifies_of_updates() {
            true => None,
            // The one before ends once there is a new one.
            false => Some(client.subscribe(self.uris.iter().cloned().map(Change::Updated)).await?),
        };
        Ok(())
    }

    /// Returns the next resource that was updated; `None` if the subscription has ended. Without a subscription there is none.
    async fn next(&mut self) -> Option<String> {
        let Some(open) = &mut self.subscription else { return std::future::pending().await };
        match open.next().await {
            Some(Ok(Change::Updated(uri))) => return Some(uri),
            Some(Ok(Change::List(_))) => return None,
            Some(Err(error)) => {
                tracing::warn!(%error, "updates of an upstream server's resources go unnoticed");
            }
            None => (),
        }
        self.subscription = None;
        None
    }
}

/// Returns whether a subscription failed without an answer of the server.
fn is_of_connection(error: &Error) -> bool {
    !matches!(error.kind, ErrorKind::Unsupported) && error.code.is_none()
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
        let others = &watched.others.uris;
        assert_eq!((others.len(), others.front()), (MAX_WATCHED, Some(&uri(2))));
        watched.listed(vec![uri(3)]);
        assert!(!watched.others.uris.contains(&uri(3)), "it is listed now");
    }
}
