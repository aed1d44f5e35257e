//! A file of tokens whose records a program reads and writes itself.

use std::pin::Pin;

use gudgeon::{bindings::TokenFile, driver::boxed, error::Error};
use napi::{
    Env,
    bindgen_prelude::{Object, ToNapiValue, Uint8Array},
};
use napi_derive::napi;

use super::{no_runtime, runtime};
use crate::error::failure;

#[napi]
#[derive(Debug)]
pub struct NativeTokenFile(TokenFile);

#[napi]
impl NativeTokenFile {
    #[napi(constructor, catch_unwind)]
    pub fn new(path: String) -> Self {
        Self(TokenFile::new(path.into()))
    }

    /// Returns a promise of the record with this key, or of null without one.
    #[napi(catch_unwind, ts_return_type = "Promise<Uint8Array | null>")]
    pub fn get<'env>(&self, env: &'env Env, key: String) -> napi::Result<Object<'env>> {
        let file = self.0.clone();
        promise(env, Box::pin(async move { Ok(file.get(&key).await?.map(Uint8Array::from)) }))
    }

    /// Stores a record, JSON in UTF-8.
    #[napi(catch_unwind, ts_return_type = "Promise<void>")]
    pub fn set<'env>(
        &self,
        env: &'env Env,
        key: String,
        value: Uint8Array,
    ) -> napi::Result<Object<'env>> {
        let (file, value) = (self.0.clone(), value.to_vec());
        promise(env, Box::pin(async move { file.set(&key, &value).await }))
    }

    /// Removes a record, if there is one.
    #[napi(catch_unwind, ts_return_type = "Promise<void>")]
    pub fn delete<'env>(&self, env: &'env Env, key: String) -> napi::Result<Object<'env>> {
        let file = self.0.clone();
        promise(env, Box::pin(async move { file.delete(&key).await }))
    }
}

/// Runs work on the threads of the clients. Returns a promise of its result.
pub(crate) fn promise<T: ToNapiValue + Send + 'static>(
    env: &Env,
    work: Pin<Box<dyn Future<Output = Result<T, Error>> + Send>>,
) -> napi::Result<Object<'_>> {
    let (deferred, promise) = env.create_deferred()?;
    runtime().map_err(no_runtime)?.spawn(boxed(async move {
        match work.await {
            Ok(result) => deferred.resolve(move |_| Ok(result)),
            Err(error) => deferred.reject(failure(error)),
        }
    }));
    Ok(promise)
}
