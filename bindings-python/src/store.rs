//! Stores of a Python program.

use std::{
    fmt,
    sync::{Arc, Mutex},
    thread,
};

use gudgeon::{
    bindings::{
        host_store::HostStore,
        store,
        store_object::{MessageFeed, StoreObject},
    },
    replier::Replier,
    store::{StoreOperation, StoreReply},
    testing,
};
use pyo3::{PyTraverseError, PyVisit, exceptions::PyAssertionError, prelude::*};
use tokio::{runtime::Handle, sync::Semaphore};

use crate::{client_runtime::runtime, hooks, stream::lock};

/// The maximum number of operations that hold a thread. One that never returns holds it for good.
const MAX_RUNNING: usize = 256;

/// Calls a Python object on threads for functions that block.
pub(crate) struct PythonStore {
    call: Arc<Py<PyAny>>,
    running: Arc<Semaphore>,
}

impl PythonStore {
    /// `call(operation)` carries out an operation and returns the reply, both as JSON. `call.subscribe(number, topics, feed)`
    /// begins to give `feed` messages, until `call.unsubscribe(number)`.
    pub(crate) fn new(call: Py<PyAny>) -> Self {
        Self { call: Arc::new(call), running: Arc::new(Semaphore::new(MAX_RUNNING)) }
    }

    pub(crate) fn traverse(&self, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&*self.call)
    }
}

impl PythonStore {
    /// Runs a function on a thread for functions that block. Without one the function is dropped.
    fn spawn(&self, run: impl FnOnce(&Py<PyAny>, Python<'_>) + Send + 'static) {
        let (call, running) = (Arc::clone(&self.call), Arc::clone(&self.running));
        let handle = Handle::try_current().or_else(|_| runtime().map(|own| own.handle().clone()));
        let (Ok(handle), Ok(permit)) = (handle, running.try_acquire_owned()) else { return };
        handle.spawn_blocking(move || {
            Python::attach(|py| {
                run(&call, py);
                drop(call);
            });
            drop(permit);
        });
    }
}

impl StoreObject for PythonStore {
    fn run(&self, operation: StoreOperation, reply: Replier<StoreReply>) {
        // Dropped, the reply reports a failure.
        self.spawn(move |call, py| {
            let replied = call.bind(py).call1((store::operation(&operation).as_bytes(),));
            let replied = replied.and_then(|reply| reply.extract::<Vec<u8>>());
            let replied = replied.map_err(|error| {
                let error = error.into_value(py).into_any();
                hooks::report_exception(py, "store: an operation can't be carried out", &error);
            });
            py.detach(|| {
                reply.send(match replied {
                    Ok(json) => store::reply(operation.name(), &json),
                    Err(()) => StoreReply::Failed("an operation can't be carried out".into()),
                });
            });
        });
    }

    fn subscribe(&self, number: u64, topics: Vec<String>, feed: MessageFeed) {
        self.spawn(move |call, py| {
            let feed = StoreFeed(Mutex::new(Some(feed)));
            let begun = call.bind(py).call_method1("subscribe", (number, topics, feed));
            if let Err(error) = begun {
                let error = error.into_value(py).into_any();
                hooks::report_exception(py, "store: its messages can't be received", &error);
            }
        });
    }

    fn unsubscribe(&self, number: u64) {
        let call = Arc::clone(&self.call);
        // Of its own, because the runtime may be ending. Without one the subscription ends with the loop of the server.
        let _ = thread::Builder::new().name("gudgeon-store".into()).spawn(move || {
            Python::try_attach(|py| {
                let ended = call.bind(py).call_method1("unsubscribe", (number,));
                drop(call);
                if let Err(error) = ended {
                    let error = error.into_value(py).into_any();
                    hooks::report_exception(py, "store: a subscription can't be ended", &error);
                }
            });
        });
    }
}

/// Takes the messages of a subscription.
#[pyclass(frozen)]
#[derive(Debug)]
pub(crate) struct StoreFeed(Mutex<Option<MessageFeed>>);

#[pymethods]
impl StoreFeed {
    /// Says that all messages from now on come.
    fn connected(&self, py: Python<'_>) {
        py.detach(|| {
            if let Some(feed) = &*lock(&self.0) {
                feed.connected();
            }
        });
    }

    fn message(&self, py: Python<'_>, topic: String, message: Vec<u8>) {
        py.detach(|| {
            if let Some(feed) = &*lock(&self.0) {
                feed.message(topic, message);
            }
        });
    }

    /// Says that nothing more comes. Returns `True` if that is to be reported.
    fn close(&self) -> bool {
        let feed = lock(&self.0).take();
        feed.is_some_and(|feed| feed.is_first_failure())
    }
}

impl fmt::Debug for PythonStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PythonStore")
    }
}

/// Checks a store, whose operations `call(operation)` carries out, and whose object has these methods. Raises `AssertionError` with
/// the first rule that it does not keep.
#[pyfunction]
pub(crate) fn check_store(py: Python<'_>, call: Py<PyAny>, methods: Vec<String>) -> PyResult<()> {
    let (runtime, object) = (runtime()?, Arc::new(PythonStore::new(call)));
    let store = HostStore::from_object(object, methods);
    py.detach(|| runtime.block_on(testing::check_engine(store.engine(), "check_store")))
        .map_err(|error| PyAssertionError::new_err(error.to_string()))
}
