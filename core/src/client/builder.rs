//! How a client is set up.

use std::{
    fmt,
    future::Future,
    sync::{Arc, Mutex, PoisonError, RwLock},
    time::Duration,
};

use super::{
    CallOptions, Client, Inner, Target,
    connection::{Connection, ConnectionConfig, Event, OnProgress},
    listeners::News,
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

/// How long `connect` waits for a server to say that it will tell of its lists.
const LISTEN_TIME: Duration = Duration::from_secs(5);

type Hook<T> = Box<dyn Fn(T) + Send + Sync>;

/// A client that is not connected yet.
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
                initialize_timeout: Some(Duration::from_secs(60)),
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

    /// Speaks this revision and no other.
    #[must_use]
    pub fn revision(self, revision: Revision) -> Self {
        self.revisions([revision])
    }

    /// Speaks one of these: the newest that the server speaks too. All of them unless said otherwise.
    #[must_use]
    pub fn revisions(mut self, revisions: impl IntoIterator<Item = Revision>) -> Self {
        self.session.revisions = revisions.into_iter().collect();
        self
    }

    /// Speaks what users name: a dialect by itself, or else revisions by their dates. Fails where there is no such one.
    pub fn speaks<N: AsRef<str>>(self, names: &[N]) -> Result<Self, Error> {
        if let [name] = names
            && let Ok(dialect) = name.as_ref().parse()
        {
            return Ok(self.dialect(dialect));
        }
        Ok(self.revisions(Revision::named(names)?))
    }

    /// Speaks this older description of the protocol instead of a revision.
    #[must_use]
    pub fn dialect(mut self, dialect: Dialect) -> Self {
        self.session.dialect = Some(dialect);
        self
    }

    /// How long to wait without an answer and without progress: 60 s; `None` waits for ever. It stands still while a
    /// callback answers the server.
    #[must_use]
    pub fn timeout(mut self, timeout: impl Into<Option<Duration>>) -> Self {
        self.options.timeout = timeout.into();
        self.session.initialize_timeout = self.options.timeout;
        self
    }

    /// How long a request may take in all, whatever progress it makes: no limit.
    #[must_use]
    pub fn max_timeout(mut self, timeout: impl Into<Option<Duration>>) -> Self {
        self.options.max_timeout = timeout.into();
        self
    }

    /// How long a server may be silent about `server/discover` before it counts as legacy: 5 s.
    #[must_use]
    pub fn probe_timeout(mut self, timeout: Duration) -> Self {
        self.session.probe_timeout = timeout;
        self
    }

    /// The name and version of this program.
    #[must_use]
    pub fn client_info(mut self, info: Implementation) -> Self {
        self.session.info = info;
        self
    }

    /// Declares more than the callbacks say by themselves.
    #[must_use]
    pub fn capabilities(mut self, capabilities: ClientCapabilities) -> Self {
        self.session.capabilities = capabilities;
        self
    }

    /// Sent with every request over HTTP, and with the first of a WebSocket: an `Authorization`, for one.
    ///
    /// They go to the origin of the URL and nowhere else, and are never logged.
    #[must_use]
    pub fn headers<N: Into<String>, V: Into<String>>(
        mut self,
        headers: impl IntoIterator<Item = (N, V)>,
    ) -> Self {
        self.headers.extend(headers.into_iter().map(|(name, value)| (name.into(), value.into())));
        self
    }

    /// Longer messages of the server's are thrown away: 16 MiB.
    #[must_use]
    pub fn max_message(mut self, bytes: usize) -> Self {
        self.max_message = bytes;
        self
    }

    /// How often a server may ask back before it must answer: 10.
    #[must_use]
    pub fn max_rounds(mut self, rounds: usize) -> Self {
        self.max_rounds = rounds;
        self
    }

    /// Checks arguments against the tool's schema before they are sent.
    #[must_use]
    pub fn validate(mut self, validate: bool) -> Self {
        self.validate = validate;
        self
    }

    /// How grave log messages must be. With [`Self::on_log`] and without this: info and above from modern servers.
    #[must_use]
    pub fn log_level(mut self, level: LoggingLevel) -> Self {
        self.log_level = Some(level);
        self
    }

    /// Is told of everything that the server tells unasked, in order. Must not block.
    ///
    /// What a modern server tells was asked for: it goes to [`Client::subscribe`] and [`Self::on_list_changed`].
    #[must_use]
    pub fn on_event(mut self, hook: impl Fn(Event) + Send + Sync + 'static) -> Self {
        self.hooks.event = Some(Box::new(hook));
        self
    }

    /// Is told of log messages. Must not block.
    #[must_use]
    pub fn on_log(mut self, hook: impl Fn(LogMessage) + Send + Sync + 'static) -> Self {
        self.hooks.log = Some(Box::new(hook));
        self
    }

    /// Is told when a list has changed, of those that the server declares that it tells of. Must not block.
    ///
    /// In the modern era that costs one `subscriptions/listen`, which is kept up for as long as the client lives.
    /// After a break all of them count as changed. Spec: Base Protocol › Patterns › Subscriptions.
    #[must_use]
    pub fn on_list_changed(mut self, hook: impl Fn(ListKind) + Send + Sync + 'static) -> Self {
        self.hooks.list_changed = Some(Box::new(hook));
        self
    }

    /// Is told that what the user was sent to a page for is finished: the elicitation's id. Must not block.
    ///
    /// Only 2025-11-25 has a word for it. Spec: Client Features › Elicitation › Completion Notifications.
    #[must_use]
    pub fn on_url_done(mut self, hook: impl Fn(String) + Send + Sync + 'static) -> Self {
        self.hooks.url_done = Some(Box::new(hook));
        self
    }

    /// Is told how far any request is. Must not block.
    #[must_use]
    pub fn on_progress(mut self, hook: impl Fn(Progress) + Send + Sync + 'static) -> Self {
        let hook: OnProgress = Arc::new(hook);
        self.options.on_progress = Some(hook);
        self
    }

    /// Answers the server's questions to the user. An error of kind `Declined` or `Cancelled` is an answer, too.
    #[must_use]
    pub fn on_elicit<F, A>(self, callback: F) -> Self
    where
        F: Fn(ElicitRequestParams) -> A + Send + Sync + 'static,
        A: Future<Output = Result<ElicitResult, Error>> + Send + 'static,
    {
        self.on_elicit_raw(answerer(callback))
    }

    /// Answers the server's questions to a model.
    #[must_use]
    pub fn on_sample<F, A>(self, callback: F) -> Self
    where
        F: Fn(CreateMessageRequestParams) -> A + Send + Sync + 'static,
        A: Future<Output = Result<CreateMessageResult, Error>> + Send + 'static,
    {
        self.on_sample_raw(answerer(callback))
    }

    /// The folders that the server may work in: `file://` URIs, else it does not connect.
    #[must_use]
    pub fn roots(mut self, roots: impl IntoIterator<Item = Root>) -> Self {
        let roots = Roots::List(roots.into_iter().collect());
        self.questions.roots = RwLock::new(Some(roots));
        self
    }

    /// As [`Self::on_elicit`], with params and result as on the wire.
    #[must_use]
    pub fn on_elicit_raw(mut self, callback: Answerer) -> Self {
        self.questions.elicit = Some(callback);
        self
    }

    /// As [`Self::on_sample`], with params and result as on the wire.
    #[must_use]
    pub fn on_sample_raw(mut self, callback: Answerer) -> Self {
        self.questions.sample = Some(callback);
        self
    }

    /// As [`Self::roots`], asked anew each time, with the result as on the wire.
    #[must_use]
    pub fn on_roots_raw(mut self, callback: Answerer) -> Self {
        self.questions.roots = RwLock::new(Some(Roots::Callback(callback)));
        self
    }

    /// Starts or reaches the server and agrees on a revision with it.
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
        let told = Arc::clone(&hooks);
        let config = ConnectionConfig {
            session,
            max_message: self.max_message,
            headers: self.headers,
            mirror: Arc::new(move |name, arguments| {
                mirrored.lock().unwrap_or_else(PoisonError::into_inner).mirror(name, arguments)
            }),
            on_event: Arc::new(move |event| told.tell(event, &known)),
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
            options,
            max_rounds: self.max_rounds,
            validate: self.validate,
            has_roots,
        };
        let client = Client { inner: Arc::new(inner) };
        if hooks.list_changed.is_some() {
            client.listen_to_lists(hooks).await;
        }
        if let Some(level) = log_level {
            match client.call(Operation::SetLogLevel(level), client.options()).await {
                // A server that does not log needs no level.
                Err(error) if error.kind != ErrorKind::Unsupported => return Err(error),
                _ => (),
            }
        }
        Ok(client)
    }
}

impl Client {
    /// Has the hook called in the modern era, too, where a server tells of its lists only whom listens.
    async fn listen_to_lists(&self, hooks: Arc<Hooks>) {
        let server = self.server();
        if !server.has_listen() {
            return;
        }
        let told = |list| server.tells_of(list).then_some(true);
        let filter = SubscriptionFilter {
            tools_list_changed: told(ListKind::Tools),
            prompts_list_changed: told(ListKind::Prompts),
            resources_list_changed: told(ListKind::Resources),
            resource_subscriptions: None,
        };
        let Ok(interests) = Interests::of(&filter) else { return };
        let timeout = self.inner.options.timeout;
        let settings =
            SubscriptionSettings { timeout, outlives_end: true, ..SubscriptionSettings::default() };
        let tools = Arc::clone(&self.inner.tools);
        let opened = self.listen(interests, settings, move |news| match news {
            News::Changed(Change::List(kind)) => hooks.tell(Event::ListChanged(kind), &tools),
            News::Changed(Change::Updated(_)) | News::Ended(None) => (),
            News::Ended(Some(error)) => {
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
    fn tell(&self, event: Event, tools: &Mutex<KnownTools>) {
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

/// A typed callback as one that reads and writes JSON.
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
