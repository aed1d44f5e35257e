//! Functions of a JavaScript program that verify tokens. They run on the event loop.

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
use napi::{
    Status,
    bindgen_prelude::Function,
    threadsafe_function::{ThreadsafeFunction, ThreadsafeFunctionCallMode},
};
use napi_derive::napi;
use serde_json::json;

use crate::{error::misuse, mounted::REQUEST};

/// Calls JavaScript; it does not keep the process alive.
type Verify = ThreadsafeFunction<NativeVerification, (), NativeVerification, Status, false, true>;

/// Passes tokens to JavaScript.
pub(crate) struct NodeVerifier(Verify);

impl NodeVerifier {
    pub(crate) fn new(verify: &Function<'_, NativeVerification, ()>) -> napi::Result<Self> {
        verify.build_threadsafe_function().weak::<true>().build().map(Self)
    }
}

impl Verifier for NodeVerifier {
    fn verify(
        &self,
        method: usize,
        token: Secret,
        request: Arc<VerifiedRequest>,
        reply: Replier<VerifyReply>,
    ) {
        let method = u32::try_from(method).unwrap_or(u32::MAX);
        let verification = NativeVerification { method, token, request, reply: Some(reply) };
        self.0.call(verification, ThreadsafeFunctionCallMode::NonBlocking);
    }
}

impl fmt::Debug for NodeVerifier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("NodeVerifier")
    }
}

/// A token to verify.
#[napi]
pub struct NativeVerification {
    method: u32,
    token: Secret,
    request: Arc<VerifiedRequest>,
    /// `None` once it was sent.
    reply: Option<Replier<VerifyReply>>,
}

#[napi]
impl NativeVerification {
    /// The place of the function in the list of methods.
    #[napi(getter, catch_unwind)]
    pub fn method(&self) -> u32 {
        self.method
    }

    #[napi(catch_unwind)]
    pub fn token(&self) -> String {
        self.token.expose().to_owned()
    }

    /// Returns the head of the request as JSON: `{"method", "path", "headers", "client"}`.
    #[napi(catch_unwind)]
    pub fn request(&self) -> String {
        let VerifiedRequest { method, path, headers, remote } = &*self.request;
        // Bytes beyond ASCII are Latin-1, as everywhere in HTTP.
        let text = |bytes: &[u8]| bytes.iter().copied().map(char::from).collect::<String>();
        let headers: Vec<_> = headers
            .iter()
            .filter(|(name, _)| **name != REQUEST)
            .map(|(name, value)| (name.as_str(), text(value.as_bytes())))
            .collect();
        let head = json!({ "method": method.as_str(), "path": path, "headers": headers, "client": remote });
        head.to_string()
    }

    /// Sends the reply, as JSON. Errors if it can't be read; the reply is then a failure.
    #[napi(catch_unwind)]
    pub fn reply(&mut self, reply: String) -> napi::Result<()> {
        let Some(sender) = self.reply.take() else { return Ok(()) };
        sender.send(VerifyReply::parse(reply.as_bytes()).map_err(misuse)?);
        Ok(())
    }
}

impl fmt::Debug for NativeVerification {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NativeVerification").field("method", &self.method).finish_non_exhaustive()
    }
}
