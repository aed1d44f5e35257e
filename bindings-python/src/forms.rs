//! Which forms can be asked, for the time when a question's type is registered.

use pyo3::prelude::*;

/// Why no form can ask by this JSON Schema, and the mend; `None` when one can.
#[pyfunction]
pub(crate) fn form_problem(schema: &str) -> Option<String> {
    gudgeon::session::asking::check_form(schema).err()
}
