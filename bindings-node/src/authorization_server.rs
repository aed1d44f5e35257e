//! An authorization server for tests, on the threads of the clients.

use std::{fmt, sync::Mutex};

use gudgeon::{
    bindings::authorization_server as server, error::Error, testing::auth::AuthorizationServer,
};
use napi::{Env, bindgen_prelude::Object};
use napi_derive::napi;

use crate::{client::promise, error::failure, shared::lock};

/// A server that listens on 127.0.0.1 until it is closed.
#[napi]
pub struct NativeAuthorizationServer(Mutex<Option<AuthorizationServer>>);

#[napi]
impl NativeAuthorizationServer {
    /// Starts a server; the options are JSON.
    #[napi(catch_unwind, ts_return_type = "Promise<NativeAuthorizationServer>")]
    pub fn listen(env: &Env, options: String) -> napi::Result<Object<'_>> {
        promise(
            env,
            Box::pin(async move {
                let server = server::listen(options.as_bytes()).await?;
                Ok(Self(Mutex::new(Some(server))))
            }),
        )
    }

    #[napi(getter, catch_unwind)]
    pub fn issuer(&self) -> napi::Result<String> {
        Ok(self.server()?.issuer().to_owned())
    }

    /// Issues an access token; the options are JSON.
    #[napi(catch_unwind)]
    pub fn token(&self, options: String) -> napi::Result<String> {
        server::token(&self.server()?, options.as_bytes()).map_err(failure)
    }

    /// Issues an identity token; `expires_in` is in seconds.
    #[napi(catch_unwind)]
    pub fn identity_token(
        &self,
        client_id: String,
        subject: Option<String>,
        expires_in: f64,
    ) -> napi::Result<String> {
        let server = self.server()?;
        server.identity_token(&client_id, subject.as_deref(), expires_in).map_err(failure)
    }

    #[napi(catch_unwind)]
    pub fn rotate_keys(&self, keep_former: bool) -> napi::Result<()> {
        self.server()?.rotate_keys(keep_former).map_err(failure)
    }

    /// Replaces the faults by others, from JSON.
    #[napi(catch_unwind)]
    pub fn set_faults(&self, faults: String) -> napi::Result<()> {
        server::set_faults(&self.server()?, faults.as_bytes()).map_err(failure)
    }

    #[napi(catch_unwind)]
    pub fn revoke_all(&self) -> napi::Result<()> {
        self.server()?.revoke_all();
        Ok(())
    }

    /// Returns the requests so far, as JSON.
    #[napi(catch_unwind)]
    pub fn requests(&self) -> napi::Result<String> {
        Ok(server::requests(&self.server()?))
    }

    /// Opens a URL as the user's browser does. Returns a promise of the URL to which it is redirected.
    #[napi(catch_unwind, ts_return_type = "Promise<string>")]
    pub fn browse<'env>(&self, env: &'env Env, url: String) -> napi::Result<Object<'env>> {
        let server = self.server()?;
        promise(env, Box::pin(async move { server.browse(&url).await }))
    }

    #[napi(catch_unwind)]
    pub fn close(&self) {
        lock(&self.0).take();
    }

    /// Returns a new private key for ES256 as PEM, and its public key, a JWK as JSON.
    #[napi(catch_unwind)]
    pub fn key_pair() -> napi::Result<Vec<String>> {
        server::key_pair().map(|(private, public)| vec![private, public]).map_err(failure)
    }

    fn server(&self) -> napi::Result<AuthorizationServer> {
        let closed = || failure(Error::misuse("the authorization server is closed"));
        lock(&self.0).clone().ok_or_else(closed)
    }
}

impl fmt::Debug for NativeAuthorizationServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NativeAuthorizationServer").finish_non_exhaustive()
    }
}
