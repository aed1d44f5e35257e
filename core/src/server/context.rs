//! The context of a call: information about the request, progress, logging and questions.

pub(super) mod asking;

use std::{
    fmt,
    net::IpAddr,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError, Weak,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use http::HeaderMap;
use serde::{Serialize, de::DeserializeOwned};
use serde_json::value::RawValue;
use tokio::sync::Notify;

use self::asking::Asking;
use super::{
    ToolError,
    connection::Connection,
    error::log_data,
    optional_text::OptionalText,
    run::{Runner, lock},
    session::{Session, Sessions},
};
use crate::{
    engine::RunId,
    protocol::{
        ClientCapabilities, Dialect, Id, Implementation, LoggingLevel, Principal, Raw, Revision,
    },
    session::server::{CallContext, Progress, ValueChanges},
};

/// The context of one call. Handlers take it as their last parameter. Clones refer to the same call.
///
/// ```
/// # use gudgeon::{Context, LoggingLevel, Server, ToolError};
/// async fn index(ctx: Context) -> Result<u32, ToolError> {
///     for done in 1..=4 {
///         ctx.progress(f64::from(done), Some(4.0), "reading");
///     }
///     ctx.log(LoggingLevel::Info, None, "4 books");
///     Ok(4)
/// }
///
/// let server = Server::new("shelf").tool("index", index);
/// ```
#[derive(Clone)]
pub struct Context {
    call: Arc<Call>,
}

/// A request as seen by its handler, returned by [`Context::request`].
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct RequestInfo {
    /// The id; `None` in a handler of notifications.
    pub id: Option<Id>,
    /// The protocol revision.
    pub revision: Revision,
    /// The dialect; `None` if the request uses a revision.
    pub dialect: Option<Dialect>,
    /// The id of the session; `None` without one, as in revision 2026-07-28 and over stdio.
    pub session_id: Option<Arc<str>>,
    /// The client's name and version; both are empty if the client did not give them.
    pub client: Implementation,
    /// The capabilities that the client declared.
    pub client_capabilities: ClientCapabilities,
    /// The `_meta`, a JSON object (Base Protocol, "`_meta`").
    pub meta: Option<Raw>,
    /// `true` if the caller requested progress notifications; otherwise [`Context::progress`] sends nothing.
    pub wants_progress: bool,
}

/// A call in progress.
pub(super) struct Call {
    /// The run of the handler.
    id: RunId,
    /// The context of the current request; replaced when a later request resumes the handler with answers.
    context: Mutex<CallContext>,
    wants_progress: AtomicBool,
    runner: Weak<Runner>,
    connection: Arc<Connection>,
    is_cancelled: AtomicBool,
    cancelled: Notify,
    asking: Mutex<Asking>,
    /// The values of its session, if the handler has used them and a store has them.
    session: Mutex<Option<Session>>,
}

impl Context {
    #[inline]
    pub(super) fn new(
        id: RunId,
        context: CallContext,
        connection: Arc<Connection>,
        runner: Weak<Runner>,
    ) -> Self {
        let call = Call {
            runner,
            id,
            wants_progress: AtomicBool::new(context.wants_progress),
            context: Mutex::new(context),
            connection,
            is_cancelled: AtomicBool::new(false),
            cancelled: Notify::new(),
            asking: Mutex::default(),
            session: Mutex::default(),
        };
        Self { call: Arc::new(call) }
    }

    /// Returns information about the request.
    ///
    /// A handler that asked its client may be resumed by a later request (Multi Round-Trip Requests). Then this and
    /// all other methods refer to the later one.
    pub fn request(&self) -> RequestInfo {
        let context = self.context();
        RequestInfo {
            id: context.request_id.clone(),
            revision: context.revision,
            dialect: context.dialect,
            session_id: context.http.as_ref().and_then(|http| http.session_id.clone()),
            client: parsed(context.client.info.as_deref()),
            client_capabilities: parsed(context.client.capabilities.as_deref()),
            meta: context.meta.clone(),
            wants_progress: context.wants_progress,
        }
    }

    /// Returns whether the handler handles a notification.
    pub(super) fn is_notification(&self) -> bool {
        self.context().request_id.is_none()
    }

    /// Returns the session's values, which are kept for the lifetime of the session; over stdio that is the lifetime
    /// of the process. Errors in revision 2026-07-28, which has no sessions: pass a handle to the client that it
    /// returns as an argument, or store values by [`Context::principal`].
    ///
    /// With [`ServerOptions::store`](super::ServerOptions::store) values of sessions over HTTP are read before the handler starts, and
    /// stored when it ends, before its reply is sent: at most 256 KiB of JSON for a session. Errors then if the store does not reply.
    ///
    /// ```
    /// # use gudgeon::{Context, Server, ToolError};
    /// async fn visits(ctx: Context) -> Result<u32, ToolError> {
    ///     let session = ctx.session()?;
    ///     let visits = session.get::<u32>("visits")?.unwrap_or(0) + 1;
    ///     session.set("visits", visits)?;
    ///     Ok(visits)
    /// }
    ///
    /// let server = Server::new("shelf").tool("visits", visits);
    /// ```
    pub fn session(&self) -> Result<Session, ToolError> {
        let context = self.context();
        if !context.has_session() {
            return Err(ToolError::new(format!(
                "revision {} has no sessions, so there is no ctx.session() (hint: give the client a handle that it passes \
                 as an argument, or keep the data in a store of your own, by ctx.principal())",
                context.spoken()
            )));
        }
        if let Some(session) = &*lock(&self.call.session) {
            return Ok(session.clone());
        }
        let Some(runner) = self.call.runner.upgrade() else { return Ok(Session::default()) };
        let session = runner.sessions().values(&context)?;
        if context.session_values.is_some() {
            *lock(&self.call.session) = Some(session.clone());
        }
        Ok(session)
    }

    /// Returns what the handler has changed in its session, if it has used that and a store has its values.
    pub(super) fn left_values(&self, sessions: &Sessions) -> Option<Result<ValueChanges, String>> {
        let session = lock(&self.call.session).take()?;
        Some(sessions.changes_of(&self.context(), &session))
    }

    /// Returns the headers of the HTTP request, or `None` without one, as over stdio and WebSocket.
    ///
    /// ```
    /// # use gudgeon::{Context, Server};
    /// async fn language(ctx: Context) -> String {
    ///     let headers = ctx.headers().unwrap_or_default();
    ///     headers
    ///         .get("accept-language")
    ///         .and_then(|value| value.to_str().ok())
    ///         .unwrap_or("en")
    ///         .to_owned()
    /// }
    ///
    /// let server = Server::new("shelf").tool("language", language);
    /// ```
    pub fn headers(&self) -> Option<HeaderMap> {
        self.context().http.as_ref().map(|http| http.headers.clone())
    }

    /// Returns the authenticated identity of the caller, if known. A request served by
    /// [`HttpService`](super::HttpService) carries it as an extension of type `Arc<Principal>`.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use gudgeon::{Context, Server, protocol::Principal};
    /// # use tower_service::Service as _;
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// async fn whoami(ctx: Context) -> String {
    ///     ctx.principal().map_or("nobody".to_owned(), |principal| principal.subject.clone())
    /// }
    ///
    /// let mut service = Server::new("shelf").tool("whoami", whoami).into_service();
    /// let mut request = http::Request::post("http://127.0.0.1/mcp").body(String::new())?;
    /// request.extensions_mut().insert(Arc::new(Principal::new("ada")));
    /// service.call(request).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn principal(&self) -> Option<Arc<Principal>> {
        self.context().principal.clone()
    }

    /// Returns whether the client declared that it answers questions.
    pub(crate) fn can_be_asked(&self) -> bool {
        self.context().can_be_asked()
    }

    /// Looks at the current request.
    pub(crate) fn with_request<R>(&self, look: impl FnOnce(&CallContext) -> R) -> R {
        look(&self.context())
    }

    /// Returns the address that the client calls from, if it is known.
    pub(crate) fn remote(&self) -> Option<IpAddr> {
        self.context().remote
    }

    /// Sends a progress notification at once: `progress` of `total`, in any unit, and a message (Progress).
    /// `progress` must increase with each call; a report that does not is dropped, with a warning in the log for the
    /// first one of a call. The message is a `&str`, a `String`, or `None`.
    #[doc(alias("report_progress"))]
    pub fn progress(&self, progress: f64, total: Option<f64>, message: impl OptionalText) {
        if self.call.wants_progress.load(Ordering::Relaxed) {
            let message = message.into_text();
            let step = Progress { progress, total, message };
            self.call.connection.progress(self.call.id, step);
            self.call.connection.flush();
        }
    }

    /// Sends a log message to the client, if the client requested its level (Logging). The rate is limited to a burst
    /// of 1,000 messages and then 100 per second, and to what the client reads. Dropped messages are counted, and the
    /// client is notified of their number.
    ///
    /// `logger` is the name of a logger as a `&str` or `String`, or `None`. `data` is a string or any other value that can be
    /// serialized as JSON.
    pub fn log(&self, level: LoggingLevel, logger: impl OptionalText, data: impl Serialize) {
        let logger = logger.into_text();
        self.call.connection.log(self.call.id, level, logger, log_data(&data));
        self.call.connection.flush();
    }

    /// Over legacy HTTP, closes the stream of the response, so that the client reconnects after `retry` to get it;
    /// the response is stored until then (Streamable HTTP, "Resumability and Redelivery"). Has no effect elsewhere.
    pub fn close_stream(&self, retry: impl Into<Option<Duration>>) {
        self.call.connection.close_stream(self.call.id, retry.into());
        self.call.connection.flush();
    }

    /// Returns whether the call is over: it was cancelled, exceeded its time limit, or the client disconnected.
    ///
    /// An async handler is dropped at its next `await`; a handler that computes for long should check this.
    pub fn is_cancelled(&self) -> bool {
        self.call.is_cancelled.load(Ordering::Acquire)
    }

    /// Waits until the call is over, for tasks that a handler has spawned.
    pub async fn cancelled(&self) {
        let mut notified = std::pin::pin!(self.call.cancelled.notified());
        notified.as_mut().enable();
        if !self.is_cancelled() {
            notified.await;
        }
    }

    /// Attaches the handler to a later request.
    pub(super) fn resumed(&self, context: CallContext) {
        self.call.wants_progress.store(context.wants_progress, Ordering::Relaxed);
        *self.context() = context;
    }

    /// Returns whether this is the context of the same handler.
    #[cfg(feature = "bindings")]
    pub(super) fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.call, &other.call)
    }

    pub(super) fn cancel(&self) {
        self.call.is_cancelled.store(true, Ordering::Release);
        self.call.cancelled.notify_waiters();
        self.end();
    }

    fn context(&self) -> MutexGuard<'_, CallContext> {
        self.call.context.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Context {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Context")
            .field("call", &*self.context())
            .field("is_cancelled", &self.is_cancelled())
            .finish_non_exhaustive()
    }
}

fn parsed<T: DeserializeOwned + Default>(raw: Option<&RawValue>) -> T {
    raw.and_then(|raw| serde_json::from_str(raw.get()).ok()).unwrap_or_default()
}
