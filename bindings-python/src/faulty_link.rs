//! The faults of a test's connection.

use std::sync::Mutex;

use gudgeon::bindings::faulty_link::{self, Delivery, Faults};
use pyo3::{
    prelude::*,
    types::{PyBytes, PyList},
};

use crate::{error::raise, stream::lock};

/// Drops, repeats or delivers each message between a test's client and its server.
#[pyclass(frozen)]
#[derive(Debug)]
pub(crate) struct FaultyLink(Mutex<faulty_link::FaultyLink>);

/// `True` to restart the server first, then the messages for the server and those for the client.
type PythonDelivery<'py> = PyResult<(bool, Bound<'py, PyList>, Bound<'py, PyList>)>;

#[pymethods]
impl FaultyLink {
    #[new]
    fn new(seed: i64, drop: f64, duplicate: f64, restart_between_rounds: bool) -> PyResult<Self> {
        let faults = Faults { seed, drop, duplicate, restart_between_rounds };
        let link = faulty_link::FaultyLink::new(faults).map_err(|error| raise(&error))?;
        Ok(Self(Mutex::new(link)))
    }

    /// Returns the delivery of a message of the client.
    fn sent_by_client<'py>(&self, py: Python<'py>, message: &[u8]) -> PythonDelivery<'py> {
        to_python(py, lock(&self.0).sent_by_client(&String::from_utf8_lossy(message)))
    }

    /// Returns the delivery of a message of the server.
    fn sent_by_server<'py>(&self, py: Python<'py>, message: &[u8]) -> PythonDelivery<'py> {
        to_python(py, lock(&self.0).sent_by_server(&String::from_utf8_lossy(message)))
    }
}

fn to_python(py: Python<'_>, delivery: Delivery) -> PythonDelivery<'_> {
    let Delivery { restarts_server, to_server, to_client } = delivery;
    let list = |messages: Vec<String>| {
        PyList::new(py, messages.iter().map(|message| PyBytes::new(py, message.as_bytes())))
    };
    Ok((restarts_server, list(to_server)?, list(to_client)?))
}
