//! Which forms can be asked, for the time when a question is made or its type is registered.

use pyo3::prelude::*;

/// Why no form can ask by this JSON Schema, and the mend; `None` when one can. `name` is what the user is to read, or the
/// type that is asked for.
#[pyfunction]
pub(crate) fn form_problem(name: &str, schema: &str) -> Option<String> {
    gudgeon::session::asking::check_form(name, schema).err()
}
