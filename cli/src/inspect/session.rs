//! The connection to the server that is inspected, and what the user does with it.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use gudgeon::{
    Client,
    client::{
        Change, ClientBuilder, Event, ListKind, Progress,
        auth::{Auth, OAuth},
    },
    error::{Error, ErrorKind},
    protocol::{Root, SubscriptionFilter},
};
use serde_json::{Value, json};
use tokio::task::AbortHandle;

use super::{
    journal::Journal,
    operations::Requested,
    questions::Questions,
    settings::{Settings, described},
};
use crate::{failure::Failure, render::Repeated, target::Target};

/// The maximum number of calls, and of subscriptions, at the same time.
const MAX_TASKS: usize = 1_000;

pub struct Session {
    pub journal: Arc<Journal>,
    pub questions: Arc<Questions>,
    start: Option<Target>,
    state: Mutex<State>,
}

struct State {
    settings: Settings,
    /// The members of the last `status` event.
    status: Value,
    client: Option<Client>,
    /// The number of the attempt to connect; events of earlier connections are ignored.
    attempt: u64,
    connecting: Option<AbortHandle>,
    calls: HashMap<String, AbortHandle>,
    subscriptions: HashMap<String, (SubscriptionFilter, AbortHandle)>,
}

impl Session {
    pub fn new(start: Option<Target>, settings: Settings) -> Arc<Self> {
        let journal = Arc::new(Journal::new());
        let state = State {
            settings,
            status: json!({ "state": "disconnected" }),
            client: None,
            attempt: 0,
            connecting: None,
            calls: HashMap::new(),
            subscriptions: HashMap::new(),
        };
        let questions = Questions::new(Arc::clone(&journal));
        Arc::new(Self { journal, questions, start, state: Mutex::new(state) })
    }

    /// Returns all that a page shows when it is opened, but for the events.
    pub fn snapshot(&self) -> Value {
        let state = self.lock();
        let subscriptions = state.subscriptions.iter();
        json!({
            "last": self.journal.last(),
            "status": state.status,
            "settings": state.settings.shown(),
            "hasStart": self.start.is_some(),
            "questions": self.questions.shown(),
            "subscriptions": subscriptions.map(|(id, (filter, _))| json!({ "id": id, "filter": filter })).collect::<Vec<_>>(),
        })
    }

    /// Connects with the settings of before.
    pub async fn connect_again(self: &Arc<Self>) {
        let settings = self.lock().settings.clone();
        self.connect(settings).await;
    }

    /// Closes the connection, and connects with other settings. Returns at once; the outcome is an event.
    pub async fn connect(self: &Arc<Self>, settings: Settings) {
        self.disconnect().await;
        let session = Arc::clone(self);
        let mut state = self.lock();
        state.settings = settings.with_secrets_of(&state.settings);
        state.attempt += 1;
        let attempt = state.attempt;
        self.set_status(&mut state, json!({ "state": "connecting" }));
        let builder = state.settings.builder(self.start.as_ref());
        let builder = builder.map(|builder| self.with_callbacks(builder, attempt, &state.settings));
        let task = tokio::spawn(async move {
            let outcome = match builder {
                Ok(builder) => builder.connect().await.map_err(|error| described(&error)),
                Err(failure) => Err(shown(&failure)),
            };
            let mut state = session.lock();
            if state.attempt != attempt {
                return;
            }
            state.connecting = None;
            let status = match outcome {
                Ok(client) => {
                    let status = connected(&client);
                    state.client = Some(client);
                    status
                }
                Err(error) => json!({ "state": "failed", "error": error }),
            };
            session.set_status(&mut state, status);
        });
        state.connecting = Some(task.abort_handle());
    }

    /// Closes the connection, and ends all that uses it.
    pub async fn disconnect(&self) {
        let client = {
            let mut state = self.lock();
            state.attempt += 1;
            if let Some(connecting) = state.connecting.take() {
                connecting.abort();
            }
            for (id, call) in state.calls.drain() {
                call.abort();
                self.journal.add("done", json!({ "call": id, "error": cancelled() }));
            }
            for (id, (_, task)) in state.subscriptions.drain() {
                task.abort();
                self.journal.add("unsubscribed", json!({ "id": id }));
            }
            self.set_status(&mut state, json!({ "state": "disconnected" }));
            state.client.take()
        };
        if let Some(client) = client {
            client.close().await;
        }
    }

    /// Starts a call; its outcome is the event `done`.
    pub fn call(self: &Arc<Self>, id: String, requested: Requested) -> Result<(), String> {
        let operation = requested.operation()?;
        let mut state = self.lock();
        let client = state.client()?;
        if state.calls.len() >= MAX_TASKS || state.calls.contains_key(&id) {
            return Err("there are too many calls, or one with this id".into());
        }
        let session = Arc::clone(self);
        let (journal, call) = (Arc::clone(&self.journal), id.clone());
        let on_progress = move |progress: Progress| {
            journal.add(
                "progress",
                json!({
                    "call": call,
                    "progress": progress.progress,
                    "total": progress.total,
                    "message": progress.message,
                }),
            );
        };
        let mut options = client.options();
        options.on_progress = Some(Arc::new(on_progress));
        options.raise_on_error = false;
        let call = id.clone();
        let task = tokio::spawn(async move {
            let outcome = client.call(operation, options).await;
            // A request that was cancelled meanwhile has its event.
            if session.lock().calls.remove(&call).is_some() {
                match outcome {
                    Ok(reply) => {
                        let repeated = Repeated::in_reply(&reply);
                        session.journal.add_result(&call, reply.result.get(), repeated);
                    }
                    Err(error) => session
                        .journal
                        .add("done", json!({ "call": call, "error": described(&error) })),
                }
            }
        });
        state.calls.insert(id, task.abort_handle());
        Ok(())
    }

    /// Cancels a call, if it is still running.
    pub fn cancel(&self, id: &str) {
        if let Some(call) = self.lock().calls.remove(id) {
            call.abort();
            self.journal.add("done", json!({ "call": id, "error": cancelled() }));
        }
    }

    /// Subscribes to changes, which are events until the subscription ends.
    pub fn subscribe(
        self: &Arc<Self>,
        id: String,
        filter: SubscriptionFilter,
    ) -> Result<(), String> {
        let mut state = self.lock();
        let client = state.client()?;
        if state.subscriptions.len() >= MAX_TASKS || state.subscriptions.contains_key(&id) {
            return Err("there are too many subscriptions, or one with this id".into());
        }
        let (session, key, wanted) = (Arc::clone(self), id.clone(), filter.clone());
        let task = tokio::spawn(async move {
            let error = session.follow(&client, &key, &wanted).await.err();
            if session.lock().subscriptions.remove(&key).is_some() {
                let error = error.map(|error| described(&error));
                session.journal.add("unsubscribed", json!({ "id": key, "error": error }));
            }
        });
        state.subscriptions.insert(id, (filter, task.abort_handle()));
        Ok(())
    }

    pub fn unsubscribe(&self, id: &str) {
        if let Some((_, task)) = self.lock().subscriptions.remove(id) {
            task.abort();
            self.journal.add("unsubscribed", json!({ "id": id }));
        }
    }

    /// Replaces the roots.
    pub fn set_roots(&self, roots: Vec<Root>) -> Result<(), Error> {
        let mut state = self.lock();
        if let Some(client) = &state.client {
            client.set_roots(roots.clone())?;
        }
        state.settings.roots = roots;
        Ok(())
    }

    /// Passes on the changes of a subscription until it ends.
    async fn follow(
        &self,
        client: &Client,
        id: &str,
        filter: &SubscriptionFilter,
    ) -> Result<(), Error> {
        let mut changes = client.subscribe_to(filter).await?;
        self.journal.add("subscribed", json!({ "id": id, "filter": filter }));
        while let Some(change) = changes.next().await {
            match change? {
                Change::List(list) => {
                    self.journal.add("updated", json!({ "id": id, "list": list_name(list) }));
                }
                Change::Updated(uri) => {
                    self.journal.add("updated", json!({ "id": id, "uri": uri }));
                }
            }
        }
        Ok(())
    }

    fn with_callbacks(
        self: &Arc<Self>,
        builder: ClientBuilder,
        attempt: u64,
        settings: &Settings,
    ) -> ClientBuilder {
        let log = |journal: &Arc<Journal>| Arc::clone(journal);
        let (messages, logs, lists, steps, urls) = (
            log(&self.journal),
            log(&self.journal),
            log(&self.journal),
            log(&self.journal),
            log(&self.journal),
        );
        let session = Arc::downgrade(self);
        let mut builder = builder
            .on_message(move |sender, message| messages.add_message(sender, message))
            .on_log(move |message| {
                let data: Value = serde_json::from_str(message.data.get()).unwrap_or_default();
                logs.add(
                    "log",
                    json!({ "level": message.level, "logger": message.logger, "data": data }),
                );
            })
            .on_list_changed(move |list| lists.add("changed", json!({ "list": list_name(list) })))
            .on_sign_in_step(move |text| steps.add("signInStep", json!({ "text": text })))
            .on_event(move |event| {
                if let Some(session) = session.upgrade() {
                    session.on_event(attempt, event);
                }
            });
        if settings.answers.elicitation {
            builder = builder.on_elicit_raw(self.questions.answerer());
        }
        if settings.answers.sampling {
            builder = builder.on_sample_raw(self.questions.answerer());
        }
        builder.options(|options| {
            if let Some(Auth::OAuth(auth)) =
                options.auth.take_if(|auth| matches!(auth, Auth::OAuth(_)))
            {
                let open_url = Some::<UrlCallback>(Arc::new(move |url| {
                    urls.add("signIn", json!({ "url": url }));
                    Box::pin(async { Ok(()) })
                }));
                options.auth = Some(OAuth { open_url, ..auth }.into());
            }
        })
    }

    fn on_event(&self, attempt: u64, event: Event) {
        match event {
            // They have callbacks of their own.
            Event::Log(_) | Event::ListChanged(_) => (),
            Event::ResourceUpdated(uri) => self.journal.add(
                "notified",
                json!({ "method": "notifications/resources/updated", "params": { "uri": uri } }),
            ),
            Event::UrlDone(id) => self.journal.add("urlDone", json!({ "id": id })),
            Event::Notified { method, params } => {
                let params: Value = serde_json::from_str(params.get()).unwrap_or_default();
                self.journal
                    .add("notified", json!({ "method": method.to_string(), "params": params }));
            }
            Event::Reconnected { reason, .. } => {
                self.journal.add("reconnected", json!({ "reason": reason.to_string() }));
                let mut state = self.lock();
                if let (true, Some(client)) = (state.attempt == attempt, &state.client) {
                    let status = connected(client);
                    self.set_status(&mut state, status);
                }
            }
            Event::Closed(reason) => {
                let mut state = self.lock();
                if state.attempt == attempt && state.client.is_some() {
                    let error = json!({ "kind": "lost", "message": reason });
                    self.set_status(&mut state, json!({ "state": "failed", "error": error }));
                }
            }
        }
    }

    fn set_status(&self, state: &mut State, status: Value) {
        state.status = status.clone();
        let mut event = status;
        event["settings"] = serde_json::to_value(state.settings.shown()).unwrap_or_default();
        self.journal.add("status", event);
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn client(&self) -> Result<Client, String> {
        self.client.clone().ok_or_else(|| "the server is not connected".to_owned())
    }
}

type UrlCallback = Arc<dyn Fn(String) -> gudgeon::client::auth::BoxFuture<()> + Send + Sync>;

fn connected(client: &Client) -> Value {
    let server = client.server();
    json!({
        "state": "connected",
        "server": {
            "info": server.info,
            "revision": server.revision.to_string(),
            "capabilities": server.capabilities,
            "instructions": server.instructions,
            "sessionId": client.session_id(),
        },
    })
}

fn shown(failure: &Failure) -> Value {
    json!({ "kind": "usage", "message": failure.message(), "hint": failure.hint() })
}

fn cancelled() -> Value {
    described(&Error::new(ErrorKind::Cancelled, "the call was cancelled"))
}

fn list_name(list: ListKind) -> &'static str {
    match list {
        ListKind::Tools => "tools",
        ListKind::Prompts => "prompts",
        ListKind::Resources => "resources",
    }
}
