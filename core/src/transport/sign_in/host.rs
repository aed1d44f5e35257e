//! Carries out what the machine of a sign-in asks for: requests, the store, the listener for the redirect, and the browser.

use std::{
    collections::HashMap,
    future::Future,
    sync::{
        Arc, Mutex, Weak,
        atomic::{AtomicU64, Ordering},
    },
};

use tokio::{sync::oneshot, task::JoinSet};

use super::{
    SignInOptions, browser, lock, loopback, loopback::Listener, renewal::Renewal, store::OpenStore,
};
use crate::{
    auth::{
        Secret,
        client::{Answer, Input, Output, SignIn, StepId, Task, Ticket},
        fetch::FetchRequest,
    },
    driver::{boxed, moment},
    error::{Error, ErrorKind, option_name},
    transport::{fetch::fetch, network::Network},
};

/// The port of the redirect URL if the program handles the redirect and neither an option nor a registration names a port.
const DEFAULT_REDIRECT_PORT: u16 = 3000;

/// Carries out the outputs of [`SignIn`].
pub(super) struct Host {
    pub(super) machine: Mutex<SignIn>,
    options: SignInOptions,
    store: OpenStore,
    /// The lock of a renewal, while it lasts.
    renewal: Arc<Mutex<Option<Renewal>>>,
    network: Network,
    waiting: Mutex<HashMap<u64, oneshot::Sender<Result<(), Error>>>>,
    tickets: AtomicU64,
    listener: Arc<Mutex<Option<Listener>>>,
    /// The error of the program's own function or store, if the last step failed by one.
    failed: Arc<Mutex<Option<Error>>>,
    tasks: Mutex<JoinSet<()>>,
}

impl Host {
    pub(super) fn new(machine: SignIn, options: SignInOptions, network: Network) -> Self {
        Self {
            machine: Mutex::new(machine),
            store: OpenStore::new(options.store.clone()),
            renewal: Arc::default(),
            options,
            network,
            waiting: Mutex::default(),
            tickets: AtomicU64::new(1),
            listener: Arc::default(),
            failed: Arc::default(),
            tasks: Mutex::default(),
        }
    }

    pub(super) fn ticket(&self) -> Ticket {
        Ticket(self.tickets.fetch_add(1, Ordering::Relaxed))
    }

    pub(super) fn wait(&self, ticket: Ticket) -> oneshot::Receiver<Result<(), Error>> {
        let (sender, ready) = oneshot::channel();
        lock(&self.waiting).insert(ticket.0, sender);
        ready
    }

    pub(super) async fn outcome(
        &self,
        ticket: Ticket,
        ready: oneshot::Receiver<Result<(), Error>>,
    ) -> Result<(), Error> {
        /// Forgets a request that is cancelled.
        struct Forget<'a>(&'a Host, Ticket);
        impl Drop for Forget<'_> {
            fn drop(&mut self) {
                lock(&self.0.machine).forget(self.1);
                lock(&self.0.waiting).remove(&self.1.0);
            }
        }
        let _forget = Forget(self, ticket);
        ready.await.unwrap_or_else(|_| Err(Error::new(ErrorKind::Auth, "the client was closed")))
    }

    /// Carries out the machine's outputs.
    pub(super) fn pump(self: &Arc<Self>) {
        loop {
            // The lock is released before the output is carried out.
            let output = lock(&self.machine).poll();
            match output {
                None => return,
                Some(Output::Ready(ticket, outcome)) => {
                    if let Some(waiting) = lock(&self.waiting).remove(&ticket.0) {
                        // The request may have been cancelled.
                        let _ = waiting.send(outcome.map_err(|error| self.with_cause(error)));
                    }
                }
                Some(Output::Unlock) => drop(lock(&self.renewal).take()),
                Some(Output::Outcome(outcome)) => {
                    if let Some(listener) = lock(&self.listener).take() {
                        listener.end(outcome);
                    }
                }
                Some(Output::Do(id, task)) => self.spawn(id, task),
            }
        }
    }

    /// Adds the error of the program's own function or store to that of the sign-in which it ended.
    fn with_cause(&self, error: Error) -> Error {
        match &*lock(&self.failed) {
            Some(cause) => error.caused_by(cause.duplicate()),
            None => error,
        }
    }

    fn spawn(self: &Arc<Self>, id: StepId, task: Task) {
        let deadline = lock(&self.machine).deadline();
        let work = self.carry_out(task);
        // A task must not keep the client alive.
        let host = Arc::downgrade(self);
        let mut tasks = lock(&self.tasks);
        while tasks.try_join_next().is_some() {}
        tasks.spawn(boxed(async move {
            let input = match deadline {
                Some(deadline) => match tokio::time::timeout_at(deadline.into(), work).await {
                    Ok(answer) => Input::Done(id, answer),
                    Err(_) => Input::Tick,
                },
                None => Input::Done(id, work.await),
            };
            if let Some(host) = Weak::upgrade(&host) {
                lock(&host.machine).handle(&moment(), input);
                host.pump();
            }
        }));
    }

    fn carry_out(&self, task: Task) -> impl Future<Output = Answer> + Send + use<> {
        let options = self.options.clone();
        let (store, network) = (self.store.clone(), self.network.clone());
        let (listener, renewal) = (Arc::clone(&self.listener), Arc::clone(&self.renewal));
        let failed = Arc::clone(&self.failed);
        if !matches!(task, Task::Save(..)) {
            *lock(&failed) = None;
        }
        async move {
            let text_of = |error: Error| {
                let text = error.to_string();
                *lock(&failed) = Some(error);
                text
            };
            match task {
                Task::Fetch(request) => {
                    let step = options.on_step.as_ref().map(|_| step_of(&request));
                    let answer = fetch(request, &network).await;
                    if let (Some(on_step), Some(step)) = (&options.on_step, step) {
                        match &answer {
                            Ok(reply) => on_step(format!("{step}: {}", reply.status)),
                            Err(error) => on_step(format!("{step}: {error}")),
                        }
                    }
                    Answer::Fetched(answer)
                }
                Task::Load(key) => Answer::Loaded(store.get(&key, text_of).await),
                Task::Save(key, bytes) => Answer::Stored(store.set(&key, bytes).await),
                Task::Lock(key) => {
                    let locked = store.lock(&key, text_of).await;
                    Answer::Stored(locked.map(|held| *lock(&renewal) = held))
                }
                Task::Listen(port, preferred) => {
                    Answer::Text(listen(&options, &listener, port, preferred).await)
                }
                Task::Open { url, state } => {
                    Answer::Text(open(&options, &listener, url, state, text_of).await)
                }
                Task::Identify => Answer::Text(match &options.identity {
                    Some(identity) => identity().await.map_err(text_of),
                    None => Err("no token was given".into()),
                }),
            }
        }
    }
}

/// Describes a request; its query and its body may have secrets.
fn step_of(request: &FetchRequest) -> String {
    let url = request.url.split('?').next().unwrap_or_default();
    let mut fields = request.body.split(|byte| *byte == b'&');
    let grant = fields.find_map(|field| field.strip_prefix(b"grant_type=")).unwrap_or_default();
    let grant = String::from_utf8_lossy(grant).replace("%3A", ":");
    let separator = if grant.is_empty() { "" } else { ", grant " };
    format!("{} {url}{separator}{grant}", request.method)
}

async fn listen(
    options: &SignInOptions,
    slot: &Mutex<Option<Listener>>,
    port: u16,
    preferred: Option<u16>,
) -> Result<String, String> {
    if options.on_redirect.is_some() {
        let port = if port > 0 { port } else { preferred.unwrap_or(DEFAULT_REDIRECT_PORT) };
        return Ok(format!("http://127.0.0.1:{port}{}", loopback::PATH));
    }
    // A listener that a failed sign-in left would keep the port.
    drop(lock(slot).take());
    let listener = Listener::bind(port, preferred).await.map_err(|error| error.to_string())?;
    let url = listener.url();
    *lock(slot) = Some(listener);
    Ok(url)
}

async fn open(
    options: &SignInOptions,
    slot: &Mutex<Option<Listener>>,
    url: String,
    state: Secret,
    text_of: impl Fn(Error) -> String,
) -> Result<String, String> {
    if let Some(on_redirect) = &options.on_redirect {
        return on_redirect(url).await.map_err(text_of);
    }
    let redirected = match &*lock(slot) {
        Some(listener) => listener.redirected(state),
        None => return Err("there is no listener for the redirect".into()),
    };
    match &options.open_url {
        Some(open_url) => open_url(url).await.map_err(text_of)?,
        None => browser::open(&url).map_err(|error| {
            format!("{error}; pass {} or {}", option_name("open_url"), option_name("on_redirect"))
        })?,
    }
    redirected.await.map_err(|_| "the listener for the redirect ended".into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::auth::client::Grant;

    #[tokio::test]
    async fn a_listener_takes_the_place_of_the_former_one() {
        let grant = Grant::AuthorizationCode { client: None, metadata_url: None, port: 0 };
        let options = SignInOptions::new(grant);
        let slot = Mutex::default();
        let first = listen(&options, &slot, 0, None).await.unwrap();
        let port = first.split([':', '/']).find_map(|piece| piece.parse().ok()).unwrap();
        assert_eq!(listen(&options, &slot, port, None).await, Ok(first));
    }
}
