//! The requests of clients.

use std::{
    collections::HashMap,
    future::poll_fn,
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use hyper::{
    HeaderMap, Method, Request, StatusCode,
    body::{Body as _, Incoming},
    header::{self, HeaderName, HeaderValue},
};

use super::{
    channel::Channel,
    guard,
    reply::{Events, Reply, answer, empty, refuse, stream},
};
use crate::frames::{
    MAX_FRAME, Upstream,
    message::{Kind, RawObject},
};

const SESSION_ID: HeaderName = HeaderName::from_static("mcp-session-id");
const PROTOCOL_VERSION: &str = "io.modelcontextprotocol/protocolVersion";
/// The most sessions at once. Each has a process.
const MAX_SESSIONS: usize = 64;
/// The time after which an unused session ends once there are many.
const UNUSED: Duration = Duration::from_secs(600);

/// The endpoint at a URL.
pub(super) struct Endpoint {
    path: String,
    server: Box<dyn Upstream>,
    sessions: Mutex<HashMap<String, Arc<Channel>>>,
    /// The connection for requests without a session.
    shared: tokio::sync::Mutex<Option<Arc<Channel>>>,
}

impl Endpoint {
    pub(super) fn new(path: String, server: impl Upstream) -> Arc<Self> {
        let server = Box::new(server);
        Arc::new(Self {
            path,
            server,
            sessions: Mutex::default(),
            shared: tokio::sync::Mutex::default(),
        })
    }

    /// Ends all servers.
    pub(super) async fn close(&self) {
        let sessions: Vec<_> = self.sessions().drain().map(|session| session.1).collect();
        let shared = self.shared.lock().await.take();
        let closing = sessions
            .into_iter()
            .chain(shared)
            .map(|channel| tokio::spawn(async move { channel.close().await }));
        for closed in closing.collect::<Vec<_>>() {
            // A panic of another task has been reported.
            let _ = closed.await;
        }
    }

    /// Answers an HTTP request.
    pub(super) async fn handle(&self, request: Request<Incoming>) -> Reply {
        let (head, body) = request.into_parts();
        if let Some(why) = guard::refusal(&head.headers) {
            return refuse(StatusCode::FORBIDDEN, None, &why);
        }
        if head.uri.path() != self.path {
            let why = format!("this server is at {}", self.path);
            return refuse(StatusCode::NOT_FOUND, None, &why);
        }
        match head.method {
            Method::POST => self.post(&head.headers, body).await,
            Method::GET => match self.session(&head.headers) {
                Ok(channel) => stream(None, Events::Own(channel.open_stream())),
                Err(reply) => reply,
            },
            Method::DELETE => match self.session(&head.headers) {
                Ok(channel) => {
                    self.sessions().retain(|_, other| !Arc::ptr_eq(other, &channel));
                    channel.close().await;
                    empty(StatusCode::NO_CONTENT)
                }
                Err(reply) => reply,
            },
            _ => empty(StatusCode::METHOD_NOT_ALLOWED),
        }
    }

    async fn post(&self, headers: &HeaderMap, body: Incoming) -> Reply {
        let Some(body) = collect(body).await else {
            return refuse(StatusCode::PAYLOAD_TOO_LARGE, None, "the message is too long");
        };
        let Some(message) = RawObject::parse(&body) else {
            let why = "the body is not a JSON-RPC message; batches are not passed on";
            return refuse(StatusCode::BAD_REQUEST, None, why);
        };
        let kind = message.kind();
        let id = match &kind {
            Kind::Request { id, .. } => Some(id.as_str()),
            Kind::Other => {
                let why = "the body has neither a method nor an id";
                return refuse(StatusCode::BAD_REQUEST, None, why);
            }
            _ => None,
        };
        let is_modern = message.meta(PROTOCOL_VERSION).is_some();
        let opens = matches!(&kind, Kind::Request { method, .. } if method == "initialize");
        let mut session = None;
        let channel = if is_modern {
            self.shared().await
        } else if opens && !headers.contains_key(SESSION_ID) {
            self.open_session().await.map(|(id, channel)| {
                session = Some(id);
                channel
            })
        } else {
            match self.session(headers) {
                Ok(channel) => Ok(channel),
                Err(reply) => return reply,
            }
        };
        let channel = match channel {
            Ok(channel) => channel,
            Err(why) => return refuse(StatusCode::BAD_GATEWAY, id, &why),
        };
        let Kind::Request { id, .. } = kind else {
            channel.send(body);
            return empty(StatusCode::ACCEPTED);
        };
        let pending = channel.request(message, id);
        let mut reply = answer(pending, accepts_stream(headers), is_modern).await;
        if let Some(session) = session.and_then(|id| HeaderValue::from_str(&id).ok()) {
            reply.headers_mut().insert(SESSION_ID, session);
        }
        reply
    }

    /// Returns the connection for requests without a session.
    async fn shared(&self) -> Result<Arc<Channel>, String> {
        let mut shared = self.shared.lock().await;
        if let Some(channel) = shared.as_ref().filter(|channel| channel.is_open()) {
            return Ok(Arc::clone(channel));
        }
        let connection = self.server.open().await.map_err(|error| error.to_string())?;
        let channel = Channel::new(connection, true);
        *shared = Some(Arc::clone(&channel));
        Ok(channel)
    }

    /// Returns the session that a request names.
    fn session(&self, headers: &HeaderMap) -> Result<Arc<Channel>, Reply> {
        let Some(id) = headers.get(SESSION_ID).map(|value| value.to_str().unwrap_or_default())
        else {
            let why = "Mcp-Session-Id is missing: a session begins with initialize";
            return Err(refuse(StatusCode::BAD_REQUEST, None, why));
        };
        let mut sessions = self.sessions();
        if let Some(channel) = sessions.get(id).filter(|channel| channel.is_open()) {
            return Ok(Arc::clone(channel));
        }
        sessions.remove(id);
        let why = "the session has ended: begin another one with initialize";
        Err(refuse(StatusCode::NOT_FOUND, None, why))
    }

    async fn open_session(&self) -> Result<(String, Arc<Channel>), String> {
        let full = {
            let mut sessions = self.sessions();
            if sessions.len() >= MAX_SESSIONS {
                let is_unused = |channel: &Channel| {
                    !channel.is_open()
                        || channel.idle_since().is_some_and(|since| since.elapsed() > UNUSED)
                };
                for (_, unused) in sessions.extract_if(|_, channel| is_unused(channel)) {
                    tokio::spawn(async move { unused.close().await });
                }
            }
            sessions.len() >= MAX_SESSIONS
        };
        if full {
            return Err(format!("there are {MAX_SESSIONS} sessions already"));
        }
        let connection = self.server.open().await.map_err(|error| error.to_string())?;
        let mut random = [0_u8; 16];
        getrandom::fill(&mut random)
            .map_err(|error| format!("there are no random bytes: {error}"))?;
        let id = format!("{:032x}", u128::from_be_bytes(random));
        let channel = Channel::new(connection, false);
        self.sessions().insert(id.clone(), Arc::clone(&channel));
        Ok((id, channel))
    }

    fn sessions(&self) -> MutexGuard<'_, HashMap<String, Arc<Channel>>> {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns whether the client accepts a stream of events; a client that names nothing accepts everything.
fn accepts_stream(headers: &HeaderMap) -> bool {
    let mut values = headers.get_all(header::ACCEPT).iter().peekable();
    values.peek().is_none()
        || values.any(|value| {
            let text = value.to_str().unwrap_or_default();
            text.contains("text/event-stream") || text.contains("*/*") || text.contains("text/*")
        })
}

/// Reads a body; `None` if it is too long or broken.
pub async fn collect(mut body: Incoming) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    while let Some(frame) = poll_fn(|context| Pin::new(&mut body).poll_frame(context)).await {
        if let Ok(data) = frame.ok()?.into_data() {
            if bytes.len() + data.len() > MAX_FRAME {
                return None;
            }
            bytes.extend_from_slice(&data);
        }
    }
    Some(bytes)
}
