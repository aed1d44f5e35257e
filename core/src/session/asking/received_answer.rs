//! A client's answer to a question that was sent as a request.

use super::validate;
use crate::protocol::{
    Method, Raw,
    json::{self, ObjectWriter},
};

/// The result of a client's response, before its check.
#[derive(Clone, Debug)]
pub struct ReceivedAnswer {
    pub(crate) method: Method,
    /// The question in the newest vocabulary.
    pub(crate) params: Raw,
    /// The id of the page that the client was asked to visit.
    pub(crate) page: Option<String>,
    pub(crate) result: Raw,
}

impl ReceivedAnswer {
    /// Returns the bytes of the result.
    pub(crate) fn len(&self) -> usize {
        self.result.get().len()
    }

    /// Returns the answer for the handler, with the id of the page; or the problem if it is not valid.
    pub(crate) fn check(self) -> Result<Raw, String> {
        let answer = validate(self.method, self.params.get(), &self.result)?;
        let Some(page) = self.page else { return Ok(answer) };
        let mut named = ObjectWriter::with_capacity(answer.get().len() + 64);
        named.splice(answer.get()).member("elicitationId", &page);
        Ok(json::raw(named.finish()))
    }
}
