//! The call object of a handler, and the slot for the answer of an `async def` handler.

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use gudgeon::{
    bindings::logs,
    engine::SpanDescription,
    protocol::{LoggingLevel, Method, Question, Raw},
    router::Failure,
    server::native_subject,
    session::{
        asking::QuestionKeys,
        server::{CallContext, Progress},
    },
};
use pyo3::{
    exceptions::{PyRuntimeError, PyValueError},
    prelude::*,
    sync::PyOnceLock,
    types::{PyBytes, PyDict, PyInt, PyString},
};
use serde_json::value::RawValue;

use crate::{
    asking::{Questions, python},
    asyncio_queue::Key,
    convert,
    error::raise,
    forks,
    handler::Registered,
    handler_run::HandlerRun,
    server::NativeServer,
    spans,
    stream::{DeferredCall, Stream, lock},
};

/// The values of a session, whether they are replaced, and their changes as JSON.
type SessionDict<'py> = (Bound<'py, PyDict>, bool, Vec<(String, Option<Bound<'py, PyBytes>>)>);

/// The context of one call.
#[pyclass(frozen)]
pub(crate) struct Call {
    stream: Arc<Stream>,
    run: Arc<HandlerRun>,
    is_async: bool,
    state: PyOnceLock<Py<PyDict>>,
    questions: PyOnceLock<Py<PyDict>>,
    keys: Mutex<QuestionKeys>,
    steps: PyOnceLock<Py<PyDict>>,
    /// `true` after a question was asked, until its round ends.
    asks: AtomicBool,
}

impl Call {
    pub(crate) fn new(stream: &Arc<Stream>, run: &Arc<HandlerRun>) -> Self {
        Self {
            stream: Arc::clone(stream),
            run: Arc::clone(run),
            is_async: run.handler.is_async(),
            state: PyOnceLock::new(),
            questions: PyOnceLock::new(),
            keys: Mutex::default(),
            steps: PyOnceLock::new(),
            asks: AtomicBool::new(false),
        }
    }

    /// A thread that may block writes everything; the event loop's thread writes as much as there is room for.
    pub(crate) fn flush(&self, py: Python<'_>) {
        match self.is_async {
            true => self.stream.server.try_flush(),
            false => py.detach(|| self.stream.server.flush()),
        }
        self.stream.update_timer();
    }
}

#[pymethods]
impl Call {
    /// The Python server.
    #[getter]
    fn app(&self, py: Python<'_>) -> Py<PyAny> {
        self.stream.app.clone_ref(py)
    }

    /// The registration of the native handler that the middleware runs around: its kind, its key in the server that it belongs to
    /// (of a template empty), and the argument of a completion.
    #[getter]
    fn native_subject(&self) -> Option<(&'static str, String, String)> {
        let subject = native_subject(self.run.native.as_ref()?)?;
        Some((subject.kind, subject.key.clone(), subject.argument.clone()))
    }

    /// Passes the call on to the native handler that the middleware runs around, with this input. `resolve(result, failure)` is
    /// called with one of both, as JSON; from any thread.
    fn pass_on(&self, input: &[u8], resolve: Py<PyAny>) -> PyResult<()> {
        let input = String::from_utf8(input.to_vec())?;
        self.stream.run_natively(&self.run, self.run.native.as_ref(), input, resolve)
    }

    /// Reads a resource of an upstream server of this server. Returns false if there is none with this URI; `resolve` is called as by
    /// `pass_on`.
    fn read_upstream(
        &self,
        server: &NativeServer,
        uri: &str,
        resolve: Py<PyAny>,
    ) -> PyResult<bool> {
        let Some((handler, input)) = server.upstream_resource(uri) else { return Ok(false) };
        self.stream.run_natively(&self.run, Some(&handler), input, resolve)?;
        Ok(true)
    }

    /// The request id; `None` for a notification.
    #[getter]
    fn request_id<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let Some(id) = self.run.look(|context| context.request_id.clone()) else { return Ok(None) };
        let text = id.as_json();
        if text.starts_with('"') {
            let id: String = serde_json::from_str(text)
                .map_err(|error| PyValueError::new_err(error.to_string()))?;
            return Ok(Some(PyString::new(py, &id).into_any()));
        }
        py.get_type::<PyInt>().call1((text,)).map(Some)
    }

    #[getter]
    fn revision(&self) -> &'static str {
        self.run.look(CallContext::spoken)
    }

    /// The request's `_meta`, as JSON.
    #[getter]
    fn meta(&self) -> Option<String> {
        self.run.look(|context| text(context.meta.as_deref()))
    }

    /// The address that the client calls from, if known.
    #[getter]
    fn remote(&self) -> Option<String> {
        self.run.look(|context| context.remote.map(|remote| remote.to_string()))
    }

    /// Returns the span of the request for this method, of the tool or prompt `name`: its name, its attributes, the values that
    /// propagators read, and the `traceparent` of a span to link.
    #[pyo3(signature = (method, name))]
    fn span<'py>(
        &self,
        py: Python<'py>,
        method: &str,
        name: Option<&str>,
    ) -> PyResult<spans::Span<'py>> {
        let uri = self.run.subject.as_ref().and_then(|subject| subject.uri.as_deref());
        let describe = |context: &CallContext| SpanDescription::new(method, name, uri, context);
        spans::to_python(py, self.run.look(describe))
    }

    /// Returns the event that ready-made middleware logs: its logger, its text and its fields. `text` are the params or the error, as
    /// far as they are to be logged; `after` is in seconds.
    #[pyo3(signature = (stage, method, named, text, after))]
    fn describe_request<'py>(
        &self,
        py: Python<'py>,
        stage: &str,
        method: &str,
        named: Option<&str>,
        text: Option<&str>,
        after: f64,
    ) -> PyResult<(String, String, Bound<'py, PyDict>)> {
        let after = Duration::try_from_secs_f64(after).unwrap_or_default();
        let event = self
            .run
            .look(|context| logs::request_event(stage, method, named, text, after, Some(context)));
        let fields = crate::logs::fields_of(py, &event.fields)?;
        Ok((event.logger, event.message, fields))
    }

    /// The client's `Implementation`, as JSON.
    #[getter]
    fn client_info(&self) -> Option<String> {
        self.run.look(|context| text(context.client.info.as_deref()))
    }

    /// The capabilities that the client declared, as JSON.
    #[getter]
    fn client_capabilities(&self) -> Option<String> {
        self.run.look(|context| text(context.client.capabilities.as_deref()))
    }

    #[getter]
    pub(crate) fn cancelled(&self) -> bool {
        self.run.is_cancelled()
    }

    #[getter]
    fn is_async(&self) -> bool {
        self.is_async
    }

    /// A dictionary with the lifetime of this call.
    #[getter]
    fn state(&self, py: Python<'_>) -> Py<PyDict> {
        self.state.get_or_init(py, || PyDict::new(py).unbind()).clone_ref(py)
    }

    /// Runs a `def` handler behind middleware on a thread of the pool, in this `contextvars.Context`; `resolve(reply,
    /// error)` is called from there.
    fn run_deferred(
        slf: &Bound<'_, Self>,
        registered: &Registered,
        context: Py<PyAny>,
        raw: &[u8],
        resolve: Py<PyAny>,
    ) -> PyResult<()> {
        let input = String::from_utf8(raw.to_vec())
            .map_err(|error| PyValueError::new_err(error.to_string()))?;
        let this = slf.get();
        this.stream.start_deferred(DeferredCall {
            handler: Arc::clone(&registered.handler),
            input,
            run: Arc::clone(&this.run),
            context,
            call: slf.clone().into_any().unbind(),
            resolve,
        });
        Ok(())
    }

    /// The generated keys of this call's questions so far.
    #[getter]
    fn questions(&self, py: Python<'_>) -> Py<PyDict> {
        self.questions.get_or_init(py, || PyDict::new(py).unbind()).clone_ref(py)
    }

    /// The results of this call's steps so far, by key.
    #[getter]
    fn steps(&self, py: Python<'_>) -> Py<PyDict> {
        self.steps.get_or_init(py, || PyDict::new(py).unbind()).clone_ref(py)
    }

    /// The number of later requests that this handler was resumed for; values derived from a request are valid for one
    /// number.
    #[getter]
    fn turn(&self) -> u32 {
        self.run.turn()
    }

    /// The result that a step had in an earlier run, as JSON.
    fn step_before<'py>(&self, py: Python<'py>, key: &str) -> Option<Bound<'py, PyBytes>> {
        let gave = self.run.look(|context| context.answers.step(key));
        gave.map(|result| PyBytes::new(py, result.get().as_bytes()))
    }

    /// Records the result of a step, as JSON.
    fn step_done(&self, py: Python<'_>, key: &str, gave: &[u8]) -> PyResult<()> {
        let gave = json(gave)?;
        py.detach(|| self.stream.server.step(self.run.id, key, gave));
        Ok(())
    }

    /// The answer that came with this call, as JSON; `params` is JSON.
    fn answer<'py>(
        &self,
        py: Python<'py>,
        key: &str,
        method: &str,
        params: &[u8],
    ) -> PyResult<Option<Bound<'py, PyBytes>>> {
        let params = std::str::from_utf8(params)
            .map_err(|error| PyValueError::new_err(error.to_string()))?;
        let method = question(method)?;
        let answer = self.run.look(|context| context.answers.get(key, method, params));
        Ok(answer.map(|answer| PyBytes::new(py, answer.get().as_bytes())))
    }

    /// Rejects the answer that came with this call because of `problem`. Returns the failure if the question can't be
    /// asked again; None otherwise.
    fn refuse<'py>(
        &self,
        py: Python<'py>,
        key: String,
        method: &str,
        params: &[u8],
        problem: &str,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        let question = Question { key, method: question(method)?, params: json(params)? };
        match self.run.look(|context| context.answers.refuse(&question, problem)) {
            Ok(()) => Ok(None),
            Err(fault) => python(py, Err(fault))?.get_item(1).map(Some),
        }
    }

    /// Returns the next generated key of a question, inside the step with this key if there is one.
    fn next_key(&self, method: &str, step: Option<&str>) -> PyResult<String> {
        Ok(lock(&self.keys).next(question(method)?, step))
    }

    /// Begins to ask questions together: each a key, a method and its params as JSON.
    fn ask(
        slf: &Bound<'_, Self>,
        questions: Vec<(String, String, Vec<u8>)>,
    ) -> PyResult<Questions> {
        let read = |(key, method, params): (String, String, Vec<u8>)| {
            Ok(Question { key, method: question(&method)?, params: json(&params)? })
        };
        let questions = questions.into_iter().map(read).collect::<PyResult<Vec<_>>>()?;
        let (call, this) = (slf.clone().unbind(), slf.get());
        this.run.begin_asking();
        let asked =
            this.run.look(|context| this.stream.waiting.ask(this.run.id, questions, context));
        Ok(Questions { call, stream: Arc::clone(&this.stream), asked })
    }

    /// Returns `true` for the first question of a round; the caller must then end the round.
    fn begins_round(&self) -> bool {
        !self.asks.swap(true, Ordering::AcqRel)
    }

    /// Ends a round: all current questions have been asked. `blocks`: a thread waits for the answers.
    pub(crate) fn end_round(&self, py: Python<'_>, blocks: bool) {
        self.asks.store(false, Ordering::Release);
        py.detach(|| {
            let work = self.stream.server.waits(self.run.id, blocks);
            if !work.is_empty() {
                self.stream.distribute(work, false);
            }
        });
        self.flush(py);
    }

    /// Returns `true` if the call belongs to a session.
    #[getter]
    fn has_session(&self) -> bool {
        self.run.look(CallContext::has_session)
    }

    /// Returns a dictionary with the lifetime of the session, whether its values are to be removed, and its changes in the store since the
    /// last call: names with values as JSON, and with None the names that were removed.
    fn session<'py>(&self, py: Python<'py>) -> PyResult<SessionDict<'py>> {
        let read = |context: &CallContext| {
            (Arc::clone(&context.client), context.session_values.as_deref().cloned())
        };
        let (client, stored) = self.run.look(read);
        let fresh = PyDict::new(py);
        let new = || fresh.clone().unbind();
        let mut sessions = lock(&self.stream.sessions);
        let (values, replaces, changes) = match stored {
            None => {
                client.keep_values();
                (sessions.entry(&client, new).clone_ref(py), false, Vec::new())
            }
            Some(Ok(stored)) => {
                let (values, update) = sessions.with_values(&client, &stored, new);
                let values = values.clone_ref(py);
                self.run.session.get_or_init(|| values.clone_ref(py));
                (values, update.replaces, update.changes)
            }
            Some(Err(reason)) => {
                let text = format!("ctx.session can't be read: {reason}");
                return Err(PyRuntimeError::new_err(text));
            }
        };
        let ended = sessions.take_ended();
        drop(sessions);
        // Outside the lock, because that may run Python code.
        drop(ended);
        let bytes = |value: Raw| PyBytes::new(py, value.get().as_bytes());
        let changes = changes.into_iter().map(|(name, value)| (name, value.map(bytes))).collect();
        Ok((values.into_bound(py), replaces, changes))
    }

    /// The session id; HTTP only.
    #[getter]
    fn session_id(&self) -> Option<String> {
        self.run.look(|context| context.http.as_ref()?.session_id.as_deref().map(ToOwned::to_owned))
    }

    /// The principal, as JSON.
    #[getter]
    fn principal(&self) -> Option<String> {
        let principal = self.run.look(|context| context.principal.clone())?;
        serde_json::to_string(&*principal).ok()
    }

    /// The headers of the HTTP request, names and values, in the order received.
    #[getter]
    fn headers(&self) -> Vec<(String, String)> {
        let Some(http) = self.run.look(|context| context.http.clone()) else { return Vec::new() };
        let text = |value: &[u8]| String::from_utf8(value.to_vec());
        let latin = |value: &[u8]| value.iter().copied().map(char::from).collect();
        http.headers
            .iter()
            .map(|(name, value)| {
                let value = value.as_bytes();
                (name.as_str().to_owned(), text(value).unwrap_or_else(|_| latin(value)))
            })
            .collect()
    }

    /// Closes the response stream; the client reconnects for the answer, after `retry` seconds if given.
    #[pyo3(signature = (retry = None))]
    fn close_stream(&self, py: Python<'_>, retry: Option<f64>) {
        let retry = retry.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
        py.detach(|| self.stream.server.close_stream(self.run.id, retry));
    }

    /// Returns `true` if the peer reads fast enough for more to be sent.
    #[getter]
    fn has_room(&self) -> bool {
        !self.stream.server.is_full() || self.stream.server.is_broken()
    }

    #[pyo3(signature = (progress, total, message))]
    fn progress(&self, py: Python<'_>, progress: f64, total: Option<f64>, message: Option<String>) {
        if self.run.look(|context| context.wants_progress) && !self.cancelled() {
            let step = Progress { progress, total, message };
            self.stream.server.progress(self.run.id, step);
            self.flush(py);
        }
    }

    /// `data` is JSON.
    #[pyo3(signature = (level, logger, data))]
    fn log(
        &self,
        py: Python<'_>,
        level: &str,
        logger: Option<String>,
        data: &[u8],
    ) -> PyResult<()> {
        let level: LoggingLevel = level.parse().map_err(|error| raise(&error))?;
        let data = json(data)?;
        if !self.cancelled() {
            self.stream.server.log(self.run.id, level, logger, data);
            self.flush(py);
        }
        Ok(())
    }
}

fn text(raw: Option<&RawValue>) -> Option<String> {
    raw.map(|raw| raw.get().to_owned())
}

fn json(text: &[u8]) -> PyResult<Raw> {
    serde_json::from_slice(text).map_err(|error| PyValueError::new_err(error.to_string()))
}

fn question(method: &str) -> PyResult<Method> {
    Method::parse(method)
        .ok_or_else(|| PyValueError::new_err(format!("{method:?} is not a method of a question")))
}

/// The slot for the answer of an `async def` handler: it is filled exactly once, also when the coroutine is dropped.
#[pyclass(frozen)]
#[derive(Debug)]
pub(crate) struct Slot {
    stream: Arc<Stream>,
    run: Arc<HandlerRun>,
    key: Key,
    answered: AtomicBool,
}

impl Slot {
    pub(crate) fn new(stream: &Arc<Stream>, run: &Arc<HandlerRun>, key: Key) -> Self {
        Self {
            stream: Arc::clone(stream),
            run: Arc::clone(run),
            key,
            answered: AtomicBool::new(false),
        }
    }

    pub(crate) fn is_answered(&self) -> bool {
        self.answered.load(Ordering::Acquire)
    }

    fn answer(&self, py: Python<'_>, result: PyResult<Bound<'_, PyAny>>) {
        if !self.answered.swap(true, Ordering::AcqRel) {
            if self.stream.is_forked_copy() {
                return forks::leave_unless_cancelled(py, &result);
            }
            let outcome = convert::outcome(py, result, &self.run.handler.expose);
            self.stream.asyncio_queue.finished(self.key);
            self.stream.returned(py, &self.run, outcome);
            self.stream.asyncio_queue.flush_soon(py, &self.stream);
        }
    }
}

#[pymethods]
impl Slot {
    #[expect(clippy::needless_pass_by_value, reason = "that is how it comes from Python")]
    fn reply(&self, result: Bound<'_, PyAny>) {
        self.answer(result.py(), Ok(result.clone()));
    }

    #[expect(clippy::needless_pass_by_value, reason = "that is how it comes from Python")]
    fn fail(&self, error: Bound<'_, PyAny>) {
        self.answer(error.py(), Err(PyErr::from_value(error.clone())));
    }
}

impl Slot {
    /// Reports that the handler ended without an answer.
    pub(crate) fn give_up(&self) {
        if !self.answered.swap(true, Ordering::AcqRel) && !self.stream.is_forked_copy() {
            self.stream.asyncio_queue.finished(self.key);
            self.stream.done(&self.run, Failure::Cancelled.into());
            self.stream.server.try_flush();
            self.stream.update_timer();
        }
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.give_up();
    }
}
