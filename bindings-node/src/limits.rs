//! The limits of ready-made middleware.

use gudgeon::router::limits::{Caller, CountedBy, RateLimit, Rejection, ResponseLimit};
use napi_derive::napi;

use crate::{error::misuse, reply, work_queue::integer};

/// The reason of a rejection; the code is absent for a tool.
#[napi(object)]
#[derive(Debug)]
pub struct Rejected {
    pub code: Option<i64>,
    pub message: String,
}

/// A limit for the rate of requests.
#[napi]
#[derive(Debug)]
pub struct NativeRateLimit(RateLimit);

#[napi]
impl NativeRateLimit {
    #[napi(constructor, catch_unwind)]
    pub fn new(per_second: f64, burst: f64, by: String) -> napi::Result<Self> {
        let limit = CountedBy::parse(&by).and_then(|by| RateLimit::new(per_second, burst, by));
        limit.map(Self).map_err(misuse)
    }

    /// Returns true if requests of this method are counted.
    #[napi(catch_unwind)]
    pub fn counts(method: String) -> bool {
        RateLimit::counts(&method)
    }

    /// Counts a request of a client at the address `remote`, `now` in seconds. Returns the reason if it is rejected; null otherwise.
    #[napi(catch_unwind)]
    pub fn admit(
        &mut self,
        now: f64,
        method: String,
        principal: Option<String>,
        client: String,
        remote: Option<String>,
    ) -> Option<Rejected> {
        let remote = remote.and_then(|address| address.parse().ok());
        let caller = Caller { principal: principal.as_deref(), remote, client: &client };
        self.0.admit(now, &method, caller).err().map(Rejected::from)
    }
}

/// A limit for the size of results.
#[napi]
#[derive(Debug)]
pub struct NativeResponseLimit(ResponseLimit);

#[napi]
impl NativeResponseLimit {
    #[napi(constructor, catch_unwind)]
    pub fn new(max_bytes: f64) -> napi::Result<Self> {
        let max_bytes = usize::try_from(integer(max_bytes)).unwrap_or(usize::MAX);
        ResponseLimit::new(max_bytes).map(Self).map_err(misuse)
    }

    /// Returns the reason if the result of a handler's reply is too large; null otherwise. `kind` is that of a reply line.
    #[napi(catch_unwind)]
    pub fn check(
        &self,
        method: String,
        subject: Option<String>,
        kind: u32,
        payload: String,
    ) -> Option<Rejected> {
        let reply = reply::outcome(&kind.to_string(), &payload, &mut []).ok()?;
        self.0.check_reply(&method, subject.as_deref(), reply).err().map(Rejected::from)
    }
}

impl From<Rejection> for Rejected {
    fn from(Rejection { code, message }: Rejection) -> Self {
        Self { code, message }
    }
}
