//! Connections over HTTP and WebSocket that carry the messages of another program's session, for programs that stand between a
//! client and a server.

use std::{
    collections::HashSet,
    fmt,
    sync::{Arc, Mutex},
};

use bytes::Bytes;
use serde::Deserialize;

use super::{
    Target,
    connected::lock,
    target::OpenedTarget,
    wire::{ClientTransport, WireEvent, WireOptions},
};
use crate::{
    error::Error,
    peer::{KnownTools, ListedTools},
    protocol::{Method, Raw, Revision},
    session::client::NegotiatedProtocol,
    transport::{messages::Arrival, network::Network, sign_in::Authorizer},
};

/// A connection to a server that passes messages on unchanged. Over HTTP it adds the headers that belong to them, and keeps
/// the session and its streams as a client does.
pub struct Relay {
    wire: ClientTransport,
    tools: Arc<Mutex<KnownTools>>,
    /// The revision of messages that do not name theirs.
    revision: Revision,
    /// The `initialize` request without a response yet.
    initialize: Option<u64>,
    /// The `tools/list` requests without a response yet.
    lists: HashSet<u64>,
}

/// An event of a relayed connection.
#[derive(Debug)]
pub enum Relayed {
    /// A message of the server.
    Message(Bytes),
    /// A message of the server that was longer than `limit` bytes was left out.
    TooLong { limit: usize },
    /// The request with this id gets no response from the server.
    Failed { id: u64, error: Error },
    /// The server had ended the session. Another one was opened, without the state of the first.
    Renewed,
    /// The server's notifications can no longer be received, with the reason.
    StreamLost(String),
    /// The connection ended, with the reason.
    End(String),
}

impl Relay {
    /// Opens a connection to a URL. Errors for other targets, and if a WebSocket can't be opened.
    pub(super) async fn open(
        target: Target,
        headers: &[(String, String)],
        max_message: usize,
        network: &Network,
        auth: Option<Arc<Authorizer>>,
    ) -> Result<Self, Error> {
        let unsupported =
            || Error::misuse(format!("{target} is neither an http(s) nor a ws(s) URL"));
        let Target::Url(url) = &target else { return Err(unsupported()) };
        let tools = Arc::new(Mutex::new(KnownTools::default()));
        let known = Arc::clone(&tools);
        let mirror =
            Arc::new(move |name: &str, arguments: &str| lock(&known).mirror(name, arguments));
        let mut options = WireOptions::new(max_message, headers, &(mirror as _))?;
        options.proxy = network.proxy_for(url)?.map(Arc::new);
        options.network = network.clone();
        options.auth = auth;
        if !target.takes_headers() {
            return Err(unsupported());
        }
        let OpenedTarget { wire, .. } =
            target.reach(&options).await.map_err(|error| options.explain(error))?;
        let (revision, initialize, lists) = (Revision::LATEST_LEGACY, None, HashSet::new());
        Ok(Self { wire, tools, revision, initialize, lists })
    }

    /// Sends a message of the client. The id of a request must be an integer, which no other request in progress has.
    pub fn send(&mut self, message: Vec<u8>) {
        let sent: Sent<'_> = serde_json::from_slice(&message).unwrap_or_default();
        let method = sent.method.as_deref().and_then(Method::parse);
        match (method, sent.id.and_then(|id| id.get().parse().ok())) {
            (Some(Method::Initialize), id) => self.initialize = id,
            (Some(Method::ListTools), Some(id)) => drop(self.lists.insert(id)),
            _ => (),
        }
        // A revision that is not known gets the error that belongs to it from the server.
        let named = sent.params.and_then(|params| params.meta?.version);
        let revision = named.map(|version| Revision::parse(&version).unwrap_or(Revision::LATEST));
        let spoken = NegotiatedProtocol::new(revision.unwrap_or(self.revision), None);
        self.wire.send(message, spoken);
    }

    /// Returns the next event. Cancel safe.
    pub async fn next(&mut self) -> Relayed {
        loop {
            // Lines are read by no relay.
            let WireEvent::Arrival(arrival) = self.wire.next_event().await else {
                return Relayed::End(String::new());
            };
            return match arrival {
                Arrival::Frame(frame) | Arrival::Response { frame, .. } => {
                    self.learn(&frame);
                    Relayed::Message(frame)
                }
                Arrival::TooLong { limit, .. } => Relayed::TooLong { limit },
                Arrival::Failed { id, error } => Relayed::Failed { id, error },
                Arrival::Renewed => Relayed::Renewed,
                Arrival::StreamLost(why) => Relayed::StreamLost(why),
                Arrival::End(why) => Relayed::End(why),
                // The client's own timeouts are none of this program's.
                Arrival::Held(_) => continue,
            };
        }
    }

    /// Ends the session and closes the connection.
    pub async fn close(self) {
        self.wire.close().await;
    }

    /// Takes from responses what later requests depend on: the negotiated revision, and tools with arguments that are repeated
    /// in headers.
    fn learn(&mut self, frame: &[u8]) {
        if self.initialize.is_none() && self.lists.is_empty() {
            return;
        }
        let Ok(Response { id: Some(id), result: Some(result) }) = serde_json::from_slice(frame)
        else {
            return;
        };
        if self.initialize == Some(id) {
            self.initialize = None;
            let version = result.version.as_deref().and_then(Revision::parse);
            self.revision = version.unwrap_or(self.revision);
        }
        if self.lists.remove(&id) {
            let mut entries = result.tools;
            lock(&self.tools).learn(ListedTools::read(&mut entries, false), false);
        }
    }
}

impl fmt::Debug for Relay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Relay").field("revision", &self.revision).finish_non_exhaustive()
    }
}

/// The members of a message to the server that its headers depend on.
#[derive(Default, Deserialize)]
struct Sent<'a> {
    #[serde(borrow)]
    id: Option<&'a serde_json::value::RawValue>,
    method: Option<String>,
    params: Option<SentParams>,
}

#[derive(Deserialize)]
struct SentParams {
    #[serde(rename = "_meta")]
    meta: Option<SentMeta>,
}

#[derive(Deserialize)]
struct SentMeta {
    #[serde(rename = "io.modelcontextprotocol/protocolVersion")]
    version: Option<String>,
}

#[derive(Deserialize)]
struct Response {
    id: Option<u64>,
    result: Option<ResponseResult>,
}

#[derive(Deserialize)]
struct ResponseResult {
    #[serde(rename = "protocolVersion")]
    version: Option<String>,
    #[serde(default)]
    tools: Vec<Raw>,
}
