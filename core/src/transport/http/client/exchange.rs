//! The HTTP exchange of one message: a POST and its response.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, Request, header};
use tokio::sync::watch;

use super::{
    super::body::Whole,
    Shared, TaskReport, events, legacy_sse,
    message::{Kind, Message, answers},
    reply::{HttpReply, Media, Unread, is_modern},
    too_long,
    unauthorized::Credentials,
};
use crate::{
    error::{Error, ErrorDetails, ErrorKind},
    protocol::{ErrorObject, Id, Method as Rpc, code},
    transport::{Url, off_thread::beside_other_tasks, sign_in::Attempts},
    wire::{self, headers},
};

/// The maximum number of redirects; only those within the same origin are followed.
const MAX_REDIRECTS: usize = 5;
/// The maximum length of a session id.
const MAX_SESSION_ID: usize = 4096;

/// The outcome of an exchange. Received messages were forwarded already.
pub(super) enum Outcome {
    Done,
    Failed(Error),
    /// The server rejected the message; with the JSON-RPC error of the response, if it had one.
    Refused(Option<ErrorObject>, Error),
    /// The server no longer knows the session with this id.
    SessionGone(HeaderValue),
}

/// Sends a message and reports the outcome.
pub(super) async fn carry(shared: Arc<Shared>, message: Message) {
    let mut outcome = shared.exchange(&message).await;
    if message.is(Rpc::Initialize)
        && let Outcome::Refused(said, error) = &outcome
        && matches!(error.http_status, Some(400 | 404 | 405))
        && !is_modern(said.as_ref())
    {
        // The server may implement HTTP+SSE of 2024-11-05 (Streamable HTTP, "Backward Compatibility").
        match Box::pin(legacy_sse::open(&shared)).await {
            Ok(()) => outcome = shared.exchange(&message).await,
            Err(why) => tracing::debug!(why, "not an HTTP+SSE server either"),
        }
    }
    let Some(id) = message.request() else {
        if let Outcome::Failed(error) | Outcome::Refused(_, error) = outcome {
            tracing::debug!(%error, kind = ?message.kind, "the server did not accept a message");
        }
        return;
    };
    let report = match outcome {
        Outcome::Done => return,
        Outcome::Refused(Some(said), error) if error.kind != ErrorKind::Auth => {
            // The id in the error response may differ; this is the request that it answers.
            let frame = wire::answer_frame(&Id::number(id), Err(&said));
            TaskReport::Answer { id, frame: frame.into() }
        }
        Outcome::Failed(error) | Outcome::Refused(_, error) => TaskReport::Failed { id, error },
        Outcome::SessionGone(session) => TaskReport::SessionGone { session, message },
    };
    shared.report(report).await;
}

impl Shared {
    pub(super) async fn exchange(&self, message: &Message) -> Outcome {
        let session = self.session().filter(|_| !message.is_stateless);
        let reply = match self.post(message).await {
            Ok(reply) => reply,
            Err(error) => return Outcome::Failed(error),
        };
        if !reply.status.is_success() {
            if reply.status == 404
                && let Some(session) = session
                && message.request().is_some()
                && !self.is_pair()
            {
                reply.discard().await;
                return Outcome::SessionGone(session);
            }
            let (said, error) = reply.refusal(self.credentials()).await;
            // A path at which no server is found has no revision to negotiate.
            let is_missing = error.http_status == Some(404) && message.opens();
            let said = said.filter(|said| !is_missing || said.code == code::METHOD_NOT_FOUND);
            return Outcome::Refused(said, error);
        }
        let Some(id) = message.request().filter(|_| !self.is_pair()) else {
            reply.discard().await;
            return Outcome::Done;
        };
        if message.is(Rpc::Initialize) {
            self.begin_session(&reply.headers);
        }
        match reply.media() {
            Media::Json => self.take_json(id, reply).await,
            Media::Events => {
                let answer = events::answer(self, id, reply, message.is_stateless);
                match Box::pin(answer).await {
                    Ok(()) => Outcome::Done,
                    Err(error) => Outcome::Failed(error),
                }
            }
            Media::Other => {
                let status = reply.status;
                let kind = reply.headers.get(header::CONTENT_TYPE).cloned();
                reply.discard().await;
                let kind = kind.as_ref().and_then(|value| value.to_str().ok()).unwrap_or("nothing");
                let message =
                    format!("HTTP {status} with {kind}, which is not a response to a request");
                let error = Error::new(ErrorKind::Protocol, message)
                    .with_hint("check that the URL is that of an MCP server, including its path");
                Outcome::Failed(error.with(|details| details.http_status = Some(status.as_u16())))
            }
        }
    }

    async fn take_json(&self, id: u64, reply: HttpReply) -> Outcome {
        match reply.collect(self.limit).await {
            Ok(frame) if beside_other_tasks(frame.len(), || answers(&frame, id)) => {
                self.report(TaskReport::Answer { id, frame }).await;
                Outcome::Done
            }
            Ok(frame) => {
                self.report(TaskReport::Frame(frame)).await;
                let message = "the server's response does not contain the result of this request";
                Outcome::Failed(Error::new(ErrorKind::Protocol, message))
            }
            Err(Unread::TooLong) => Outcome::Failed(too_long(self.limit)),
            Err(Unread::Broken(error)) => {
                let message =
                    format!("the connection broke in the middle of the response: {error}");
                Outcome::Failed(Error::new(ErrorKind::Lost, message).caused_by(error))
            }
        }
    }

    async fn post(&self, message: &Message) -> Result<HttpReply, Error> {
        let headers = || {
            let mut headers = match message.is_stateless || message.is(Rpc::Initialize) {
                true => self.headers.clone(),
                false => self.session_headers(),
            };
            headers.extend(message.headers.clone());
            let accepted = HeaderValue::from_static("application/json, text/event-stream");
            headers.insert(header::ACCEPT, accepted);
            headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
            headers
        };
        // Repeating a response or a notification has no further effect.
        let may_repeat = message.is_read_only() || !matches!(message.kind, Kind::Request { .. });
        self.send(Method::POST, headers, message.body.clone(), may_repeat).await
    }

    /// Sends an HTTP request with the client's credentials. A request that the server rejects for its credentials is sent
    /// again with others, as long as there are any.
    pub(super) async fn send(
        &self,
        method: Method,
        headers: impl Fn() -> HeaderMap,
        body: Bytes,
        may_repeat: bool,
    ) -> Result<HttpReply, Error> {
        let Some(auth) = &self.auth else {
            return self.send_to_origin(&method, |_| Ok(headers()), &body, may_repeat).await;
        };
        let mut attempts = Attempts::default();
        loop {
            Box::pin(auth.prepare()).await?;
            // Tokens are numbered from 1.
            let sent = AtomicU64::new(0);
            let authorized = |url: &Url| {
                let mut headers = headers();
                let token = auth.authorize(&method, &url.without_query(), &mut headers)?;
                sent.store(token.unwrap_or_default(), Ordering::Relaxed);
                Ok(headers)
            };
            let reply = self.send_to_origin(&method, authorized, &body, may_repeat).await?;
            if !matches!(reply.status.as_u16(), 401 | 403) {
                auth.observe(&reply.headers);
                return Ok(reply);
            }
            let rejected = {
                // The user may take long to sign in.
                let _held = self.hold();
                let (status, headers) = (reply.status, &reply.headers);
                let token = Some(sent.into_inner()).filter(|token| *token > 0);
                Box::pin(auth.rejected(&mut attempts, status, headers, token)).await
            };
            match rejected {
                Ok(true) => reply.discard().await,
                Ok(false) => return Ok(reply),
                Err(error) => {
                    let (_, rejection) = reply.refusal(Credentials::Given).await;
                    let ErrorDetails { http_status, www_authenticate, .. } =
                        rejection.into_details();
                    return Err(error.with(|details| {
                        details.http_status = http_status;
                        details.www_authenticate = www_authenticate;
                    }));
                }
            }
        }
    }

    /// Returns the credentials of this client's requests.
    fn credentials(&self) -> Credentials {
        match self.auth {
            Some(_) => Credentials::Given,
            None => Credentials::from_headers(&self.headers, Credentials::None),
        }
    }

    /// Stops the timeouts of all requests until the result is dropped.
    fn hold(&self) -> impl Drop + use<> {
        struct Held(watch::Sender<usize>);
        impl Drop for Held {
            fn drop(&mut self) {
                self.0.send_modify(|count| *count -= 1);
            }
        }
        self.signing_in.send_modify(|count| *count += 1);
        Held(self.signing_in.clone())
    }

    /// Sends an HTTP request and follows redirects within the same origin.
    async fn send_to_origin(
        &self,
        method: &Method,
        headers: impl Fn(&Url) -> Result<HeaderMap, Error>,
        body: &Bytes,
        may_repeat: bool,
    ) -> Result<HttpReply, Error> {
        let mut url = match *method == Method::POST {
            true => self.post_url(),
            false => self.url.clone(),
        };
        for _ in 0..=MAX_REDIRECTS {
            let mut request = Request::new(Whole::new(body.clone()));
            *request.method_mut() = method.clone();
            *request.uri_mut() = url.path().parse().map_err(|_| {
                Error::misuse(format!(
                    "the path of {url} has invalid characters; percent-encode them"
                ))
            })?;
            *request.headers_mut() = headers(&url)?;
            let (response, lease) = self.pool.send(request, may_repeat).await?;
            let (parts, body) = response.into_parts();
            let reply = HttpReply { status: parts.status, headers: parts.headers, body, lease };
            let Some(location) = redirect(&reply) else { return Ok(reply) };
            let status = reply.status;
            reply.discard().await;
            url = self.follow(&url, &location, status)?;
            if *method == Method::POST {
                self.moved(&url);
            }
        }
        let message = format!("more than {MAX_REDIRECTS} redirects");
        Err(Error::new(ErrorKind::Protocol, message))
    }

    /// Resolves a redirect. Headers may contain secrets, so they are sent only to the origin that the user named.
    fn follow(&self, from: &Url, location: &str, status: http::StatusCode) -> Result<Url, Error> {
        let target = from.join(location).ok();
        let shown = target.as_ref().map_or_else(|| format!("{location:?}"), ToString::to_string);
        match target {
            Some(target) if target.has_origin_of(&self.url) => Ok(target),
            _ => {
                let message = format!(
                    "HTTP {status} redirects to {shown}, which is a different origin and is not followed"
                );
                let error = Error::new(ErrorKind::Connect, message)
                    .with_hint("if you trust that origin, connect to it directly")
                    .in_phase("connect");
                Err(error)
            }
        }
    }

    /// Stores the session id, which a server with sessions sends in its response to `initialize`.
    fn begin_session(&self, headers: &HeaderMap) {
        let id = headers.get(headers::SESSION_ID).filter(|id| {
            let is_visible = id.as_bytes().iter().all(|byte| matches!(byte, b'!'..=b'~'));
            is_visible && !id.is_empty() && id.len() <= MAX_SESSION_ID
        });
        self.set_session(id.cloned());
    }
}

fn redirect(reply: &HttpReply) -> Option<String> {
    if !matches!(reply.status.as_u16(), 301 | 302 | 307 | 308) {
        return None;
    }
    reply.headers.get(header::LOCATION)?.to_str().ok().map(ToOwned::to_owned)
}
