//! The machine that holds the tokens for one server, and gets new ones when the server rejects them.
//!
//! Requests that need a token at the same time share one flow. Its steps are in [`super::flow`].

use std::{
    collections::VecDeque,
    time::{Duration, Instant},
};

use super::{
    Moment,
    dpop::{self, Prover},
    failure,
    flow::{Cause, Flow},
    records::{CredentialsRecord, ServerRecord},
    settings::{Grant, SignInSettings},
    shown,
    token::USE_DPOP_NONCE,
};
use crate::{
    auth::{
        challenge::{self, Challenge},
        fetch::{FetchError, FetchRequest, FetchResponse},
        scopes::{self, Scopes},
        url::WebUrl,
    },
    error::Error,
};

/// The maximum number of flows on behalf of one request of the program.
const MAX_FLOWS: u8 = 3;
/// The maximum number of repetitions of a request because its token or its nonce was outdated.
const MAX_REPEATS: u8 = 3;

/// Obtains, keeps and renews the tokens for one server.
#[derive(Debug)]
pub struct SignIn {
    /// The URL of the server.
    pub(super) target: String,
    pub(super) settings: SignInSettings,
    /// True once the store was read.
    pub(super) is_loaded: bool,
    pub(super) server: Option<ServerRecord>,
    pub(super) credentials: CredentialsRecord,
    pub(super) prover: Option<Prover>,
    /// The issuer to which the credentials that the program gave were sent.
    pub(super) pinned_issuer: Option<String>,
    /// True if the store does not have the current tokens.
    pub(super) is_unsaved: bool,
    /// The number of the current tokens.
    pub(super) generation: u64,
    pub(super) flow: Option<Flow>,
    pub(super) waiting: Vec<Ticket>,
    pub(super) steps: u64,
    pub(super) outputs: VecDeque<Output>,
}

/// A request of the program that waits.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Ticket(pub u64);

/// A step that the host carries out.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct StepId(pub(super) u64);

#[derive(Debug)]
pub enum Input {
    /// The host has carried out a step. Answers to other steps than the current one are ignored.
    Done(StepId, Answer),
    /// A deadline may have passed.
    Tick,
}

/// The outcome of a step. `Debug` leaves the values out.
pub enum Answer {
    Fetched(Result<FetchResponse, FetchError>),
    Loaded(Result<Option<Vec<u8>>, String>),
    /// The outcome of [`Task::Save`] and [`Task::Lock`].
    Stored(Result<(), String>),
    /// A URL of [`Task::Listen`] or [`Task::Open`], or a token of [`Task::Identify`]. An error is the reason why the host has none.
    Text(Result<String, String>),
}

#[derive(Debug)]
pub enum Output {
    /// Carry out this step and report its outcome.
    Do(StepId, Task),
    /// Let this request go on, or fail it.
    Ready(Ticket, Result<(), Error>),
    /// Release the lock of the store.
    Unlock,
    /// Tell the user in the browser how the sign-in ended.
    Outcome(Result<(), String>),
}

/// A step of a flow. `Debug` leaves the values out.
pub enum Task {
    Fetch(FetchRequest),
    /// Read a record of the store.
    Load(String),
    Save(String, Vec<u8>),
    /// Take the lock that processes with the same store share.
    Lock(String),
    /// Prepare to receive the redirect, at the given port if it is not zero, and report the redirect URL. The second port is
    /// preferred to any other.
    Listen(u16, Option<u16>),
    /// Open a URL in the browser, and report the URL to which it was redirected with this `state`.
    Open {
        url: String,
        state: crate::auth::Secret,
    },
    /// Report the token that the host knows: of the user's identity, or of the platform.
    Identify,
}

/// The headers of a request. `Debug` leaves the values out.
pub struct Credentials {
    /// The value of `Authorization`.
    pub authorization: String,
    /// The value of `DPoP`.
    pub proof: Option<String>,
    /// The number of the tokens.
    pub generation: u64,
}

/// A response with status 401 or 403.
#[derive(Debug)]
pub struct Rejection {
    pub status: u16,
    pub challenges: Vec<Challenge>,
    /// The value of `DPoP-Nonce`.
    pub nonce: Option<String>,
    /// The tokens with which the request was sent.
    pub generation: Option<u64>,
}

/// The number of attempts for one request.
#[derive(Debug, Default)]
pub struct Attempts {
    flows: u8,
    repeats: u8,
}

/// The reaction to a rejection.
#[derive(Debug)]
pub enum RejectionReply {
    /// Send the request again.
    Repeat,
    /// Wait for [`Output::Ready`].
    Wait,
    /// Signing in can't help: the response stands.
    Stands,
    Fail(Error),
}

impl Attempts {
    /// Counts a repetition. Returns whether it is still allowed.
    pub(crate) fn may_repeat(&mut self) -> bool {
        self.repeats = self.repeats.saturating_add(1);
        self.repeats <= MAX_REPEATS
    }
}

impl SignIn {
    /// Creates a machine for the server at a URL.
    pub fn new(target: &str, settings: SignInSettings) -> Self {
        let target = target.split('#').next().unwrap_or_default().to_owned();
        Self {
            target,
            settings,
            is_loaded: false,
            server: None,
            credentials: CredentialsRecord::default(),
            prover: None,
            pinned_issuer: None,
            is_unsaved: false,
            generation: 0,
            flow: None,
            waiting: Vec::new(),
            steps: 0,
            outputs: VecDeque::new(),
        }
    }

    /// Asks for credentials for a request that was not sent yet. Returns whether to wait for [`Output::Ready`] first.
    pub fn want(&mut self, at: &Moment, ticket: Ticket) -> bool {
        let cause = match &self.flow {
            // The current tokens are still good for other requests.
            Some(flow) if flow.cause == Cause::StepUp => return false,
            Some(_) => None,
            None if !self.is_loaded => Some(Cause::Load),
            None if self.is_outdated(at.unix) => Some(Cause::Renew),
            None => return false,
        };
        self.waiting.push(ticket);
        if let Some(cause) = cause {
            self.start(at, Flow::new(cause));
        }
        true
    }

    /// Returns the credentials for a request; `None` before the first sign-in, and for every other origin than the server's.
    pub fn credentials(
        &self,
        at: &Moment,
        method: &str,
        url: &str,
    ) -> Result<Option<Credentials>, Error> {
        let Some(tokens) = &self.credentials.tokens else { return Ok(None) };
        match (WebUrl::parse(url), WebUrl::parse(&self.target)) {
            (Ok(url), Ok(target)) if url.has_origin_of(&target) => {}
            _ => return Ok(None),
        }
        let token = tokens.access.expose();
        let proof = match &self.prover {
            Some(prover) if tokens.is_dpop => Some(prover.proof(at, method, url, Some(token))?),
            _ => None,
        };
        let scheme = if tokens.is_dpop { "DPoP" } else { "Bearer" };
        let authorization = format!("{scheme} {token}");
        Ok(Some(Credentials { authorization, proof, generation: self.generation }))
    }

    /// Keeps the `DPoP-Nonce` header of a response of the server.
    pub fn take_nonce(&mut self, nonce: &str) {
        if let Some(prover) = &mut self.prover {
            prover.take_nonce(&self.target, nonce);
        }
    }

    /// Takes a response that rejects a request.
    pub fn reject(
        &mut self,
        at: &Moment,
        ticket: Ticket,
        attempts: &mut Attempts,
        rejection: &Rejection,
    ) -> RejectionReply {
        let challenge = challenge::for_oauth(&rejection.challenges, self.prover.is_some());
        let get = |name: &str| challenge.and_then(|challenge| challenge.get(name));
        let is_step_up = match (rejection.status, get("error")) {
            (_, Some(USE_DPOP_NONCE)) => return self.repeat_with_nonce(attempts, rejection),
            (401, _) => false,
            (403, Some("insufficient_scope")) => true,
            _ => return RejectionReply::Stands,
        };
        let current = self.credentials.tokens.as_ref().map(|_| self.generation);
        if rejection.generation != current && self.flow.is_none() {
            return match attempts.may_repeat() {
                true => RejectionReply::Repeat,
                false => RejectionReply::Fail(Self::endless(rejection)),
            };
        }
        let scope: Option<Scopes> =
            get("scope").map(scopes::parse).filter(|scopes| !scopes.is_empty());
        if is_step_up && let Some(error) = self.useless_step_up(scope.as_ref()) {
            return RejectionReply::Fail(error);
        }
        if attempts.flows >= MAX_FLOWS {
            return RejectionReply::Fail(Self::endless(rejection));
        }
        attempts.flows += 1;
        self.waiting.push(ticket);
        if self.flow.is_none() {
            let cause =
                if is_step_up && current.is_some() { Cause::StepUp } else { Cause::Rejected };
            let wants_proof = rejection.challenges.iter().any(|challenge| challenge.is("DPoP"))
                && !rejection.challenges.iter().any(|challenge| challenge.is("Bearer"));
            let mut flow = Flow::new(cause);
            flow.scope = scope;
            flow.metadata_url = get("resource_metadata").map(ToOwned::to_owned);
            flow.wants_proof = wants_proof;
            flow.had_token = rejection.generation.is_some();
            self.start(at, flow);
        }
        RejectionReply::Wait
    }

    /// Forgets a request that no longer waits.
    pub fn forget(&mut self, ticket: Ticket) {
        self.waiting.retain(|waiting| *waiting != ticket);
    }

    pub fn handle(&mut self, at: &Moment, input: Input) {
        match input {
            Input::Done(id, answer) => self.done(at, id, answer),
            Input::Tick => self.tick(at),
        }
    }

    /// Returns the next output, until `None`.
    pub fn poll(&mut self) -> Option<Output> {
        self.outputs.pop_front()
    }

    /// Returns the time at which [`Input::Tick`] is due.
    pub fn deadline(&self) -> Option<Instant> {
        self.flow.as_ref()?.deadline
    }

    /// Returns whether the user is asked to sign in at this moment, which takes as long as the user does.
    pub fn awaits_user(&self) -> bool {
        self.flow.as_ref().is_some_and(|flow| flow.awaits_user)
    }

    fn repeat_with_nonce(
        &mut self,
        attempts: &mut Attempts,
        rejection: &Rejection,
    ) -> RejectionReply {
        let Some(prover) = &mut self.prover else { return RejectionReply::Stands };
        if let Some(nonce) = &rejection.nonce {
            prover.take_nonce(&self.target, nonce);
        }
        match attempts.may_repeat() && rejection.nonce.is_some() {
            true => RejectionReply::Repeat,
            false => RejectionReply::Fail(dpop::endless("the server")),
        }
    }

    /// Returns an error if the tokens were requested with all scopes of the challenge: other tokens would not have more.
    fn useless_step_up(&self, challenged: Option<&Scopes>) -> Option<Error> {
        let tokens = self.credentials.tokens.as_ref()?;
        let had = scopes::union(&tokens.requested, &tokens.granted);
        let missing = challenged.map_or_else(Scopes::new, |scopes| scopes - &had);
        if !missing.is_empty() {
            return None;
        }
        let scopes = shown(&challenged.map(scopes::join).unwrap_or_default());
        Some(failure(match scopes.is_empty() {
            true => "the token does not suffice, and the server does not say which scopes it needs"
                .to_owned(),
            false => format!(
                "the server requires the scopes {scopes:?}, which were requested already, and still denies access"
            ),
        }))
    }

    fn endless(rejection: &Rejection) -> Error {
        let status = rejection.status;
        failure(format!("the server answers HTTP {status} to every new token")).with_hint(
            match rejection.status {
                401 => "the token may be for another resource: check the server's configuration",
                _ => "the account may lack the permission",
            },
        )
    }

    /// Returns whether the tokens are to be renewed before they are used.
    pub(super) fn is_outdated(&self, unix: u64) -> bool {
        let Some(tokens) = &self.credentials.tokens else { return false };
        let can_renew = match self.settings.grant {
            Grant::AuthorizationCode { .. } => tokens.refresh.is_some(),
            // A workload's token is exchanged at the end only, because a failed exchange is not repeated.
            Grant::WorkloadIdentity { .. } => tokens.expires_at.is_some_and(|end| end <= unix),
            _ => true,
        };
        can_renew && tokens.renew_at.is_some_and(|time| time <= unix)
    }
}

impl std::fmt::Debug for Answer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Fetched(_) => "Fetched(…)",
            Self::Loaded(_) => "Loaded(…)",
            Self::Stored(_) => "Stored(…)",
            Self::Text(_) => "Text(…)",
        })
    }
}

impl std::fmt::Debug for Task {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Fetch(_) => "Fetch(…)",
            Self::Load(_) => "Load(…)",
            Self::Save(..) => "Save(…)",
            Self::Lock(_) => "Lock(…)",
            Self::Listen(..) => "Listen(…)",
            Self::Open { .. } => "Open(…)",
            Self::Identify => "Identify",
        })
    }
}

impl std::fmt::Debug for Credentials {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Credentials").field("generation", &self.generation).finish_non_exhaustive()
    }
}

/// The time limit of a step that does not wait for the user.
pub(super) const STEP_TIME: Duration = Duration::from_secs(60);
