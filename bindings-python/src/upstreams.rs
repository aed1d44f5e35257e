//! The upstream servers of a Python server.

use std::{
    sync::{Arc, Weak},
    thread,
};

use gudgeon::{
    bindings::upstreams::{AskProgram, SignInQuestion, outcome_json},
    driver::{Host, Work},
    router::{Failure, Handler, Reply, Visibility, find_resource},
    server::native_subject,
    session::server::CallContext,
};
use pyo3::{exceptions::PyValueError, prelude::*};

use crate::{
    calling,
    client_runtime::{remember_upstream, runtime},
    components::ServerComponents,
    handler_run::HandlerRun,
    server::NativeServer,
    stream::{Stream, lock},
};

/// Reaches the upstream servers of a stream, and runs the handlers of what they offer. Returns once they were tried, or after
/// a while.
pub(crate) fn start(
    py: Python<'_>,
    components: &ServerComponents,
    stream: &Arc<Stream>,
) -> PyResult<()> {
    let mounted = stream.upstreams.mounted();
    if mounted.is_empty() {
        return Ok(());
    }
    let runtime = runtime()?;
    let host = Arc::new(StreamHost(Arc::downgrade(stream)));
    *lock(&stream.upstream_serving) =
        stream.upstreams.serve(stream.server.endpoint(), host, runtime.handle());
    mounted.iter().for_each(remember_upstream);
    let registrar = components.registrar();
    py.detach(|| runtime.block_on(stream.upstreams.reach(&registrar)));
    Ok(())
}

impl NativeServer {
    /// Returns the handler that reads a resource of an upstream server, and its input; `None` if none has this URI.
    pub(crate) fn upstream_resource(&self, uri: &str) -> Option<(Handler, String)> {
        let components = self.components.snapshot();
        let job = find_resource(&components, uri.to_owned(), &Visibility::everything()).ok()?;
        native_subject(&job.handler)?;
        Some((job.handler, job.input))
    }
}

impl Stream {
    /// Runs a native handler within a run of a handler in Python. `resolve(result, failure)` is called with its outcome.
    pub(crate) fn run_natively(
        &self,
        run: &HandlerRun,
        handler: Option<&Handler>,
        input: String,
        resolve: Py<PyAny>,
    ) -> PyResult<()> {
        let serving = lock(&self.upstream_serving);
        let (Some(serving), Some(handler)) = (&*serving, handler) else {
            return Err(PyValueError::new_err("nothing is passed on after the server has ended"));
        };
        let resolver = Resolver(Some(resolve));
        let done = Box::new(move |outcome| resolver.resolve(outcome));
        let context = run.look(CallContext::clone);
        serving.native().pass_on(run.id, context, handler, input, done);
        Ok(())
    }
}

/// A function of Python that waits for the outcome of a native handler. Dropped, it gets that of a cancelled one, so that no thread
/// waits for ever after the server has ended.
struct Resolver(Option<Py<PyAny>>);

impl Resolver {
    fn resolve(mut self, outcome: Result<Reply, Failure>) {
        self.call(outcome);
    }

    fn call(&mut self, outcome: Result<Reply, Failure>) {
        let Some(resolve) = self.0.take() else { return };
        // While the interpreter ends nobody waits any more.
        Python::try_attach(|py| {
            if let Err(error) = calling::call(resolve.bind(py), outcome_json(outcome)) {
                error.write_unraisable(py, None);
            }
        });
    }
}

impl Drop for Resolver {
    fn drop(&mut self) {
        self.call(Err(Failure::Cancelled));
    }
}

/// A question of the client of an upstream server to the program, which helps it to sign in.
#[pyclass(name = "SignInQuestion")]
#[derive(Debug)]
pub(crate) struct NativeSignInQuestion {
    /// `None` once it was answered.
    question: Option<SignInQuestion>,
}

#[pymethods]
impl NativeSignInQuestion {
    /// The operation that the client needs, JSON.
    #[getter]
    fn params(&self) -> &[u8] {
        self.question.as_ref().map_or(&[], |question| question.params().as_bytes())
    }

    /// Answers with JSON. Returns the reason if the value is not an answer.
    fn answer(&mut self, given: &[u8]) -> Option<String> {
        self.question.take()?.answer(given)
    }

    /// Refuses with a reason, JSON.
    fn refuse(&mut self, reason: &[u8]) {
        if let Some(question) = self.question.take() {
            question.refuse(reason);
        }
    }
}

/// Returns the function that passes questions to Python, each on a thread of its own, because the answer may need a person.
pub(crate) fn asking(ask: Py<PyAny>) -> AskProgram {
    let ask = Arc::new(ask);
    Arc::new(move |question| {
        let ask = Arc::clone(&ask);
        let question = NativeSignInQuestion { question: Some(question) };
        let answer = move || {
            Python::attach(|py| {
                if let Err(error) = ask.bind(py).call1((question,)) {
                    error.write_unraisable(py, None);
                }
            });
        };
        // A question that is dropped is refused.
        let _ = thread::Builder::new().name("gudgeon-sign-in".into()).spawn(answer);
    })
}

/// Does the work that comes of native handlers.
struct StreamHost(Weak<Stream>);

impl Host for StreamHost {
    fn perform(&self, work: Work) {
        let Some(stream) = self.0.upgrade() else { return };
        if !work.is_empty() {
            stream.distribute(work, false);
        }
        stream.server.try_flush();
        stream.update_timer();
    }
}
