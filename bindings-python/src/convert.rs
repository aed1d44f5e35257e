//! The conversion of Python values into values of the core: replies and failures.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use gudgeon::router::{Failure, Reply};
use pyo3::{
    prelude::*,
    types::{PyBytes, PyString, PyTuple},
};

use crate::{calling, hooks::hooks};

const BLOB: u8 = 1;
const PARTS: u8 = 2;
const RESULT: u8 = 3;
const QUESTIONS: u8 = 8;

/// The size from which on the conversion of a reply takes long, in bytes.
const LONG: usize = 256 * 1024;

/// A handler's reply or failure.
#[derive(Debug)]
pub(crate) struct Outcome {
    pub(crate) result: Result<Reply, Failure>,
    /// The exception itself, if the log is to show it.
    pub(crate) thrown: Option<Thrown>,
}

/// An exception that callers do not receive.
#[derive(Debug)]
pub(crate) struct Thrown {
    pub(crate) error: Py<PyAny>,
    /// Its traceback, as in the failure.
    pub(crate) traceback: String,
}

impl Outcome {
    /// Returns whether the conversion of its reply takes long.
    pub(crate) fn is_long(&self) -> bool {
        self.result.as_ref().is_ok_and(|reply| reply.bytes() >= LONG)
    }
}

impl From<Failure> for Outcome {
    fn from(failure: Failure) -> Self {
        Self { result: Err(failure), thrown: None }
    }
}

/// Returns a handler's outcome: its reply, or the failure for its exception.
pub(crate) fn outcome(
    py: Python<'_>,
    outcome: PyResult<Bound<'_, PyAny>>,
    expose: &Py<PyAny>,
) -> Outcome {
    let error = match outcome.and_then(|value| reply(&value)) {
        Ok(reply) => return Outcome { result: Ok(reply), thrown: None },
        Err(error) => error,
    };
    let failure = failure(py, &error, expose);
    let thrown = match &failure {
        Failure::Exception { traceback, .. } => {
            Some(Thrown { error: error.into_value(py).into_any(), traceback: traceback.clone() })
        }
        _ => None,
    };
    Outcome { result: Err(failure), thrown }
}

/// Returns a string. Halves of surrogate pairs, which UTF-8 can't encode, become U+FFFD.
fn text_of(text: &Bound<'_, PyString>) -> PyResult<String> {
    if let Ok(text) = text.to_str() {
        return Ok(text.to_owned());
    }
    let encoded = text.call_method1("encode", ("utf-16-le", "surrogatepass"))?;
    let units = encoded.cast::<PyBytes>()?.as_bytes().chunks_exact(2);
    let units: Vec<u16> = units.map(|pair| u16::from_le_bytes([pair[0], pair[1]])).collect();
    Ok(String::from_utf16_lossy(&units))
}

/// Returns the reply for a handler's value.
pub(crate) fn reply(value: &Bound<'_, PyAny>) -> PyResult<Reply> {
    if let Ok(text) = value.cast::<PyString>() {
        return text_of(text).map(Reply::Text);
    }
    if value.is_none() {
        return Ok(Reply::Nothing);
    }
    if let Ok(bytes) = value.cast::<PyBytes>() {
        return json(bytes).map(Reply::Json);
    }
    if let Ok(pair) = value.cast::<PyTuple>()
        && let Ok((kind, bytes)) = pair.extract::<(u8, Bound<'_, PyBytes>)>()
    {
        match kind {
            BLOB => return Ok(Reply::Blob(STANDARD.encode(bytes.as_bytes()))),
            PARTS => return json(&bytes).map(Reply::Parts),
            RESULT => return json(&bytes).map(Reply::Result),
            QUESTIONS => return json(&bytes).map(Reply::Questions),
            _ => {}
        }
    }
    let py = value.py();
    Err(PyErr::from_value(calling::call(hooks(py)?.unknown_reply_type.bind(py), (value,))?))
}

/// Returns JSON on one line, because a line break would break the stream.
fn json(bytes: &Bound<'_, PyBytes>) -> PyResult<String> {
    let bytes = bytes.as_bytes();
    serde_json::from_slice::<serde::de::IgnoredAny>(bytes).map_err(|error| {
        pyo3::exceptions::PyValueError::new_err(format!(
            "the handler's result is not JSON: {error}"
        ))
    })?;
    let mut text = String::from_utf8(bytes.to_vec())?;
    if text.contains(['\n', '\r']) {
        text = text.replace(['\n', '\r'], " ");
    }
    Ok(text)
}

/// Never fails: an exception that can't be described is reported as such.
pub(crate) fn failure(py: Python<'_>, error: &PyErr, expose: &Py<PyAny>) -> Failure {
    describe(py, error, expose).unwrap_or_else(|problem| Failure::Exception {
        kind: error
            .get_type(py)
            .name()
            .map_or_else(|_| "exception".into(), |name| name.to_string_lossy().into_owned()),
        message: format!("it can't be described: {problem}"),
        traceback: String::new(),
    })
}

fn describe(py: Python<'_>, error: &PyErr, expose: &Py<PyAny>) -> PyResult<Failure> {
    // Attaches the traceback, which `value` omits.
    let thrown = error.clone_ref(py).into_value(py);
    let said = calling::call(hooks(py)?.describe.bind(py), (thrown, expose))?;
    Ok(Failure::described(said.cast::<PyBytes>()?.as_bytes()))
}
