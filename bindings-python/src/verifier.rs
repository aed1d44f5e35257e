//! Functions of a Python program that verify tokens.

use std::{fmt, sync::Arc};

use gudgeon::{
    auth::{
        Secret,
        server::{
            authenticator::VerifyReply,
            config::{Reply, VerifiedRequest, Verifier},
        },
    },
    protocol::Principal,
};
use pyo3::{PyTraverseError, PyVisit, exceptions::PyValueError, prelude::*, types::PyBytes};
use tokio::runtime::Handle;

use crate::hooks;

/// Calls a Python function on a thread for functions that block.
pub(crate) struct PythonVerifier(Arc<Py<PyAny>>);

impl PythonVerifier {
    /// `verify(method, token, request)` returns the reply: its kind and its data.
    pub(crate) fn new(verify: Py<PyAny>) -> Self {
        Self(Arc::new(verify))
    }

    pub(crate) fn traverse(&self, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&*self.0)
    }
}

impl Verifier for PythonVerifier {
    fn verify(&self, method: usize, token: Secret, request: Arc<VerifiedRequest>, reply: Reply) {
        let verify = Arc::clone(&self.0);
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
    let (kind, data): (String, Bound<'_, PyAny>) = reply.extract()?;
    Ok(match kind.as_str() {
        "principal" => {
            let principal: Principal = serde_json::from_slice(data.extract()?)
                .map_err(|it| PyValueError::new_err(format!("the principal is invalid: {it}")))?;
            VerifyReply::Principal(Box::new(principal))
        }
        "unknown" => VerifyReply::Unknown,
        "invalid" => VerifyReply::Invalid(data.extract()?),
        "scopes" => {
            let (scopes, message): (Vec<String>, String) = data.extract()?;
            VerifyReply::InsufficientScope { scopes, message }
        }
        _ => VerifyReply::Failed,
    })
}
