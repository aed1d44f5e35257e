//! Checks of options, and their members in declarations: values of Python as the core reads them.

use gudgeon::{
    bindings::{
        component_changes,
        http_options::HttpOptions,
        options::{self, Given, Kind, Problem, Row, Taker, Value},
        unknown_name::unknown_name,
    },
    error::Language,
};
use pyo3::{
    exceptions::{PyTypeError, PyValueError},
    intern,
    prelude::*,
    types::{
        PyBool, PyBytes, PyDict, PyFloat, PyFrozenSet, PyInt, PyList, PyMapping, PySequence, PySet,
        PyString, PyTuple, PyType,
    },
};

use crate::error::raise;

/// Checks options. `taker` is the function that takes them, and `place` begins the error.
///
/// Raises `TypeError` for an unknown option and a value of a wrong type, and `ValueError` for a value out of range.
#[pyfunction]
pub(crate) fn check_options(taker: &str, place: &str, options: &Bound<'_, PyDict>) -> PyResult<()> {
    let taker = named(taker)?;
    for (name, value) in options {
        let name: String = name.extract()?;
        let given = Python(value);
        if let Err(problem) = options::check(Language::Python, taker, place, &name, &given) {
            let shown = given.0.repr()?;
            return Err(raised(&problem, || shown.to_string()));
        }
    }
    Ok(())
}

/// Returns the problem of a member of a component that is to be changed; None if it may be.
#[pyfunction]
pub(crate) fn change_problem(kind: &str, name: &str) -> Option<String> {
    component_changes::problem(Language::Python, kind, name)
}

/// Raises `ValueError` if the values of HTTP options, as JSON, don't fit their purpose, such as a host that matches no
/// request.
#[pyfunction]
pub(crate) fn check_http(options: &[u8]) -> PyResult<()> {
    HttpOptions::parse(options).map(drop).map_err(|error| raise(&error))
}

/// Returns the exception for a refused value, which `shown` shows.
pub(crate) fn raised(problem: &Problem, shown: impl FnOnce() -> String) -> PyErr {
    let text = problem.text(shown);
    match problem.is_range {
        true => PyValueError::new_err(text),
        false => PyTypeError::new_err(text),
    }
}

/// Returns checked options as members of a declaration for the core, with durations in milliseconds.
#[pyfunction]
pub(crate) fn declared_options<'py>(
    taker: &str,
    options: &Bound<'py, PyDict>,
) -> PyResult<Bound<'py, PyDict>> {
    let taker = named(taker)?;
    let out = PyDict::new(options.py());
    for (name, value) in options {
        let row = Row::find(Language::Python, taker, name.extract()?);
        let Some((row, member)) = row.and_then(|row| Some((row, row.member()?))) else { continue };
        match row.kind {
            // `None` means no limit.
            Kind::Duration(_) if value.is_none() && row.is_time_limit() => {
                out.set_item(member, value)?;
            }
            _ if value.is_none() => {}
            // Finite because JSON has no infinity; the core caps long times.
            Kind::Duration(_) => {
                let milliseconds = value.extract::<f64>()? * 1000.0;
                out.set_item(member, milliseconds.min(f64::MAX))?;
            }
            Kind::Pem => out.set_item(member, pem(&value)?)?,
            Kind::PemPair => {
                let pair = PyDict::new(options.py());
                for (name, part) in ["cert", "key"].iter().zip(Python(value).items()) {
                    pair.set_item(name, pem(&part.0)?)?;
                }
                out.set_item(member, pair)?;
            }
            Kind::KeyPair => {
                let pair = PyDict::new(options.py());
                for (name, path) in ["cert", "key"].iter().zip(Python(value).items()) {
                    pair.set_item(name, file_path(&path.0)?)?;
                }
                out.set_item(member, pair)?;
            }
            _ => out.set_item(member, value)?,
        }
    }
    Ok(out)
}

/// Returns the problem of a name that is not one of the known names, with the fix.
#[pyfunction]
#[pyo3(signature = (kind, name, known, hint = None))]
#[expect(clippy::needless_pass_by_value, reason = "read from a Python list")]
pub(crate) fn name_problem(
    kind: &str,
    name: &str,
    known: Vec<String>,
    hint: Option<&str>,
) -> String {
    let known: Vec<_> = known.iter().map(String::as_str).collect();
    unknown_name(kind, name, &known, hint)
}

fn named(taker: &str) -> PyResult<Taker> {
    taker.parse().map_err(|error| raise(&error))
}

fn file_path<'py>(value: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    match value.cast::<PyString>() {
        Ok(_) => Ok(value.clone()),
        Err(_) => value.call_method0(intern!(value.py(), "__fspath__")),
    }
}

/// Returns a PEM file as the core reads it: a path, or the text in bytes.
fn pem<'py>(value: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    let Ok(bytes) = value.cast::<PyBytes>() else { return file_path(value) };
    let text = PyDict::new(value.py());
    text.set_item("text", String::from_utf8_lossy(bytes.as_bytes()))?;
    Ok(text.into_any())
}

pub(crate) struct Python<'py>(pub Bound<'py, PyAny>);

impl Given for Python<'_> {
    fn value(&self) -> Value {
        let value = &self.0;
        if value.is_none() {
            Value::Absent
        } else if let Ok(it) = value.cast::<PyBool>() {
            Value::Boolean(it.is_true())
        } else if value.is_instance_of::<PyInt>() {
            Value::Integer(value.extract().unwrap_or(f64::INFINITY))
        } else if let Ok(it) = value.cast::<PyFloat>() {
            Value::Fraction(it.value())
        } else if let Ok(it) = value.cast::<PyString>() {
            Value::Text(it.to_string())
        } else if value.is_instance_of::<PyBytes>() {
            Value::Bytes
        } else if is_list(value) {
            Value::List
        } else if value.is_instance_of::<PyDict>() {
            Value::Object
        } else if value.is_callable() {
            Value::Function
        } else if let Ok(path) = file_path(value).and_then(|path| path.extract()) {
            Value::Path(path)
        } else if value.cast::<PySequence>().is_ok() {
            Value::List
        } else if value.cast::<PyMapping>().is_ok() {
            Value::Object
        } else {
            Value::Other
        }
    }

    fn items(&self) -> Vec<Self> {
        let items = self.0.try_iter().map(Iterator::collect::<PyResult<Vec<_>>>);
        items.flatten().unwrap_or_default().into_iter().map(Self).collect()
    }

    fn entries(&self) -> Vec<(Self, Self)> {
        let items = self.0.cast::<PyMapping>().ok().and_then(|mapping| mapping.items().ok());
        let entries: Vec<(Bound<'_, PyAny>, Bound<'_, PyAny>)> =
            items.and_then(|items| items.extract().ok()).unwrap_or_default();
        entries.into_iter().map(|(key, value)| (Self(key), Self(value))).collect()
    }

    fn has_method(&self, name: &str) -> bool {
        !self.0.is_instance_of::<PyType>()
            && self.0.getattr(name).is_ok_and(|attribute| attribute.is_callable())
    }
}

fn is_list(value: &Bound<'_, PyAny>) -> bool {
    value.is_instance_of::<PyList>()
        || value.is_instance_of::<PyTuple>()
        || value.is_instance_of::<PySet>()
        || value.is_instance_of::<PyFrozenSet>()
}
