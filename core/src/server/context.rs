//! What a handler knows of its call, and what it can tell and ask while it runs.

use std::{
    collections::{BTreeMap, HashMap},
    fmt,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use http::HeaderMap;
use schemars::JsonSchema;
use serde::{Serialize, de::DeserializeOwned};
use serde_json::value::RawValue;
use tokio::sync::{Notify, oneshot};

use super::{
    ToolError,
    ask::{self, Outcome, Put, Question, Questions},
    connection::Connection,
    error::log_data,
};
use crate::{
    driver::Work,
    error::Fault,
    protocol::{
        ClientCapabilities, CreateMessageRequestParams, CreateMessageResult, Dialect, Id,
        Implementation, LoggingLevel, Raw, Revision, Root,
    },
    router::Failure,
    session::{
        asking::AskId,
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
    context: CallContext,
    connection: Arc<dyn Connection>,
    is_cancelled: AtomicBool,
    cancelled: Notify,
    asking: Mutex<Asking>,
}

/// What one call has asked.
#[derive(Default)]
struct Asking {
    /// Questions without a key of their own, by kind.
    counts: BTreeMap<&'static str, u32>,
    next: u64,
    waiting: HashMap<AskId, oneshot::Sender<Result<Raw, Failure>>>,
    is_over: bool,
}

impl Context {
    pub(super) fn new(context: CallContext, connection: Arc<dyn Connection>) -> Self {
        let call = Call {
            context,
            connection,
            is_cancelled: AtomicBool::new(false),
            cancelled: Notify::new(),
            asking: Mutex::default(),
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

    /// The older description of the protocol that the request is in, where it is no revision.
    pub fn dialect(&self) -> Option<Dialect> {
        self.call.context.dialect
    }

    /// The id of the session; `None` where there is none, as in revision 2026-07-28 and over stdio.
    pub fn session_id(&self) -> Option<&str> {
        self.call.context.http.as_ref()?.session_id.as_deref()
    }

    /// The headers of the HTTP request; `None` where there is none, as over stdio and WebSocket.
    ///
    /// ```
    /// # use gudgeon::{Context, Server};
    /// async fn language(ctx: Context) -> String {
    ///     let given = ctx.headers().and_then(|it| it.get("accept-language")?.to_str().ok());
    ///     given.unwrap_or("en").to_owned()
    /// }
    ///
    /// let server = Server::new("shelf").tool("language", language);
    /// ```
    pub fn headers(&self) -> Option<&HeaderMap> {
        self.call.context.http.as_ref().map(|it| &it.headers)
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

    /// Over legacy HTTP: ends the stream that the answer would come on, so that the client comes back for it after
    /// `retry`; the answer waits for it (Streamable HTTP, "Resumability and Redelivery"). Elsewhere it does nothing.
    pub fn close_stream(&self, retry: impl Into<Option<Duration>>) {
        self.call.connection.close_stream(self.call.context.call, retry.into());
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

    /// Asks the user by a form, and waits for the answer (Elicitation). A plain type, such as `bool`, is asked as the one
    /// property `value`, a struct by its fields.
    ///
    /// It fails when the user said no or closed the form, when the client did not declare elicitation, and in revisions
    /// where questions travel in results: there, return the question ([`ask`](crate::ask)).
    ///
    /// ```
    /// # use gudgeon::{Context, Server, ToolError};
    /// async fn delete(ctx: Context) -> Result<&'static str, ToolError> {
    ///     match ctx.elicit("Delete it?").await? {
    ///         true => Ok("deleted"),
    ///         false => Ok("kept"),
    ///     }
    /// }
    ///
    /// let server = Server::new("shelf").tool("delete", delete);
    /// ```
    pub async fn elicit<T>(&self, message: impl Into<String>) -> Result<T, ToolError>
    where
        T: DeserializeOwned + JsonSchema,
    {
        self.ask(ask::elicit(message)).await
    }

    /// [`Context::elicit`] that gives a no back instead of failing.
    pub async fn try_elicit<T>(&self, message: impl Into<String>) -> Result<Outcome<T>, ToolError>
    where
        T: DeserializeOwned + JsonSchema,
    {
        let question = ask::elicit(message);
        let results = self.put(&[&question.put]).await?;
        question.outcome(&results[0])
    }

    /// Sends the user to a page (Elicitation, "URL Mode"), and gives the elicitation's id. Fails as
    /// [`Context::elicit`] does.
    pub async fn elicit_url(
        &self,
        message: impl Into<String>,
        url: impl Into<String>,
    ) -> Result<String, ToolError> {
        self.ask(ask::elicit_url(message, url)).await
    }

    /// Asks the client's model (Sampling). Fails as [`Context::elicit`] does.
    pub async fn sample(
        &self,
        request: CreateMessageRequestParams,
    ) -> Result<CreateMessageResult, ToolError> {
        self.ask(ask::sample(request)).await
    }

    /// Asks for the folders that the client lets a server work in (Roots). Fails as [`Context::elicit`] does.
    pub async fn roots(&self) -> Result<Vec<Root>, ToolError> {
        self.ask(ask::roots()).await
    }

    /// Asks one question or several at once, and waits until all are answered.
    pub async fn ask<Q: Questions>(&self, questions: Q) -> Result<Q::Answers, ToolError> {
        let results = self.put(&questions.puts()).await?;
        questions.read(&results)
    }

    /// The answer to a question that the handler returned before; `None` until it was answered. It fails when the user
    /// said no.
    pub fn answer<T>(&self, question: &Question<T>) -> Result<Option<T>, ToolError> {
        self.known(&question.put).map(|it| question.decode(&it)).transpose()
    }

    fn known(&self, put: &Put) -> Option<Raw> {
        let key = put.key(|kind| {
            let mut asking = self.asking();
            let count = asking.counts.entry(kind).or_insert(0);
            *count += 1;
            *count
        });
        self.call.context.answers.get(key, put.method, put.params.get())
    }

    /// The clients' results, in order; the first failure where there is one.
    async fn put(&self, puts: &[&Put]) -> Result<Vec<Raw>, ToolError> {
        for put in puts {
            put.check().map_err(ToolError::of)?;
        }
        let waiting: Vec<_> = puts
            .iter()
            .map(|put| match self.known(put) {
                Some(known) => Err(known),
                None => Ok(self.send(put)),
            })
            .collect();
        let mut answers = Vec::with_capacity(waiting.len());
        for one in waiting {
            answers.push(match one {
                Err(known) => Ok(known),
                Ok(receiver) => receiver.await.unwrap_or(Err(Failure::Cancelled)),
            });
        }
        answers.into_iter().collect::<Result<_, _>>().map_err(ToolError::of)
    }

    fn send(&self, put: &Put) -> oneshot::Receiver<Result<Raw, Failure>> {
        let (sender, receiver) = oneshot::channel();
        let ask = {
            let mut asking = self.asking();
            if asking.is_over {
                return receiver;
            }
            let ask = AskId(asking.next);
            asking.next += 1;
            asking.waiting.insert(ask, sender);
            ask
        };
        let Call { context, connection, .. } = &*self.call;
        // Asking starts no handlers: all that can come of it at once is a refusal.
        let Work { answers, .. } =
            connection.ask(context.call, ask, put.method, put.params.clone());
        for (_, ask, outcome) in answers {
            self.answered(ask, outcome);
        }
        connection.flush();
        receiver
    }

    pub(super) fn answered(&self, ask: AskId, outcome: Result<Raw, Fault>) {
        let waiting = self.asking().waiting.remove(&ask);
        if let Some(sender) = waiting {
            // It may have given up in between.
            let _ = sender.send(outcome.map_err(Failure::from));
        }
    }

    /// The call is over: nobody answers any more.
    pub(super) fn end(&self) {
        let mut asking = self.asking();
        asking.is_over = true;
        asking.waiting.clear();
    }

    pub(super) fn cancel(&self) {
        self.call.is_cancelled.store(true, Ordering::Release);
        self.call.cancelled.notify_waiters();
        self.end();
    }

    fn asking(&self) -> MutexGuard<'_, Asking> {
        self.call.asking.lock().unwrap_or_else(PoisonError::into_inner)
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
