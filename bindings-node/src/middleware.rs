//! Params and results of requests as middleware sees and changes them.

use gudgeon::router::{self, HandlerKind};
use napi_derive::napi;

use crate::error::misuse;

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
