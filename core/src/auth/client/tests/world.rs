//! A host with an authorization server of a few lines, a store and a browser.

use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

use http::{HeaderMap, HeaderValue, StatusCode};
use serde_json::{Value, json};

use super::super::*;
use crate::auth::{
    challenge,
    fetch::{FetchRequest, FetchResponse},
};

pub(super) const MCP: &str = "https://mcp.example.com/mcp";
pub(super) const RESOURCE: &str =
    "https://mcp.example.com/.well-known/oauth-protected-resource/mcp";
pub(super) const METADATA: &str = "https://as.example.com/.well-known/oauth-authorization-server";
pub(super) const TOKEN: &str = "https://as.example.com/token";
pub(super) const REGISTER: &str = "https://as.example.com/register";

pub(super) type Store = BTreeMap<String, Vec<u8>>;

/// A host with an authorization server, a store and a browser.
pub(super) struct World {
    pub(super) machine: SignIn,
    pub(super) store: Store,
    pub(super) documents: BTreeMap<String, Value>,
    /// The responses of the token endpoint, in order; the last one is repeated.
    pub(super) tokens: Vec<(u16, Value)>,
    /// The value of `DPoP-Nonce` in them.
    pub(super) nonce: Option<&'static str>,
    /// Changes the URL to which the browser is redirected.
    pub(super) redirect: fn(String) -> String,
    /// The port at which the redirect is received.
    pub(super) port: u16,
    /// The requests, as method and URL, with the form's fields.
    pub(super) asked: Vec<(String, String)>,
    pub(super) opened: Vec<String>,
    pub(super) outcomes: Vec<Result<(), String>>,
    /// True if nobody signs in with the browser.
    pub(super) is_user_away: bool,
    /// True if the store can't be written.
    pub(super) is_full: bool,
    pub(super) locks: i32,
    pub(super) start: Instant,
    pub(super) unix: u64,
    pub(super) steps: u64,
}

pub(super) fn settings(grant: Grant) -> SignInSettings {
    SignInSettings {
        grant,
        scopes: Vec::new(),
        dpop: false,
        client_name: "shelf".into(),
        store: "memory".into(),
        user_timeout: Duration::from_secs(300),
    }
}

pub(super) fn interactive() -> SignInSettings {
    settings(Grant::AuthorizationCode { client: None, metadata_url: None, port: 0 })
}

pub(super) fn granted(token: &str) -> (u16, Value) {
    (
        200,
        json!({ "access_token": token, "token_type": "Bearer", "expires_in": 3600, "refresh_token": "r1" }),
    )
}

impl World {
    pub(super) fn new(settings: SignInSettings) -> Self {
        let metadata = json!({
            "issuer": "https://as.example.com",
            "authorization_endpoint": "https://as.example.com/authorize",
            "token_endpoint": TOKEN,
            "registration_endpoint": REGISTER,
            "code_challenge_methods_supported": ["S256"],
        });
        let resource =
            json!({ "resource": MCP, "authorization_servers": ["https://as.example.com"] });
        let documents = [
            (RESOURCE, resource),
            (METADATA, metadata),
            (REGISTER, json!({ "client_id": "registered" })),
        ];
        Self {
            machine: SignIn::new(MCP, settings),
            store: Store::new(),
            documents: documents.map(|(url, document)| (url.to_owned(), document)).into(),
            tokens: vec![granted("t1"), granted("t2"), granted("t3"), granted("t4")],
            nonce: None,
            redirect: |url| url,
            port: 7,
            asked: Vec::new(),
            opened: Vec::new(),
            outcomes: Vec::new(),
            is_user_away: false,
            is_full: false,
            locks: 0,
            start: Instant::now(),
            unix: 1_000,
            steps: 0,
        }
    }

    pub(super) fn moment(&mut self) -> Moment {
        self.steps += 1;
        let mut random = [7; 32];
        random[..8].copy_from_slice(&self.steps.to_le_bytes());
        let now = self.start + Duration::from_secs(self.unix - 1_000);
        Moment { now, unix: self.unix, random }
    }

    /// Carries out the steps of the machine. Returns the requests that may go on or fail.
    pub(super) fn run(&mut self) -> Vec<(Ticket, Result<(), String>)> {
        let mut ready = Vec::new();
        while let Some(output) = self.machine.poll() {
            match output {
                Output::Do(_, Task::Open { .. }) if self.is_user_away => {
                    self.unix += 301;
                    let moment = self.moment();
                    self.machine.handle(&moment, Input::Tick);
                }
                Output::Do(id, task) => {
                    let answer = self.carry_out(task);
                    let moment = self.moment();
                    self.machine.handle(&moment, Input::Done(id, answer));
                }
                Output::Ready(ticket, outcome) => {
                    ready.push((ticket, outcome.map_err(|error| error.to_string())));
                }
                Output::Unlock => self.locks -= 1,
                Output::Outcome(outcome) => self.outcomes.push(outcome),
            }
        }
        assert_eq!(self.locks, 0, "the lock is released");
        ready
    }

    pub(super) fn carry_out(&mut self, task: Task) -> Answer {
        match task {
            Task::Fetch(request) => Answer::Fetched(Ok(self.fetch(&request))),
            Task::Load(key) => Answer::Loaded(Ok(self.store.get(&key).cloned())),
            Task::Save(..) if self.is_full => Answer::Stored(Err("it is full".into())),
            Task::Save(key, bytes) => {
                self.store.insert(key, bytes);
                Answer::Stored(Ok(()))
            }
            Task::Lock(_) => {
                self.locks += 1;
                Answer::Stored(Ok(()))
            }
            Task::Listen(..) => {
                Answer::Text(Ok(format!("http://127.0.0.1:{}/callback", self.port)))
            }
            Task::Open { url, state } => {
                self.opened.push(url);
                let (port, state) = (self.port, state.expose());
                let back = format!("http://127.0.0.1:{port}/callback?code=c0de&state={state}");
                Answer::Text(Ok((self.redirect)(back)))
            }
            Task::Identify => Answer::Text(Ok("ident1ty".into())),
        }
    }

    pub(super) fn fetch(&mut self, request: &FetchRequest) -> FetchResponse {
        let body = String::from_utf8(request.body.clone()).unwrap();
        self.asked.push((request.url.clone(), body));
        let found = self.documents.get(&request.url).cloned();
        let (status, body) = match (&*request.url, found) {
            (TOKEN, _) if self.tokens.len() > 1 => self.tokens.remove(0),
            (TOKEN, _) => self.tokens[0].clone(),
            (_, Some(document)) => (200, document),
            _ => (404, json!({})),
        };
        let mut headers = HeaderMap::new();
        if let Some(nonce) = self.nonce {
            headers.insert("dpop-nonce", HeaderValue::from_static(nonce));
        }
        let (url, status) = (request.url.clone(), StatusCode::from_u16(status).unwrap());
        FetchResponse { url, status, headers, body: body.to_string().into() }
    }

    pub(super) fn want(&mut self, ticket: u64) -> bool {
        let moment = self.moment();
        self.machine.want(&moment, Ticket(ticket))
    }

    pub(super) fn headers(&mut self) -> Option<Credentials> {
        let moment = self.moment();
        self.machine.credentials(&moment, "POST", MCP).unwrap()
    }

    pub(super) fn token(&mut self) -> Option<String> {
        self.headers().map(|headers| headers.authorization)
    }

    pub(super) fn reject(
        &mut self,
        ticket: u64,
        attempts: &mut Attempts,
        status: u16,
        header: &str,
    ) -> RejectionReply {
        let generation = self.headers().map(|headers| headers.generation);
        let challenges = challenge::parse([header]);
        let rejection =
            Rejection { status, challenges, nonce: self.nonce.map(Into::into), generation };
        let moment = self.moment();
        self.machine.reject(&moment, Ticket(ticket), attempts, &rejection)
    }

    /// Performs one request that the server rejects once. Returns its outcome.
    pub(super) fn sign_in(&mut self) -> Result<(), String> {
        if self.want(1) {
            self.run().remove(0).1?;
        }
        match self.reject(1, &mut Attempts::default(), 401, "Bearer") {
            RejectionReply::Wait => self.run().remove(0).1,
            other => panic!("{other:?}"),
        }
    }

    pub(super) fn urls(&self) -> Vec<&str> {
        self.asked.iter().map(|(url, _)| &**url).collect()
    }

    /// Returns the fields of the last token request.
    pub(super) fn form(&self) -> String {
        self.asked.iter().rfind(|(url, _)| url == TOKEN).unwrap().1.clone()
    }
}
