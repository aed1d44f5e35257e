//! Signs in over the network: runs the machine of [`crate::auth::client`] on tokio, with a store, a browser and a listener for
//! the redirect.

mod browser;
mod file_store;
#[cfg(feature = "keyring")]
mod keyring_store;
mod loopback;
mod renewal;
mod store;

use std::{
    collections::HashMap,
    fmt,
    future::Future,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError, Weak,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use tokio::{
    sync::{Mutex as AsyncMutex, oneshot},
    task::JoinSet,
};

#[cfg(all(feature = "bindings", feature = "keyring"))]
pub use self::store::TokenKeyring;
pub use self::store::{Store, TokenStore};
#[cfg(feature = "bindings")]
pub use self::{browser::open as open_browser, store::TokenFile};
use self::{loopback::Listener, renewal::Renewal, store::OpenStore};
#[cfg(feature = "bindings")]
pub(crate) use self::{
    renewal::{LockCallback, Renewal as RenewalLock},
    store::lock_keyring,
};
use super::{fetch::fetch, proxy::ProxyEnvironment};
pub(crate) use crate::auth::client::Attempts;
pub use crate::store::BoxFuture;
use crate::{
    auth::{
        Secret, challenge,
        client::{
            Answer, Grant, Input, Output, Rejection, Reply, SignIn, SignInSettings, StepId, Task,
            Ticket,
        },
        fetch::FetchRequest,
    },
    driver::{boxed, moment},
    error::{Error, ErrorKind},
};

const DPOP: &str = "dpop";
const DPOP_NONCE: &str = "dpop-nonce";
/// The port of the redirect URL if the program handles the redirect and neither an option nor a registration names a port.
const DEFAULT_REDIRECT_PORT: u16 = 3000;

/// The name of a program that has none.
const DEFAULT_NAME: &str = "MCP client";

/// A function that returns a token.
pub type TokenSource = Arc<dyn Fn() -> BoxFuture<String> + Send + Sync>;
/// A function that takes a URL.
pub(crate) type UrlCallback<T> = Arc<dyn Fn(String) -> BoxFuture<T> + Send + Sync>;
/// A callback for a line that describes a step of a sign-in, without secrets. It must not block.
pub(crate) type OnStep = Arc<dyn Fn(String) + Send + Sync>;

/// The options of a sign-in.
#[derive(Clone)]
pub(crate) struct SignInOptions {
    pub(crate) grant: Grant,
    /// Scopes that are requested in addition to those that the server asks for.
    pub(crate) scopes: Vec<String>,
    /// True if tokens must be bound to a key of this client (RFC 9449).
    pub(crate) dpop: bool,
    /// The name that the authorization server shows to the user. Default: the name of this program.
    pub(crate) client_name: Option<String>,
    pub(crate) store: Store,
    pub(crate) open_url: Option<UrlCallback<()>>,
    pub(crate) on_redirect: Option<UrlCallback<String>>,
    /// Returns the user's identity token or the platform's token, for grants that need one.
    pub(crate) identity: Option<TokenSource>,
    /// The time limit for the user to sign in. Default: 5 minutes.
    pub(crate) user_timeout: Duration,
    pub(crate) on_step: Option<OnStep>,
}

/// The credentials of a client for one server.
pub(crate) struct Authorizer(Kind);

enum Kind {
    Token(HeaderValue),
    Source {
        source: TokenSource,
        /// The token that was returned last, with its number.
        current: Mutex<Option<(HeaderValue, u64)>>,
        asking: AsyncMutex<()>,
    },
    SignIn(Arc<Host>),
}

/// Carries out the outputs of [`SignIn`].
struct Host {
    machine: Mutex<SignIn>,
    options: SignInOptions,
    store: OpenStore,
    /// The lock of a renewal, while it lasts.
    renewal: Arc<Mutex<Option<Renewal>>>,
    proxies: ProxyEnvironment,
    waiting: Mutex<HashMap<u64, oneshot::Sender<Result<(), Error>>>>,
    tickets: AtomicU64,
    listener: Arc<Mutex<Option<Listener>>>,
    tasks: Mutex<JoinSet<()>>,
}

impl SignInOptions {
    pub(crate) fn new(grant: Grant) -> Self {
        Self {
            grant,
            scopes: Vec::new(),
            dpop: false,
            client_name: None,
            store: Store::Memory,
            open_url: None,
            on_redirect: None,
            identity: None,
            user_timeout: Duration::from_secs(300),
            on_step: None,
        }
    }
}

impl fmt::Debug for SignInOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SignInOptions").field("grant", &self.grant).finish_non_exhaustive()
    }
}

impl Authorizer {
    /// Uses one token. Errors if it can't be sent in a header.
    pub(crate) fn of_token(token: &str) -> Result<Self, Error> {
        bearer(token).map(|it| Self(Kind::Token(it)))
    }

    /// Uses the token that a callback returns, which is called again once the server rejects the token.
    pub(crate) fn of_source(source: TokenSource) -> Self {
        Self(Kind::Source { source, current: Mutex::default(), asking: AsyncMutex::default() })
    }

    /// Signs in at the server with this URL, which has no query.
    pub(crate) fn of_sign_in(
        target: &str,
        options: SignInOptions,
        proxies: ProxyEnvironment,
    ) -> Self {
        let settings = SignInSettings {
            grant: options.grant.clone(),
            scopes: options.scopes.clone(),
            dpop: options.dpop,
            client_name: options.client_name.clone().unwrap_or_else(|| DEFAULT_NAME.into()),
            store: options.store.name(),
            user_timeout: options.user_timeout,
        };
        Self(Kind::SignIn(Arc::new(Host {
            machine: Mutex::new(SignIn::new(target, settings)),
            store: OpenStore::new(options.store.clone()),
            renewal: Arc::default(),
            options,
            proxies,
            waiting: Mutex::default(),
            tickets: AtomicU64::new(1),
            listener: Arc::default(),
            tasks: Mutex::default(),
        })))
    }

    /// Waits until a request may be sent: the store is read, and a token that expires soon is renewed.
    pub(crate) async fn prepare(&self) -> Result<(), Error> {
        match &self.0 {
            Kind::Token(_) => Ok(()),
            Kind::Source { .. } => self.ask_source(None).await.map(drop),
            Kind::SignIn(host) => {
                let ticket = host.ticket();
                let ready = {
                    let mut machine = lock(&host.machine);
                    if !machine.want(&moment(), ticket) {
                        return Ok(());
                    }
                    host.wait(ticket)
                };
                host.pump();
                host.outcome(ticket, ready).await
            }
        }
    }

    /// Adds the credentials for a request. Returns the number of the token.
    pub(crate) fn authorize(
        &self,
        method: &Method,
        url: &str,
        headers: &mut HeaderMap,
    ) -> Result<Option<u64>, Error> {
        let (value, generation) = match &self.0 {
            Kind::Token(value) => (value.clone(), 1),
            Kind::Source { current, .. } => match &*lock(current) {
                Some((value, generation)) => (value.clone(), *generation),
                None => return Ok(None),
            },
            Kind::SignIn(host) => {
                let credentials =
                    lock(&host.machine).credentials(&moment(), method.as_str(), url)?;
                let Some(credentials) = credentials else { return Ok(None) };
                if let Some(proof) = credentials.proof {
                    headers.insert(DPOP, value_of(&proof)?);
                }
                (value_of(&credentials.authorization)?, credentials.generation)
            }
        };
        headers.insert(header::AUTHORIZATION, value);
        Ok(Some(generation))
    }

    /// Takes the headers of a response that accepts the credentials.
    pub(crate) fn observe(&self, headers: &HeaderMap) {
        if let Kind::SignIn(host) = &self.0
            && let Some(nonce) = text(headers, DPOP_NONCE)
        {
            lock(&host.machine).take_nonce(&nonce);
        }
    }

    /// Takes a response that rejects the credentials with these numbers. Returns whether to repeat the request.
    pub(crate) async fn rejected(
        &self,
        attempts: &mut Attempts,
        status: StatusCode,
        headers: &HeaderMap,
        generation: Option<u64>,
    ) -> Result<bool, Error> {
        let host = match &self.0 {
            Kind::Token(_) => return Ok(false),
            Kind::Source { .. } => {
                return match status == StatusCode::UNAUTHORIZED && attempts.may_repeat() {
                    true => self.ask_source(generation).await,
                    false => Ok(false),
                };
            }
            Kind::SignIn(host) => host,
        };
        let values = headers.get_all(header::WWW_AUTHENTICATE).iter();
        let rejection = Rejection {
            status: status.as_u16(),
            challenges: challenge::parse(values.filter_map(|it| it.to_str().ok())),
            nonce: text(headers, DPOP_NONCE),
            generation,
        };
        let ticket = host.ticket();
        let ready = {
            let mut machine = lock(&host.machine);
            match machine.reject(&moment(), ticket, attempts, &rejection) {
                Reply::Repeat => return Ok(true),
                Reply::Stands => return Ok(false),
                Reply::Fail(error) => return Err(error),
                Reply::Wait => host.wait(ticket),
            }
        };
        host.pump();
        host.outcome(ticket, ready).await.map(|()| true)
    }

    /// Calls the source, unless another request did so since the token with the number `rejected`. Returns whether there is a
    /// new token.
    async fn ask_source(&self, rejected: Option<u64>) -> Result<bool, Error> {
        let Kind::Source { source, current, asking } = &self.0 else { return Ok(false) };
        let known = || lock(current).clone();
        let _asking = asking.lock().await;
        let before = known();
        if let Some((_, generation)) = &before
            && Some(*generation) != rejected
        {
            return Ok(rejected.is_some());
        }
        let token = source().await.map_err(|it| match it.kind {
            ErrorKind::Auth => it,
            _ => Error::new(ErrorKind::Auth, format!("auth: {}", it.message)).caused_by(it),
        })?;
        let value = bearer(&token)?;
        let is_new = before.as_ref().is_none_or(|(it, _)| *it != value);
        let generation = before.map_or(1, |(_, it)| it + u64::from(is_new));
        *lock(current) = Some((value, generation));
        Ok(is_new)
    }
}

impl fmt::Debug for Authorizer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Authorizer")
    }
}

impl Host {
    fn ticket(&self) -> Ticket {
        Ticket(self.tickets.fetch_add(1, Ordering::Relaxed))
    }

    fn wait(&self, ticket: Ticket) -> oneshot::Receiver<Result<(), Error>> {
        let (sender, ready) = oneshot::channel();
        lock(&self.waiting).insert(ticket.0, sender);
        ready
    }

    async fn outcome(
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
    fn pump(self: &Arc<Self>) {
        loop {
            // The lock is released before the output is carried out.
            let output = lock(&self.machine).poll();
            match output {
                None => return,
                Some(Output::Ready(ticket, outcome)) => {
                    if let Some(waiting) = lock(&self.waiting).remove(&ticket.0) {
                        // The request may have been cancelled.
                        let _ = waiting.send(outcome);
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
        let (store, proxies) = (self.store.clone(), self.proxies.clone());
        let (listener, renewal) = (Arc::clone(&self.listener), Arc::clone(&self.renewal));
        async move {
            match task {
                Task::Fetch(request) => {
                    let step = options.on_step.as_ref().map(|_| step_of(&request));
                    let answer = fetch(request, &proxies).await;
                    if let (Some(on_step), Some(step)) = (&options.on_step, step) {
                        match &answer {
                            Ok(it) => on_step(format!("{step}: {}", it.status)),
                            Err(it) => on_step(format!("{step}: {it}")),
                        }
                    }
                    Answer::Fetched(answer)
                }
                Task::Load(key) => Answer::Loaded(store.get(&key).await),
                Task::Save(key, bytes) => Answer::Stored(store.set(&key, bytes).await),
                Task::Lock(key) => {
                    let locked = store.lock(&key).await;
                    Answer::Stored(locked.map(|it| *lock(&renewal) = it))
                }
                Task::Listen(port, preferred) => {
                    Answer::Text(listen(&options, &listener, port, preferred).await)
                }
                Task::Open { url, state } => {
                    Answer::Text(open(&options, &listener, url, state).await)
                }
                Task::Identify => Answer::Text(match &options.identity {
                    Some(identity) => identity().await.map_err(|it| it.to_string()),
                    None => Err("no token was given".into()),
                }),
            }
        }
    }
}

/// Describes a request; its query and its body may have secrets.
fn step_of(request: &FetchRequest) -> String {
    let url = request.url.split('?').next().unwrap_or_default();
    let mut fields = request.body.split(|it| *it == b'&');
    let grant = fields.find_map(|it| it.strip_prefix(b"grant_type=")).unwrap_or_default();
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
    // One that a failed sign-in left would keep the port.
    drop(lock(slot).take());
    let listener = Listener::bind(port, preferred).await.map_err(|it| it.to_string())?;
    let url = listener.url();
    *lock(slot) = Some(listener);
    Ok(url)
}

async fn open(
    options: &SignInOptions,
    slot: &Mutex<Option<Listener>>,
    url: String,
    state: Secret,
) -> Result<String, String> {
    if let Some(on_redirect) = &options.on_redirect {
        return on_redirect(url).await.map_err(|it| it.to_string());
    }
    let redirected = match &*lock(slot) {
        Some(listener) => listener.redirected(state),
        None => return Err("there is no listener for the redirect".into()),
    };
    match &options.open_url {
        Some(open_url) => open_url(url).await.map_err(|it| it.to_string())?,
        None => browser::open(&url).map_err(|it| format!("{it}; pass open_url or on_redirect"))?,
    }
    redirected.await.map_err(|_| "the listener for the redirect ended".into())
}

fn bearer(token: &str) -> Result<HeaderValue, Error> {
    let is_visible = !token.is_empty() && token.bytes().all(|it| matches!(it, b'!'..=b'~'));
    match is_visible {
        true => value_of(&format!("Bearer {token}")),
        false => Err(Error::misuse(
            "auth: the token is empty or has characters that are invalid in a header, such as a line end",
        )),
    }
}

fn value_of(text: &str) -> Result<HeaderValue, Error> {
    let mut value = HeaderValue::from_str(text)
        .map_err(|_| Error::new(ErrorKind::Auth, "the token can't be sent in a header"))?;
    value.set_sensitive(true);
    Ok(value)
}

fn text(headers: &HeaderMap, name: &str) -> Option<String> {
    headers.get(name)?.to_str().ok().map(ToOwned::to_owned)
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_listener_takes_the_place_of_the_former_one() {
        let grant = Grant::AuthorizationCode { client: None, metadata_url: None, port: 0 };
        let options = SignInOptions::new(grant);
        let slot = Mutex::default();
        let first = listen(&options, &slot, 0, None).await.unwrap();
        let port = first.split([':', '/']).find_map(|it| it.parse().ok()).unwrap();
        assert_eq!(listen(&options, &slot, port, None).await, Ok(first));
    }
}
