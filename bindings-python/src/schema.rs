//! JSON Schemas for values that the core does not check itself.

use gudgeon::schema::{self, Schema, Subject};
use pyo3::{exceptions::PyValueError, prelude::*};

/// Returns a schema, as JSON, normalized for hosts with limited support: references expanded, nullable types
/// simplified.
#[pyfunction]
pub(crate) fn portable(schema: &[u8]) -> PyResult<String> {
    let schema = serde_json::from_slice(schema).map_err(invalid)?;
    let written = schema::portable(&schema).map_err(invalid)?;
    Ok(serde_json::Value::Object(written).to_string())
}

/// Returns the problem of arguments, as JSON, in the words of errors about tools; `None` if they are valid.
#[pyfunction]
pub(crate) fn invalid_arguments(schema: &str, arguments: &[u8]) -> PyResult<Option<String>> {
    let arguments = serde_json::from_slice(arguments).map_err(invalid)?;
    let schema = Schema::compile(schema).map_err(invalid)?;
    Ok(schema.check(&arguments).err().map(|it| it.of(Subject::Argument).to_string()))
}

#[expect(clippy::needless_pass_by_value, reason = "as `map_err` passes it")]
fn invalid(error: impl ToString) -> PyErr {
    PyValueError::new_err(error.to_string())
}
