//! The grants: requests for tokens, and what becomes of their outcomes.

use super::{
    Moment,
    authorize::{Authorization, select_scopes},
    discovery::{Discovery, Next},
    dpop, failure,
    flow::{Cause, SignInStep},
    records::{self, CredentialsRecord, Tokens},
    registration::{self, Registration},
    settings::Grant,
    sign_in::{Output, SignIn, Task},
    token::{Granted, Identity, TokenRefusal, TokenRequest},
};
use crate::{
    auth::{
        Secret,
        fetch::{FetchError, FetchResponse},
        pkce::Verifier,
        registered_names::{ID_JAG, ID_TOKEN, JWT_BEARER, TOKEN_EXCHANGE},
        scopes::Scopes,
    },
    error::Error,
};

/// The time before a failed renewal of a token that is still valid is tried again, in seconds.
const RENEWAL_PAUSE: u64 = 30;

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Purpose {
    Refresh,
    /// The identity token is exchanged for a grant.
    Exchange,
    /// The last request of a flow.
    Grant,
}

impl SignIn {
    pub(super) fn registration(&self) -> Result<Registration<'_>, Error> {
        let Grant::AuthorizationCode { client, metadata_url, .. } = &self.settings.grant else {
            return Err(failure("this grant has no user"));
        };
        let server = &self.server()?.metadata;
        Registration::choose(client.as_ref(), metadata_url.as_deref(), server)
    }

    /// Gets a client id for the authorization request.
    pub(super) fn register(&mut self, at: &Moment, redirect_uri: String) -> Result<(), Error> {
        let id = match self.registration()? {
            Registration::Given(client) => {
                let id = client.id.clone();
                self.pinned_issuer = Some(self.server()?.metadata.issuer.clone());
                id
            }
            Registration::Document(url) => url.to_owned(),
            Registration::Dynamic => {
                let known = self.credentials.client.as_ref().filter(|client| {
                    let lasts = client.secret_expires_at.is_none_or(|end| end > at.unix);
                    client.redirect_uri == redirect_uri && lasts
                });
                let Some(client) = known else {
                    let server = &self.server()?.metadata;
                    let name = &self.settings.client_name;
                    let request = registration::request(server, name, &redirect_uri);
                    let request = request.map_err(|error| failure(error.to_string()))?;
                    self.go(at, SignInStep::Register { redirect_uri }, Task::Fetch(request));
                    return Ok(());
                };
                client.id.clone()
            }
        };
        self.authorize(at, id, redirect_uri)
    }

    /// Sends the user to the authorization server.
    pub(super) fn authorize(
        &mut self,
        at: &Moment,
        client_id: String,
        redirect_uri: String,
    ) -> Result<(), Error> {
        let requested = self.scopes()?;
        let verifier = Verifier::new(at.bytes("verifier"));
        let server = self.server()?;
        let authorization = Authorization::new(
            &server.metadata,
            client_id,
            redirect_uri,
            requested,
            verifier,
            at.id("state"),
        );
        let url = authorization.url(&server.metadata, &server.resource);
        let task = Task::Open { url, state: authorization.state.clone() };
        let user_timeout = self.settings.user_timeout;
        self.go_within(at, SignInStep::Authorize(Box::new(authorization)), task, user_timeout);
        let flow = self.flow()?;
        (flow.awaits_user, flow.has_browser) = (true, true);
        Ok(())
    }

    /// Exchanges the code of an authorization response.
    pub(super) fn redeem(
        &mut self,
        at: &Moment,
        authorization: Authorization,
        redirected: Result<String, String>,
    ) -> Result<(), Error> {
        let redirected = redirected
            .map_err(|error| failure(format!("signing in with the browser failed: {error}")))?;
        let code = authorization.read(&redirected)?;
        let server = self.server()?;
        let metadata = &server.metadata;
        let identity = self.identity(&authorization.client_id)?;
        let request =
            TokenRequest::new(metadata, identity, "authorization_code", authorization.requested)?
                .with("code", code.expose())
                .with("redirect_uri", authorization.redirect_uri)
                .with("code_verifier", authorization.verifier.expose())
                .with("resource", &server.resource);
        self.send(at, request, Purpose::Grant)
    }

    /// Returns the client's identity at the current authorization server.
    fn identity(&self, id: &str) -> Result<Identity, Error> {
        let server = &self.server()?.metadata;
        Ok(match self.registration()? {
            Registration::Given(client) => Identity::given(client, server),
            Registration::Document(_) => Identity::public(Some(id.to_owned())),
            Registration::Dynamic => {
                let new = self.flow.as_ref().and_then(|flow| flow.client.as_ref());
                match new.or(self.credentials.client.as_ref()) {
                    Some(client) => Identity::registered(client, server),
                    None => Identity::public(Some(id.to_owned())),
                }
            }
        })
    }

    /// Renews the access token, unless another process did so.
    pub(super) fn refresh(
        &mut self,
        at: &Moment,
        loaded: Result<Option<Vec<u8>>, String>,
    ) -> Result<(), Error> {
        let own = self.credentials.tokens.as_ref().map(|tokens| tokens.access.clone());
        if let Some(bytes) = loaded.map_err(|error| self.store_failed(&error))? {
            let key = self.credentials_key()?;
            let stored: CredentialsRecord = records::read(&self.settings, &key, &bytes)?;
            // Tokens that could not be stored are newer than those that were.
            let is_new = !self.is_unsaved
                && stored.tokens.as_ref().is_some_and(|tokens| {
                    let is_usable = tokens.is_dpop || !self.settings.dpop;
                    is_usable && Some(&tokens.access) != own.as_ref()
                });
            if is_new {
                self.adopt(stored)?;
                self.finish(&Ok(()));
                return Ok(());
            }
        }
        let tokens = self.credentials.tokens.clone();
        let Some((tokens, token)) =
            tokens.and_then(|tokens| Some((tokens.clone(), tokens.refresh?)))
        else {
            return Err(failure("there is no refresh token"));
        };
        let id = match self.registration()? {
            Registration::Given(client) => client.id.clone(),
            Registration::Document(url) => url.to_owned(),
            Registration::Dynamic => {
                self.credentials.client.as_ref().map(|client| client.id.clone()).unwrap_or_default()
            }
        };
        let server = self.server()?;
        // Without a scope the new token has those of the old one (RFC 6749, section 6).
        let (identity, requested) = (self.identity(&id)?, tokens.requested);
        let request = TokenRequest::new(&server.metadata, identity, "refresh_token", requested)?
            .with("refresh_token", token.expose())
            .with("resource", &server.resource);
        self.send(at, request, Purpose::Refresh)
    }

    pub(super) fn identified(&mut self, at: &Moment, identity: Secret) -> Result<(), Error> {
        match self.settings.grant.clone() {
            Grant::WorkloadIdentity { client_id, .. } => {
                self.pinned_issuer = Some(self.server()?.metadata.issuer.clone());
                let request = self
                    .token_request(Identity::public(client_id), JWT_BEARER)?
                    .with("assertion", identity.expose())
                    .with_scope();
                self.send(at, request, Purpose::Grant)
            }
            Grant::EnterpriseManaged { idp, .. } => {
                let (search, request) = Discovery::of_issuer(&idp)?;
                self.go(at, SignInStep::FindProvider(search, identity), Task::Fetch(request));
                Ok(())
            }
            _ => Err(failure("this grant needs no identity token")),
        }
    }

    /// Exchanges the identity token for a grant (Enterprise-Managed Authorization, section 4).
    pub(super) fn take_provider(
        &mut self,
        at: &Moment,
        mut search: Discovery,
        identity: Secret,
        answer: Result<FetchResponse, FetchError>,
    ) -> Result<(), Error> {
        let provider = match search.take(answer)? {
            Next::Fetch(request) => {
                self.go(at, SignInStep::FindProvider(search, identity), Task::Fetch(*request));
                return Ok(());
            }
            Next::Found(found) => found.metadata,
        };
        let Grant::EnterpriseManaged { idp_client, .. } = &self.settings.grant else {
            return Err(failure("this grant has no identity provider"));
        };
        let client = Identity::given(idp_client, &provider);
        let server = self.server()?;
        let (audience, resource) = (server.metadata.issuer.clone(), server.resource.clone());
        let request = TokenRequest::new(&provider, client, TOKEN_EXCHANGE, self.scopes()?)?
            .with("requested_token_type", ID_JAG)
            .with("audience", audience)
            .with("resource", resource)
            .with("subject_token", identity.expose())
            .with("subject_token_type", ID_TOKEN)
            .with_scope();
        self.send(at, request, Purpose::Exchange)
    }

    /// Returns the request of a grant without a user, for the resource.
    pub(super) fn token_request(
        &self,
        client: Identity,
        grant_type: &str,
    ) -> Result<TokenRequest, Error> {
        let requested = self.scopes()?;
        let server = self.server()?;
        let request = TokenRequest::new(&server.metadata, client, grant_type, requested)?;
        Ok(request.with("resource", &server.resource))
    }

    fn scopes(&self) -> Result<Scopes, Error> {
        let before = self.credentials.tokens.as_ref();
        let before = before.map_or_else(Scopes::new, |tokens| &tokens.requested | &tokens.granted);
        let server = self.server()?;
        let challenged = self.flow.as_ref().and_then(|flow| flow.scope.as_ref());
        Ok(select_scopes(
            &self.settings.scopes,
            challenged,
            server.scopes_supported.as_deref(),
            &before,
            &server.metadata,
            self.settings.grant.is_interactive(),
        ))
    }

    pub(super) fn send(
        &mut self,
        at: &Moment,
        request: TokenRequest,
        purpose: Purpose,
    ) -> Result<(), Error> {
        self.send_again(at, request, purpose, false)
    }

    fn send_again(
        &mut self,
        at: &Moment,
        request: TokenRequest,
        purpose: Purpose,
        has_nonce: bool,
    ) -> Result<(), Error> {
        // The identity provider's grant is not bound.
        let prover = self.prover.as_ref().filter(|_| purpose != Purpose::Exchange);
        let fetch = request.request(at, prover)?;
        let request = Box::new(request);
        self.go(at, SignInStep::Token { request, purpose, has_nonce }, Task::Fetch(fetch));
        Ok(())
    }

    /// Sends a token request again with a nonce in its proof (RFC 9449, section 8).
    pub(super) fn send_with_nonce(
        &mut self,
        at: &Moment,
        request: TokenRequest,
        purpose: Purpose,
        has_nonce: bool,
        nonce: &str,
    ) -> Result<(), Error> {
        let place = || format!("the authorization server {}", request.issuer);
        let Some(prover) = self.prover.as_mut().filter(|_| !has_nonce) else {
            return Err(dpop::endless(&place()));
        };
        if !prover.take_nonce(request.endpoint(), nonce) {
            return Err(dpop::endless(&place()));
        }
        self.send_again(at, request, purpose, true)
    }

    pub(super) fn granted(
        &mut self,
        at: &Moment,
        purpose: Purpose,
        granted: Granted,
    ) -> Result<(), Error> {
        let Granted { mut tokens, issued_type } = granted;
        if purpose == Purpose::Exchange {
            if issued_type.as_deref() != Some(ID_JAG) {
                return Err(failure(
                    "the identity provider issued a token of another type than the grant",
                ));
            }
            let Grant::EnterpriseManaged { client, .. } = self.settings.grant.clone() else {
                return Err(failure("this grant has no identity provider"));
            };
            let server = &self.server()?.metadata;
            let issuer = server.issuer.clone();
            let identity = Identity::given(&client, server);
            let request = self
                .token_request(identity, JWT_BEARER)?
                .with("assertion", tokens.access.expose())
                .with_scope();
            self.pinned_issuer = Some(issuer);
            return self.send(at, request, Purpose::Grant);
        }
        if purpose == Purpose::Refresh
            && let Some(before) = self.credentials.tokens.take()
        {
            // Without rotation the refresh token stays (RFC 6749, section 6).
            let Tokens { refresh, granted, .. } = before;
            tokens.refresh = tokens.refresh.or(refresh);
            if tokens.granted == tokens.requested {
                tokens.granted = granted;
            }
        }
        if let Some(client) = self.flow()?.client.take() {
            self.credentials.client = Some(client);
        }
        self.credentials.tokens = Some(tokens);
        self.generation += 1;
        self.save(at)
    }

    pub(super) fn not_granted(
        &mut self,
        at: &Moment,
        purpose: Purpose,
        refusal: TokenRefusal,
    ) -> Result<(), Error> {
        let is_refused =
            matches!(refusal, TokenRefusal::Refused(_) | TokenRefusal::UnknownClient(_));
        let is_forgotten =
            matches!(refusal, TokenRefusal::UnknownClient(_)) && self.has_old_client();
        let error = refusal.into_error();
        let cause = self.flow()?.cause;
        let is_early = matches!(cause, Cause::Load | Cause::Renew);
        if is_forgotten {
            tracing::info!(
                "the authorization server has forgotten this client, which registers again"
            );
            self.credentials.client = None;
            if purpose == Purpose::Grant {
                return self.obtain_again(at);
            }
        }
        let Some(tokens) = &mut self.credentials.tokens else { return Err(error) };
        if purpose == Purpose::Refresh && is_refused {
            tokens.refresh = None;
            if is_early {
                // The server rejects the access token once it has expired, and then the user signs in again.
                return self.save(at);
            }
            return self.obtain_again(at);
        }
        let is_valid = tokens.expires_at.is_none_or(|end| end > at.unix);
        if is_early && is_valid {
            tracing::debug!(%error, "a token could not be renewed, and is still valid");
            tokens.renew_at = Some(at.unix + RENEWAL_PAUSE);
            self.finish(&Ok(()));
            return Ok(());
        }
        Err(error)
    }

    /// Gets tokens with the help of the user, after the authorization server refused what was there.
    fn obtain_again(&mut self, at: &Moment) -> Result<(), Error> {
        let flow = self.flow()?;
        flow.cannot_refresh = true;
        let has_lock = std::mem::take(&mut flow.has_lock);
        let has_browser = std::mem::take(&mut flow.has_browser);
        if has_lock {
            self.outputs.push_back(Output::Unlock);
        }
        if has_browser {
            let problem = "the authorization server has forgotten this program; sign in once more";
            self.outputs.push_back(Output::Outcome(Err(problem.into())));
        }
        self.obtain(at)
    }

    /// Returns whether the client registered itself in an earlier sign-in.
    pub(super) fn has_old_client(&self) -> bool {
        self.credentials.client.is_some()
            && self.flow.as_ref().is_some_and(|flow| flow.client.is_none())
            && matches!(self.registration(), Ok(Registration::Dynamic))
    }
}
