//! What a handler knows of its call, and what it can tell while it runs.

use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use serde::{Serialize, de::DeserializeOwned};
use serde_json::value::RawValue;
use tokio::sync::Notify;

use super::{connection::Connection, error::log_data};
use crate::{
    protocol::{ClientCapabilities, Id, Implementation, LoggingLevel, Revision},
    session::server::{CallContext, Progress},
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
    context: CallContext,
    connection: Arc<dyn Connection>,
    is_cancelled: AtomicBool,
    cancelled: Notify,
}

impl Context {
    pub(super) fn new(context: CallContext, connection: Arc<dyn Connection>) -> Self {
        let call = Call {
            context,
            connection,
            is_cancelled: AtomicBool::new(false),
            cancelled: Notify::new(),
        };
        Self { call: Arc::new(call) }
    }

    /// The request's id; `None` in a handler of notifications.
    pub fn request_id(&self) -> Option<&Id> {
        self.call.context.request_id.as_ref()
    }

    /// The revision of the protocol that the request is served in.
    pub fn revision(&self) -> Revision {
        self.call.context.revision
    }

    /// The client's name and version, as far as it gave them.
    pub fn client(&self) -> Implementation {
        parsed(self.call.context.client.info.as_deref())
    }

    /// What the client declared that it can do.
    pub fn client_capabilities(&self) -> ClientCapabilities {
        parsed(self.call.context.client.capabilities.as_deref())
    }

    /// The request's `_meta`: a JSON object (Base Protocol, "`_meta`").
    pub fn meta(&self) -> Option<&RawValue> {
        self.call.context.meta.as_deref()
    }

    /// Whether the caller asked to hear of progress. What is told without it is dropped.
    pub fn wants_progress(&self) -> bool {
        self.call.context.wants_progress
    }

    /// Tells how far the call is, at once: `progress` of `total`, in any unit, and a word on it (Progress). `progress`
    /// must increase with every report; one that does not is dropped.
    pub fn progress<'a>(
        &self,
        progress: f64,
        total: Option<f64>,
        message: impl Into<Option<&'a str>>,
    ) {
        if self.call.context.wants_progress {
            let message = message.into().map(ToOwned::to_owned);
            let step = Progress { progress, total, message };
            self.call.connection.progress(self.call.context.call, step);
            self.call.connection.flush();
        }
    }

    /// Sends a log message to the client, which gets those at or above the level that it asked for (Logging).
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
        self.call.connection.log(self.call.context.call, level, logger, log_data(&data));
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

    pub(super) fn cancel(&self) {
        self.call.is_cancelled.store(true, Ordering::Release);
        self.call.cancelled.notify_waiters();
    }
}

impl fmt::Debug for Context {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Context")
            .field("call", &self.call.context)
            .field("is_cancelled", &self.is_cancelled())
            .finish_non_exhaustive()
    }
}

fn parsed<T: DeserializeOwned + Default>(raw: Option<&RawValue>) -> T {
    raw.and_then(|it| serde_json::from_str(it.get()).ok()).unwrap_or_default()
}
