//! An authorization server for tests, on the thread of the clients.

use std::sync::{Arc, Mutex};

use gudgeon::{
    auth::authorization_server::{generate_key, key_pair},
    error::Error,
    transport::authorization_server::TestAuthorizationServer,
};
use pyo3::prelude::*;
use tokio::runtime::Runtime;

use crate::{client_runtime::runtime, error::raise, listening::refused, stream::lock};

/// A server that listens on 127.0.0.1 until it is closed.
#[pyclass(frozen)]
#[derive(Debug)]
pub(crate) struct NativeAuthorizationServer {
    server: Mutex<Option<Arc<TestAuthorizationServer>>>,
    runtime: Arc<Runtime>,
}

#[pymethods]
impl NativeAuthorizationServer {
    /// `options` is JSON. Raises `ValueError` for an option that can't be used, and `OSError` for a port in use.
    #[new]
    fn new(py: Python<'_>, options: &[u8], port: u16) -> PyResult<Self> {
        let runtime = runtime()?;
        let listening =
            py.detach(|| runtime.block_on(TestAuthorizationServer::listen(options, port)));
        let server = Arc::new(listening.map_err(|it| refused(&it))?);
        Ok(Self { server: Mutex::new(Some(server)), runtime })
    }

    #[getter]
    fn issuer(&self) -> PyResult<String> {
        Ok(self.server()?.issuer().to_owned())
    }

    /// Issues an access token; `params` are JSON.
    fn token(&self, params: &[u8]) -> PyResult<String> {
        self.server()?.token(params).map_err(|it| raise(&it))
    }

    #[pyo3(signature = (subject, client_id, expires_in))]
    fn identity_token(
        &self,
        subject: Option<&str>,
        client_id: &str,
        expires_in: i64,
    ) -> PyResult<String> {
        let server = self.server()?;
        server.identity_token(subject, client_id, expires_in).map_err(|it| raise(&it))
    }

    fn rotate_keys(&self, keeps_former: bool) -> PyResult<()> {
        self.server()?.rotate_keys(keeps_former).map_err(|it| raise(&it))
    }

    /// Replaces the faults by others, from JSON.
    fn set_faults(&self, faults: &[u8]) -> PyResult<()> {
        self.server()?.machine().set_faults(faults).map_err(|it| raise(&it))
    }

    fn revoke_all(&self) -> PyResult<()> {
        self.server()?.machine().revoke_all();
        Ok(())
    }

    /// Returns the requests so far, as JSON.
    fn requests(&self) -> PyResult<String> {
        Ok(self.server()?.machine().requests().to_string())
    }

    /// Opens a URL as the user's browser does. Returns the URL to which it is redirected.
    fn browse(&self, py: Python<'_>, url: &str) -> PyResult<String> {
        let server = self.server()?;
        let redirected = py.detach(|| self.runtime.block_on(server.browse(url)));
        redirected.map_err(|it| raise(&it))
    }

    fn close(&self) {
        if let Some(server) = lock(&self.server).take() {
            server.close();
        }
    }
}

impl NativeAuthorizationServer {
    fn server(&self) -> PyResult<Arc<TestAuthorizationServer>> {
        let closed =
            || Error::misuse("the authorization server does not run; use it inside its with block");
        lock(&self.server).clone().ok_or_else(|| raise(&closed()))
    }
}

/// Returns a new private key for ES256, as PEM, and its public key, a JWK as JSON.
#[pyfunction]
pub(crate) fn key_pair_for_tests() -> PyResult<(String, String)> {
    let pair = generate_key().and_then(|it| key_pair(&it));
    let (private, public) = pair.map_err(|it| raise(&it))?;
    Ok((private, public.to_string()))
}
