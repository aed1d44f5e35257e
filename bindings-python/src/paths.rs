//! Paths that clients give.

use std::path::PathBuf;

use pyo3::prelude::*;

/// Returns the real path of a file in the folder `root`, and None; or None and the problem for the model. Raises `OSError`
/// if `root` is not a folder that can be read.
#[pyfunction]
#[expect(clippy::needless_pass_by_value, reason = "PyO3 extracts it")]
pub(crate) fn resolve_inside(
    root: PathBuf,
    path: &str,
) -> PyResult<(Option<PathBuf>, Option<String>)> {
    Ok(match gudgeon::bindings::resolve_inside(&root, path)? {
        Ok(path) => (Some(path), None),
        Err(problem) => (None, Some(problem)),
    })
}
