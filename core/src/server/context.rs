//! What a handler knows of its call, and what it can tell and ask while it runs.

use std::{
    collections::{BTreeMap, HashMap},
    fmt,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError, Weak,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use http::HeaderMap;
use schemars::JsonSchema;
use serde::{Serialize, de::DeserializeOwned};
use serde_json::value::RawValue;
use tokio::sync::{Notify, OnceCell, oneshot};

use super::{
    ToolError,
    ask::{self, Misfits, Outcome, Put, Question, Questions},
    connection::Connection,
    error::log_data,
    run::Runner,
    session::Session,
};
use crate::{
    driver::Work,
    error::Fault,
    protocol::{
        ClientCapabilities, CreateMessageRequestParams, CreateMessageResult, Dialect, Id,
        Implementation, LoggingLevel, Principal, Question as Asked, Raw, Revision, Root, exact,
    },
    router::Failure,
    session::{
        CallId,
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

/// What one call has asked.
#[derive(Default)]
struct Asking {
    /// Questions without a key of their own, by kind.
    counts: BTreeMap<&'static str, u32>,
    next: u64,
    waiting: HashMap<AskId, oneshot::Sender<Result<Raw, Failure>>>,
    /// What was done already.
    steps: BTreeMap<String, Arc<OnceCell<Raw>>>,
    is_over: bool,
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

    /// Asks the user by a form, and waits for the answer (Elicitation). A plain type, such as `bool`, is asked as the one
    /// property `value`, a struct by its fields.
    ///
    /// Where questions travel in results (2026-07-28, Multi Round-Trip Requests) the handler waits until the client sends
    /// its request again with the answer. If that comes to another process, or too late, the handler is run again from its
    /// top and the earlier answers are there at once; see [`Context::step`] for what must not happen twice.
    ///
    /// An answer that does not fit the form, or that the type can't be read from (`#[serde(try_from = "…")]` checks more
    /// than forms can say), is asked for again, three times in all.
    ///
    /// It fails when the user said no or closed the form, when no answer fits, when the client did not declare
    /// elicitation, and when the client's revision has no form for the type: then nothing is sent.
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
        self.ask(Self::form(message.into())?).await
    }

    /// [`Context::elicit`] that gives a no back instead of failing.
    pub async fn try_elicit<T>(&self, message: impl Into<String>) -> Result<Outcome<T>, ToolError>
    where
        T: DeserializeOwned + JsonSchema,
    {
        let question = Self::form(message.into())?;
        let puts = [&question.put];
        let mut results = self.put(&puts).await?;
        loop {
            let problem = match question.outcome(&results[0])? {
                Ok(outcome) => return Ok(outcome),
                Err(problem) => problem,
            };
            self.put_again(&puts, vec![(0, problem)], &mut results).await?;
        }
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

    /// Asks one question or several at once, and waits until all are answered. Those whose answers don't fit are asked
    /// again, as [`Context::elicit`] does.
    pub async fn ask<Q: Questions>(&self, questions: Q) -> Result<Q::Answers, ToolError> {
        let mut results = self.put(&questions.puts()).await?;
        loop {
            let misfits = match questions.read(&results)? {
                Ok(answers) => return Ok(answers),
                Err(misfits) => misfits,
            };
            self.put_again(&questions.puts(), misfits, &mut results).await?;
        }
    }

    /// Does something once for the call, and remembers what it gave: should the handler have to run again from its top,
    /// because its client's answer came to another process or too late for this one, the step is not done again.
    ///
    /// That is at least once, not exactly once: a process that dies between the deed and the next question has forgotten
    /// it. What the step gives goes through JSON, on the first run too. A failed step is not remembered. A key names one
    /// step of a call: a second one under it waits for the first, and gives the same.
    ///
    /// ```
    /// # use gudgeon::{Context, Server, ToolError};
    /// async fn order(ctx: Context) -> Result<String, ToolError> {
    ///     let number: u32 = ctx.step("reserve", async { Ok::<_, ToolError>(42) }).await?;
    ///     match ctx.elicit(format!("Order {number}?")).await? {
    ///         true => Ok(format!("ordered {number}")),
    ///         false => Ok("left".into()),
    ///     }
    /// }
    ///
    /// let server = Server::new("shelf").tool("order", order);
    /// ```
    pub async fn step<T, E>(
        &self,
        key: &str,
        step: impl Future<Output = Result<T, E>>,
    ) -> Result<T, ToolError>
    where
        T: Serialize + DeserializeOwned,
        ToolError: From<E>,
    {
        let cell = Arc::clone(self.asking().steps.entry(key.to_owned()).or_default());
        let done = async || {
            let known = self.context().answers.step(key);
            if let Some(known) = known {
                return Ok(known);
            }
            let value = exact::to_raw(&step.await?, &format!("the result of step {key:?}"))?;
            self.call.connection.step(self.call.id, key, value.clone());
            Ok::<_, ToolError>(value)
        };
        let value = cell.get_or_try_init(done).await?;
        Ok(serde_json::from_str(value.get())?)
    }

    /// The answer to a question that the handler returned before; `None` until it was answered with what its type can be
    /// read from: return it once more then. It fails when the user said no, and when it was answered three times with what
    /// does not fit.
    pub fn answer<T>(&self, question: &Question<T>) -> Result<Option<T>, ToolError> {
        let Some(known) = self.known(&question.put) else { return Ok(None) };
        let problem = match question.decode(&known)? {
            Ok(answer) => return Ok(Some(answer)),
            Err(problem) => problem,
        };
        let asked = self.question(&question.put);
        let refused = self.context().answers.refuse(&asked, &problem);
        refused.map(|()| None).map_err(|fault| ToolError::of(Failure::from(fault)))
    }

    /// A question without a key of its own gets its number when the call first names it.
    pub(super) fn key<'p>(&self, put: &'p Put) -> &'p str {
        put.key(|kind| {
            let mut asking = self.asking();
            let count = asking.counts.entry(kind).or_insert(0);
            *count += 1;
            *count
        })
    }

    fn known(&self, put: &Put) -> Option<Raw> {
        let key = self.key(put);
        let answers = self.context().answers.clone();
        answers.get(key, put.method, put.params.get())
    }

    fn form<T: DeserializeOwned + JsonSchema>(message: String) -> Result<Question<T>, ToolError> {
        ask::form(message).map_err(ToolError::hidden)
    }

    /// The clients' results, in order; the first failure where there is one.
    async fn put(&self, puts: &[&Put]) -> Result<Vec<Raw>, ToolError> {
        self.check(puts)?;
        let waiting: Vec<_> = puts
            .iter()
            .map(|put| match self.known(put) {
                Some(known) => Err(known),
                None => Ok(self.send(put, None)),
            })
            .collect();
        if waiting.iter().any(Result::is_ok) {
            self.wait_for_round().await;
        }
        let mut answers = Vec::with_capacity(waiting.len());
        for one in waiting {
            answers.push(match one {
                Err(known) => Ok(known),
                Ok(receiver) => receiver.await.unwrap_or(Err(Failure::Cancelled)),
            });
        }
        answers.into_iter().collect::<Result<_, _>>().map_err(ToolError::of)
    }

    /// Asks those questions again whose results are none of the types asked for, and puts the new results in their place.
    async fn put_again(
        &self,
        puts: &[&Put],
        misfits: Misfits,
        results: &mut [Raw],
    ) -> Result<(), ToolError> {
        let ask = |(at, problem): (usize, String)| (at, self.send(puts[at], Some(problem)));
        let waiting: Vec<_> = misfits.into_iter().map(ask).collect();
        self.wait_for_round().await;
        for (at, receiver) in waiting {
            let answer = receiver.await.unwrap_or(Err(Failure::Cancelled));
            results[at] = answer.map_err(ToolError::of)?;
        }
        Ok(())
    }

    /// Of several questions none is asked where one can't be.
    fn check(&self, puts: &[&Put]) -> Result<(), ToolError> {
        if puts.len() == 1 {
            return Ok(());
        }
        let open = puts.iter().filter(|it| self.known(it).is_none());
        let open: Vec<_> = open.map(|it| self.question(it)).collect();
        let checked = self.context().may_ask(&open);
        checked.map_err(|fault| ToolError::of(Failure::from(fault)))
    }

    fn question(&self, put: &Put) -> Asked {
        let key = self.key(put).to_owned();
        Asked { key, method: put.method, params: put.params.clone() }
    }

    /// `problem`: what is wrong with the answer that came before.
    fn send(&self, put: &Put, problem: Option<String>) -> oneshot::Receiver<Result<Raw, Failure>> {
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
        let question = self.question(put);
        // Asking starts no handlers: all that can come of it at once is a refusal, or what was answered before.
        let (connection, call) = (&self.call.connection, self.call.id);
        let Work { answers, .. } = match problem {
            None => connection.ask(call, ask, question),
            Some(problem) => connection.ask_again(call, ask, question, problem),
        };
        for (_, ask, outcome) in answers {
            self.answered(ask, outcome);
        }
        self.call.connection.flush();
        receiver
    }

    /// Lets others that run for the same call ask in the same round; then what was asked goes out.
    async fn wait_for_round(&self) {
        tokio::task::yield_now().await;
        let work = self.call.connection.waits(self.call.id, false);
        if let Some(runner) = self.call.runner.upgrade() {
            runner.perform(work);
            runner.settle();
        }
    }

    /// The handler goes on for another request.
    pub(super) fn resumed(&self, context: CallContext) {
        self.call.wants_progress.store(context.wants_progress, Ordering::Relaxed);
        *self.context() = context;
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

    fn context(&self) -> MutexGuard<'_, CallContext> {
        self.call.context.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn asking(&self) -> MutexGuard<'_, Asking> {
        self.call.asking.lock().unwrap_or_else(PoisonError::into_inner)
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
