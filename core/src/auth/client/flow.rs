//! The steps by which tokens are obtained.

use std::time::{Duration, Instant};

use base64::{Engine as _, engine::general_purpose::STANDARD};

use super::{
    Moment,
    authorize::Authorization,
    discovery::{Discovery, Next},
    dpop::Prover,
    failure,
    grants::Purpose,
    records::{self, ClientRecord, CredentialsRecord, ServerRecord},
    registration,
    settings::Grant,
    sign_in::{Answer, Output, STEP_TIME, SignIn, StepId, Task},
    token::{Identity, TokenRefusal, TokenRequest},
};
use crate::{
    auth::{
        Secret,
        fetch::{FetchError, FetchRequest, FetchResponse, Reach},
        jwt_signing::generate_key,
        metadata::is_same_issuer,
        scopes::Scopes,
    },
    error::{Error, option_name},
};

/// The reason for a flow.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Cause {
    /// The store was not read yet.
    Load,
    /// The access token expires soon.
    Renew,
    /// The server rejected the token, or a request without one.
    Rejected,
    /// The server requires more scopes.
    StepUp,
}

/// A flow in progress.
#[derive(Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
pub(super) struct Flow {
    pub(super) cause: Cause,
    /// The scopes of the server's challenge.
    pub(super) scope: Option<Scopes>,
    pub(super) metadata_url: Option<String>,
    /// True if the server accepts bound tokens only.
    pub(super) wants_proof: bool,
    /// True if the rejected request had a token.
    pub(super) had_token: bool,
    pub(super) deadline: Option<Instant>,
    pub(super) awaits_user: bool,
    step: SignInStep,
    id: StepId,
    pub(super) has_lock: bool,
    pub(super) has_browser: bool,
    /// True if there is no refresh token, or it was rejected.
    pub(super) cannot_refresh: bool,
    /// The client that was registered for this sign-in. The one before keeps its tokens until there are others.
    pub(super) client: Option<ClientRecord>,
}

#[derive(Debug)]
pub(super) enum SignInStep {
    Start,
    LoadServer,
    /// The record of credentials at start.
    LoadCredentials(Box<ServerRecord>),
    Discover(Discovery),
    /// The record of credentials of another authorization server.
    Switch(Box<ServerRecord>),
    Lock,
    /// The record of credentials, which another process may have renewed.
    Reload,
    Listen,
    Register {
        redirect_uri: String,
    },
    Authorize(Box<Authorization>),
    Identify,
    FindProvider(Discovery, Secret),
    Token {
        request: Box<TokenRequest>,
        purpose: Purpose,
        has_nonce: bool,
    },
    /// The records to save are the server's, then the credentials. True if these are left.
    Save {
        credentials_left: bool,
    },
    /// The credentials without their client, after which the flow fails.
    GiveUp(Error),
}

impl Flow {
    pub(super) fn new(cause: Cause) -> Self {
        Self {
            cause,
            scope: None,
            metadata_url: None,
            wants_proof: false,
            had_token: false,
            deadline: None,
            awaits_user: false,
            step: SignInStep::Start,
            id: StepId(0),
            has_lock: false,
            has_browser: false,
            cannot_refresh: false,
            client: None,
        }
    }
}

impl SignIn {
    pub(super) fn start(&mut self, at: &Moment, flow: Flow) {
        self.flow = Some(flow);
        if self.is_loaded {
            self.attempt(|sign_in| sign_in.begin(at));
        } else {
            let key = self.server_key();
            self.go(at, SignInStep::LoadServer, Task::Load(key));
        }
    }

    pub(super) fn done(&mut self, at: &Moment, id: StepId, answer: Answer) {
        let Some(flow) = self.flow.as_mut().filter(|flow| flow.id == id) else { return };
        let step = std::mem::replace(&mut flow.step, SignInStep::Start);
        (flow.deadline, flow.awaits_user) = (None, false);
        // The answer is used up.
        flow.id = StepId(0);
        self.attempt(|sign_in| sign_in.advance(at, step, answer));
    }

    pub(super) fn tick(&mut self, at: &Moment) {
        let Some(flow) = &self.flow else { return };
        if flow.deadline.is_none_or(|deadline| deadline > at.now) {
            return;
        }
        let error = match &flow.step {
            SignInStep::GiveUp(error) => error.duplicate(),
            SignInStep::Authorize(_) => {
                let seconds = self.settings.user_timeout.as_secs();
                failure(format!("nobody signed in within {seconds} s"))
                    .with_hint("try again, and sign in with the browser that opens")
            }
            _ => failure("signing in took too long: a step had no answer within its time limit")
                .with_hint("check the authorization server and the token store, then try again"),
        };
        self.is_unsaved |= matches!(flow.step, SignInStep::Save { .. });
        if matches!(flow.step, SignInStep::Authorize(_)) && self.has_old_client() {
            return self.forget_client(at, error);
        }
        self.finish(&Err(error));
    }

    /// Ends a sign-in in which the user got no further than the authorization server: it may have forgotten the client, of which it
    /// tells the user only. The next sign-in registers again.
    fn forget_client(&mut self, at: &Moment, error: Error) {
        if let Some(flow) = &mut self.flow {
            flow.awaits_user = false;
        }
        self.credentials.client = None;
        let bytes = records::write(&self.credentials);
        match self.credentials_key() {
            Ok(key) => self.go(at, SignInStep::GiveUp(error), Task::Save(key, bytes)),
            Err(_) => self.finish(&Err(error)),
        }
    }

    fn attempt(&mut self, step: impl FnOnce(&mut Self) -> Result<(), Error>) {
        if let Err(error) = step(self) {
            let error = self.without_metadata(error);
            self.finish(&Err(error));
        }
    }

    pub(super) fn go(&mut self, at: &Moment, step: SignInStep, task: Task) {
        self.go_within(at, step, task, STEP_TIME);
    }

    pub(super) fn go_within(&mut self, at: &Moment, step: SignInStep, task: Task, limit: Duration) {
        let task = match task {
            // The server has named most URLs, or another server that it named.
            Task::Fetch(request) => Task::Fetch(FetchRequest { reach: self.reach(), ..request }),
            other => other,
        };
        let Some(flow) = &mut self.flow else { return };
        self.steps += 1;
        flow.id = StepId(self.steps);
        flow.step = step;
        flow.deadline = Some(at.now + limit);
        self.outputs.push_back(Output::Do(flow.id, task));
    }

    fn reach(&self) -> Reach {
        let named =
            [Some(&*self.target), self.settings.grant.issuer(), self.settings.grant.provider()];
        Reach::LocalIf(named.into_iter().flatten().map(ToOwned::to_owned).collect())
    }

    pub(super) fn flow(&mut self) -> Result<&mut Flow, Error> {
        self.flow.as_mut().ok_or_else(|| failure("no sign-in is in progress"))
    }

    pub(super) fn server(&self) -> Result<&ServerRecord, Error> {
        self.server.as_ref().ok_or_else(|| failure("the authorization server is unknown"))
    }

    /// Adds the locations that have no metadata to the error of an authorization server whose endpoints are defaults.
    fn without_metadata(&self, mut error: Error) -> Error {
        let Some(server) = self.server.as_ref().filter(|server| !server.problems.is_empty()) else {
            return error;
        };
        error.message = format!(
            "the server requires authorization, but no metadata were found ({}), and {}, where older servers sign in, can't be used: {}",
            server.problems.join("; "),
            server.metadata.issuer,
            error.message
        );
        error.with_hint(
            "check the path of the server's URL; its operator must serve the metadata of RFC 9728 at the first of these URLs",
        )
    }

    /// Ends the flow and lets all requests that wait go on or fail.
    pub(super) fn finish(&mut self, outcome: &Result<(), Error>) {
        let Some(flow) = self.flow.take() else { return };
        // The next attempt need not register again.
        if self.credentials.tokens.is_none() && flow.client.is_some() {
            self.credentials.client = flow.client;
        }
        if flow.has_lock {
            self.outputs.push_back(Output::Unlock);
        }
        if flow.has_browser {
            let shown = outcome.as_ref().copied().map_err(ToString::to_string);
            self.outputs.push_back(Output::Outcome(shown));
        }
        for ticket in std::mem::take(&mut self.waiting) {
            let outcome = outcome.as_ref().copied().map_err(Error::duplicate);
            self.outputs.push_back(Output::Ready(ticket, outcome));
        }
    }

    /// Continues once the store was read.
    fn begin(&mut self, at: &Moment) -> Result<(), Error> {
        let is_outdated = self.is_outdated(at.unix);
        let has_tokens = self.credentials.tokens.is_some();
        let flow = self.flow()?;
        match flow.cause {
            Cause::Load | Cause::Renew if is_outdated => self.obtain(at),
            Cause::Load | Cause::Renew => {
                self.finish(&Ok(()));
                Ok(())
            }
            // The store had tokens that the request did not have.
            Cause::Rejected if !flow.had_token && has_tokens => {
                self.finish(&Ok(()));
                Ok(())
            }
            Cause::Rejected | Cause::StepUp => {
                let advertised = flow.metadata_url.clone();
                let issuer = self.settings.grant.issuer();
                let (search, request) =
                    Discovery::of_resource(&self.target, advertised.as_deref(), issuer)?;
                self.go(at, SignInStep::Discover(search), Task::Fetch(request));
                Ok(())
            }
        }
    }

    fn advance(&mut self, at: &Moment, step: SignInStep, answer: Answer) -> Result<(), Error> {
        match (step, answer) {
            (SignInStep::LoadServer, Answer::Loaded(loaded)) => self.take_server(at, loaded),
            (SignInStep::LoadCredentials(server), Answer::Loaded(loaded)) => {
                self.take_credentials(*server, loaded)?;
                self.is_loaded = true;
                self.begin(at)
            }
            (SignInStep::Switch(server), Answer::Loaded(loaded)) => {
                self.take_credentials(*server, loaded)?;
                // Another process may have signed in there already.
                match self.credentials.tokens.is_some() {
                    true => self.save(at),
                    false => self.obtain(at),
                }
            }
            (SignInStep::Discover(search), Answer::Fetched(answer)) => {
                self.take_metadata(at, search, answer)
            }
            (SignInStep::Lock, Answer::Stored(locked)) => {
                locked.map_err(|error| self.store_failed(&error))?;
                self.flow()?.has_lock = true;
                let key = self.credentials_key()?;
                self.go(at, SignInStep::Reload, Task::Load(key));
                Ok(())
            }
            (SignInStep::Reload, Answer::Loaded(loaded)) => self.refresh(at, loaded),
            (SignInStep::Listen, Answer::Text(listening)) => {
                let redirect_uri = listening.map_err(|error| {
                    failure(format!("the redirect of the browser can't be received: {error}"))
                        .with_hint(format!(
                            "set {} to a free port, or handle the redirect with {}",
                            option_name("redirect_port"),
                            option_name("on_redirect")
                        ))
                })?;
                self.register(at, redirect_uri)
            }
            (SignInStep::Register { redirect_uri }, Answer::Fetched(answer)) => {
                let server = &self.server()?.metadata;
                let response = answer.map_err(|error| {
                    let issuer = &server.issuer;
                    failure(format!(
                        "the registration at the authorization server {issuer} failed: {error}"
                    ))
                })?;
                let client = registration::read(&response, server, &redirect_uri)?;
                let id = client.id.clone();
                self.flow()?.client = Some(client);
                self.authorize(at, id, redirect_uri)
            }
            (SignInStep::Authorize(authorization), Answer::Text(redirected)) => {
                self.redeem(at, *authorization, redirected)
            }
            (SignInStep::Identify, Answer::Text(identified)) => {
                let token = identified
                    .map_err(|error| failure(format!("the identity token is missing: {error}")))?;
                self.identified(at, token.into())
            }
            (SignInStep::FindProvider(search, identity), Answer::Fetched(answer)) => {
                self.take_provider(at, search, identity, answer)
            }
            (SignInStep::Token { request, purpose, has_nonce }, Answer::Fetched(answer)) => {
                let must_bind = self.settings.dpop && purpose != Purpose::Exchange;
                match request.read(answer, at.unix, must_bind) {
                    Ok(granted) => self.granted(at, purpose, granted),
                    Err(TokenRefusal::Nonce(nonce)) => {
                        self.send_with_nonce(at, *request, purpose, has_nonce, &nonce)
                    }
                    Err(refusal) => self.not_granted(at, purpose, refusal),
                }
            }
            (SignInStep::Save { credentials_left }, Answer::Stored(saved)) => {
                // The tokens are good for this process all the same.
                if let Err(problem) = saved {
                    let store = &self.settings.store;
                    tracing::warn!(problem, store, "the tokens could not be stored");
                    self.is_unsaved = true;
                } else if credentials_left {
                    let task =
                        Task::Save(self.credentials_key()?, records::write(&self.credentials));
                    self.go(at, SignInStep::Save { credentials_left: false }, task);
                    return Ok(());
                } else {
                    self.is_unsaved = false;
                }
                self.finish(&Ok(()));
                Ok(())
            }
            (SignInStep::GiveUp(error), _) => Err(error),
            (step, _) => {
                Err(failure(format!("the host gave another answer than {step:?} asks for")))
            }
        }
    }

    fn take_server(
        &mut self,
        at: &Moment,
        loaded: Result<Option<Vec<u8>>, String>,
    ) -> Result<(), Error> {
        let Some(bytes) = loaded.map_err(|error| self.store_failed(&error))? else {
            self.is_loaded = true;
            return self.begin(at);
        };
        let key = self.server_key();
        let server: ServerRecord = records::read(&self.settings, &key, &bytes)?;
        // The program may have named another authorization server since.
        if self
            .settings
            .grant
            .issuer()
            .is_some_and(|own| !is_same_issuer(own, &server.metadata.issuer))
        {
            self.is_loaded = true;
            return self.begin(at);
        }
        let key = self.key_of(&server);
        self.go(at, SignInStep::LoadCredentials(Box::new(server)), Task::Load(key));
        Ok(())
    }

    /// Uses the credentials of an authorization server, or none if the store has none.
    fn take_credentials(
        &mut self,
        server: ServerRecord,
        loaded: Result<Option<Vec<u8>>, String>,
    ) -> Result<(), Error> {
        let loaded = loaded.map_err(|error| self.store_failed(&error))?;
        let key = self.key_of(&server);
        let credentials: CredentialsRecord = match loaded {
            Some(bytes) => records::read(&self.settings, &key, &bytes)?,
            None => CredentialsRecord::default(),
        };
        // The tokens show that this authorization server got the program's credentials.
        if credentials.tokens.is_some() && self.settings.grant.has_credentials() {
            self.pinned_issuer = Some(server.metadata.issuer.clone());
        }
        self.server = Some(server);
        self.adopt(credentials)
    }

    /// Uses credentials of the store.
    pub(super) fn adopt(&mut self, mut credentials: CredentialsRecord) -> Result<(), Error> {
        // They may be from a time when the program accepted tokens that are not bound.
        credentials.tokens =
            credentials.tokens.filter(|tokens| tokens.is_dpop || !self.settings.dpop);
        self.prover = match &credentials.dpop_key {
            Some(key) => {
                let pkcs8 = STANDARD.decode(key.expose()).unwrap_or_default();
                Some(Prover::new(&pkcs8).map_err(|_| {
                    let store = &self.settings.store;
                    failure(format!("the token store ({store}): the DPoP key is not valid"))
                        .with_hint("delete the record, then sign in again")
                })?)
            }
            None => None,
        };
        self.credentials = credentials;
        self.is_unsaved = false;
        self.generation += 1;
        Ok(())
    }

    fn take_metadata(
        &mut self,
        at: &Moment,
        mut search: Discovery,
        answer: Result<FetchResponse, FetchError>,
    ) -> Result<(), Error> {
        let found = match search.take(answer)? {
            Next::Fetch(request) => {
                self.go(at, SignInStep::Discover(search), Task::Fetch(*request));
                return Ok(());
            }
            Next::Found(found) => found,
        };
        self.check_pinned(&found.metadata.issuer)?;
        let key = self.key_of(&found);
        if self.server.as_ref().is_some_and(|server| self.key_of(server) == key) {
            self.server = Some(*found);
            return self.obtain(at);
        }
        // Credentials of one authorization server must not reach another.
        self.go(at, SignInStep::Switch(found), Task::Load(key));
        Ok(())
    }

    /// Errors if the credentials that the program gave were sent to another authorization server before.
    fn check_pinned(&self, issuer: &str) -> Result<(), Error> {
        match &self.pinned_issuer {
            Some(pinned) if !is_same_issuer(pinned, issuer) => Err(failure(format!(
                "the server's authorization server changed from {pinned} to {issuer}; nothing was sent there"
            ))
            .with_hint(registration::TRUST)),
            _ => Ok(()),
        }
    }

    /// Gets tokens from the authorization server.
    pub(super) fn obtain(&mut self, at: &Moment) -> Result<(), Error> {
        registration::check_issuer(self.settings.grant.issuer(), &self.server()?.metadata.issuer)?;
        let wants_proof = self.flow()?.wants_proof || self.server()?.wants_dpop;
        if (self.settings.dpop || wants_proof) && self.prover.is_none() {
            let pkcs8 = generate_key()?;
            self.prover = Some(Prover::new(&pkcs8)?);
            self.credentials.dpop_key = Some(STANDARD.encode(pkcs8).into());
        }
        match self.settings.grant.clone() {
            Grant::AuthorizationCode { client, port, .. } => {
                let tokens = self.credentials.tokens.as_ref();
                let has_refresh = tokens.is_some_and(|tokens| tokens.refresh.is_some());
                let flow = self.flow()?;
                if has_refresh && flow.cause != Cause::StepUp && !flow.cannot_refresh {
                    let key = self.credentials_key()?;
                    self.go(at, SignInStep::Lock, Task::Lock(key));
                    return Ok(());
                }
                Authorization::check(&self.server()?.metadata)?;
                // Checked before the user is bothered.
                self.registration()?;
                let registered = self.credentials.client.as_ref().filter(|_| client.is_none());
                let preferred = registered.and_then(ClientRecord::redirect_port);
                self.go(at, SignInStep::Listen, Task::Listen(port, preferred));
                Ok(())
            }
            Grant::ClientCredentials(client) => {
                let server = &self.server()?.metadata;
                let issuer = server.issuer.clone();
                let identity = Identity::given(&client, server);
                let request = self.token_request(identity, "client_credentials")?.with_scope();
                self.pinned_issuer = Some(issuer);
                self.send(at, request, Purpose::Grant)
            }
            Grant::EnterpriseManaged { .. } => {
                let server = &self.server()?.metadata;
                if let Some(profiles) = &server.authorization_grant_profiles_supported
                    && !profiles.iter().any(|profile| profile.contains("id-jag"))
                {
                    return Err(failure(format!(
                        "the authorization server {} does not support enterprise-managed authorization",
                        server.issuer
                    )));
                }
                self.go(at, SignInStep::Identify, Task::Identify);
                Ok(())
            }
            Grant::WorkloadIdentity { .. } => {
                self.go(at, SignInStep::Identify, Task::Identify);
                Ok(())
            }
        }
    }

    /// Stores the authorization server and the credentials, which ends the flow.
    pub(super) fn save(&mut self, at: &Moment) -> Result<(), Error> {
        let server = records::write(self.server()?);
        let task = Task::Save(self.server_key(), server);
        self.go(at, SignInStep::Save { credentials_left: true }, task);
        Ok(())
    }

    pub(super) fn credentials_key(&self) -> Result<String, Error> {
        Ok(self.key_of(self.server()?))
    }

    fn server_key(&self) -> String {
        records::server_key(&self.target, self.settings.grant.given_id())
    }

    fn key_of(&self, server: &ServerRecord) -> String {
        records::credentials_key(server, self.settings.grant.client_id(&server.metadata))
    }

    pub(super) fn store_failed(&self, problem: &str) -> Error {
        failure(format!("the token store ({}): {problem}", self.settings.store))
    }
}
