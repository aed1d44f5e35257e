//! Serving a server to the client of a test.

use std::sync::Arc;

use gudgeon::{engine::TestMode, protocol::Principal, session::server::HttpFacts};
use http::{HeaderMap, HeaderName, HeaderValue};
use pyo3::{exceptions::PyValueError, prelude::*};

use crate::endpoint::NativePrincipal;

/// The options of a test's connection: replay, and the principal and headers of every call.
#[pyclass(frozen)]
#[derive(Debug)]
pub(crate) struct TestServing {
    test_mode: TestMode,
    principal: Option<Arc<Principal>>,
    headers: HeaderMap,
}

#[pymethods]
impl TestServing {
    /// `state_key` seals request states where the server has no keys of its own.
    #[new]
    #[pyo3(signature = (*, replays, state_key, principal, headers))]
    fn new(
        replays: bool,
        state_key: [u8; 32],
        principal: Option<&NativePrincipal>,
        headers: Vec<(String, String)>,
    ) -> PyResult<Self> {
        Ok(Self {
            test_mode: TestMode { replays, state_key: Some(state_key) },
            principal: principal.map(NativePrincipal::shared),
            headers: headers.into_iter().map(header).collect::<PyResult<_>>()?,
        })
    }
}

impl TestServing {
    pub(crate) fn parts(&self) -> (TestMode, HttpFacts) {
        let (headers, principal) = (self.headers.clone(), self.principal.clone());
        (self.test_mode, HttpFacts { headers, principal, ..HttpFacts::default() })
    }
}

fn header((name, value): (String, String)) -> PyResult<(HeaderName, HeaderValue)> {
    let refused = |what: &str| {
        PyValueError::new_err(format!(
            "connect(): headers={{{name:?}: …}} has no valid HTTP header {what}"
        ))
    };
    let parsed = HeaderName::from_bytes(name.as_bytes()).map_err(|_| refused("name"))?;
    let value = HeaderValue::from_str(&value).map_err(|_| refused("value"))?;
    Ok((parsed, value))
}
