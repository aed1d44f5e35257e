//! Params of handlers as middleware sees and changes them.

use gudgeon::router::HandlerKind;
use napi_derive::napi;

use crate::error::misuse;

#[napi]
#[derive(Debug)]
pub struct NativeMiddlewareParams;

#[napi]
impl NativeMiddlewareParams {
    /// Returns the params of a request with this input of its handler; both are JSON. `key` is the name, URI or template
    /// under which the server has the handler, and `argument` that of a completion.
    #[napi(catch_unwind)]
    pub fn of(kind: String, key: String, argument: String, input: String) -> napi::Result<String> {
        let kind: HandlerKind = kind.parse().map_err(misuse)?;
        kind.params(&key, &argument, &input).map_err(misuse)
    }

    /// Returns the handler's input for params that middleware changed; both are JSON. Null if it stays what it was.
    #[napi(catch_unwind)]
    pub fn input(kind: String, params: String) -> napi::Result<Option<String>> {
        let kind: HandlerKind = kind.parse().map_err(misuse)?;
        kind.input(&params).map_err(misuse)
    }
}
