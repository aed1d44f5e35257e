//! The configuration of a client.

use std::{
    fmt,
    future::Future,
    sync::{Arc, Mutex, PoisonError, RwLock},
    time::Duration,
};

use super::{
    CallOptions, Client, Inner, Target,
    connection::{Connection, ConnectionConfig, Event, OnProgress},
    listeners::SubscriptionEvent,
    operation::Operation,
    questions::{Answerer, Questions, Roots},
};
use crate::{
    error::{Error, ErrorKind},
    framing::DEFAULT_LINE_LIMIT,
    peer::{
        self, KnownTools,
        subscriptions::{Interests, SubscriptionSettings},
    },
    protocol::{
        ClientCapabilities, CreateMessageRequestParams, CreateMessageResult, Dialect,
        ElicitRequestParams, ElicitResult, Implementation, LoggingLevel, Revision, Root,
        SubscriptionFilter, json,
    },
    session::client::{Change, ClientConfig, ListKind, LogMessage, Progress},
};

/// The time for which `connect` waits for the server to acknowledge the subscription to its lists.
const LISTEN_TIME: Duration = Duration::from_secs(5);

type Hook<T> = Box<dyn Fn(T) + Send + Sync>;

/// A client that is not connected yet: its target and options.
pub struct ClientBuilder {
    target: Target,
    session: ClientConfig,
    options: CallOptions,
    headers: Vec<(String, String)>,
    max_message: usize,
    max_rounds: usize,
    validate: bool,
    log_level: Option<LoggingLevel>,
    hooks: Hooks,
    questions: Questions,
}

#[derive(Default)]
struct Hooks {
    event: Option<Hook<Event>>,
    log: Option<Hook<LogMessage>>,
    list_changed: Option<Hook<ListKind>>,
    url_done: Option<Hook<String>>,
}

impl fmt::Debug for ClientBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientBuilder").field("target", &self.target).finish_non_exhaustive()
    }
}

impl ClientBuilder {
    pub(super) fn new(target: Target) -> Self {
        Self {
            target,
            session: ClientConfig {
                info: Implementation::default(),
                capabilities: ClientCapabilities::default(),
                revisions: Revision::ALL.to_vec(),
                dialect: None,
                probe_timeout: Duration::from_secs(5),
                connect_timeout: Some(Duration::from_secs(60)),
                log_level: None,
            },
            options: CallOptions {
                timeout: Some(Duration::from_secs(60)),
                max_timeout: None,
                on_progress: None,
                meta: None,
                raise_on_error: true,
            },
            headers: Vec::new(),
            max_message: DEFAULT_LINE_LIMIT,
            max_rounds: 10,
            validate: false,
            log_level: None,
            hooks: Hooks::default(),
            questions: Questions::default(),
        }
    }

    /// Speaks this revision only.
    #[must_use]
    pub fn revision(self, revision: Revision) -> Self {
        self.revisions([revision])
    }

    /// Speaks the newest of these revisions that the server speaks as well. Default: all revisions.
    #[must_use]
    pub fn revisions(mut self, revisions: impl IntoIterator<Item = Revision>) -> Self {
        self.session.revisions = revisions.into_iter().collect();
        self
    }

    /// Speaks a dialect, given as the only name, or the revisions with the given dates. Errors if a name is unknown.
    #[doc(hidden)] // For the language bindings.
    pub fn speaks<N: AsRef<str>>(self, names: &[N]) -> Result<Self, Error> {
        if let [name] = names
            && let Ok(dialect) = name.as_ref().parse()
        {
            return Ok(self.dialect(dialect));
        }
        Ok(self.revisions(Revision::named(names)?))
    }

    /// Speaks this dialect, an older description of the protocol, instead of a revision.
    #[must_use]
    pub fn dialect(mut self, dialect: Dialect) -> Self {
        self.session.dialect = Some(dialect);
        self
    }

    /// The time limit of a request without a response or progress, and of [`connect`](Self::connect) as a whole; `None`
    /// means no limit. It is suspended while a callback answers the server. Default: 60 s.
    #[must_use]
    pub fn timeout(mut self, timeout: impl Into<Option<Duration>>) -> Self {
        self.options.timeout = timeout.into();
        self.session.connect_timeout = self.options.timeout;
        self
    }

    /// The total time limit of a request, regardless of progress. Default: none.
    #[must_use]
    pub fn max_timeout(mut self, timeout: impl Into<Option<Duration>>) -> Self {
        self.options.max_timeout = timeout.into();
        self
    }

    /// The time limit for the response to `server/discover`, after which a server counts as legacy. At most half of the
    /// time left to connect is used. Default: 5 s.
    #[must_use]
    pub fn probe_timeout(mut self, timeout: Duration) -> Self {
        self.session.probe_timeout = timeout;
        self
    }

    /// The name and version of this program. Default: empty.
    #[must_use]
    pub fn client_info(mut self, info: Implementation) -> Self {
        self.session.info = info;
        self
    }

    /// Declares capabilities in addition to those of the registered callbacks.
    #[must_use]
    pub fn capabilities(mut self, capabilities: ClientCapabilities) -> Self {
        self.session.capabilities = capabilities;
        self
    }

    /// Headers for every HTTP request and for the WebSocket handshake, such as `Authorization`.
    ///
    /// They are sent to the origin of the URL only, and are never logged.
    #[must_use]
    pub fn headers<N: Into<String>, V: Into<String>>(
        mut self,
        headers: impl IntoIterator<Item = (N, V)>,
    ) -> Self {
        self.headers.extend(headers.into_iter().map(|(name, value)| (name.into(), value.into())));
        self
    }

    /// The maximum size of a message from the server in bytes; longer ones are discarded. Default: 16 MiB.
    #[must_use]
    pub fn max_message(mut self, bytes: usize) -> Self {
        self.max_message = bytes;
        self
    }

    /// The maximum number of rounds of questions in a call. Default: 10.
    #[must_use]
    pub fn max_rounds(mut self, rounds: usize) -> Self {
        self.max_rounds = rounds;
        self
    }

    /// If true, arguments are checked against the tool's schema before they are sent. Default: false.
    #[must_use]
    pub fn validate(mut self, validate: bool) -> Self {
        self.validate = validate;
        self
    }

    /// The minimum level of log messages. With [`Self::on_log`] and without this option, modern servers send `info`
    /// and above.
    #[must_use]
    pub fn log_level(mut self, level: LoggingLevel) -> Self {
        self.log_level = Some(level);
        self
    }

    /// Registers a callback for all unsolicited notifications of a legacy server, in order. It must not block.
    ///
    /// Notifications of a modern server belong to a subscription: see [`Client::subscribe`] and
    /// [`Self::on_list_changed`].
    #[must_use]
    pub fn on_event(mut self, hook: impl Fn(Event) + Send + Sync + 'static) -> Self {
        self.hooks.event = Some(Box::new(hook));
        self
    }

    /// Registers a callback for log messages. It must not block.
    #[must_use]
    pub fn on_log(mut self, hook: impl Fn(LogMessage) + Send + Sync + 'static) -> Self {
        self.hooks.log = Some(Box::new(hook));
        self
    }

    /// Registers a callback for changes of the lists that the server declares to notify of. It must not block.
    ///
    /// In the modern era this opens a `subscriptions/listen` for the lifetime of the client. After an interruption
    /// all lists are reported as changed. Spec: Base Protocol › Patterns › Subscriptions.
    #[must_use]
    pub fn on_list_changed(mut self, hook: impl Fn(ListKind) + Send + Sync + 'static) -> Self {
        self.hooks.list_changed = Some(Box::new(hook));
        self
    }

    /// Registers a callback for finished URL elicitations; it gets the elicitation's id. It must not block.
    ///
    /// Only 2025-11-25 has this notification. Spec: Client Features › Elicitation › Completion Notifications.
    #[must_use]
    pub fn on_url_done(mut self, hook: impl Fn(String) + Send + Sync + 'static) -> Self {
        self.hooks.url_done = Some(Box::new(hook));
        self
    }

    /// Registers a callback for the progress of all requests. It must not block.
    #[must_use]
    pub fn on_progress(mut self, hook: impl Fn(Progress) + Send + Sync + 'static) -> Self {
        let hook: OnProgress = Arc::new(hook);
        self.options.on_progress = Some(hook);
        self
    }

    /// Registers a callback that answers elicitations. To decline or cancel, it returns an error of kind `Declined`
    /// or `Cancelled`.
    #[must_use]
    pub fn on_elicit<F, A>(mut self, callback: F) -> Self
    where
        F: Fn(ElicitRequestParams) -> A + Send + Sync + 'static,
        A: Future<Output = Result<ElicitResult, Error>> + Send + 'static,
    {
        self.questions.elicit = Some(answerer(callback));
        self
    }

    /// Registers a callback that answers sampling requests.
    #[must_use]
    pub fn on_sample<F, A>(mut self, callback: F) -> Self
    where
        F: Fn(CreateMessageRequestParams) -> A + Send + Sync + 'static,
        A: Future<Output = Result<CreateMessageResult, Error>> + Send + 'static,
    {
        self.questions.sample = Some(answerer(callback));
        self
    }

    /// The roots of the client. They must be `file://` URIs, otherwise `connect` fails.
    #[must_use]
    pub fn roots(mut self, roots: impl IntoIterator<Item = Root>) -> Self {
        let roots = Roots::List(roots.into_iter().collect());
        self.questions.roots = RwLock::new(Some(roots));
        self
    }

    /// Registers a callback for all kinds of questions.
    pub(super) fn on_question(mut self, callback: Answerer) -> Self {
        self.questions.elicit = Some(Arc::clone(&callback));
        self.questions.sample = Some(Arc::clone(&callback));
        self.questions.roots = RwLock::new(Some(Roots::Callback(callback)));
        self
    }

    /// Connects to the server, starting its process if necessary, and negotiates the revision. Errors if the server
    /// can't be reached or started, or shares no revision with the client.
    pub async fn connect(self) -> Result<Client, Error> {
        let Self { target, mut session, options, mut questions, hooks, log_level, .. } = self;
        questions.check()?;
        questions.declare(&mut session.capabilities);
        session.log_level = log_level.or(hooks.log.as_ref().map(|_| LoggingLevel::Info));
        let has_roots = session.capabilities.roots.is_some();
        let questions = Arc::new(questions);
        let tools = Arc::new(Mutex::new(KnownTools::default()));
        let (asked, known) = (Arc::clone(&questions), Arc::clone(&tools));
        let mirrored = Arc::clone(&tools);
        let hooks = Arc::new(hooks);
        let callbacks = Arc::clone(&hooks);
        let config = ConnectionConfig {
            session,
            max_message: self.max_message,
            headers: self.headers,
            mirror: Arc::new(move |name, arguments| {
                mirrored.lock().unwrap_or_else(PoisonError::into_inner).mirror(name, arguments)
            }),
            on_event: Arc::new(move |event| callbacks.on_event(event, &known)),
            on_question: Arc::new(move |question| {
                let questions = Arc::clone(&asked);
                Box::pin(async move { questions.answer(question).await })
            }),
        };
        let connection = Connection::open(target, config).await?;
        let inner = Inner {
            connection,
            questions,
            tools,
            max_rounds: self.max_rounds,
            validate: self.validate,
            has_roots,
        };
        let client = Client { inner: Arc::new(inner), options };
        if hooks.list_changed.is_some() {
            client.listen_to_lists(hooks).await;
        }
        if let Some(level) = log_level {
            match client.call(Operation::SetLogLevel(level), client.options()).await {
                // A server without logging needs no level.
                Err(error) if error.kind != ErrorKind::Unsupported => {
                    client.close().await;
                    return Err(error);
                }
                _ => (),
            }
        }
        Ok(client)
    }
}

/// Callbacks of the language bindings, which convert values themselves.
#[cfg(feature = "bindings")]
impl ClientBuilder {
    /// Like [`Self::on_elicit`], with params and result as raw JSON.
    #[must_use]
    pub fn on_elicit_raw(mut self, callback: Answerer) -> Self {
        self.questions.elicit = Some(callback);
        self
    }

    /// Like [`Self::on_sample`], with params and result as raw JSON.
    #[must_use]
    pub fn on_sample_raw(mut self, callback: Answerer) -> Self {
        self.questions.sample = Some(callback);
        self
    }

    /// Like [`Self::roots`], with a callback that returns the result as raw JSON for each request.
    #[must_use]
    pub fn on_roots_raw(mut self, callback: Answerer) -> Self {
        self.questions.roots = RwLock::new(Some(Roots::Callback(callback)));
        self
    }
}

impl Client {
    /// Subscribes to the lists in the modern era, where a server notifies only subscribers.
    async fn listen_to_lists(&self, hooks: Arc<Hooks>) {
        let server = self.server();
        if !server.has_listen() {
            return;
        }
        let notified = |list| server.notifies_of(list).then_some(true);
        let filter = SubscriptionFilter {
            tools_list_changed: notified(ListKind::Tools),
            prompts_list_changed: notified(ListKind::Prompts),
            resources_list_changed: notified(ListKind::Resources),
            resource_subscriptions: None,
        };
        let Ok(interests) = Interests::of(&filter) else { return };
        let timeout = self.options.timeout;
        let settings =
            SubscriptionSettings { timeout, outlives_end: true, ..SubscriptionSettings::default() };
        let tools = Arc::clone(&self.inner.tools);
        let opened = self.listen(interests, settings, move |event| match event {
            SubscriptionEvent::Changed(Change::List(kind)) => {
                hooks.on_event(Event::ListChanged(kind), &tools);
            }
            SubscriptionEvent::Changed(Change::Updated(_)) | SubscriptionEvent::Ended(None) => (),
            SubscriptionEvent::Ended(Some(error)) => {
                tracing::warn!(%error, "changes of the server's lists go unnoticed");
            }
        });
        let Ok((_, opened)) = opened else { return };
        match tokio::time::timeout(LISTEN_TIME, opened).await {
            Ok(Ok(Err(error))) => {
                tracing::warn!(%error, "changes of the server's lists go unnoticed");
            }
            Ok(_) => (),
            Err(_) => tracing::debug!("the server has not acknowledged the subscription yet"),
        }
    }
}

impl Hooks {
    fn on_event(&self, event: Event, tools: &Mutex<KnownTools>) {
        match &event {
            Event::Log(message) => {
                if let Some(hook) = &self.log {
                    hook(message.clone());
                }
            }
            Event::ListChanged(kind) => {
                if *kind == ListKind::Tools {
                    tools.lock().unwrap_or_else(PoisonError::into_inner).forget();
                }
                if let Some(hook) = &self.list_changed {
                    hook(*kind);
                }
            }
            Event::UrlDone(elicitation) => {
                if let Some(hook) = &self.url_done {
                    hook(elicitation.clone());
                }
            }
            _ => (),
        }
        if let Some(hook) = &self.event {
            hook(event);
        }
    }
}

/// Converts a typed callback to one that reads and writes JSON.
fn answerer<P, R, F, A>(callback: F) -> Answerer
where
    P: for<'de> serde::Deserialize<'de> + Send + 'static,
    R: serde::Serialize,
    F: Fn(P) -> A + Send + Sync + 'static,
    A: Future<Output = Result<R, Error>> + Send + 'static,
{
    let callback = Arc::new(callback);
    Arc::new(move |question| {
        let callback = Arc::clone(&callback);
        Box::pin(async move {
            let params = peer::read("the server's question", &question.params)?;
            callback(params).await.map(|it| json::to_raw(&it))
        })
    })
}
