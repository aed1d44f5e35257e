//! The connection for messages.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use futures_util::StreamExt as _;
use tokio::{
    sync::Notify,
    time::{sleep, timeout},
};

use super::{
    Place,
    commands::{CHANNELS, channel},
    reason,
};
use crate::stores::{backoff::Backoff, topics::Topics};

/// The time without a message after which the connection is checked.
const IDLE: Duration = Duration::from_secs(15);

/// Delivers messages to the listeners of topics, for ever. Without a listener there is no connection.
pub(super) async fn deliver(place: &Place, topics: &Arc<Topics>, changed: &Notify) {
    let mut backoff = Backoff::default();
    let mut is_away = false;
    loop {
        while topics.names().is_empty() {
            changed.notified().await;
        }
        let mut is_connected = false;
        let failed = receive(place, topics, changed, &mut is_connected).await;
        topics.disconnected();
        if is_connected {
            is_away = false;
            backoff = Backoff::default();
        }
        let Err(reason) = failed else { continue };
        if !is_away {
            is_away = true;
            tracing::warn!("{}: messages of other servers may be lost: {reason}", place.name);
        }
        sleep(backoff.next()).await;
    }
}

/// Receives messages while there are listeners. Errors with the reason why the connection ended.
async fn receive(
    place: &Place,
    topics: &Arc<Topics>,
    changed: &Notify,
    is_connected: &mut bool,
) -> Result<(), String> {
    let late = |_| format!("no reply within {:?}", place.deadline);
    let connect = timeout(place.deadline, place.client.get_async_pubsub());
    let connected = connect.await.map_err(late)?.map_err(|error| reason(&error))?;
    let (mut sink, mut messages) = connected.split();
    let mut subscribed = BTreeSet::new();
    loop {
        let (waiting, names) = (topics.unconnected(), topics.names());
        let added: Vec<_> = names.difference(&subscribed).map(|topic| channel(topic)).collect();
        if !added.is_empty() {
            let subscribe = timeout(place.deadline, sink.subscribe(&added));
            subscribe.await.map_err(late)?.map_err(|error| reason(&error))?;
        }
        let removed: Vec<_> = subscribed.difference(&names).map(|topic| channel(topic)).collect();
        if !removed.is_empty() {
            let unsubscribe = timeout(place.deadline, sink.unsubscribe(&removed));
            unsubscribe.await.map_err(late)?.map_err(|error| reason(&error))?;
        }
        subscribed = names;
        *is_connected = true;
        topics.connected(&waiting);
        if subscribed.is_empty() {
            return Ok(());
        }
        loop {
            tokio::select! {
                message = messages.next() => {
                    let message = message.ok_or("the connection was lost")?;
                    let channel = message.get_channel_name();
                    if let Some(topic) = channel.strip_prefix(CHANNELS) {
                        topics.publish(topic.to_owned(), message.get_payload_bytes().to_vec());
                    }
                }
                () = changed.notified() => break,
                () = sleep(IDLE) => {
                    let ping = timeout(place.deadline, sink.ping::<redis::Value>());
                    ping.await.map_err(late)?.map_err(|error| reason(&error))?;
                }
            }
        }
    }
}
