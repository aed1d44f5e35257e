//! JSON Schemas for values that the core does not check itself.

use gudgeon::{
    schema::{self, Schema, Subject},
    session::asking,
};
use pyo3::{exceptions::PyValueError, prelude::*};

use crate::error::raise;

/// Returns a schema, as JSON, normalized for hosts with limited support: references expanded, nullable types
/// simplified.
#[pyfunction]
pub(crate) fn portable(schema: &[u8]) -> PyResult<String> {
    let schema = serde_json::from_slice(schema).map_err(invalid)?;
    let written = schema::portable(&schema).map_err(invalid)?;
    Ok(serde_json::Value::Object(written).to_string())
}

/// Returns a pattern that matches without flags what `pattern` matches with `flags`, such as "im"; `None` where there is none.
#[pyfunction]
pub(crate) fn without_flags(pattern: &str, flags: &str) -> Option<String> {
    schema::without_flags(pattern, flags)
}

/// Returns the problem of arguments, as JSON, in the words of errors about tools; `None` if they are valid.
#[pyfunction]
pub(crate) fn invalid_arguments(schema: &str, arguments: &[u8]) -> PyResult<Option<String>> {
    let arguments = serde_json::from_slice(arguments).map_err(invalid)?;
    let schema = Schema::compile(schema).map_err(invalid)?;
    Ok(schema
        .check(&arguments)
        .err()
        .map(|violation| violation.with_subject(Subject::Argument).to_string()))
}

/// Returns the schema of the form for a schema, as JSON. `reading` is "plain", "validated" or "typed"; `value` says
/// whether an answer to a single value is required, and is None where the schema is that of the whole form.
#[pyfunction]
#[pyo3(signature = (schema, reading, value))]
pub(crate) fn form_schema(schema: &[u8], reading: &str, value: Option<bool>) -> PyResult<String> {
    let schema = serde_json::from_slice(schema).map_err(invalid)?;
    let reading = reading.parse().map_err(|error| raise(&error))?;
    Ok(asking::form_schema(&schema, reading, value).schema.to_string())
}

/// Returns the problem and the fix if no form can have this schema; None otherwise. `name` is the message for the user,
/// or the type that is asked for.
#[pyfunction]
pub(crate) fn form_problem(name: &str, schema: &str) -> Option<String> {
    asking::check_form(name, schema).err()
}

#[expect(clippy::needless_pass_by_value, reason = "as `map_err` passes it")]
fn invalid(error: impl ToString) -> PyErr {
    PyValueError::new_err(error.to_string())
}
