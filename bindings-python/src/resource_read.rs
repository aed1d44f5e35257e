//! Reads of resources by handlers of the same server.

use gudgeon::{
    protocol::Response,
    router::{Failure, ResultBuilder},
};
use pyo3::prelude::*;

use crate::convert;

/// Converts the reply of a resource read by another handler.
#[pyclass(frozen)]
#[derive(Debug)]
pub(crate) struct Read(pub(crate) ResultBuilder);

#[pymethods]
impl Read {
    #[expect(clippy::needless_pass_by_value, reason = "that is how it comes from Python")]
    fn contents(&self, reply: Bound<'_, PyAny>) -> PyResult<String> {
        let invalid = |message: String| pyo3::exceptions::PyValueError::new_err(message);
        match self.0.response(convert::reply(&reply)?) {
            Ok(Response::Contents { contents, .. }) => Ok(contents),
            Ok(_) => Err(invalid("a resource answers with contents".into())),
            Err(Failure::Exception { message, .. }) => Err(invalid(message)),
            Err(other) => Err(invalid(format!("{other:?}"))),
        }
    }
}
