//! An authenticator with a clock, its methods, and what its decisions have to be.

use std::{
    net::IpAddr,
    sync::Arc,
    time::{Duration, Instant},
};

use gudgeon::{
    auth::{
        fetch::FetchResponse,
        scopes::ScopeHierarchy,
        server::{
            api_keys::ApiKeys,
            authenticator::{
                AuthInput, AuthOutput, AuthRefusal, AuthTicket, Authenticator, Checked, Dpop,
                FetchId, Jwt, Method, Request,
            },
            introspection::Introspection,
            jwk::{Algorithm, Jwks},
            keys::Keys,
            resource::ResourceUrls,
        },
    },
    protocol::Principal,
};
use http::{HeaderMap, HeaderValue, StatusCode};

use super::issuer::{ISSUER, RESOURCE, Signer, UNIX, key_set};

/// An authenticator with a clock.
pub(crate) struct Fixture {
    pub(crate) machine: Authenticator,
    pub(crate) now: Instant,
    pub(crate) unix: u64,
    /// `None`: the server does not know its own URL.
    pub(crate) resource: Option<&'static str>,
    pub(crate) remote: Option<IpAddr>,
}

pub(crate) fn jwt(keys: Keys) -> Jwt {
    Jwt {
        issuer: ISSUER.into(),
        audiences: None,
        keys,
        algorithms: Algorithm::all(),
        leeway: 60,
        scopes: Vec::new(),
        dpop: Dpop::Supported,
    }
}

pub(crate) fn fixed(signer: &Signer) -> Jwt {
    jwt(Keys::fixed(Jwks::read(&key_set(&[signer])).unwrap()))
}

pub(crate) fn introspection() -> Method {
    let introspection = Introspection {
        url: "https://as.example.com/introspect".into(),
        client_id: "server".into(),
        client_secret: "s3cret".into(),
        audiences: None,
        scopes: Vec::new(),
        cache: Duration::from_secs(60),
        leeway: 60,
    };
    Method::Introspection(Box::new(introspection), None)
}

pub(crate) fn api_keys(header: &str) -> Method {
    let keys = [("k3y".to_owned(), Principal::new("robot"))];
    Method::ApiKeys(ApiKeys::new(header, keys).unwrap())
}

impl From<Vec<Method>> for Fixture {
    fn from(methods: Vec<Method>) -> Self {
        let machine = Authenticator::new(methods, ScopeHierarchy::default());
        Self { machine, now: Instant::now(), unix: UNIX, resource: Some(RESOURCE), remote: None }
    }
}

impl From<Jwt> for Fixture {
    fn from(jwt: Jwt) -> Self {
        vec![Method::Jwt(Box::new(jwt))].into()
    }
}

impl Fixture {
    pub(crate) fn check(&mut self, headers: &[(&'static str, &str)]) -> Checked {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.append(*name, HeaderValue::try_from(*value).unwrap());
        }
        let place = self.resource.map(|resource| ResourceUrls {
            url: resource.to_owned(),
            metadata: String::new(),
            resource: resource.to_owned(),
        });
        let (method, place) = (&http::Method::POST, place.as_ref());
        let request = Request { method, headers: &map, place, remote: self.remote };
        self.machine.check(self.now, self.unix, request)
    }

    pub(crate) fn bearer(&mut self, token: &str) -> Checked {
        self.check(&[("authorization", &format!("Bearer {token}"))])
    }

    pub(crate) fn pending(&mut self, token: &str) -> AuthTicket {
        match self.bearer(token) {
            Checked::Pending(ticket) => ticket,
            other => panic!("{other:?}"),
        }
    }

    pub(crate) fn handle(&mut self, input: AuthInput) {
        self.machine.handle(self.now, self.unix, input);
    }

    pub(crate) fn fetch(&mut self) -> (FetchId, String) {
        match self.machine.poll() {
            Some(AuthOutput::Fetch(id, request)) => (id, request.url),
            other => panic!("{other:?}"),
        }
    }

    pub(crate) fn answer(&mut self, id: FetchId, status: u16, body: impl Into<Vec<u8>>) {
        let (url, headers) = (String::new(), HeaderMap::new());
        let (status, body) = (StatusCode::from_u16(status).unwrap(), body.into());
        self.handle(AuthInput::Fetched(id, Ok(FetchResponse { url, status, headers, body })));
    }

    pub(crate) fn decided(&mut self, ticket: AuthTicket) -> Result<Arc<Principal>, AuthRefusal> {
        match self.machine.poll() {
            Some(AuthOutput::Decided(other, decision)) if other == ticket => {
                decision.map(|caller| caller.principal)
            }
            other => panic!("{other:?}"),
        }
    }

    pub(crate) fn pass(&mut self, seconds: u64) {
        self.now += Duration::from_secs(seconds);
        self.unix += seconds;
    }
}

pub(crate) fn accepted(checked: Checked) -> Arc<Principal> {
    match checked {
        Checked::Accepted(caller) => caller.principal,
        other => panic!("{other:?}"),
    }
}

pub(crate) fn refused(checked: Checked) -> AuthRefusal {
    match checked {
        Checked::Refused(refusal) => refusal,
        other => panic!("{other:?}"),
    }
}

pub(crate) fn invalid(refusal: &AuthRefusal, reason: &str) {
    match refusal {
        AuthRefusal::InvalidToken(message) => {
            assert!(message.contains(reason), "{message}, not {reason}");
        }
        other => panic!("{other:?}, not {reason}"),
    }
}
