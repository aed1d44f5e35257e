//! Opens the connection of a client, and holds what belongs to one connection: its tools and its questions.

use std::{
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use super::{
    CallOptions, ClientOptions, Operation, Target,
    connection::{Connection, ConnectionConfig, Event},
    known::Known,
    listeners::SubscriptionEvent,
    message_log::OnMessage,
    questions::Questions,
};
#[cfg(feature = "auth")]
use crate::transport::sign_in::OnStep;
use crate::{
    clock,
    error::{Error, ErrorKind},
    peer::{
        KnownTools,
        subscriptions::{Interests, SubscriptionSettings},
    },
    protocol::{
        ClientCapabilities, LoggingLevel, Method, OwnCapabilities, Revision, Root,
        SubscriptionFilter, json,
    },
    session::client::{Change, ListKind, LogMessage},
    transport::{network::Network, sign_in::Authorizer},
};

/// The longest time for which `connect` waits for the server to acknowledge the subscription to its lists.
const LISTEN_TIME: Duration = Duration::from_secs(5);

pub(super) type Hook<T> = Box<dyn Fn(T) + Send + Sync>;

/// The callbacks for unsolicited events.
#[derive(Default)]
pub(super) struct Hooks {
    pub(super) event: Option<Hook<Event>>,
    pub(super) log: Option<Hook<LogMessage>>,
    pub(super) list_changed: Option<Hook<ListKind>>,
    pub(super) message: Option<OnMessage>,
    #[cfg(feature = "auth")]
    pub(super) sign_in_step: Option<OnStep>,
}

/// The way to connect, for the first time and again.
pub(super) struct Connector {
    pub(super) options: ClientOptions,
    pub(super) hooks: Arc<Hooks>,
    pub(super) questions: Arc<Questions>,
    /// The capabilities to declare, but for roots, which may be set later.
    capabilities: ClientCapabilities,
    network: Network,
    /// The credentials, which all connections share.
    auth: Option<Arc<Authorizer>>,
    /// The level of log messages that was set last.
    log_level: Mutex<Option<LoggingLevel>>,
    /// The revision of the last connection; `None` after an attempt to connect failed. Spec: Base Protocol › Versioning ›
    /// Backward Compatibility with Initialization-Based Versions.
    revision: Mutex<Option<Revision>>,
}

/// An open connection.
#[derive(Debug)]
pub(super) struct Connected {
    pub(super) connection: Connection,
    pub(super) questions: Arc<Questions>,
    pub(super) known: Arc<Known>,
    pub(super) max_rounds: usize,
    pub(super) max_message: usize,
    pub(super) validate: bool,
    /// True if roots were declared in the handshake.
    pub(super) has_roots: bool,
}

impl Connector {
    pub(super) fn new(
        mut options: ClientOptions,
        hooks: Hooks,
        mut questions: Questions,
        network: Network,
        auth: Option<Arc<Authorizer>>,
    ) -> Result<Self, Error> {
        if let Some(roots) = options.roots.take() {
            questions.set_roots(roots)?;
        }
        questions.url_schemes = std::mem::take(&mut options.allowed_url_schemes);
        let mut capabilities = questions.declare(std::mem::take(&mut options.capabilities));
        let own = OwnCapabilities::new(&options.extensions, &options.experimental);
        own.declare(&mut capabilities.extensions, &mut capabilities.experimental);
        OwnCapabilities::from_client(&capabilities).check()?;
        Ok(Self {
            log_level: Mutex::new(options.log_level),
            revision: Mutex::default(),
            options,
            hooks: Arc::new(hooks),
            questions: Arc::new(questions),
            capabilities,
            network,
            auth,
        })
    }

    /// Returns the default options of requests.
    pub(super) fn calls(&self) -> CallOptions {
        self.options.calls()
    }

    /// Sets the level of log messages for connections that are opened later.
    pub(super) fn keep_log_level(&self, level: LoggingLevel) {
        *lock(&self.log_level) = Some(level);
    }

    /// Connects to the server, starting its process if necessary, and negotiates the revision.
    pub(super) async fn connect(&self, target: Target) -> Result<Arc<Connected>, Error> {
        let level = *lock(&self.log_level);
        let default_level = self.hooks.log.as_ref().map(|_| LoggingLevel::Info);
        let revision = lock(&self.revision).take();
        let mut session = self.options.session(level.or(default_level), revision);
        if target.is_http() {
            session.probe_timeout = None;
        }
        session.capabilities = self.questions.with_roots(self.capabilities.clone());
        let has_roots = session.capabilities.roots.is_some();
        let (begun, limit) = (clock::now(), session.connect_timeout);
        let time_left = || limit.map(|time| time.saturating_sub(clock::since(begun)));
        let known = Arc::new(Known::new(self.options.cache_results));
        let (changing, mirrored) = (Arc::clone(&known), Arc::clone(&known));
        let (hooks, asked) = (Arc::clone(&self.hooks), Arc::clone(&self.questions));
        let config = ConnectionConfig {
            session,
            max_message: self.options.max_message,
            headers: self.options.headers.clone(),
            network: self.network.clone(),
            auth: self.auth.clone(),
            mirror: Arc::new(move |name, arguments| mirrored.tools().mirror(name, arguments)),
            on_message: self.hooks.message.clone(),
            on_event: Arc::new(move |event| hooks.on_event(event, &changing)),
            on_question: Arc::new(move |question| {
                let questions = Arc::clone(&asked);
                Box::pin(async move { questions.answer(question).await })
            }),
        };
        let connected = Arc::new(Connected {
            connection: Connection::open(target, config).await?,
            questions: Arc::clone(&self.questions),
            known,
            max_rounds: self.options.max_rounds,
            max_message: self.options.max_message,
            validate: self.options.validate,
            has_roots,
        });
        *lock(&self.revision) = Some(connected.connection.describe().revision);
        if self.hooks.list_changed.is_some() {
            let wait = time_left().map_or(LISTEN_TIME, |left| left.min(LISTEN_TIME));
            connected.listen_to_lists(Arc::clone(&self.hooks), self.options.timeout, wait).await;
        }
        if let Some(level) = level {
            let mut options = self.calls();
            options.timeout = time_left().or(options.timeout);
            match connected.perform(&Operation::SetLogLevel(level), options).await {
                // A server without logging needs no level.
                Err(error) if error.kind != ErrorKind::Unsupported => {
                    connected.connection.close().await;
                    return Err(error);
                }
                _ => (),
            }
        }
        Ok(connected)
    }
}

impl Connected {
    pub(super) fn with_tools<T>(&self, look: impl FnOnce(&mut KnownTools) -> T) -> T {
        look(&mut self.known.tools())
    }

    /// Expects the tools of an earlier connection to the server, until they are listed.
    pub(super) fn expect_tools_of(&self, earlier: &Self) {
        let expected = earlier.with_tools(|tools| tools.expected());
        self.with_tools(|tools| tools.expect(expected));
    }

    /// Replaces the roots, and notifies a legacy server.
    pub(super) fn set_roots(&self, roots: Vec<Root>) -> Result<(), Error> {
        let spoken = self.connection.describe().spoken();
        if !self.has_roots && !spoken.is_stateless {
            let message = format!(
                "the roots can't be set: the client declared none when it connected, and in {} that can't change later",
                spoken.name()
            );
            return Err(Error::new(ErrorKind::Unsupported, message)
                .with_hint("set roots when creating the client, if necessary as an empty list")
                .with_target(&**self.connection.target())
                .in_phase("call"));
        }
        self.questions.set_roots(roots)?;
        if spoken.is_stateless {
            return self.connection.declare_roots();
        }
        self.connection.notify(Method::RootsListChanged.into(), json::raw("{}".into()))
    }

    /// Subscribes to the lists in the modern era, where a server notifies only subscribers. Returns after `wait` at the
    /// latest; the subscription goes on.
    async fn listen_to_lists(&self, hooks: Arc<Hooks>, timeout: Option<Duration>, wait: Duration) {
        let server = self.connection.describe();
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
        let Ok(interests) = Interests::from_filter(&filter) else { return };
        let settings =
            SubscriptionSettings { timeout, outlives_end: true, ..SubscriptionSettings::default() };
        let known = Arc::clone(&self.known);
        let on_event = move |event| match event {
            SubscriptionEvent::Changed(Change::List(kind)) => {
                hooks.on_event(Event::ListChanged(kind), &known);
            }
            SubscriptionEvent::Changed(Change::Updated(_)) | SubscriptionEvent::Ended(None) => (),
            SubscriptionEvent::Ended(Some(error)) => {
                tracing::warn!(%error, "changes of the server's lists go unnoticed");
            }
        };
        let opened = self.connection.subscribe(interests, settings, Box::new(on_event));
        let Ok((_, opened)) = opened else { return };
        match tokio::time::timeout(wait, opened).await {
            Ok(Ok(Err(error))) => {
                tracing::warn!(%error, "changes of the server's lists go unnoticed");
            }
            Ok(_) => (),
            Err(_) => tracing::debug!("the server has not acknowledged the subscription yet"),
        }
    }
}

impl Hooks {
    /// Calls the callbacks for an event that belongs to no connection.
    pub(super) fn notify(&self, event: Event) {
        if let Some(hook) = &self.event {
            hook(event);
        }
    }

    fn on_event(&self, event: Event, known: &Known) {
        match &event {
            Event::Log(message) => {
                if let Some(hook) = &self.log {
                    hook(message.clone());
                }
            }
            Event::ListChanged(kind) => {
                known.changed(&Change::List(*kind));
                if let Some(hook) = &self.list_changed {
                    hook(*kind);
                }
            }
            _ => (),
        }
        self.notify(event);
    }
}

impl fmt::Debug for Connector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connector").field("options", &self.options).finish_non_exhaustive()
    }
}

pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
