//! The limits of ready-made middleware.

use std::sync::Mutex;

use gudgeon::router::limits::{self, Caller, CountedBy, Rejection};
use pyo3::prelude::*;

use crate::{convert, error::raise, stream::lock};

/// The code, `None` for a tool, and the message.
type Rejected = Option<(Option<i64>, String)>;

/// A limit for the rate of requests.
#[pyclass(frozen)]
#[derive(Debug)]
pub(crate) struct RateLimit(Mutex<limits::RateLimit>);

#[pymethods]
impl RateLimit {
    #[new]
    fn new(per_second: f64, burst: f64, by: &str) -> PyResult<Self> {
        let limit =
            CountedBy::parse(by).and_then(|by| limits::RateLimit::new(per_second, burst, by));
        limit.map(|limit| Self(Mutex::new(limit))).map_err(|error| raise(&error))
    }

    /// Returns `True` if requests of this method are counted.
    #[staticmethod]
    fn counts(method: &str) -> bool {
        limits::RateLimit::counts(method)
    }

    /// Counts a request of a client at the address `remote`, `now` in seconds. Returns the code and the message of its rejection, or None.
    #[pyo3(signature = (now, method, principal, client, remote))]
    fn admit(
        &self,
        now: f64,
        method: &str,
        principal: Option<&str>,
        client: &str,
        remote: Option<&str>,
    ) -> Rejected {
        let remote = remote.and_then(|address| address.parse().ok());
        rejected(lock(&self.0).admit(now, method, Caller { principal, remote, client }))
    }
}

/// A limit for the size of results.
#[pyclass(frozen)]
#[derive(Debug)]
pub(crate) struct ResponseLimit(limits::ResponseLimit);

#[pymethods]
impl ResponseLimit {
    #[new]
    fn new(max_bytes: i64) -> PyResult<Self> {
        let max_bytes = usize::try_from(max_bytes).unwrap_or_default();
        limits::ResponseLimit::new(max_bytes).map(Self).map_err(|error| raise(&error))
    }

    /// Returns the code and the message of the rejection of a handler's reply whose result is too large, or None.
    #[pyo3(signature = (method, subject, reply))]
    fn check(
        &self,
        method: &str,
        subject: Option<&str>,
        reply: &Bound<'_, PyAny>,
    ) -> PyResult<Rejected> {
        Ok(rejected(self.0.check_reply(method, subject, convert::reply(reply)?)))
    }
}

fn rejected(outcome: Result<(), Rejection>) -> Rejected {
    outcome.err().map(|rejection| (rejection.code, rejection.message))
}
