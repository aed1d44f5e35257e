//! The metrics of calls: where one will be counted is decided at its beginning, because its name may be gone at its end.

use super::Engine;
use crate::{
    metrics::{CallNumber, Metrics},
    session::server::Call,
};

impl Engine {
    /// Returns the place at which a call that begins will be counted; `None` if nothing is counted.
    #[inline]
    pub(super) fn call_number(&self, call: &Call) -> Option<CallNumber> {
        self.metrics().is_on().then(|| self.number_of(call)).flatten()
    }

    #[cold]
    fn number_of(&self, call: &Call) -> Option<CallNumber> {
        let (method, name) = self.components.known_name(&call.request);
        self.metrics().call(method, name, call.context.spoken())
    }

    /// Returns the numbers of the server.
    pub(crate) fn metrics(&self) -> &Metrics {
        &self.components.server.metrics
    }
}
