//! Functions of a Python program that verify tokens.

use std::{fmt, sync::Arc};

use gudgeon::{
    auth::{
        Secret,
        server::{
            authenticator::VerifyReply,
            config::{VerifiedRequest, Verifier},
        },
    },
    replier::Replier,
};
use pyo3::{PyTraverseError, PyVisit, prelude::*, types::PyBytes};
use tokio::runtime::Handle;

use crate::{error::raise, hooks};

/// Calls a Python function on a thread for functions that block.
pub(crate) struct PythonVerifier {
    verify: Arc<Py<PyAny>>,
}

impl PythonVerifier {
    /// `verify(method, token, request)` returns the reply as JSON.
    pub(crate) fn new(verify: Py<PyAny>) -> Self {
        Self { verify: Arc::new(verify) }
    }

    pub(crate) fn traverse(&self, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&*self.verify)
    }
}

impl Verifier for PythonVerifier {
    fn verify(
        &self,
        method: usize,
        token: Secret,
        request: Arc<VerifiedRequest>,
        reply: Replier<VerifyReply>,
    ) {
        let verify = Arc::clone(&self.verify);
        // Without a runtime the reply is dropped, which refuses the request.
        let Ok(runtime) = Handle::try_current() else { return };
        runtime.spawn_blocking(move || {
            let answer = Python::attach(|py| {
                let answer = call(py, &verify, method, &token, &request);
                drop(verify);
                answer.inspect_err(|error| {
                    let error = error.clone_ref(py).into_value(py).into_any();
                    hooks::report_exception(
                        py,
                        "auth: the answer of a function can't be used",
                        &error,
                    );
                })
            });
            reply.send(answer.unwrap_or(VerifyReply::Failed));
        });
    }
}

impl fmt::Debug for PythonVerifier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PythonVerifier")
    }
}

fn call(
    py: Python<'_>,
    verify: &Py<PyAny>,
    method: usize,
    token: &Secret,
    request: &VerifiedRequest,
) -> PyResult<VerifyReply> {
    let headers: Vec<_> = request
        .headers
        .iter()
        .map(|(name, value)| (name.as_str(), PyBytes::new(py, value.as_bytes())))
        .collect();
    let request = (request.method.as_str(), &request.path, headers, &request.remote);
    let reply = verify.bind(py).call1((method, token.expose(), request))?;
    VerifyReply::parse(reply.extract()?).map_err(|error| raise(&error))
}
