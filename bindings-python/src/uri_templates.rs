//! URI templates, for the Python package.

use gudgeon::router::uri_template::UriTemplate;
use pyo3::prelude::*;

/// Expands a URI template with these variables (a JSON object).
#[pyfunction]
pub(crate) fn expand(template: &str, variables: &[u8]) -> PyResult<String> {
    let invalid = |message: String| pyo3::exceptions::PyValueError::new_err(message);
    let template = UriTemplate::parse(template).map_err(|error| invalid(error.to_string()))?;
    let variables: serde_json::Map<String, serde_json::Value> =
        serde_json::from_slice(variables).map_err(|error| invalid(error.to_string()))?;
    Ok(template.expand(&variables.into_iter().collect::<Vec<_>>()))
}

/// Returns the names of a template's variables.
#[pyfunction]
pub(crate) fn variables(template: &str) -> PyResult<Vec<String>> {
    let template = UriTemplate::parse(template).map_err(|error| {
        let message = format!("the URI template {template:?} can't be used: {error}");
        pyo3::exceptions::PyValueError::new_err(message)
    })?;
    Ok(template.variables().map(ToOwned::to_owned).collect())
}
