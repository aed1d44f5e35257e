//! Servers at URLs.

use std::{
    collections::{HashMap, HashSet},
    future::Future,
    pin::Pin,
    time::Duration,
};

use gudgeon::{
    client::{ClientBuilder, Relay, Relayed},
    protocol::code,
};
use tokio::{
    sync::{mpsc, oneshot},
    time::{Instant, sleep_until},
};

use super::{
    Connection, Ended, MAX_FRAME, MAX_WAITING, Upstream,
    message::{Kind, RawObject, error},
    process::warn_too_long,
};
use crate::{failure::Failure, output};

const SUBSCRIPTION_ID: &str = "io.modelcontextprotocol/subscriptionId";
/// The time for responses once the client has closed its side.
const GRACE: Duration = Duration::from_secs(2);
/// The first id of requests whose own id is not an integer. Clients count from small numbers.
const FIRST_ID: u64 = 1 << 52;

/// Returns a client of the server, which is not connected.
type Open = dyn Fn() -> Result<ClientBuilder, Failure> + Send + Sync;

/// A server at a URL.
pub struct Remote {
    open: Box<Open>,
}

impl Remote {
    /// A server that is reached as the client of `open` would reach it: with its target, headers and credentials.
    pub fn new(open: impl Fn() -> Result<ClientBuilder, Failure> + Send + Sync + 'static) -> Self {
        Self { open: Box::new(open) }
    }
}

impl Upstream for Remote {
    fn open(&self) -> Pin<Box<dyn Future<Output = Result<Connection, Failure>> + Send + '_>> {
        Box::pin(async {
            let builder = (self.open)()?.options(|options| options.max_message = MAX_FRAME);
            let relay = builder.relay().await?;
            let (to_server, from_client) = mpsc::unbounded_channel();
            let (to_client, from_server) = mpsc::channel(MAX_WAITING);
            let (ending, ended) = oneshot::channel();
            let carrier = Carrier { relay, to_client, ids: Ids::default() };
            tokio::spawn(async move {
                let stderr = carrier.run(from_client).await;
                // The receiver may not be interested.
                let _ = ending.send(Ended { code: None, stderr });
            });
            Ok(Connection { to_server, from_server, ended })
        })
    }
}

/// The task of one connection.
struct Carrier {
    relay: Relay,
    to_client: mpsc::Sender<Vec<u8>>,
    ids: Ids,
}

impl Carrier {
    /// Passes messages on until one side is gone; returns the reason if it is the server.
    async fn run(mut self, mut from_client: mpsc::UnboundedReceiver<Vec<u8>>) -> String {
        let mut closing = None;
        let why = loop {
            if closing.is_some() && self.ids.is_idle() {
                break String::new();
            }
            tokio::select! {
                frame = from_client.recv(), if closing.is_none() => match frame {
                    Some(frame) => {
                        let frame = self.ids.sent(frame);
                        self.relay.send(frame);
                    }
                    None => closing = Some(Instant::now() + GRACE),
                },
                () = until(closing) => break String::new(),
                event = self.relay.next() => {
                    let frame = match event {
                        Relayed::Message(frame) => self.ids.received(frame.into()),
                        Relayed::Failed { id, error } => self.ids.fail(id, &error.to_string()),
                        Relayed::TooLong { limit } => {
                            warn_too_long("the server", limit);
                            continue;
                        }
                        Relayed::Renewed => {
                            output::note("the server had ended the session; another one was opened");
                            continue;
                        }
                        Relayed::StreamLost(why) => {
                            output::note(format_args!("notifications of the server are lost: {why}"));
                            continue;
                        }
                        Relayed::End(why) => break why,
                    };
                    if self.to_client.send(frame).await.is_err() {
                        break String::new();
                    }
                }
            }
        };
        self.relay.close().await;
        why
    }
}

async fn until(time: Option<Instant>) {
    match time {
        Some(time) => sleep_until(time).await,
        None => std::future::pending().await,
    }
}

/// The ids of requests in progress. The server sees integers; those of the client are kept.
#[derive(Default)]
struct Ids {
    /// The client's ids that are not integers, as JSON text, by those that the server sees.
    replaced: HashMap<u64, String>,
    /// The ids that the server sees, of requests that will have a response soon.
    pending: HashSet<u64>,
    last: u64,
}

impl Ids {
    /// Returns whether no response is to be expected.
    fn is_idle(&self) -> bool {
        self.pending.is_empty()
    }

    /// Returns a message of the client as the server sees it.
    fn sent(&mut self, frame: Vec<u8>) -> Vec<u8> {
        let Some(mut message) = RawObject::parse(&frame) else { return frame };
        match message.kind() {
            Kind::Request { id, method } => {
                let (seen, is_new) = match id.parse() {
                    Ok(number) => (number, false),
                    Err(_) => (FIRST_ID + self.last, true),
                };
                // The response of a subscription comes when it ends.
                if method != "subscriptions/listen" {
                    self.pending.insert(seen);
                }
                if !is_new {
                    return frame;
                }
                self.last += 1;
                self.replaced.insert(seen, id);
                message.set_json("id", &seen.to_string());
                message.into_bytes()
            }
            Kind::Notification { method } if method == "notifications/cancelled" => {
                let Some(mut params) = message.object("params") else { return frame };
                let Some(id) = params.get("requestId").map(|id| id.get().to_owned()) else {
                    return frame;
                };
                let replaced =
                    self.replaced.iter().find(|entry| *entry.1 == id).map(|entry| *entry.0);
                self.pending.retain(|number| Some(*number) != replaced && number.to_string() != id);
                let Some(seen) = replaced else { return frame };
                params.set_json("requestId", &seen.to_string());
                message.set("params", &params);
                message.into_bytes()
            }
            _ => frame,
        }
    }

    /// Returns a message of the server as the client sees it.
    fn received(&mut self, frame: Vec<u8>) -> Vec<u8> {
        if self.replaced.is_empty() && self.pending.is_empty() {
            return frame;
        }
        let Some(mut message) = RawObject::parse(&frame) else { return frame };
        match message.kind() {
            Kind::Response { id } => {
                let Ok(seen) = id.parse() else { return frame };
                self.pending.remove(&seen);
                let Some(id) = self.replaced.remove(&seen) else { return frame };
                message.set_json("id", &id);
                message.into_bytes()
            }
            Kind::Notification { method } => {
                let own = |seen: Option<String>| self.replaced.get(&seen?.parse().ok()?);
                if let Some(id) = own(message.meta(SUBSCRIPTION_ID)) {
                    message.set_meta(SUBSCRIPTION_ID, id);
                } else if method != "notifications/cancelled" {
                    return frame;
                }
                if let Some(mut params) = message.object("params")
                    && let Some(id) = own(params.get("requestId").map(|id| id.get().to_owned()))
                {
                    params.set_json("requestId", id);
                    message.set("params", &params);
                }
                message.into_bytes()
            }
            _ => frame,
        }
    }

    /// Returns the error response to a request that the server did not answer.
    fn fail(&mut self, seen: u64, why: &str) -> Vec<u8> {
        self.pending.remove(&seen);
        let id = self.replaced.remove(&seen).unwrap_or_else(|| seen.to_string());
        error(&id, code::INTERNAL_ERROR, why)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(frame: Vec<u8>) -> String {
        String::from_utf8(frame).unwrap_or_default()
    }

    #[test]
    fn integers_stay_and_other_ids_are_replaced() {
        let mut ids = Ids::default();
        let number = r#"{"id": 7, "method":"ping"}"#;
        assert_eq!(text(ids.sent(number.into())), number);
        let sent = text(ids.sent(r#"{"id":"a","method":"ping"}"#.into()));
        assert_eq!(sent, format!(r#"{{"id":{FIRST_ID},"method":"ping"}}"#));
        let cancel = r#"{"method":"notifications/cancelled","params":{"requestId":"a"}}"#;
        assert!(text(ids.sent(cancel.into())).contains(&FIRST_ID.to_string()));
        let answer = text(ids.received(format!(r#"{{"id":{FIRST_ID},"result":{{}}}}"#).into()));
        assert_eq!(answer, r#"{"id":"a","result":{}}"#);
        assert!(!ids.is_idle());
        assert!(text(ids.fail(7, "gone")).starts_with(r#"{"jsonrpc":"2.0","id":7,"error""#));
        assert!(ids.is_idle());
    }

    #[test]
    fn notifications_of_a_subscription_have_its_own_id() {
        let mut ids = Ids::default();
        ids.sent(r#"{"id":"s","method":"subscriptions/listen"}"#.into());
        assert!(ids.is_idle());
        let notification = format!(
            r#"{{"method":"notifications/tools/list_changed","params":{{"_meta":{{"{SUBSCRIPTION_ID}":{FIRST_ID}}}}}}}"#
        );
        let passed = text(ids.received(notification.into()));
        assert!(passed.contains(&format!(r#""{SUBSCRIPTION_ID}":"s""#)), "{passed}");
        let end = format!(
            r#"{{"method":"notifications/cancelled","params":{{"requestId":{FIRST_ID}}}}}"#
        );
        assert!(text(ids.received(end.into())).contains(r#""requestId":"s""#));
    }
}
