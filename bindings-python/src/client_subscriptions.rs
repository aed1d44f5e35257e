//! The events of subscriptions as Python values.

use gudgeon::{bindings::subscriptions::Taken, client::Change};
use pyo3::{prelude::*, types::PyBytes};

use crate::client_error::error_json;

/// Returns `(kind, uri, server)`, `("failed", error, None)` or `("end", None, None)`. Only changes of a group have a server.
pub(crate) fn to_tuple(taken: Taken, py: Python<'_>) -> PyResult<Bound<'_, PyAny>> {
    let tuple = match taken {
        Taken::Change(Change::List(list), server) => {
            (list.as_str(), None::<()>, server).into_pyobject(py)?.into_any()
        }
        Taken::Change(Change::Updated(uri), server) => {
            ("updated", uri, server).into_pyobject(py)?.into_any()
        }
        Taken::End(None) => ("end", None::<()>, None::<()>).into_pyobject(py)?.into_any(),
        Taken::End(Some(error)) => {
            let error = PyBytes::new(py, error_json(&error).as_bytes());
            ("failed", error, None::<()>).into_pyobject(py)?.into_any()
        }
    };
    Ok(tuple)
}
