//! The settings of a connection that a test makes.

use std::sync::Arc;

use gudgeon::{engine::TestMode, error::Error, session::server::HttpFacts};
use http::{HeaderMap, HeaderName, HeaderValue};
use napi::bindgen_prelude::Uint8Array;
use napi_derive::napi;

use crate::{error::misuse, mounted::principal_from};

/// The settings of a connection that a test makes.
#[napi(object, object_to_js = false)]
pub struct NativeTestMode {
    /// Seals request states where the server has no keys of its own; 32 bytes.
    pub state_key: Uint8Array,
    /// Discards a waiting handler at every question, so that it is replayed.
    pub replays: bool,
    /// The principal of every call, as JSON.
    pub principal: Option<String>,
    /// The HTTP headers of every call: names and values in turn.
    pub headers: Vec<String>,
}

impl NativeTestMode {
    pub(crate) fn parts(self) -> napi::Result<(TestMode, HttpFacts)> {
        let state_key = <[u8; 32]>::try_from(&*self.state_key)
            .map_err(|_| misuse(Error::misuse("a state key of a test has 32 bytes")))?;
        let mode = TestMode { replays: self.replays, state_key: Some(state_key) };
        let principal = self.principal.as_deref().map(principal_from).transpose()?.map(Arc::new);
        let headers = headers(&self.headers).map_err(misuse)?;
        Ok((mode, HttpFacts { headers, principal, ..HttpFacts::default() }))
    }
}

fn headers(lines: &[String]) -> Result<HeaderMap, Error> {
    let mut headers = HeaderMap::new();
    for pair in lines.chunks_exact(2) {
        let [name, value] = pair else { continue };
        let invalid = |what| Error::misuse(format!("headers: {name:?} has no valid HTTP {what}"));
        let key = HeaderName::from_bytes(name.as_bytes()).map_err(|_| invalid("header name"))?;
        let value = HeaderValue::from_str(value).map_err(|_| invalid("header value"))?;
        headers.append(key, value);
    }
    Ok(headers)
}
