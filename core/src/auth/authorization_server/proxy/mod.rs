//! An OAuth proxy: an authorization server for the clients of one MCP server, in front of a provider at which these clients
//! can't register. The proxy is itself a client of the provider. Its codes, tokens and client ids are sealed, so that each
//! process with the same keys accepts them.

mod clients;
mod location;
mod provider;
mod sealed;
mod shared;
mod sign_in;
#[cfg(all(test, feature = "bindings"))]
#[allow(clippy::unwrap_used, reason = "a test that fails here says where")]
mod tests;
mod token;
mod tokens;

use std::fmt;

use http::{HeaderValue, Method, StatusCode, header};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use self::{
    clients::{Documents, Found},
    provider::{Endpoints as ProviderEndpoints, Provider, ProviderTokens},
    sealed::Sealer,
    shared::Afterwards,
    sign_in::{SignIn, error_page},
    tokens::{Code, RefreshToken, Used},
};
pub use self::{
    location::OAuthEndpoint,
    provider::{Endpoints, ProviderPlace, ProviderSettings},
};
use super::{
    super::used_once::UsedOnce,
    clients::{Client, is_of_client, is_same_redirect, without_port},
    message::{OAuthError, Request, Response},
};
use crate::{
    auth::{
        Secret, TokenDigest,
        fetch::{FetchError, FetchRequest, FetchResponse},
        moment::Moment,
        scopes::Scopes,
    },
    log_limit::LogLimit,
    protocol::{ClientKey, Principal},
    replier::GivenUp as _,
    store::{StoreOperation, StoreReply},
};

/// The maximum size of a request's body, in bytes.
pub const MAX_BODY: usize = 64 * 1024;

/// The proxy.
pub struct OAuthProxy {
    provider: Provider,
    allowed_redirects: Option<Vec<String>>,
    sealer: Sealer,
    documents: Documents,
    assertions: UsedOnce,
    /// Limits the messages that everybody can cause.
    log: LogLimit,
    used: Used,
    /// `true` if servers know used codes, exchanged refresh tokens and revocations together, in a store.
    has_store: bool,
}

/// A request to the proxy of the MCP server at the URL `issuer`.
#[derive(Debug)]
pub struct ProxyRequest {
    pub endpoint: OAuthEndpoint,
    pub issuer: String,
    pub request: Request,
    /// The client that the request counts for.
    pub(crate) client: Option<ClientKey>,
}

/// The next step of a request.
#[derive(Debug)]
pub enum ProxyStep {
    Respond(Response),
    /// The document to fetch. Its answer goes to [`OAuthProxy::resume`].
    Fetch(FetchRequest, Flow),
    /// The request gets the same response as the one that is exchanging this refresh token.
    Wait(TokenDigest),
    /// The operation on the store. Its reply goes to [`OAuthProxy::stored`].
    Store(StoreOperation, Flow),
}

/// A request that waits for an answer to the proxy's own request.
pub struct Flow(Waits);

enum Waits {
    /// Handle the request again with the client's document.
    Document(Box<ProxyRequest>, String),
    /// Handle it again with the provider's metadata, which were asked for at the location with this number.
    Metadata(Box<ProxyRequest>, usize),
    Tokens(String, Box<SignIn>),
    User(String, Box<SignIn>, Box<ProviderTokens>),
    Refresh(Box<Refreshing>),
    Code(Box<Redeeming>),
    Revoked,
    /// The knowledge of the store about a refresh token: whether its grant was revoked, whether it is claimed, and its record.
    Grant(Box<Refreshing>),
    Claim(Box<Refreshing>),
    Record(Box<Refreshing>),
    /// The record of the refresh token in this response.
    Next(Box<(Refreshing, Value)>),
    /// This response is to be stored.
    Saved(Box<(Refreshing, Value)>),
    Afterwards(Afterwards),
}

/// A code in the course of being exchanged.
struct Redeeming {
    issuer: String,
    digest: TokenDigest,
    code: Code,
    redirect_uri: Option<String>,
    verifier: String,
}

/// A refresh token in the course of being exchanged.
struct Refreshing {
    issuer: String,
    digest: TokenDigest,
    token: RefreshToken,
    /// The scopes of the new access token.
    scopes: Scopes,
    /// The request to the provider that begins the exchange.
    fetch: Option<Box<FetchRequest>>,
    /// The version of the claim in the store.
    version: u64,
}

/// The reason why a request has no response of success yet.
enum Interruption {
    Refused(OAuthError),
    /// The user sees the error.
    Shown(OAuthError),
    Fetch(Box<FetchRequest>, Waits),
    Wait(TokenDigest),
    /// The store has to know whether a code is new.
    Store(Box<StoreOperation>, Waits),
    /// The endpoints of the provider are needed.
    NeedsMetadata,
    /// The document of this client is needed.
    NeedsDocument(Box<FetchRequest>, String),
}

type Outcome = Result<Response, Interruption>;

impl From<OAuthError> for Interruption {
    fn from(error: OAuthError) -> Self {
        Self::Refused(error)
    }
}

impl Flow {
    /// Returns the refresh token that is exchanged: requests wait for the end of it.
    pub fn refreshes(&self) -> Option<TokenDigest> {
        match &self.0 {
            Waits::Refresh(it) | Waits::Grant(it) | Waits::Claim(it) | Waits::Record(it) => {
                Some(it.digest)
            }
            Waits::Next(it) | Waits::Saved(it) => Some(it.0.digest),
            Waits::Afterwards(Afterwards::Refused(_, digest)) => *digest,
            _ => None,
        }
    }
}

impl OAuthProxy {
    /// Replaces the keys of what is sealed: the first seals from now on, and all of them open.
    pub fn set_keys(&mut self, keys: &[Vec<u8>]) {
        self.sealer = self.sealer.with_keys(keys);
    }

    /// Creates the proxy. `allowed_redirects`: the redirect URLs that clients may have, `*` at the end for any rest; `None`: all
    /// that are safe. Without `keys`, the client secret of the proxy takes their place if it is [long](is_long), and without
    /// both, `seed`.
    pub fn new<K: AsRef<[u8]>>(
        provider: ProviderSettings,
        allowed_redirects: Option<Vec<String>>,
        keys: &[K],
        seed: &[u8],
    ) -> Self {
        let secret = provider.client_secret.as_ref().filter(|secret| is_long(secret));
        let name = provider.name();
        let sealer = match (keys, secret) {
            ([], Some(secret)) => Sealer::new([Sha256::digest(secret.expose())], name),
            ([], None) => Sealer::new([seed], name),
            (keys, _) => Sealer::new(keys, name),
        };
        Self {
            provider: Provider::new(provider),
            allowed_redirects,
            sealer,
            documents: Documents::new(),
            assertions: UsedOnce::default(),
            log: LogLimit::default(),
            used: Used::new(),
            has_store: false,
        }
    }

    /// Remembers used codes, exchanged refresh tokens and revocations in a store, by [`ProxyStep::Store`].
    pub fn use_store(&mut self) {
        self.has_store = true;
    }

    /// Returns the scopes that each sign-in asks for.
    pub fn scopes(&self) -> &[String] {
        &self.provider.settings.scopes
    }

    /// Returns the owner of an access token and the time at which it expires, in seconds since 1970. Returns `None` if the
    /// token is not one of this issuer, or may no longer be used.
    pub fn verify(&self, issuer: &str, token: &str, unix: u64) -> Option<(Principal, u64)> {
        let (principal, grant, expires) = tokens::verify(&self.sealer, issuer, token, unix)?;
        (!self.used.is_revoked(&grant)).then_some((principal, expires))
    }

    /// Handles a request.
    pub fn handle(&mut self, at: &Moment, request: ProxyRequest) -> ProxyStep {
        let outcome = self.dispatch(at, &request);
        self.step(Some(request), outcome)
    }

    /// Continues a request with the answer to a request of the proxy.
    pub fn resume(
        &mut self,
        at: &Moment,
        flow: Flow,
        answer: &Result<FetchResponse, FetchError>,
    ) -> ProxyStep {
        let for_programs = matches!(flow.0, Waits::Refresh(_) | Waits::Revoked);
        let outcome = match flow.0 {
            Waits::Document(request, id) => {
                self.documents.take(&id, answer, at.unix);
                return self.handle(at, *request);
            }
            Waits::Metadata(request, place) => match self.provider.take(answer, at.unix) {
                Ok(()) => return self.handle(at, *request),
                Err(reason) => {
                    if let Some(fetch) = self.provider.metadata_request(place + 1) {
                        let flow = Flow(Waits::Metadata(request, place + 1));
                        return ProxyStep::Fetch(fetch, flow);
                    }
                    // The old ones are better than none.
                    if self.provider.keep_metadata(at.unix) {
                        return self.handle(at, *request);
                    }
                    let unavailable = self.temporarily_unavailable(reason, at.unix);
                    return self.step(Some(*request), Err(unavailable));
                }
            },
            Waits::Tokens(issuer, sign_in) => self.take_tokens(at, (issuer, sign_in), answer),
            Waits::User(issuer, sign_in, tokens) => {
                Ok(self.take_user(at, (&issuer, &sign_in, &tokens), answer))
            }
            Waits::Refresh(refreshing) => self.take_refreshed(at, *refreshing, answer),
            Waits::Revoked => Ok(Response::empty(StatusCode::OK)),
            // They wait for the store.
            waits => return self.stored(at, Flow(waits), StoreReply::given_up()),
        };
        self.step_for(None, for_programs, outcome)
    }

    /// Continues a request with the reply of the store.
    pub fn stored(&mut self, at: &Moment, flow: Flow, reply: StoreReply) -> ProxyStep {
        let outcome = match flow.0 {
            Waits::Code(redeeming) => self.take_claimed(at, *redeeming, reply),
            Waits::Grant(refreshing) => self.take_grant(at, *refreshing, reply),
            Waits::Claim(refreshing) => self.take_claim(at, *refreshing, reply),
            Waits::Record(refreshing) => self.take_record(at, *refreshing, reply),
            Waits::Next(next) => self.take_next(at, *next, reply),
            Waits::Saved(saved) => Ok(self.take_saved(at, *saved, reply)),
            Waits::Afterwards(afterwards) => self.take_afterwards(at, afterwards, reply),
            _ => Ok(Response::empty(StatusCode::INTERNAL_SERVER_ERROR)),
        };
        self.step_for(None, true, outcome)
    }

    fn dispatch(&mut self, at: &Moment, request: &ProxyRequest) -> Outcome {
        let method = &request.request.method;
        let expected = match request.endpoint {
            OAuthEndpoint::Metadata
            | OAuthEndpoint::Keys
            | OAuthEndpoint::Authorize
            | OAuthEndpoint::Callback => Method::GET,
            _ => Method::POST,
        };
        if method == Method::OPTIONS && request.endpoint.is_for_programs() {
            return Ok(preflight());
        }
        if *method != expected {
            let mut response = Response::empty(StatusCode::METHOD_NOT_ALLOWED);
            response.set(header::ALLOW, expected.as_str());
            return Ok(response);
        }
        match request.endpoint {
            OAuthEndpoint::Metadata => Ok(self.metadata(&request.issuer)),
            OAuthEndpoint::Keys => Ok(Response::json(StatusCode::OK, &json!({ "keys": [] }))),
            OAuthEndpoint::Authorize => self.authorize(at, request),
            OAuthEndpoint::Consent => self.consent(at, request),
            OAuthEndpoint::Callback => self.callback(at, request),
            OAuthEndpoint::Token => self.token(at, request),
            OAuthEndpoint::Register => self.register(at, request),
            OAuthEndpoint::Revoke => self.revoke(at, request),
        }
    }

    fn step(&self, request: Option<ProxyRequest>, outcome: Outcome) -> ProxyStep {
        let for_programs =
            request.as_ref().is_some_and(|request| request.endpoint.is_for_programs());
        self.step_for(request, for_programs, outcome)
    }

    fn step_for(
        &self,
        request: Option<ProxyRequest>,
        for_programs: bool,
        outcome: Outcome,
    ) -> ProxyStep {
        let response = match (outcome, request) {
            (Ok(response), _) => response,
            (Err(Interruption::Refused(error)), _) if for_programs => error.response(),
            (Err(Interruption::Refused(error) | Interruption::Shown(error)), _) => {
                error_page(&error)
            }
            (Err(Interruption::Fetch(fetch, flow)), _) => {
                return ProxyStep::Fetch(*fetch, Flow(flow));
            }
            (Err(Interruption::Wait(digest)), _) => return ProxyStep::Wait(digest),
            (Err(Interruption::Store(operation, flow)), _) => {
                return ProxyStep::Store(*operation, Flow(flow));
            }
            (Err(Interruption::NeedsDocument(fetch, id)), Some(request)) => {
                return ProxyStep::Fetch(*fetch, Flow(Waits::Document(Box::new(request), id)));
            }
            (Err(Interruption::NeedsMetadata), Some(request)) => {
                match self.provider.metadata_request(0) {
                    Some(fetch) => {
                        return ProxyStep::Fetch(
                            fetch,
                            Flow(Waits::Metadata(Box::new(request), 0)),
                        );
                    }
                    None => Response::empty(StatusCode::BAD_GATEWAY),
                }
            }
            (Err(_), None) => Response::empty(StatusCode::INTERNAL_SERVER_ERROR),
        };
        ProxyStep::Respond(match for_programs {
            true => readable_by_all(response),
            false => response,
        })
    }

    /// Returns the metadata of the proxy (RFC 8414).
    fn metadata(&self, issuer: &str) -> Response {
        let methods = ["none", "client_secret_post", "client_secret_basic", "private_key_jwt"];
        let mut document = json!({
            "issuer": issuer,
            "authorization_endpoint": OAuthEndpoint::Authorize.url(issuer),
            "token_endpoint": OAuthEndpoint::Token.url(issuer),
            "registration_endpoint": OAuthEndpoint::Register.url(issuer),
            "revocation_endpoint": OAuthEndpoint::Revoke.url(issuer),
            "response_types_supported": ["code"],
            "response_modes_supported": ["query"],
            "grant_types_supported": ["authorization_code", "refresh_token"],
            "code_challenge_methods_supported": ["S256"],
            "token_endpoint_auth_methods_supported": methods,
            "token_endpoint_auth_signing_alg_values_supported": ["ES256", "RS256", "EdDSA"],
            "revocation_endpoint_auth_methods_supported": methods,
            // Clients that read the document as one of OpenID Connect require these. No identity tokens are issued.
            "jwks_uri": OAuthEndpoint::Keys.url(issuer),
            "subject_types_supported": ["public"],
            "id_token_signing_alg_values_supported": ["ES256"],
            "authorization_response_iss_parameter_supported": true,
            "client_id_metadata_document_supported": true,
        });
        if !self.scopes().is_empty() {
            document["scopes_supported"] = json!(self.scopes());
        }
        Response::json(StatusCode::OK, &document)
    }

    fn register(&self, at: &Moment, request: &ProxyRequest) -> Outcome {
        let allows = |uri: &str| self.allows_redirect(uri);
        let body = clients::register(&request.request, &request.issuer, &self.sealer, allows, at)?;
        Ok(Response::json(StatusCode::CREATED, &body))
    }

    fn allows_redirect(&self, uri: &str) -> bool {
        let Some(all) = &self.allowed_redirects else { return is_of_client(uri) };
        all.iter().any(|allowed| match allowed.strip_suffix('*') {
            Some(start) => {
                is_below(uri, start) || without_port(uri).is_some_and(|uri| is_below(&uri, start))
            }
            None => is_same_redirect(allowed, uri),
        })
    }

    /// Returns whether the operator listed the redirect URLs that are allowed.
    fn lists_redirects(&self) -> bool {
        self.allowed_redirects.is_some()
    }

    fn client(
        &mut self,
        id: &str,
        request: &ProxyRequest,
        unix: u64,
    ) -> Result<Client, Interruption> {
        match self.documents.find(id, &request.issuer, &self.sealer, unix)? {
            Found::Client(client) => Ok(*client),
            Found::Fetch(fetch) => Err(Interruption::NeedsDocument(fetch, id.to_owned())),
        }
    }

    /// Returns the answer to a request if the provider can't be used.
    fn temporarily_unavailable(&mut self, reason: String, unix: u64) -> Interruption {
        if let Some(left_out) = self.log.due(unix) {
            tracing::warn!("{reason}{left_out}");
        }
        Interruption::Refused(OAuthError {
            status: StatusCode::SERVICE_UNAVAILABLE,
            ..OAuthError::new("temporarily_unavailable", reason)
        })
    }

    fn endpoints(&self, unix: u64) -> Result<&ProviderEndpoints, Interruption> {
        self.provider.endpoints(unix).ok_or(Interruption::NeedsMetadata)
    }
}

/// Returns whether a client secret is so long that nobody guesses it: everyone can get texts that are sealed with it.
pub(in crate::auth) fn is_long(secret: &Secret) -> bool {
    secret.expose().len() >= 32
}

/// Returns whether a redirect URL continues another one, so that a browser does not take it for a URL above that.
fn is_below(uri: &str, start: &str) -> bool {
    uri.strip_prefix(start).is_some_and(|rest| {
        let rest = rest.to_ascii_lowercase();
        !rest.contains("..") && !rest.contains("%2e") && !rest.contains('\\')
    })
}

/// Returns the answer to a browser that asks whether a page may call.
fn preflight() -> Response {
    let mut response = Response::empty(StatusCode::NO_CONTENT);
    response.set(header::ACCESS_CONTROL_ALLOW_METHODS, "GET, POST");
    response.set(
        header::ACCESS_CONTROL_ALLOW_HEADERS,
        "Authorization, Content-Type, MCP-Protocol-Version",
    );
    response
}

/// Lets pages of every origin read a response, which depends on no cookie.
fn readable_by_all(mut response: Response) -> Response {
    response.headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, HeaderValue::from_static("*"));
    response
}

impl fmt::Debug for OAuthProxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OAuthProxy")
            .field("provider", &self.provider.host())
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for Flow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.0 {
            Waits::Document(..) => "Document",
            Waits::Metadata(..) => "Metadata",
            Waits::Tokens(..) => "Tokens",
            Waits::User(..) => "User",
            Waits::Refresh(..) => "Refresh",
            Waits::Code(..) => "Code",
            Waits::Grant(..) => "Grant",
            Waits::Claim(..) => "Claim",
            Waits::Record(..) => "Record",
            Waits::Next(..) => "Next",
            Waits::Saved(..) => "Saved",
            Waits::Afterwards(..) => "Afterwards",
            Waits::Revoked => "Revoked",
        })
    }
}
