//! Without the feature `auth` there are no credentials.

use http::{HeaderMap, Method, StatusCode};

use crate::error::Error;

/// The credentials of a client, of which there are none.
#[derive(Debug)]
pub(crate) enum Authorizer {}

#[derive(Debug, Default)]
pub(crate) struct Attempts;

impl Authorizer {
    pub(crate) async fn prepare(&self) -> Result<(), Error> {
        match *self {}
    }

    pub(crate) fn authorize(
        &self,
        _: &Method,
        _: &str,
        _: &mut HeaderMap,
    ) -> Result<Option<u64>, Error> {
        match *self {}
    }

    pub(crate) fn observe(&self, _: &HeaderMap) {
        match *self {}
    }

    pub(crate) async fn rejected(
        &self,
        _: &mut Attempts,
        _: StatusCode,
        _: &HeaderMap,
        _: Option<u64>,
    ) -> Result<bool, Error> {
        match *self {}
    }
}
