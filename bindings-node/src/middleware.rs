//! Params and results of requests as middleware sees and changes them.

use gudgeon::{
    error::Error,
    router::{self, HandlerKind},
};
use napi_derive::napi;

use crate::{error::misuse, reply};

#[napi]
#[derive(Debug)]
pub struct NativeMiddleware;

#[napi]
impl NativeMiddleware {
    /// Returns the params of a request with this input of its handler; both are JSON. `key` is the name, URI or template
    /// under which the server has the handler, and `argument` that of a completion.
    #[napi(catch_unwind)]
    pub fn params(
        kind: String,
        key: String,
        argument: String,
        input: String,
    ) -> napi::Result<String> {
        let kind: HandlerKind = kind.parse().map_err(misuse)?;
        kind.params(&key, &argument, &input).map_err(misuse)
    }

    /// Returns the handler's input for params that middleware changed; both are JSON. Null if it stays what it was.
    #[napi(catch_unwind)]
    pub fn input(kind: String, params: String) -> napi::Result<Option<String>> {
        let kind: HandlerKind = kind.parse().map_err(misuse)?;
        kind.input(&params).map_err(misuse)
    }

    /// Returns the complete result of a handler's reply, as JSON. `uri` and `mime_type` are those of the resource, and
    /// `reply_kind` is that of a reply line.
    #[napi(catch_unwind)]
    pub fn result(
        kind: String,
        uri: String,
        mime_type: Option<String>,
        reply_kind: u32,
        payload: String,
    ) -> napi::Result<String> {
        let kind: HandlerKind = kind.parse().map_err(misuse)?;
        let reply = reply::outcome(&reply_kind.to_string(), &payload, &mut [])
            .map_err(|error| misuse(Error::misuse(format!("{error:?}"))))?;
        kind.result(&uri, mime_type.as_deref(), reply).map_err(misuse)
    }

    /// Returns the error of middleware that changed the params of a request which runs no handler.
    #[napi(catch_unwind)]
    pub fn params_changed(method: String) -> String {
        router::params_changed(&method)
    }

    /// Returns the error of middleware that returned nothing in place of a result.
    #[napi(catch_unwind)]
    pub fn nothing_returned(method: String) -> String {
        router::nothing_returned(&method)
    }
}
