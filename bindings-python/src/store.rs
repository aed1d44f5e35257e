//! Stores of a Python program.

use std::{fmt, sync::Arc};

use gudgeon::{
    bindings::{host_store::HostStore, store},
    replier::Replier,
    store::{StoreEngine, StoreOperation, StoreReply},
    testing,
};
use pyo3::{PyTraverseError, PyVisit, exceptions::PyAssertionError, prelude::*};
use tokio::{runtime::Handle, sync::Semaphore};

use crate::{client_runtime::runtime, hooks};

/// The maximum number of operations that hold a thread. One that never returns holds it for good.
const MAX_RUNNING: usize = 256;

/// Calls a Python function on a thread for functions that block.
pub(crate) struct PythonStore {
    call: Arc<Py<PyAny>>,
    running: Arc<Semaphore>,
}

impl PythonStore {
    /// `call(operation)` carries out an operation and returns the reply, both as JSON.
    pub(crate) fn new(call: Py<PyAny>) -> Self {
        Self { call: Arc::new(call), running: Arc::new(Semaphore::new(MAX_RUNNING)) }
    }

    pub(crate) fn traverse(&self, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&*self.call)
    }
}

impl StoreEngine for PythonStore {
    fn run(&self, operation: StoreOperation, reply: Replier<StoreReply>) {
        let (call, running) = (Arc::clone(&self.call), Arc::clone(&self.running));
        // Without a thread the reply is dropped, which reports a failure.
        let handle = Handle::try_current().or_else(|_| runtime().map(|own| own.handle().clone()));
        let (Ok(handle), Ok(permit)) = (handle, running.try_acquire_owned()) else { return };
        handle.spawn_blocking(move || {
            let replied = Python::attach(|py| {
                let replied = call.bind(py).call1((store::operation(&operation).as_bytes(),));
                let replied = replied.and_then(|reply| reply.extract::<Vec<u8>>());
                drop(call);
                replied.map_err(|error| {
                    let error = error.into_value(py).into_any();
                    hooks::report_exception(py, "store: an operation can't be carried out", &error);
                })
            });
            drop(permit);
            reply.send(match replied {
                Ok(json) => store::reply(operation.name(), &json),
                Err(()) => StoreReply::Failed("an operation can't be carried out".into()),
            });
        });
    }
}

impl fmt::Debug for PythonStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PythonStore")
    }
}

/// Checks a store, whose operations `call(operation)` carries out, and whose object has these methods. Raises `AssertionError` with the first rule that it does not
/// keep.
#[pyfunction]
pub(crate) fn check_store(py: Python<'_>, call: Py<PyAny>, methods: Vec<String>) -> PyResult<()> {
    let (runtime, object) = (runtime()?, Arc::new(PythonStore::new(call)));
    let store = HostStore::from_object(object, methods);
    py.detach(|| runtime.block_on(testing::check_engine(store.engine())))
        .map_err(|error| PyAssertionError::new_err(error.to_string()))
}
