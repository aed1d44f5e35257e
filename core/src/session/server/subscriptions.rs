//! Subscriptions: `subscriptions/listen` from 2026-07-28, `resources/subscribe` before.

use std::collections::BTreeSet;

use super::{About, Output, ServerSession};
use crate::{
    error::Fault,
    framing::DEFAULT_LINE_LIMIT,
    protocol::{Id, Method, Raw, Response, SubscriptionFilter, json::ObjectWriter, meta},
    session::InboundKey,
};

/// The maximum number of URIs in the subscriptions of one client.
const MAX_URIS: usize = 10_000;
/// The maximum size of a session's subscribed URIs, in bytes; a session may outlive its connections.
const MAX_URI_BYTES: usize = 1024 * 1024;
/// The maximum size of the URIs in `subscriptions/listen`, in bytes: that of one message, since it ends with its
/// connection.
const MAX_LISTENED_BYTES: usize = DEFAULT_LINE_LIMIT;
/// The maximum number of open `subscriptions/listen` per client.
const MAX_LISTENING: usize = 1_000;

#[derive(Debug, Default)]
pub(super) struct Subscriptions {
    uris: BTreeSet<String>,
    /// The size of these URIs, in bytes.
    bytes: usize,
    listening: Vec<(InboundKey, SubscriptionFilter)>,
}

impl Subscriptions {
    pub(super) fn is_empty(&self) -> bool {
        self.uris.is_empty() && self.listening.is_empty()
    }

    /// Returns the resources of `resources/subscribe`.
    pub(super) fn uris(&self) -> &BTreeSet<String> {
        &self.uris
    }

    /// Ends the subscription of a `subscriptions/listen`.
    pub(super) fn forget(&mut self, call: InboundKey) {
        self.listening.retain(|(key, _)| *key != call);
    }

    pub(super) fn subscribe(&mut self, uri: String) -> Result<(), Fault> {
        if self.uris.contains(&uri) {
            return Ok(());
        }
        let bytes = self.bytes + uri.len();
        if self.uris.len() >= MAX_URIS || bytes > MAX_URI_BYTES {
            return Err(Fault::invalid_params(format!(
                "more than {MAX_URIS} subscriptions, or {MAX_URI_BYTES} bytes of URIs: unsubscribe from some first"
            )));
        }
        self.bytes = bytes;
        self.uris.insert(uri);
        Ok(())
    }

    pub(super) fn unsubscribe(&mut self, uri: &str) {
        if self.uris.remove(uri) {
            self.bytes -= uri.len();
        }
    }

    /// Restricts the filter of a new subscription to the remaining limits. The acknowledgment reports the result
    /// (Subscriptions, "Acknowledgment").
    fn restrict(&self, filter: &mut SubscriptionFilter) {
        let Some(uris) = &mut filter.resource_subscriptions else { return };
        let others =
            self.listening.iter().filter_map(|(_, filter)| filter.resource_subscriptions.as_ref());
        let (mut count, mut bytes) = (0, 0);
        for uri in others.flatten() {
            count += 1;
            bytes += uri.len();
        }
        let fits = |uri: &&String| {
            count += 1;
            bytes += uri.len();
            count <= MAX_URIS && bytes <= MAX_LISTENED_BYTES
        };
        let fitting = uris.iter().take_while(fits).count();
        uris.truncate(fitting);
    }
}

impl ServerSession {
    /// Returns `true` if there is a subscription.
    pub fn listens(&self) -> bool {
        !self.subscriptions.listening.is_empty() || self.handshake.wire().is_some()
    }

    /// Returns the number of open `subscriptions/listen`.
    pub fn listening(&self) -> usize {
        self.subscriptions.listening.len()
    }

    /// The acknowledgment must be the first message of a subscription (Subscriptions, "Acknowledgment").
    pub(super) fn start_listening(&mut self, call: InboundKey, mut filter: SubscriptionFilter) {
        if self.subscriptions.listening.len() >= MAX_LISTENING {
            let fault = Fault::invalid_params(format!(
                "more than {MAX_LISTENING} subscriptions/listen at once: cancel some first, or name more in one"
            ));
            return self.handle_done(call, Err(fault));
        }
        let Some((id, _)) = self.pending.get_mut(call) else { return };
        self.subscriptions.restrict(&mut filter);
        let mut params = ObjectWriter::with_capacity(128);
        params.raw("_meta", &subscription_meta(id)).member("notifications", &filter);
        let params = params.finish();
        if let Some(uris) = &filter.resource_subscriptions {
            self.outputs.push_back(Output::Subscribed(uris.clone()));
        }
        self.subscriptions.listening.push((call, filter));
        self.notify(About::Call(call), Method::SubscriptionsAcknowledged, Some(&params));
        if self.is_ending {
            self.end_subscriptions();
        }
    }

    pub(super) fn send_updated(&mut self, uri: &str) {
        self.notify_listeners(Method::ResourceUpdated, Some(uri), |filter| {
            filter
                .resource_subscriptions
                .as_ref()
                .is_some_and(|uris| uris.iter().any(|known| known == uri))
        });
        if self.subscriptions.uris.contains(uri) {
            let mut params = ObjectWriter::with_capacity(uri.len() + 16);
            params.member("uri", uri);
            self.notify_change(About::Peer, Method::ResourceUpdated, Some(&params.finish()), false);
        }
    }

    /// Reports every resource that somebody has subscribed to as changed.
    pub(super) fn send_all_updated(&mut self) {
        let listened = self.subscriptions.listening.iter();
        let listened = listened.filter_map(|(_, filter)| filter.resource_subscriptions.as_ref());
        let mut uris: BTreeSet<_> = listened.flatten().cloned().collect();
        uris.extend(self.subscriptions.uris.iter().cloned());
        for uri in uris {
            self.send_updated(&uri);
        }
    }

    /// Notifies the subscriptions; every frame names its subscription (Subscriptions, "Receiving Notifications").
    pub(super) fn notify_listeners(
        &mut self,
        method: Method,
        uri: Option<&str>,
        wants: impl Fn(&SubscriptionFilter) -> bool,
    ) {
        let wanting: Vec<InboundKey> = self
            .subscriptions
            .listening
            .iter()
            .filter(|(_, filter)| wants(filter))
            .map(|(call, _)| *call)
            .collect();
        for call in wanting {
            let Some((id, _)) = self.pending.get_mut(call) else { continue };
            let mut params = ObjectWriter::with_capacity(96);
            params.raw("_meta", &subscription_meta(id));
            if let Some(uri) = uri {
                params.member("uri", uri);
            }
            let params = params.finish();
            self.notify_change(About::Call(call), method, Some(&params), uri.is_none());
        }
    }

    /// Cancels all subscriptions with a reason (Cancellation, "Behavior Requirements").
    pub(super) fn cut_subscriptions(&mut self, reason: &str) {
        for (call, _) in std::mem::take(&mut self.subscriptions.listening) {
            let Some((id, _)) = self.pending.get_mut(call) else { continue };
            let mut params = ObjectWriter::with_capacity(128);
            params
                .raw("_meta", &subscription_meta(id))
                .raw("requestId", id.as_json())
                .member("reason", reason);
            let params = params.finish();
            self.notify(About::Call(call), Method::Cancelled, Some(&params));
            if let Some((_, inbound)) = self.pending.complete(call) {
                self.settle(Some(call), inbound.slot, None);
            }
        }
    }

    /// Ends all subscriptions with the result of their request (Subscriptions, "Graceful Closure").
    pub(super) fn end_subscriptions(&mut self) {
        self.is_ending = true;
        for (call, _) in std::mem::take(&mut self.subscriptions.listening) {
            let Some((id, _)) = self.pending.get_mut(call) else { continue };
            let meta: Raw = crate::protocol::json::raw(subscription_meta(id));
            self.handle_done(call, Ok(Response::Ended { meta }));
        }
    }
}

fn subscription_meta(id: &Id) -> String {
    let mut members = ObjectWriter::with_capacity(64);
    members.raw(meta::SUBSCRIPTION_ID, id.as_json());
    members.finish()
}
