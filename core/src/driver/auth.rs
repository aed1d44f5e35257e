//! The authenticator of an endpoint, behind a lock of its own.

use std::{
    collections::{BTreeMap, HashMap},
    fmt,
    net::IpAddr,
    sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak},
    time::{Duration, Instant},
};

use http::{HeaderMap, request::Parts};
use tokio::sync::{Semaphore, oneshot};

use super::{auth_config, auth_proxy::Proxied, measured_store::MeasuredStore, start};
use crate::{
    auth::{
        fetch::{FetchError, FetchRequest, Fetched},
        server::{
            api_keys::KeysOfOwners,
            authenticator::{
                AuthInput, AuthOutput, AuthRefusal, AuthTicket, Authenticator, Caller, Checked,
                Request, TIMEOUT,
            },
            config::{AuthConfig, VerifiedRequest, Verifier},
        },
    },
    clock,
    error::Error,
    http::{Admission, AdmittedHead, Part, Refused, Unauthenticated},
    log_limit::LogLimit,
    metrics::Metrics,
    replier::Replier,
    store::{StoreEngine as _, StoreOperation, StoreReply},
};

type Decision = Result<Caller, AuthRefusal>;

/// The maximum number of functions of the host that verify tokens at the same time. A request that is withdrawn or expires does
/// not stop its function.
const MAX_RUNNING: usize = 256;

/// The maximum number of operations on the store that are under way.
const MAX_STORING: usize = 256;

/// The state of a request after its head was checked.
enum Begun {
    Decided(Decision),
    Waits(AuthTicket, oneshot::Receiver<Decision>),
}

/// Sends HTTP requests.
pub(crate) trait Fetcher: Send + Sync {
    fn fetch(&self, request: FetchRequest, reply: Replier<Fetched>);
}

/// Authenticates the senders of requests.
pub(crate) struct AuthServer {
    state: Mutex<State>,
    config: Arc<AuthConfig>,
    metrics: Arc<Metrics>,
    fetcher: OnceLock<Arc<dyn Fetcher>>,
    /// Counts the functions of the host that run.
    running: Arc<Semaphore>,
    /// The operations on the store that are under way, with the times at which they are given up.
    storing: Mutex<Vec<(AuthTicket, Instant)>>,
    pub(super) proxied: Proxied,
    /// Limits the messages that every request can cause.
    log: Mutex<LogLimit>,
    this: Weak<Self>,
}

pub(super) struct State {
    pub(super) machine: Authenticator,
    waiting: HashMap<AuthTicket, Waiter>,
}

/// A request that waits for its decision.
struct Waiter {
    decision: oneshot::Sender<Decision>,
    /// The request for functions of the host.
    request: Option<Arc<VerifiedRequest>>,
}

/// Withdraws a request whose sender has left.
struct Withdrawal {
    server: Arc<AuthServer>,
    ticket: AuthTicket,
}

impl AuthServer {
    /// Creates the authenticator. `keys` are those that the servers of one address share; without any, nonces are valid in
    /// this process only.
    pub(crate) fn new(
        config: &Arc<AuthConfig>,
        keys: &[Vec<u8>],
        metrics: Arc<Metrics>,
    ) -> Result<Arc<Self>, Error> {
        let machine = config.authenticator(keys, &start().seed)?;
        let server = Arc::new_cyclic(|this| Self {
            state: Mutex::new(State { machine, waiting: HashMap::new() }),
            config: Arc::clone(config),
            metrics,
            fetcher: OnceLock::new(),
            running: Arc::new(Semaphore::new(MAX_RUNNING)),
            storing: Mutex::default(),
            proxied: Proxied::default(),
            log: Mutex::default(),
            this: Weak::clone(this),
        });
        auth_config::watch(&server, config.files());
        Ok(server)
    }

    /// Replaces the API keys of the method at this place. Errors if they can't be used.
    pub(super) fn set_api_keys(&self, place: usize, keys: KeysOfOwners) -> Result<(), String> {
        self.lock().machine.set_api_keys(place, keys)
    }

    /// Replaces the keys that the servers of one address share.
    pub(super) fn set_keys(&self, keys: &[Vec<u8>]) {
        self.lock().machine.set_keys(keys);
    }

    /// Sets the way in which HTTP requests are sent. Only the first one counts.
    pub(crate) fn set_fetcher(&self, fetcher: Arc<dyn Fetcher>) {
        let _ = self.fetcher.set(fetcher);
    }

    /// Authenticates the sender of a request from its head.
    pub(crate) async fn authenticate(
        &self,
        unauthenticated: &Unauthenticated,
        headers: &HeaderMap,
        remote: Option<IpAddr>,
    ) -> Result<Caller, Refused> {
        let request = unauthenticated.request(headers, remote);
        match self.begin(request, || unauthenticated.for_host(headers, remote)) {
            Begun::Decided(decision) => decision.map_err(Into::into),
            Begun::Waits(ticket, decision) => Box::pin(self.wait(ticket, decision)).await,
        }
    }

    fn begin(&self, request: Request<'_>, for_host: impl FnOnce() -> VerifiedRequest) -> Begun {
        let mut state = self.lock();
        let decision = match state.machine.check(clock::now(), clock::unix(), request) {
            Checked::Accepted(caller) => Ok(caller),
            Checked::Refused(refusal) => Err(refusal),
            Checked::Pending(ticket) => {
                let (sender, decision) = oneshot::channel();
                let request = self.config.verifier().map(|_| Arc::new(for_host()));
                state.waiting.insert(ticket, Waiter { decision: sender, request });
                return Begun::Waits(ticket, decision);
            }
        };
        let has_outputs = state.machine.has_outputs();
        drop(state);
        // A decision with the keys at hand may ask for newer ones.
        if has_outputs {
            self.carry_out();
        }
        Begun::Decided(decision)
    }

    async fn wait(
        &self,
        ticket: AuthTicket,
        mut decision: oneshot::Receiver<Decision>,
    ) -> Result<Caller, Refused> {
        let Some(server) = self.this.upgrade() else { return Err(Refused::Unidentified) };
        let _withdrawal = Withdrawal { server, ticket };
        self.carry_out();
        loop {
            let deadline = self.lock().machine.deadline();
            let timer = async {
                match deadline {
                    Some(deadline) => tokio::time::sleep_until(deadline.into()).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                decided = &mut decision => {
                    return decided.unwrap_or(Err(AuthRefusal::Failed)).map_err(Into::into);
                }
                () = timer => self.handle(AuthInput::Tick),
            }
        }
    }

    /// Returns the age of the keys of each issuer that were fetched.
    pub(super) fn key_set_ages(&self) -> BTreeMap<String, Duration> {
        self.lock().machine.key_set_ages(clock::now())
    }

    /// Sends an HTTP request.
    pub(super) fn fetch(&self, request: FetchRequest, reply: Replier<Fetched>) {
        match self.fetcher.get() {
            Some(fetcher) => fetcher.fetch(request, reply),
            None => reply.send(Err(FetchError::Connection("nothing sends requests here".into()))),
        }
    }

    /// Returns a reference that keeps the authenticator.
    pub(super) fn this(&self) -> Option<Arc<Self>> {
        self.this.upgrade()
    }

    fn handle(&self, input: AuthInput) {
        self.lock().machine.handle(clock::now(), clock::unix(), input);
        self.carry_out();
    }

    /// Carries out the outputs of the machine, without its lock.
    fn carry_out(&self) {
        loop {
            let mut state = self.lock();
            let Some(output) = state.machine.poll() else { return };
            match output {
                AuthOutput::Decided(ticket, decision) => {
                    if let Some(waiter) = state.waiting.remove(&ticket) {
                        // The sender may have left.
                        let _ = waiter.decision.send(decision);
                    }
                }
                AuthOutput::Fetch(id, request) => {
                    drop(state);
                    let Some(server) = self.this() else { return };
                    let done = move |answer| server.handle(AuthInput::Fetched(id, answer));
                    self.fetch(request, Replier::new(done));
                }
                AuthOutput::Store(ticket, operation) => {
                    drop(state);
                    self.store(ticket, operation);
                }
                AuthOutput::Verify { ticket, method, token } => {
                    let request =
                        state.waiting.get(&ticket).and_then(|waiter| waiter.request.clone());
                    drop(state);
                    let this = Weak::clone(&self.this);
                    let running = Arc::clone(&self.running).try_acquire_owned();
                    let may_run = running.is_ok();
                    let reply = Replier::new(move |reply| {
                        drop(running);
                        if let Some(server) = this.upgrade() {
                            server.handle(AuthInput::Verified(ticket, reply));
                        }
                    });
                    // Dropped without a reply, it refuses.
                    let verifier: Option<&Arc<dyn Verifier>> = self.config.verifier();
                    if !may_run {
                        if let Some(left_out) = self.log().due(clock::unix()) {
                            tracing::warn!("too many functions verify tokens{left_out}");
                        }
                    } else if let (Some(verifier), Some(request)) = (verifier, request) {
                        verifier.verify(method, token, request, reply);
                    }
                }
            }
        }
    }

    /// Begins an operation on the store.
    fn store(&self, ticket: AuthTicket, operation: StoreOperation) {
        let (Some(store), true) = (self.config.store(), self.may_store(ticket)) else {
            let failed = StoreReply::Failed("too many operations are under way".into());
            let input = AuthInput::Stored(ticket, failed);
            // The caller carries out what follows.
            self.lock().machine.handle(clock::now(), clock::unix(), input);
            return;
        };
        let this = Weak::clone(&self.this);
        let store = MeasuredStore::new(store, &self.metrics);
        store.run(
            operation,
            Replier::new(move |reply| {
                if let Some(server) = this.upgrade() {
                    server.storing().retain(|(other, _)| *other != ticket);
                    server.handle(AuthInput::Stored(ticket, reply));
                }
            }),
        );
    }

    /// Carries out an operation on the store.
    pub(super) fn run_on_store(&self, operation: StoreOperation, reply: Replier<StoreReply>) {
        match self.config.store() {
            Some(store) => MeasuredStore::new(store, &self.metrics).run(operation, reply),
            None => reply.send(StoreReply::Failed("there is no store".into())),
        }
    }

    /// Notes that an operation on the store begins. Returns false if too many are under way.
    fn may_store(&self, ticket: AuthTicket) -> bool {
        let (now, mut storing) = (clock::now(), self.storing());
        // A store may never answer.
        storing.retain(|(_, end)| *end > now);
        let may_store = storing.len() < MAX_STORING;
        if may_store {
            storing.push((ticket, now + TIMEOUT));
        }
        may_store
    }

    fn storing(&self) -> MutexGuard<'_, Vec<(AuthTicket, Instant)>> {
        self.storing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn log(&self) -> MutexGuard<'_, LogLimit> {
        self.log.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Withdrawal {
    fn drop(&mut self) {
        let mut state = self.server.lock();
        if state.waiting.remove(&self.ticket).is_some() {
            let input = AuthInput::Cancelled(self.ticket);
            state.machine.handle(clock::now(), clock::unix(), input);
        }
    }
}

impl fmt::Debug for AuthServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("AuthServer").field(&self.config).finish()
    }
}

/// Sets the principal of a request, before its body is read. Errors with the reason why its sender is refused.
pub(crate) async fn authenticate_request(
    auth: Option<&Arc<AuthServer>>,
    head: &mut AdmittedHead,
) -> Result<(), Refused> {
    let Some((unauthenticated, headers, remote)) = head.unauthenticated() else { return Ok(()) };
    let auth = auth.ok_or(Refused::Unidentified)?;
    let Caller { principal, expires } = auth.authenticate(unauthenticated, headers, remote).await?;
    head.set_principal(principal);
    if let Some(expires) = expires {
        head.set_expiry(expires);
    }
    Ok(())
}

/// Returns the sender of a request to become a message connection; `None` if everybody may call. Errors with the answer to
/// a sender that is refused.
pub(crate) async fn authenticate_upgrade(
    admission: &Admission,
    auth: Option<&Arc<AuthServer>>,
    head: &Parts,
    remote: Option<IpAddr>,
) -> Result<Option<Caller>, Part> {
    let Some(unauthenticated) = admission.unauthenticated(head) else { return Ok(None) };
    let decision = match auth {
        None => Err(Refused::Unidentified),
        Some(auth) => auth.authenticate(&unauthenticated, &head.headers, remote).await,
    };
    let refuse =
        |refused| admission.refuse_unauthenticated(head, &unauthenticated, remote, &refused);
    decision.map(Some).map_err(refuse)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test that fails here says where")]

    use std::sync::mpsc;

    use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
    use http::{HeaderValue, Method, StatusCode, header};
    use serde_json::{Value, json};

    use super::*;
    use crate::auth::{fetch::FetchResponse, server::resource::ResourceUrls};

    const KEYS: &str = "https://as.example.com/keys";
    const RESOURCE: &str = "https://mcp.example.com/mcp";

    struct Sent(mpsc::Sender<Replier<Fetched>>);

    impl Fetcher for Sent {
        fn fetch(&self, request: FetchRequest, reply: Replier<Fetched>) {
            assert_eq!(request.url, KEYS);
            self.0.send(reply).unwrap();
        }
    }

    fn begin(server: &AuthServer) -> Begun {
        let part = |value: Value| URL_SAFE_NO_PAD.encode(value.to_string());
        let claims = json!({ "iss": "https://as.example.com", "aud": RESOURCE, "sub": "ada",
            "exp": clock::unix() + 300 });
        let head = part(json!({ "alg": "EdDSA", "kid": "one" }));
        let forged = format!("{head}.{}.{}", part(claims), URL_SAFE_NO_PAD.encode([1; 64]));
        let bearer = HeaderValue::try_from(format!("Bearer {forged}")).unwrap();
        let headers = HeaderMap::from_iter([(header::AUTHORIZATION, bearer)]);
        let place = ResourceUrls {
            resource: RESOURCE.into(),
            metadata: String::new(),
            url: RESOURCE.into(),
        };
        let (method, place) = (&Method::POST, Some(&place));
        let request = Request { method, headers: &headers, place, remote: None };
        server.begin(request, || panic!("no function of the host verifies tokens"))
    }

    #[test]
    fn keys_are_fetched_again_although_a_request_is_decided_with_the_old_ones() {
        let config = json!({ "methods": [{ "kind": "jwt", "issuer": "https://as.example.com",
            "jwksUrl": KEYS }] });
        let config = Arc::new(AuthConfig::parse(config.to_string().as_bytes()).unwrap());
        let server = AuthServer::new(&config, &[b"key".to_vec()], Arc::default()).unwrap();
        let (sender, sent) = mpsc::channel();
        server.set_fetcher(Arc::new(Sent(sender)));
        assert!(matches!(begin(&server), Begun::Waits(..)));
        let Some(AuthOutput::Fetch(id, _)) = server.lock().machine.poll() else {
            panic!("the keys are not fetched")
        };
        let body = json!({ "keys": [{ "kty": "OKP", "crv": "Ed25519", "kid": "one",
            "x": "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo" }] });
        let age = HeaderValue::from_static("max-age=60");
        let answer = FetchResponse {
            url: KEYS.into(),
            status: StatusCode::OK,
            headers: HeaderMap::from_iter([(header::CACHE_CONTROL, age)]),
            body: body.to_string().into(),
        };
        let then = clock::now().checked_sub(Duration::from_secs(50)).unwrap();
        server.lock().machine.handle(then, clock::unix(), AuthInput::Fetched(id, Ok(answer)));
        assert!(sent.try_recv().is_err());
        assert!(matches!(begin(&server), Begun::Decided(Err(AuthRefusal::InvalidToken(_)))));
        assert!(sent.try_recv().is_ok(), "the keys are nearly as old as they may become");
    }
}
