//! An authorization server for tests: its user approves every request by default, it issues tokens on demand, and it has faults on demand.

mod assertions;
mod authorize;
mod config;
mod faults;
mod given;
mod recorded;
mod status;
#[cfg(test)]
mod tests;
mod token;

use std::{fmt, time::Duration};

use http::{Method, StatusCode};
use serde_json::{Value, json};

use self::recorded::Recorded;
pub use self::{
    config::{AuthorizationServerOptions, Consent, Dpop, TokenFormat, TokenOptions},
    faults::AuthFaults,
    recorded::AnsweredRequest,
};
use super::{
    super::{server::jwk::Jwk, used_once::UsedOnce},
    access_tokens::{AccessTokens, TokenForm},
    authorization_request::AuthorizationRequest,
    bounded::Bounded,
    clients::{Client, Clients},
    codes::Codes,
    grant::{Grant, Grants},
    keys::SigningKeys,
    message::{OAuthError, Request, Response},
    metadata::{self, AUTHORIZE, INTROSPECT, KEYS, Offered, REGISTER, REVOKE, TOKEN},
    proofs::Proofs,
    registration,
    trusted_issuers::TrustedIssuers,
};
use crate::{
    auth::{
        fetch::{FetchError, FetchRequest, FetchResponse, MAX_DOCUMENT},
        moment::Moment,
        scopes,
    },
    error::{Error, option_name},
};

/// The maximum size of a request's body, in bytes.
pub const MAX_BODY: usize = 256 * 1024;
/// The maximum number of documents that are fetched for a request. The host fetches no more.
pub const MAX_FETCHES: usize = 5;
/// The maximum number of users who have not decided.
const MAX_CONSENTS: usize = 1_000;

/// The server. Each request is one call of [`TestServer::handle`]; for some, the host fetches documents in between.
pub struct TestServer {
    issuer: String,
    config: AuthorizationServerOptions,
    faults: AuthFaults,
    clients: Clients,
    assertions: UsedOnce,
    consents: Bounded<String, AuthorizationRequest>,
    codes: Codes,
    grants: Grants,
    tokens: AccessTokens,
    keys: SigningKeys,
    proofs: Proofs,
    trusted: TrustedIssuers,
    recorded: Recorded,
    wants_key: bool,
}

/// The next step of a request.
#[derive(Debug)]
pub enum TestServerStep {
    Respond(Response),
    /// The document to fetch, and to pass to [`TestServer::resume`].
    Fetch(FetchRequest),
}

/// The reason why a request has no response of success yet.
enum Interruption {
    Refused(OAuthError),
    Fetch(Box<FetchRequest>),
}

impl From<OAuthError> for Interruption {
    fn from(error: OAuthError) -> Self {
        Self::Refused(error)
    }
}

impl From<Error> for Interruption {
    fn from(error: Error) -> Self {
        Self::Refused(OAuthError {
            status: StatusCode::INTERNAL_SERVER_ERROR,
            ..OAuthError::new("server_error", error.to_string())
        })
    }
}

type Outcome = Result<Response, Interruption>;

impl TestServer {
    /// Creates the server of an issuer, which is the origin where it listens, with a private key (PKCS#8, ES256).
    pub fn new(
        issuer: &str,
        mut config: AuthorizationServerOptions,
        key: &[u8],
    ) -> Result<Self, Error> {
        config.check()?;
        let mut clients = Clients::new(config.take_clients()?);
        for (url, document) in &config.client_documents {
            if let Some(document) = document {
                clients.add_document(url, document).map_err(|error| {
                    let name = option_name("client_documents");
                    Error::misuse(format!("{name}: {url}: {}", error.description))
                })?;
            }
        }
        Ok(Self {
            issuer: issuer.to_owned(),
            faults: config.faults.clone(),
            clients,
            assertions: UsedOnce::default(),
            consents: Bounded::new(MAX_CONSENTS),
            codes: Codes::new(),
            grants: Grants::new(),
            tokens: AccessTokens::new(),
            keys: SigningKeys::new(key)?,
            proofs: Proofs::default(),
            trusted: TrustedIssuers::new(config.trusted_issuers.iter().cloned()),
            recorded: Recorded::default(),
            wants_key: false,
            config,
        })
    }

    /// Handles a request.
    pub fn handle(&mut self, at: &Moment, request: &Request) -> TestServerStep {
        if self.faults.takes_error(&request.path) {
            let response = Response::empty(StatusCode::INTERNAL_SERVER_ERROR);
            return self.respond(request, response);
        }
        let outcome = self.dispatch(at, request, true);
        self.step(request, outcome)
    }

    /// Continues a request with the document at this URL.
    pub fn resume(
        &mut self,
        at: &Moment,
        request: &Request,
        url: &str,
        answer: &Result<FetchResponse, FetchError>,
    ) -> TestServerStep {
        let outcome = match self.take(url, answer) {
            Ok(()) => self.dispatch(at, request, false),
            // The user sees it, as other errors about the client.
            Err(error) if request.path == AUTHORIZE => Err(authorize::shown(error)),
            Err(error) => Err(error.into()),
        };
        self.step(request, outcome)
    }

    /// Returns the time that the host waits before it sends a response.
    pub fn delay(&self) -> Duration {
        self.faults.delay
    }

    /// Returns true once after a token was issued that has to be the last one of its key.
    pub fn wants_key(&mut self) -> bool {
        std::mem::take(&mut self.wants_key)
    }

    /// Signs with this key (PKCS#8, ES256) from here on. `keeps_former`: tokens of the former key stay valid.
    pub fn rotate_keys(&mut self, key: &[u8], keeps_former: bool) -> Result<(), Error> {
        self.keys.rotate(key, keeps_former)
    }

    /// Replaces the faults by others.
    pub fn set_faults(&mut self, faults: AuthFaults) -> Result<(), Error> {
        faults.check()?;
        self.faults = faults;
        Ok(())
    }

    /// Revokes all codes and tokens.
    pub fn revoke_all(&mut self) {
        self.codes.clear();
        self.grants.revoke_all();
        self.tokens.revoke_all();
    }

    /// Returns the requests so far.
    pub fn requests(&self) -> Vec<AnsweredRequest> {
        self.recorded.all()
    }

    /// Issues an access token without a request.
    pub fn token(&mut self, at: &Moment, params: TokenOptions) -> Result<String, Error> {
        let key = match params.dpop_key {
            None | Some(Value::Null) => None,
            Some(Value::String(thumbprint)) => Some(thumbprint),
            Some(key) => {
                let wrong = |error: &dyn fmt::Display| {
                    Error::misuse(format!("token(): {}: {error}", option_name("dpop_key")))
                };
                Some(Jwk::read(&key).map_err(|error| wrong(&error))?.thumbprint())
            }
        };
        let grant = Grant {
            client_id: params.client_id,
            subject: params.subject.unwrap_or_else(|| self.config.subject.clone()),
            scopes: params.scopes.iter().flat_map(|scope| scopes::parse(scope)).collect(),
            resource: params.audience,
            nonce: None,
            key,
        };
        let expires = expiry(at, params.expires_in.unwrap_or(self.config.expires_in.as_secs_f64()));
        let is_jwt = self.config.token_format == TokenFormat::Jwt;
        let options = TokenForm { is_jwt, expires, claims: params.claims };
        self.tokens.issue(&self.issuer, &self.keys, (None, &grant), options, at)
    }

    /// Issues an identity token (`OpenID` Connect) of a user for a client, without a request.
    pub fn identity_token(
        &self,
        at: &Moment,
        subject: Option<&str>,
        client_id: &str,
        expires_in: f64,
    ) -> Result<String, Error> {
        let subject = subject.unwrap_or(&self.config.subject);
        let expires = expiry(at, expires_in);
        self.sign_identity(at, subject, client_id, expires, None)
    }

    fn sign_identity(
        &self,
        at: &Moment,
        subject: &str,
        client_id: &str,
        expires: u64,
        nonce: Option<&str>,
    ) -> Result<String, Error> {
        let mut claims = json!({
            "iss": self.issuer, "sub": subject, "aud": client_id, "iat": at.unix.min(expires),
            "exp": expires, "jti": at.id("identity token"),
        });
        if let Some(nonce) = nonce {
            claims["nonce"] = nonce.into();
        }
        self.keys.sign("JWT", &claims)
    }

    fn dispatch(&mut self, at: &Moment, request: &Request, is_first: bool) -> Outcome {
        let get = request.method == Method::GET;
        let post = request.method == Method::POST;
        match request.path.as_str() {
            "/.well-known/oauth-authorization-server" | "/.well-known/openid-configuration"
                if get =>
            {
                Ok(self.metadata())
            }
            KEYS if get => Ok(Response::json(StatusCode::OK, &self.keys.published())),
            AUTHORIZE if get || post => self.authorize(at, request),
            authorize::DECISION if post => self.decide(at, request),
            TOKEN if post => self.token_request(at, request, is_first),
            REGISTER if post && self.config.registration => self.register(at, request),
            INTROSPECT if post => self.introspect(at, request),
            REVOKE if post => self.revoke(at, request),
            AUTHORIZE | TOKEN | REGISTER | INTROSPECT | REVOKE | KEYS => {
                Ok(Response::empty(StatusCode::METHOD_NOT_ALLOWED))
            }
            _ => Ok(Response::empty(StatusCode::NOT_FOUND)),
        }
    }

    fn step(&mut self, request: &Request, outcome: Outcome) -> TestServerStep {
        match outcome {
            Ok(response) => self.respond(request, response),
            Err(Interruption::Refused(error)) => self.respond(request, error.response()),
            Err(Interruption::Fetch(fetch)) => TestServerStep::Fetch(*fetch),
        }
    }

    fn respond(&mut self, request: &Request, response: Response) -> TestServerStep {
        self.recorded.add(request, &response);
        TestServerStep::Respond(response)
    }

    fn metadata(&self) -> Response {
        let mut document = metadata::document(&Offered {
            issuer: &self.issuer,
            scopes: self.config.scopes.as_deref(),
            has_registration: self.config.registration,
            has_documents: !self.config.client_documents.is_empty(),
        });
        if let Some(issuer) = &self.faults.metadata_issuer {
            document["issuer"] = issuer.as_str().into();
        }
        if self.faults.no_pkce
            && let Some(document) = document.as_object_mut()
        {
            document.remove("code_challenge_methods_supported");
        }
        let missing = self.faults.metadata_bytes.saturating_sub(document.to_string().len());
        if missing > 0 {
            document["padding"] = "x".repeat(missing).into();
        }
        Response::json(StatusCode::OK, &document)
    }

    fn register(&mut self, at: &Moment, request: &Request) -> Outcome {
        if self.faults.refuse_registration {
            let reason = "this server refuses registrations, as its test asked";
            return Err(OAuthError::new("invalid_client_metadata", reason).into());
        }
        let (client, body) = registration::register(request, at, |_, _| Ok(at.id("client")))?;
        self.clients.register(client);
        Ok(Response::json(StatusCode::CREATED, &body))
    }

    /// Returns the client with this id. If a document describes it that is not known yet, it has to be fetched.
    fn client(&self, id: &str) -> Result<Client, Interruption> {
        if let Some(client) = self.clients.get(id) {
            return Ok(client.clone());
        }
        if self.config.client_documents.contains_key(id) {
            return match FetchRequest::get(id, MAX_DOCUMENT) {
                Ok(fetch) => Err(Interruption::Fetch(Box::new(fetch))),
                Err(error) => Err(OAuthError::client(error.to_string(), false).into()),
            };
        }
        Err(OAuthError::client("the client is unknown", false).into())
    }

    /// Takes a document that was fetched.
    fn take(
        &mut self,
        url: &str,
        answer: &Result<FetchResponse, FetchError>,
    ) -> Result<(), OAuthError> {
        if self.config.client_documents.contains_key(url) {
            let failed = |error: &FetchError| {
                let reason = format!("the client metadata document can't be used: {url}: {error}");
                OAuthError::client(reason, false)
            };
            let answer = answer.as_ref().map_err(failed)?;
            let document = answer.document().map_err(|error| failed(&error))?;
            return self.clients.add_document(url, &document);
        }
        self.trusted.take(url, answer).map(drop)
    }

    /// Checks requested scopes and the requested resource against those that are offered.
    fn check_target(
        &self,
        requested: &scopes::Scopes,
        resource: Option<&str>,
    ) -> Result<(), OAuthError> {
        let is_offered =
            |scope: &String| self.config.scopes.as_ref().is_none_or(|all| all.contains(scope));
        if let Some(scope) = requested.iter().find(|scope| !is_offered(scope)) {
            return Err(OAuthError::new("invalid_scope", format!("there is no scope {scope:?}")));
        }
        match (resource, &self.config.resources) {
            (Some(resource), Some(all)) if !all.iter().any(|known| known == resource) => {
                Err(OAuthError::new("invalid_target", "there is no such resource"))
            }
            _ => Ok(()),
        }
    }
}

/// Returns the end of a token's life in seconds since 1970, from its life in seconds, which may be negative.
fn expiry(at: &Moment, seconds: f64) -> u64 {
    let life = Duration::try_from_secs_f64(seconds.abs()).unwrap_or(Duration::MAX).as_secs();
    match seconds < 0.0 {
        true => at.unix.saturating_sub(life),
        false => at.unix.saturating_add(life),
    }
}

impl fmt::Debug for TestServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TestServer").field("issuer", &self.issuer).finish_non_exhaustive()
    }
}
