//! The probe over Streamable HTTP. It answers with JSON and with streams, ends a session once, and closes a stream before its
//! response once, so that the client must do what the specification says about both.

use std::{
    convert::Infallible,
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context, Poll},
    time::{Duration, Instant},
};

use gudgeon::{Revision, framing::sse};
use http::{HeaderMap, Method, Request, Response, StatusCode, header};
use hyper::body::{Body, Bytes, Frame, Incoming};
use serde_json::{Value, json};
use tokio::sync::{Notify, mpsc};

use super::{CURSORS, PING, UNKNOWN, answer, is_modern};
use crate::frames::http::collect;

/// The `retry` time of a stream: the client's wait before it resumes.
pub const RETRY: Duration = Duration::from_millis(300);
/// The time for answers of the client, until the response after them is sent.
const ANSWERS: Duration = Duration::from_secs(3);
const SESSION_ID: &str = "mcp-session-id";

/// A request of the client.
#[derive(Clone, Debug)]
pub struct Recorded {
    pub method: Method,
    pub headers: HeaderMap,
    pub body: String,
    /// The number of the session that it belongs to; `None` for a request of 2026-07-28, and for one without any session.
    pub session: Option<usize>,
}

impl Recorded {
    /// Returns a header as text.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }
}

/// A session that a client opened.
#[derive(Clone, Debug)]
pub struct ProbeSession {
    pub id: String,
    pub revision: Revision,
    pub end: SessionEnd,
    /// `true` if the client was asked on a stream.
    pub was_asked: bool,
    pub dropped: Option<Dropped>,
}

/// The end of a session.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum SessionEnd {
    Open,
    /// By the probe, after which requests have the status 404. Holds the number of requests until then.
    Gone(usize),
    /// By the client, with DELETE.
    Deleted,
}

/// A stream that the probe closed before its response.
#[derive(Clone, Debug)]
pub struct Dropped {
    pub event: String,
    response: Value,
    closed: Instant,
    /// The time after which the client resumed the stream, and the id that it named.
    pub resumed: Option<(Duration, Option<String>)>,
}

/// All that was recorded.
#[derive(Debug, Default)]
pub struct Record {
    pub requests: Vec<Recorded>,
    pub sessions: Vec<ProbeSession>,
}

/// The probe. Clones are the same probe.
#[derive(Clone, Debug)]
pub struct HttpProbe {
    only: Option<Revision>,
    record: Arc<Mutex<Record>>,
    answered: Arc<Notify>,
}

impl HttpProbe {
    /// A probe that speaks all revisions, or the given one only.
    pub fn new(only: Option<Revision>) -> Self {
        Self { only, record: Arc::default(), answered: Arc::default() }
    }

    /// Takes what was recorded so far.
    pub fn take(&self) -> Record {
        std::mem::take(&mut *self.record())
    }

    /// Answers a request of the client.
    pub async fn handle(self, request: Request<Incoming>) -> Response<ProbeBody> {
        let (head, body) = request.into_parts();
        let body = collect(body).await.unwrap_or_default();
        let body = String::from_utf8_lossy(&body).into_owned();
        let message: Value = serde_json::from_str(&body).unwrap_or_default();
        let opens = message["method"] == "initialize";
        let session = match is_modern(&message) || opens {
            true => None,
            false => self.record().session(&head.headers),
        };
        let (method, headers) = (head.method.clone(), head.headers);
        self.record().requests.push(Recorded {
            method: head.method,
            headers: headers.clone(),
            body,
            session,
        });
        match method {
            Method::POST if is_modern(&message) => self.modern(&message),
            Method::POST if opens => self.open(&message),
            Method::POST => match session {
                Some(session) => self.post(session, &message),
                None => status(StatusCode::BAD_REQUEST),
            },
            Method::GET => self.get(session, &headers),
            Method::DELETE => match session {
                Some(session) => self.delete(session),
                None => status(StatusCode::METHOD_NOT_ALLOWED),
            },
            _ => status(StatusCode::METHOD_NOT_ALLOWED),
        }
    }

    /// Answers a message of 2026-07-28.
    fn modern(&self, message: &Value) -> Response<ProbeBody> {
        if self.only.is_some_and(|revision| revision <= Revision::LATEST_LEGACY) {
            return status(StatusCode::BAD_REQUEST);
        }
        if message.get("id").is_none() {
            return status(StatusCode::ACCEPTED);
        }
        let version = &message["params"]["_meta"]["io.modelcontextprotocol/protocolVersion"];
        if *version != Revision::LATEST.to_string() {
            let data = json!({"supported": [Revision::LATEST.to_string()], "requested": version});
            let error = json!({"code": -32022, "message": "Unsupported version", "data": data});
            return json_body(StatusCode::BAD_REQUEST, &response(message, json!({"error": error})));
        }
        let answer = response(message, answer(message, self.only));
        // Every second page comes on a stream, because clients must read both.
        match answer["error"].is_object() {
            true => json_body(StatusCode::NOT_FOUND, &answer),
            false if message["params"]["cursor"] == CURSORS[0] => events(&[answer]),
            false => json_body(StatusCode::OK, &answer),
        }
    }

    /// Answers `initialize`.
    fn open(&self, message: &Value) -> Response<ProbeBody> {
        let answer = response(message, answer(message, self.only));
        let version = answer["result"]["protocolVersion"].as_str().and_then(Revision::parse);
        let Some(revision) = version else { return json_body(StatusCode::BAD_REQUEST, &answer) };
        let mut record = self.record();
        let number = record.sessions.len();
        let id = format!("probe-{number}-{:016x}", random());
        record.sessions.push(ProbeSession {
            id: id.clone(),
            revision,
            end: SessionEnd::Open,
            was_asked: false,
            dropped: None,
        });
        if let Some(last) = record.requests.last_mut() {
            last.session = Some(number);
        }
        let mut reply = json_body(StatusCode::OK, &answer);
        if let Ok(id) = id.parse() {
            reply.headers_mut().insert(SESSION_ID, id);
        }
        reply
    }

    /// Answers a message of a session.
    fn post(&self, session: usize, message: &Value) -> Response<ProbeBody> {
        let state = self.record().sessions[session].clone();
        if state.end != SessionEnd::Open {
            return status(StatusCode::NOT_FOUND);
        }
        if let Value::Array(batch) = message {
            if state.revision != Revision::V2025_03_26 {
                return status(StatusCode::BAD_REQUEST);
            }
            let requests = batch
                .iter()
                .filter(|message| message["method"].is_string() && !message["id"].is_null());
            let answers: Vec<_> =
                requests.map(|request| response(request, answer(request, self.only))).collect();
            return match answers.is_empty() {
                true => status(StatusCode::ACCEPTED),
                false => json_body(StatusCode::OK, &json!(answers)),
            };
        }
        if message.get("id").is_none() || !message["method"].is_string() {
            self.answered.notify_waiters();
            return status(StatusCode::ACCEPTED);
        }
        let cursor = &message["params"]["cursor"];
        let is_list = message["method"] == "tools/list";
        let asks_for_end = is_list && *cursor == CURSORS[1] || message["method"] == "tools/call";
        if asks_for_end && self.end_once(session) {
            return status(StatusCode::NOT_FOUND);
        }
        let answer = response(message, answer(message, self.only));
        if is_list && cursor.is_null() && !state.was_asked {
            return self.ask(session, answer);
        }
        if is_list && *cursor == CURSORS[0] {
            if state.revision >= Revision::V2025_11_25 && state.dropped.is_none() {
                return self.drop_stream(session, answer);
            }
            return events(&[answer]);
        }
        json_body(StatusCode::OK, &answer)
    }

    /// Ends the session unless one was ended before; returns whether it did.
    fn end_once(&self, session: usize) -> bool {
        let mut record = self.record();
        if record.sessions.iter().any(|session| matches!(session.end, SessionEnd::Gone(_))) {
            return false;
        }
        let requests = record.requests.len();
        record.sessions[session].end = SessionEnd::Gone(requests);
        true
    }

    /// Asks the client two questions on the stream of a response, which follows their answers.
    fn ask(&self, session: usize, answer: Value) -> Response<ProbeBody> {
        self.record().sessions[session].was_asked = true;
        let (sender, chunks) = mpsc::unbounded_channel();
        let questions = [(PING, "ping"), (UNKNOWN, "doctor/unknown")]
            .map(|(id, method)| json!({"jsonrpc": "2.0", "id": id, "method": method}));
        for question in &questions {
            // The receiver is here.
            let _ = sender.send(event(None, question));
        }
        let probe = self.clone();
        tokio::spawn(async move {
            let until = tokio::time::Instant::now() + ANSWERS;
            loop {
                let answered = probe.answered.notified();
                if probe.record().has_answers(session) {
                    break;
                }
                if tokio::time::timeout_at(until, answered).await.is_err() {
                    break;
                }
            }
            // The client may be gone.
            let _ = sender.send(event(None, &answer));
        });
        stream(chunks)
    }

    /// Sends an event without a message and closes the stream: the client resumes it.
    fn drop_stream(&self, session: usize, answer: Value) -> Response<ProbeBody> {
        let name = format!("probe-stream-{session}");
        let mut bytes = Vec::new();
        sse::priming(&mut bytes, &name, Some(RETRY));
        let closed = Instant::now();
        let dropped = Dropped { event: name, response: answer, closed, resumed: None };
        self.record().sessions[session].dropped = Some(dropped);
        whole("text/event-stream", StatusCode::OK, bytes)
    }

    /// Answers GET: a stream that is resumed goes on with its response, and there is no other.
    fn get(&self, session: Option<usize>, headers: &HeaderMap) -> Response<ProbeBody> {
        let mut record = self.record();
        let session = session.and_then(|index| record.sessions.get_mut(index));
        let named = headers.get("last-event-id").and_then(|value| value.to_str().ok());
        let Some(session) = session else { return status(StatusCode::METHOD_NOT_ALLOWED) };
        if session.end != SessionEnd::Open {
            return status(StatusCode::NOT_FOUND);
        }
        match &mut session.dropped {
            Some(dropped) if named.is_some() => {
                if dropped.resumed.is_none() {
                    dropped.resumed = Some((dropped.closed.elapsed(), named.map(str::to_owned)));
                }
                if named != Some(dropped.event.as_str()) {
                    return status(StatusCode::BAD_REQUEST);
                }
                let id = format!("{}-end", dropped.event);
                let mut bytes = Vec::new();
                let response = dropped.response.to_string();
                sse::event(&mut bytes, Some(&id), response.as_bytes());
                whole("text/event-stream", StatusCode::OK, bytes)
            }
            _ => status(StatusCode::METHOD_NOT_ALLOWED),
        }
    }

    fn delete(&self, session: usize) -> Response<ProbeBody> {
        let end = &mut self.record().sessions[session].end;
        if *end != SessionEnd::Open {
            return status(StatusCode::NOT_FOUND);
        }
        *end = SessionEnd::Deleted;
        status(StatusCode::NO_CONTENT)
    }

    fn record(&self) -> MutexGuard<'_, Record> {
        self.record.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Record {
    /// Returns the session of a request: the one that it names, or the last one, if it names none.
    fn session(&self, headers: &HeaderMap) -> Option<usize> {
        let Some(named) = headers.get(SESSION_ID) else {
            return self.sessions.len().checked_sub(1);
        };
        self.sessions.iter().position(|session| session.id.as_bytes() == named.as_bytes())
    }

    /// Returns whether the client has answered both questions.
    fn has_answers(&self, session: usize) -> bool {
        let own = self.requests.iter().filter(|request| request.session == Some(session));
        let answers = own.filter_map(|request| serde_json::from_str::<Value>(&request.body).ok());
        let ids: Vec<Value> = answers
            .filter(|answer| answer.get("method").is_none())
            .map(|answer| answer["id"].clone())
            .collect();
        [PING, UNKNOWN].iter().all(|id| ids.iter().any(|answered| answered == id))
    }
}

/// Adds what makes an answer the response to a request.
fn response(request: &Value, mut answer: Value) -> Value {
    answer["jsonrpc"] = json!("2.0");
    answer["id"] = request["id"].clone();
    answer
}

/// Returns a number that makes session ids different.
fn random() -> u64 {
    let mut random = [0; 8];
    // Without random bytes the number of the session is enough.
    let _ = getrandom::fill(&mut random);
    u64::from_be_bytes(random)
}

fn event(id: Option<&str>, message: &Value) -> Bytes {
    let mut bytes = Vec::new();
    sse::event(&mut bytes, id, message.to_string().as_bytes());
    bytes.into()
}

fn events(messages: &[Value]) -> Response<ProbeBody> {
    let bytes: Vec<u8> =
        messages.iter().flat_map(|message| event(None, message).to_vec()).collect();
    whole("text/event-stream", StatusCode::OK, bytes)
}

fn stream(chunks: mpsc::UnboundedReceiver<Bytes>) -> Response<ProbeBody> {
    reply("text/event-stream", StatusCode::OK, ProbeBody(chunks))
}

fn json_body(status: StatusCode, body: &Value) -> Response<ProbeBody> {
    whole("application/json", status, body.to_string().into_bytes())
}

fn whole(kind: &'static str, status: StatusCode, bytes: Vec<u8>) -> Response<ProbeBody> {
    let (sender, chunks) = mpsc::unbounded_channel();
    // The receiver is here.
    let _ = sender.send(bytes.into());
    reply(kind, status, ProbeBody(chunks))
}

fn reply(kind: &'static str, status: StatusCode, body: ProbeBody) -> Response<ProbeBody> {
    let mut reply = Response::new(body);
    *reply.status_mut() = status;
    reply.headers_mut().insert(header::CONTENT_TYPE, header::HeaderValue::from_static(kind));
    reply
}

/// Returns a response without a body.
fn status(status: StatusCode) -> Response<ProbeBody> {
    let (_, chunks) = mpsc::unbounded_channel();
    let mut reply = Response::new(ProbeBody(chunks));
    *reply.status_mut() = status;
    reply
}

/// The body of a response, which ends with the sender of its chunks.
#[derive(Debug)]
pub struct ProbeBody(mpsc::UnboundedReceiver<Bytes>);

impl Body for ProbeBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        self.0.poll_recv(context).map(|received| received.map(|bytes| Ok(Frame::data(bytes))))
    }

    fn is_end_stream(&self) -> bool {
        self.0.is_closed() && self.0.is_empty()
    }
}
