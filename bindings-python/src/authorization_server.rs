//! An authorization server for tests, on the thread of the clients.

use std::sync::{Arc, Mutex};

use gudgeon::{
    bindings::authorization_server as server, error::Error, testing::auth::AuthorizationServer,
};
use pyo3::prelude::*;
use tokio::runtime::Runtime;

use crate::{client_runtime::runtime, error::raise, listening::refused, stream::lock};

/// A server that listens on 127.0.0.1 until it is closed.
#[pyclass(frozen)]
#[derive(Debug)]
pub(crate) struct NativeAuthorizationServer {
    server: Mutex<Option<AuthorizationServer>>,
    runtime: Arc<Runtime>,
}

#[pymethods]
impl NativeAuthorizationServer {
    /// `options` is JSON. Raises `ValueError` for an option that can't be used, and `OSError` for a port in use.
    #[new]
    fn new(py: Python<'_>, options: &[u8]) -> PyResult<Self> {
        let runtime = runtime()?;
        let listening = py.detach(|| runtime.block_on(server::listen(options)));
        let server = listening.map_err(|error| refused(&error))?;
        Ok(Self { server: Mutex::new(Some(server)), runtime })
    }

    #[getter]
    fn issuer(&self) -> PyResult<String> {
        Ok(self.server()?.issuer().to_owned())
    }

    /// Issues an access token; `options` is JSON.
    fn token(&self, options: &[u8]) -> PyResult<String> {
        server::token(&self.server()?, options).map_err(|error| raise(&error))
    }

    #[pyo3(signature = (client_id, subject, expires_in))]
    fn identity_token(
        &self,
        client_id: &str,
        subject: Option<&str>,
        expires_in: f64,
    ) -> PyResult<String> {
        let server = self.server()?;
        server.identity_token(client_id, subject, expires_in).map_err(|error| raise(&error))
    }

    fn rotate_keys(&self, keep_former: bool) -> PyResult<()> {
        self.server()?.rotate_keys(keep_former).map_err(|error| raise(&error))
    }

    /// Replaces the faults by others, from JSON.
    fn set_faults(&self, faults: &[u8]) -> PyResult<()> {
        server::set_faults(&self.server()?, faults).map_err(|error| raise(&error))
    }

    fn revoke_all(&self) -> PyResult<()> {
        self.server()?.revoke_all();
        Ok(())
    }

    /// Returns the requests so far, as JSON.
    fn requests(&self) -> PyResult<String> {
        Ok(server::requests(&self.server()?))
    }

    /// Opens a URL as the user's browser does. Returns the URL to which it is redirected.
    fn browse(&self, py: Python<'_>, url: &str) -> PyResult<String> {
        let server = self.server()?;
        let redirected = py.detach(|| self.runtime.block_on(server.browse(url)));
        redirected.map_err(|error| raise(&error))
    }

    fn close(&self) {
        lock(&self.server).take();
    }
}

impl NativeAuthorizationServer {
    fn server(&self) -> PyResult<AuthorizationServer> {
        let closed =
            || Error::misuse("the authorization server does not run; use it inside its with block");
        lock(&self.server).clone().ok_or_else(|| raise(&closed()))
    }
}

/// Returns a new private key for ES256, as PEM, and its public key, a JWK as JSON.
#[pyfunction]
pub(crate) fn key_pair_for_tests() -> PyResult<(String, String)> {
    server::key_pair().map_err(|error| raise(&error))
}
