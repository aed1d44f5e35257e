//! The requests of the page: its files, a stream of events, and what the user does.

use std::{pin::pin, sync::Arc, time::Duration};

use bytes::Bytes;
use gudgeon::protocol::{Root, SubscriptionFilter};
use http::{HeaderValue, Method, Request, Response, StatusCode, header, request::Parts};
use http_body::Body as _;
use hyper::body::Incoming;
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::json;
use tokio::sync::mpsc;

use super::{
    assets,
    guard::{Guard, Refusal},
    operations::Requested,
    questions::Answer,
    response::{Pieces, json, response, text},
    session::Session,
    settings::Settings,
};

/// The maximum size of a request in bytes: arguments may have files.
const MAX_REQUEST: usize = 64 * 1024 * 1024;
/// The time after which an idle stream of events gets a comment, so that a page that has gone is noticed.
const IDLE: Duration = Duration::from_secs(15);
const PLAIN: &str = "text/plain; charset=utf-8";

pub struct Routes {
    guard: Guard,
    session: Arc<Session>,
}

#[derive(Deserialize)]
struct Call {
    call: String,
    operation: Requested,
}

#[derive(Deserialize)]
struct Subscribe {
    id: String,
    filter: SubscriptionFilter,
}

#[derive(Deserialize)]
struct Named {
    id: String,
}

#[derive(Deserialize)]
struct Answered {
    question: u64,
    answer: Answer,
}

impl Routes {
    pub fn new(guard: Guard, session: Arc<Session>) -> Self {
        Self { guard, session }
    }

    pub async fn answer(&self, request: Request<Incoming>) -> Response<Pieces> {
        let (head, body) = request.into_parts();
        let admitted = match self.guard.admit(&head) {
            Ok(admitted) => admitted,
            Err(refusal) => return refused(refusal),
        };
        let mut response = match (&head.method, admitted.path) {
            (&Method::GET, path) => self.get(&head, path),
            (&Method::POST, path) => match read(body).await {
                Ok(body) => self.post(path, &body).await,
                Err(refusal) => refused(refusal),
            },
            _ => refused((StatusCode::METHOD_NOT_ALLOWED, "The methods are GET and POST.")),
        };
        if let Some(cookie) = admitted.cookie.and_then(|cookie| HeaderValue::try_from(cookie).ok())
        {
            response.headers_mut().insert(header::SET_COOKIE, cookie);
        }
        response
    }

    fn get(&self, head: &Parts, path: &str) -> Response<Pieces> {
        let journal = &self.session.journal;
        let file = if path.is_empty() { "index.html" } else { path };
        if let Some((media_type, content)) = assets::find(file) {
            return text(StatusCode::OK, media_type, content);
        }
        if path == "api/events" {
            return self.events(head);
        }
        if path == "api/transcript" {
            let lines = Pieces::Ready(journal.transcript().into_iter());
            let mut response = response(StatusCode::OK, "application/jsonl", lines);
            let name = HeaderValue::from_static("attachment; filename=\"transcript.jsonl\"");
            response.headers_mut().insert(header::CONTENT_DISPOSITION, name);
            return response;
        }
        let number = path.strip_prefix("api/bodies/").and_then(|number| number.parse().ok());
        match number.map(|number| journal.body(number)) {
            Some(Some(body)) => text(StatusCode::OK, PLAIN, body),
            Some(None) => refused((
                StatusCode::GONE,
                "The message was dropped, because newer ones needed the room.",
            )),
            None => refused((StatusCode::NOT_FOUND, "There is nothing here.")),
        }
    }

    async fn post(&self, path: &str, body: &[u8]) -> Response<Pieces> {
        let outcome = match path {
            "api/search" => {
                return match parse::<String>(body) {
                    Ok(text) => json(StatusCode::OK, &self.session.journal.search(&text)),
                    Err(problem) => wrong(&problem),
                };
            }
            "api/connect" => match parse::<Settings>(body) {
                Ok(settings) => {
                    self.session.connect(settings).await;
                    Ok(())
                }
                Err(problem) => Err(problem),
            },
            "api/disconnect" => {
                self.session.disconnect().await;
                Ok(())
            }
            "api/call" => parse::<Call>(body)
                .and_then(|request| self.session.call(request.call, request.operation)),
            "api/cancel" => parse::<Named>(body).map(|request| self.session.cancel(&request.id)),
            "api/subscribe" => parse::<Subscribe>(body)
                .and_then(|request| self.session.subscribe(request.id, request.filter)),
            "api/unsubscribe" => {
                parse::<Named>(body).map(|request| self.session.unsubscribe(&request.id))
            }
            "api/roots" => parse::<Vec<Root>>(body)
                .and_then(|roots| self.session.set_roots(roots).map_err(|error| error.to_string())),
            "api/answer" => parse::<Answered>(body).and_then(|answered| {
                let taken = self.session.questions.answer(answered.question, answered.answer);
                taken
                    .then_some(())
                    .ok_or_else(|| "the question does not wait for an answer any more".to_owned())
            }),
            _ => return refused((StatusCode::NOT_FOUND, "There is nothing here.")),
        };
        match outcome {
            Ok(()) => json(StatusCode::OK, &json!({})),
            Err(problem) => wrong(&problem),
        }
    }

    /// Returns the stream of events: a snapshot, then all that happened and happens.
    fn events(&self, head: &Parts) -> Response<Pieces> {
        let last_id = head.headers.get("last-event-id").and_then(|value| value.to_str().ok());
        let last_id = last_id.and_then(|id| id.parse().ok()).unwrap_or_default();
        let (sender, pieces) = mpsc::channel(4);
        tokio::spawn(send_events(Arc::clone(&self.session), last_id, sender));
        response(StatusCode::OK, "text/event-stream", Pieces::Coming(pieces))
    }
}

/// Sends the events after the one with this number, until the page is closed.
async fn send_events(session: Arc<Session>, mut last: u64, pieces: mpsc::Sender<Bytes>) {
    let journal = &session.journal;
    let mut follow = journal.follow();
    let snapshot = format!("event: snapshot\ndata: {}\n\n", session.snapshot());
    if pieces.send(snapshot.into()).await.is_err() {
        return;
    }
    loop {
        follow.mark_unchanged();
        let (events, missing) = journal.after(last);
        let mut piece = Vec::new();
        if missing > 0 {
            piece.extend_from_slice(format!("event: missing\ndata: {missing}\n\n").as_bytes());
        }
        for event in &events {
            piece.extend_from_slice(format!("id: {}\ndata: ", event.number).as_bytes());
            piece.extend_from_slice(&event.json);
            piece.extend_from_slice(b"\n\n");
            last = event.number;
        }
        if piece.is_empty() {
            match tokio::time::timeout(IDLE, follow.changed()).await {
                Ok(Ok(())) => continue,
                Ok(Err(_)) => return,
                Err(_) => piece.extend_from_slice(b":\n\n"),
            }
        }
        if pieces.send(piece.into()).await.is_err() {
            return;
        }
    }
}

async fn read(body: Incoming) -> Result<Vec<u8>, Refusal> {
    let mut body = pin!(body);
    let mut bytes = Vec::new();
    while let Some(frame) = std::future::poll_fn(|context| body.as_mut().poll_frame(context)).await
    {
        let frame = frame.map_err(|_| (StatusCode::BAD_REQUEST, "The request broke off."))?;
        if let Some(data) = frame.data_ref() {
            if bytes.len() + data.len() > MAX_REQUEST {
                return Err((StatusCode::PAYLOAD_TOO_LARGE, "The request is larger than 64 MiB."));
            }
            bytes.extend_from_slice(data);
        }
    }
    Ok(bytes)
}

fn parse<T: DeserializeOwned>(body: &[u8]) -> Result<T, String> {
    serde_json::from_slice(body).map_err(|error| error.to_string())
}

fn wrong(problem: &str) -> Response<Pieces> {
    json(StatusCode::BAD_REQUEST, &json!({ "message": problem }))
}

fn refused((status, reason): Refusal) -> Response<Pieces> {
    text(status, PLAIN, format!("{reason}\n"))
}
