//! What a handler knows of its call, and what it can tell and ask while it runs.

mod asking;

use std::{
    fmt,
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
use super::{ToolError, connection::Connection, error::log_data, run::Runner, session::Session};
use crate::{
    protocol::{
        ClientCapabilities, Dialect, Id, Implementation, LoggingLevel, Principal, Raw, Revision,
    },
    session::{
        CallId,
        server::{CallContext, Progress},
    },
};

/// The circumstances of one call. Handlers take it as their last parameter; clones mean the same call.
///
/// ```
/// # use gudgeon::{Context, Server, ToolError};
/// async fn index(ctx: Context) -> Result<u32, ToolError> {
///     for done in 1..=4 {
///         ctx.progress(f64::from(done), Some(4.0), "reading");
///     }
///     ctx.info("4 books");
///     Ok(4)
/// }
///
/// let server = Server::new("shelf").tool("index", index);
/// ```
#[derive(Clone)]
pub struct Context {
    call: Arc<Call>,
}

/// One call under way.
pub(super) struct Call {
    /// The number by which the service knows the handler.
    id: CallId,
    /// Of the request that the handler runs for: a later one takes its place when that brings the answers.
    context: Mutex<CallContext>,
    wants_progress: AtomicBool,
    runner: Weak<Runner>,
    connection: Arc<dyn Connection>,
    is_cancelled: AtomicBool,
    cancelled: Notify,
    asking: Mutex<Asking>,
}

impl Context {
    pub(super) fn new(
        context: CallContext,
        connection: Arc<dyn Connection>,
        runner: Weak<Runner>,
    ) -> Self {
        let call = Call {
            runner,
            id: context.call,
            wants_progress: AtomicBool::new(context.wants_progress),
            context: Mutex::new(context),
            connection,
            is_cancelled: AtomicBool::new(false),
            cancelled: Notify::new(),
            asking: Mutex::default(),
        };
        Self { call: Arc::new(call) }
    }

    /// The request's id; `None` in a handler of notifications.
    ///
    /// A handler that asked its client may go on for another request (Multi Round-Trip Requests): this, like all that is
    /// known of the request, is then the latest one's.
    pub fn request_id(&self) -> Option<Id> {
        self.context().request_id.clone()
    }

    /// The revision of the protocol that the request is served in.
    pub fn revision(&self) -> Revision {
        self.context().revision
    }

    /// The older description of the protocol that the request is in, where it is no revision.
    pub fn dialect(&self) -> Option<Dialect> {
        self.context().dialect
    }

    /// What handlers keep for the length of the session, over stdio as long as the process. Fails in revision 2026-07-28,
    /// which has none: hand the client a handle that it gives back as an argument, or keep a store of your own by
    /// [`Context::principal`].
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
        let runner = self.call.runner.upgrade();
        Ok(runner.map(|it| it.sessions().of(&context.client)).unwrap_or_default())
    }

    /// The id of the session; `None` where there is none, as in revision 2026-07-28 and over stdio.
    pub fn session_id(&self) -> Option<Arc<str>> {
        self.context().http.as_ref()?.session_id.clone()
    }

    /// The headers of the HTTP request; `None` where there is none, as over stdio and WebSocket.
    ///
    /// ```
    /// # use gudgeon::{Context, Server};
    /// async fn language(ctx: Context) -> String {
    ///     let headers = ctx.headers().unwrap_or_default();
    ///     headers.get("accept-language").and_then(|it| it.to_str().ok()).unwrap_or("en").to_owned()
    /// }
    ///
    /// let server = Server::new("shelf").tool("language", language);
    /// ```
    pub fn headers(&self) -> Option<HeaderMap> {
        self.context().http.as_ref().map(|it| it.headers.clone())
    }

    /// Who asks, where whoever let the request in has told: a request that is served by
    /// [`HttpService`](super::HttpService) brings it as an extension, an `Arc<Principal>`.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use gudgeon::{Context, Server, protocol::Principal};
    /// # use tower_service::Service as _;
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// async fn whoami(ctx: Context) -> String {
    ///     ctx.principal().map_or("nobody".to_owned(), |it| it.subject.clone())
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

    /// The client's name and version, as far as it gave them.
    pub fn client(&self) -> Implementation {
        parsed(self.context().client.info.as_deref())
    }

    /// What the client declared that it can do.
    pub fn client_capabilities(&self) -> ClientCapabilities {
        parsed(self.context().client.capabilities.as_deref())
    }

    /// The request's `_meta`: a JSON object (Base Protocol, "`_meta`").
    pub fn meta(&self) -> Option<Raw> {
        self.context().meta.clone()
    }

    /// Whether the caller asked to hear of progress. What is told without it is dropped.
    pub fn wants_progress(&self) -> bool {
        self.call.wants_progress.load(Ordering::Relaxed)
    }

    /// Tells how far the call is, at once: `progress` of `total`, in any unit, and a word on it (Progress). `progress`
    /// must increase with every report; one that does not is dropped, the first of a call's with a line in the log.
    pub fn progress<'a>(
        &self,
        progress: f64,
        total: Option<f64>,
        message: impl Into<Option<&'a str>>,
    ) {
        if self.wants_progress() {
            let message = message.into().map(ToOwned::to_owned);
            let step = Progress { progress, total, message };
            self.call.connection.progress(self.call.id, step);
            self.call.connection.flush();
        }
    }

    /// Sends a log message to the client, which gets those at or above the level that it asked for (Logging): 1,000 at
    /// once, and then 100 a second as long as it reads them. What is left out is counted, and the client is told.
    ///
    /// `data` is a text or any other value that JSON can say.
    pub fn log(&self, level: LoggingLevel, data: impl Serialize) {
        self.log_as(level, None, data);
    }

    /// Like [`Context::log`], under the name of a logger.
    pub fn log_as<'a>(
        &self,
        level: LoggingLevel,
        logger: impl Into<Option<&'a str>>,
        data: impl Serialize,
    ) {
        let logger = logger.into().map(ToOwned::to_owned);
        self.call.connection.log(self.call.id, level, logger, log_data(&data));
        self.call.connection.flush();
    }

    /// Tells the client's log at the level `debug`.
    pub fn debug(&self, data: impl Serialize) {
        self.log(LoggingLevel::Debug, data);
    }

    /// Tells the client's log at the level `info`.
    pub fn info(&self, data: impl Serialize) {
        self.log(LoggingLevel::Info, data);
    }

    /// Tells the client's log at the level `notice`.
    pub fn notice(&self, data: impl Serialize) {
        self.log(LoggingLevel::Notice, data);
    }

    /// Tells the client's log at the level `warning`.
    pub fn warning(&self, data: impl Serialize) {
        self.log(LoggingLevel::Warning, data);
    }

    /// Tells the client's log at the level `error`.
    pub fn error(&self, data: impl Serialize) {
        self.log(LoggingLevel::Error, data);
    }

    /// Over legacy HTTP: ends the stream that the answer would come on, so that the client comes back for it after
    /// `retry`; the answer waits for it (Streamable HTTP, "Resumability and Redelivery"). Elsewhere it does nothing.
    pub fn close_stream(&self, retry: impl Into<Option<Duration>>) {
        self.call.connection.close_stream(self.call.id, retry.into());
        self.call.connection.flush();
    }

    /// Whether nobody waits for this call any more: it was cancelled, ran out of time, or the client has gone.
    ///
    /// A handler that awaits is dropped then; one that computes for long should look.
    pub fn is_cancelled(&self) -> bool {
        self.call.is_cancelled.load(Ordering::Acquire)
    }

    /// Waits until nobody waits for this call any more, for what a handler has spawned.
    pub async fn cancelled(&self) {
        let mut notified = std::pin::pin!(self.call.cancelled.notified());
        notified.as_mut().enable();
        if !self.is_cancelled() {
            notified.await;
        }
    }

    /// The handler goes on for another request.
    pub(super) fn resumed(&self, context: CallContext) {
        self.call.wants_progress.store(context.wants_progress, Ordering::Relaxed);
        *self.context() = context;
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
    raw.and_then(|it| serde_json::from_str(it.get()).ok()).unwrap_or_default()
}
