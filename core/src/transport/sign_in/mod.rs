//! Signs in over the network: runs the machine of [`crate::auth::client`] on tokio, with a store, a browser and a listener for
//! the redirect.

mod browser;
mod file_store;
mod host;
#[cfg(feature = "keyring")]
mod keyring_store;
mod loopback;
mod renewal;
mod store;

use std::{
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use tokio::sync::Mutex as AsyncMutex;

use self::host::Host;
#[cfg(all(feature = "bindings", feature = "keyring"))]
pub use self::store::TokenKeyring;
pub use self::store::{Store, TokenStore};
#[cfg(feature = "bindings")]
pub use self::{browser::open as open_browser, store::TokenFile};
#[cfg(feature = "bindings")]
pub(crate) use self::{
    renewal::{LockCallback, Renewal as RenewalLock},
    store::lock_keyring,
};
use super::network::Network;
pub(crate) use crate::auth::client::Attempts;
pub use crate::store::BoxFuture;
use crate::{
    auth::{
        challenge,
        client::{Grant, Rejection, RejectionReply, SignIn, SignInSettings},
    },
    driver::moment,
    error::{Error, ErrorKind},
};

const DPOP: &str = "dpop";
const DPOP_NONCE: &str = "dpop-nonce";

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
        bearer(token).map(|value| Self(Kind::Token(value)))
    }

    /// Uses the token that a callback returns, which is called again once the server rejects the token.
    pub(crate) fn of_source(source: TokenSource) -> Self {
        Self(Kind::Source { source, current: Mutex::default(), asking: AsyncMutex::default() })
    }

    /// Signs in at the server with this URL, which has no query.
    pub(crate) fn of_sign_in(target: &str, options: SignInOptions, network: Network) -> Self {
        let settings = SignInSettings {
            grant: options.grant.clone(),
            scopes: options.scopes.clone(),
            dpop: options.dpop,
            client_name: options.client_name.clone().unwrap_or_else(|| DEFAULT_NAME.into()),
            store: options.store.name(),
            user_timeout: options.user_timeout,
        };
        let machine = SignIn::new(target, settings);
        Self(Kind::SignIn(Arc::new(Host::new(machine, options, network))))
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
            challenges: challenge::parse(values.filter_map(|value| value.to_str().ok())),
            nonce: text(headers, DPOP_NONCE),
            generation,
        };
        let ticket = host.ticket();
        let ready = {
            let mut machine = lock(&host.machine);
            match machine.reject(&moment(), ticket, attempts, &rejection) {
                RejectionReply::Repeat => return Ok(true),
                RejectionReply::Stands => return Ok(false),
                RejectionReply::Fail(error) => return Err(error),
                RejectionReply::Wait => host.wait(ticket),
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
        let token = source().await.map_err(|error| match error.kind {
            ErrorKind::Auth => error,
            _ => Error::new(ErrorKind::Auth, format!("auth: {}", error.message)).caused_by(error),
        })?;
        let value = bearer(&token)?;
        let is_new = before.as_ref().is_none_or(|(earlier, _)| *earlier != value);
        let generation = before.map_or(1, |(_, generation)| generation + u64::from(is_new));
        *lock(current) = Some((value, generation));
        Ok(is_new)
    }
}

impl fmt::Debug for Authorizer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Authorizer")
    }
}

fn bearer(token: &str) -> Result<HeaderValue, Error> {
    if token.get(..7).is_some_and(|scheme| scheme.eq_ignore_ascii_case("bearer ")) {
        return Err(Error::misuse(
            "auth: the token begins with \"Bearer \", which is added to it; pass the token alone",
        ));
    }
    let is_visible = !token.is_empty() && token.bytes().all(|byte| matches!(byte, b'!'..=b'~'));
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
