//! The configuration of a client.

use std::{
    fmt,
    future::Future,
    sync::{Arc, Mutex, PoisonError, RwLock},
    time::Duration,
};

use super::{
    CallOptions, Client, ClientOptions, Inner, Target,
    connection::{Connection, ConnectionConfig, Event, OnProgress},
    listeners::SubscriptionEvent,
    operation::Operation,
    questions::{Answerer, Questions, Roots},
};
use crate::{
    error::{Error, ErrorKind},
    peer::{
        self, KnownTools,
        subscriptions::{Interests, SubscriptionSettings},
    },
    protocol::{
        CreateMessageRequestParams, CreateMessageResult, ElicitRequestParams, ElicitResult,
        LoggingLevel, SubscriptionFilter, json,
    },
    session::client::{Change, ListKind, LogMessage, Progress},
};

/// The time for which `connect` waits for the server to acknowledge the subscription to its lists.
const LISTEN_TIME: Duration = Duration::from_secs(5);

type Hook<T> = Box<dyn Fn(T) + Send + Sync>;

/// A client that is not connected yet: its target and options.
pub struct ClientBuilder {
    target: Target,
    options: ClientOptions,
    on_progress: Option<OnProgress>,
    hooks: Hooks,
    questions: Questions,
}

#[derive(Default)]
struct Hooks {
    event: Option<Hook<Event>>,
    log: Option<Hook<LogMessage>>,
    list_changed: Option<Hook<ListKind>>,
}

impl fmt::Debug for ClientBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientBuilder").field("target", &self.target).finish_non_exhaustive()
    }
}

impl ClientBuilder {
    pub(super) fn new(mut target: Target) -> Self {
        let mut questions = Questions::default();
        if let Some(answerer) = target.take_answerer() {
            questions.elicit = Some(Arc::clone(&answerer));
            questions.sample = Some(Arc::clone(&answerer));
            questions.roots = RwLock::new(Some(Roots::Callback(answerer)));
        }
        let (options, hooks) = (ClientOptions::default(), Hooks::default());
        Self { target, options, on_progress: None, hooks, questions }
    }

    /// Changes the client's options.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use gudgeon::{Client, Revision, Server};
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), gudgeon::Error> {
    /// # let server = Server::new("shelf");
    /// let builder = Client::builder(&server).options(|it| {
    ///     it.revisions = vec![Revision::V2025_11_25];
    ///     it.timeout = Some(Duration::from_secs(10));
    /// });
    /// let client = builder.connect().await?;
    /// assert_eq!(client.server().revision, Revision::V2025_11_25);
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn options(mut self, change: impl FnOnce(&mut ClientOptions)) -> Self {
        change(&mut self.options);
        self
    }

    /// Registers a callback for all unsolicited notifications of a legacy server, in order, such as the end of a URL
    /// elicitation ([`Event::UrlDone`]). It must not block.
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

    /// Registers a callback for the progress of all requests. It must not block.
    #[must_use]
    pub fn on_progress(mut self, hook: impl Fn(Progress) + Send + Sync + 'static) -> Self {
        self.on_progress = Some(Arc::new(hook));
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

    /// Connects to the server, starting its process if necessary, and negotiates the revision. Errors if the server
    /// can't be reached or started, or shares no revision with the client.
    pub async fn connect(self) -> Result<Client, Error> {
        let Self { target, options, on_progress, hooks, mut questions } = self;
        let mut session = options.session(hooks.log.as_ref().map(|_| LoggingLevel::Info));
        let calls = CallOptions { on_progress, ..options.calls() };
        if let Some(roots) = options.roots {
            questions.set_roots(roots)?;
        }
        questions.url_schemes = options.allowed_url_schemes;
        questions.declare(&mut session.capabilities);
        let has_roots = session.capabilities.roots.is_some();
        let questions = Arc::new(questions);
        let tools = Arc::new(Mutex::new(KnownTools::default()));
        let (asked, known) = (Arc::clone(&questions), Arc::clone(&tools));
        let mirrored = Arc::clone(&tools);
        let hooks = Arc::new(hooks);
        let callbacks = Arc::clone(&hooks);
        let config = ConnectionConfig {
            session,
            max_message: options.max_message,
            headers: options.headers,
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
            max_rounds: options.max_rounds,
            validate: options.validate,
            has_roots,
        };
        let client = Client { inner: Arc::new(inner), options: calls };
        if hooks.list_changed.is_some() {
            client.listen_to_lists(hooks).await;
        }
        if let Some(level) = options.log_level {
            match client.call(Operation::SetLogLevel(level), client.options.clone()).await {
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

    /// Sets a callback that returns the result of `roots/list` as raw JSON for each request.
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
