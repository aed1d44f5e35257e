//! Results of tools.

use pyo3::{prelude::*, types::PyString};

/// Returns whether the data of a result without structured content is the JSON value in its text. `blocks` is the number
/// of its content blocks.
#[pyfunction]
pub(crate) fn is_data(text: &Bound<'_, PyString>, blocks: usize, is_error: bool) -> bool {
    text.to_str().is_ok_and(|it| gudgeon::peer::is_data(it, blocks, is_error))
}
