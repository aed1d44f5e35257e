//! Python's clients: requests are started with a ticket, and their outcomes arrive in a mailbox.

use std::{
    os::{
        fd::{BorrowedFd, OwnedFd},
        unix::net::UnixStream,
    },
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering},
    },
};

use gudgeon::{
    Client,
    bindings::{
        client_operation::{apply_options, operation},
        client_questions::Questions,
        client_roots,
        client_settings::ClientSettings,
        client_target::{ConfiguredTarget, stream_target},
        options::Problem,
        subscriptions::OpenSubscriptions,
    },
    client::{ClientBuilder, Member, OperationReply, ServerIdentity},
    error::{Error, Language},
    protocol::{Raw, SubscriptionFilter, json},
};
use pyo3::{exceptions::PyValueError, prelude::*, types::PyBytes};
use serde::de::DeserializeOwned;

use crate::{
    client_calls::Calls,
    client_connected::Connected,
    client_error::{error_json, middleware_failed},
    client_mailbox::{Content, Entries, Mailbox},
    client_runtime::{remember, runtime},
    client_subscriptions::to_tuple,
    error::raise,
    options::raised,
    stream::lock,
};

/// One counter for tickets and clients.
static NEXT: AtomicU64 = AtomicU64::new(1);

/// A client. It performs no IO before `connect`.
#[pyclass(frozen, name = "Client")]
#[derive(Debug)]
pub(crate) struct NativeClient {
    shared: Arc<Connected>,
    options: ClientSettings,
    process: u32,
}

/// The address or the command of a server.
#[pyclass(frozen, name = "Place")]
#[derive(Debug)]
pub(crate) struct NativePlace(pub(crate) ConfiguredTarget);

#[pymethods]
impl NativePlace {
    /// Reads a URL, a command, or an entry of a host's configuration, and the headers of the client's options, as JSON.
    #[new]
    fn new(given: &[u8], headers: &[u8]) -> PyResult<Self> {
        ConfiguredTarget::read(Language::Python, given, headers)
            .map(Self)
            .map_err(|error| refused("Client", error))
    }

    /// Checks the headers of the client's options for any other target, which takes none.
    #[staticmethod]
    fn check_headers(headers: &[u8]) -> PyResult<()> {
        ConfiguredTarget::check_headers(Language::Python, headers)
            .map_err(|error| refused("Client", error))
    }

    /// The server's name in errors.
    #[getter]
    fn name(&self) -> String {
        self.0.name()
    }
}

#[pymethods]
impl NativeClient {
    #[new]
    fn new(options: &[u8]) -> PyResult<Self> {
        let options = ClientSettings::parse(options).map_err(|error| refused("Client", error))?;
        let shared = Connected {
            number: next(),
            client: Mutex::default(),
            home: Mutex::default(),
            calls: Calls::default(),
            inner_calls: Calls::default(),
            middleware: Arc::default(),
            questions: Questions::new(Language::Python),
            subscriptions: OpenSubscriptions::default(),
        };
        Ok(Self { shared: Arc::new(shared), options, process: std::process::id() })
    }

    /// The client's number in events that belong to no request.
    #[getter]
    fn number(&self) -> u64 {
        self.shared.number
    }

    /// The session id; legacy HTTP only.
    fn session_id(&self) -> Option<String> {
        self.shared.connected().as_ref().and_then(Client::session_id)
    }

    /// Returns the server's description of itself as JSON; None if it was not reached.
    fn identity<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyBytes>> {
        let client = self.shared.connected()?;
        Some(PyBytes::new(py, describe(&client.server()).get().as_bytes()))
    }

    /// Connects to the server at a place; `group` is its name in a group. Returns the ticket.
    #[pyo3(signature = (mailbox, place, group = None))]
    fn connect(
        &self,
        mailbox: &Mailbox,
        place: &NativePlace,
        group: Option<String>,
    ) -> PyResult<u64> {
        self.check_process()?;
        self.open(mailbox, self.options.builder_for(&place.0), group)
    }

    /// Connects to a server in memory. `stream` is one end of a socket pair, which is duplicated; `group` is the
    /// server's name in a group. Returns the ticket.
    #[pyo3(signature = (mailbox, name, stream, group = None))]
    fn connect_stream(
        &self,
        mailbox: &Mailbox,
        name: String,
        stream: i32,
        group: Option<String>,
    ) -> PyResult<u64> {
        self.check_process()?;
        let stream = UnixStream::from(duplicate(stream)?);
        let target = {
            let _inside = runtime()?.enter();
            stream_target(stream, name)?
        };
        self.open(mailbox, self.options.builder(target), group)
    }

    /// Records that the server with this name in a group can't be started, with the reason.
    fn fail(&self, group: String, why: &str) {
        *lock(&self.shared.client) = Some(Member::failed(group, why));
    }

    /// Starts an operation: its name, its params, and its options. Returns the ticket.
    #[pyo3(signature = (mailbox, name, params, call_options = None, wants_progress = false))]
    fn call(
        &self,
        mailbox: &Mailbox,
        name: &str,
        params: &[u8],
        call_options: Option<&[u8]>,
        wants_progress: bool,
    ) -> PyResult<u64> {
        let client = self.client()?;
        let operation = operation(name, params).map_err(|error| raise(&error))?;
        let mut options = client.options();
        if let Some(call_options) = call_options {
            apply_options(&mut options, call_options).map_err(|error| raise(&error))?;
        }
        let ticket = next();
        if wants_progress {
            let entries = Arc::clone(&mailbox.0);
            let client = Some(self.shared.number);
            options.on_progress =
                Some(Arc::new(move |step| entries.push(client, ticket, Content::Progress(step))));
        }
        self.shared.calls.start(Some(self.shared.number), ticket, &mailbox.0, async move {
            client.call(operation, options).await
        })
    }

    /// Cancels a request: the server is notified, and nothing more arrives for this ticket.
    fn cancel(&self, mailbox: &Mailbox, ticket: u64) {
        self.shared.calls.cancel(ticket);
        self.shared.inner_calls.cancel(ticket);
        self.shared.subscriptions.leave(ticket);
        mailbox.0.forget(ticket);
    }

    /// Subscribes to a filter, as on the wire. Returns the ticket, which identifies the subscription from then on.
    fn subscribe(&self, mailbox: &Mailbox, filter: &[u8]) -> PyResult<u64> {
        let client = self.client()?;
        let filter: SubscriptionFilter = read(filter)?;
        let (ticket, shared) = (next(), Arc::clone(&self.shared));
        self.shared.calls.start(Some(self.shared.number), ticket, &mailbox.0, async move {
            let subscription = client.subscribe_to(&filter).await?;
            let keep = || shared.subscriptions.keep(ticket, subscription.into());
            shared.calls.unless_cancelled(ticket, keep);
            Ok(json::raw("{}".into()).into())
        })
    }

    /// Waits for the next event of a subscription. Returns the ticket.
    fn await_change(&self, mailbox: &Mailbox, subscription: u64) -> PyResult<u64> {
        self.check_process()?;
        let ready = self.shared.subscriptions.ready(subscription);
        self.start(&mailbox.0, async move {
            ready.await;
            Ok(json::raw("{}".into()).into())
        })
    }

    /// Returns `(kind, uri, None)`, `("failed", error, None)` or `("end", None, None)`; None if there is no event yet.
    fn take_change<'py>(
        &self,
        py: Python<'py>,
        subscription: u64,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        let taken = self.shared.subscriptions.take(subscription);
        taken.map(|change| to_tuple(change, py)).transpose()
    }

    fn unsubscribe(&self, subscription: u64) {
        self.shared.subscriptions.leave(subscription);
    }

    fn notify(&self, method: &str, params: &[u8]) -> PyResult<()> {
        let params: Raw = read(params)?;
        self.client()?.notify(method, params).map_err(|error| raise(&error))
    }

    /// Reads roots, JSON, and sets them. Returns an error as JSON if the server does not allow that.
    fn set_roots<'py>(
        &self,
        py: Python<'py>,
        roots: &[u8],
    ) -> PyResult<Option<Bound<'py, PyBytes>>> {
        let roots = client_roots::read(roots).map_err(|error| refused("set_roots()", error))?;
        let refused = self.client()?.set_roots(roots).err();
        Ok(refused.map(|error| PyBytes::new(py, error_json(&error).as_bytes())))
    }

    /// Events that belong to no request arrive in this mailbox from now on, also those that were not taken yet.
    fn move_to(&self, mailbox: &Mailbox) {
        let mut home = lock(&self.shared.home);
        if let Some(former) = home.replace(Arc::clone(&mailbox.0)) {
            former.move_to(self.shared.number, &mailbox.0);
        }
    }

    /// Answers a question of the server by the value that a callback returned, as JSON. Returns the problem of a value
    /// that is not an answer.
    fn answer(&self, number: u32, given: &[u8]) -> Option<String> {
        self.shared.questions.answer(number, given)
    }

    /// Rejects a question of the server with a reason, as JSON.
    fn refuse(&self, number: u32, why: &[u8]) {
        self.shared.questions.refuse(number, why);
    }

    /// Sends the request of a run of middleware with these params, JSON. The outcome arrives under this ticket, or else
    /// under a new one. Returns the ticket.
    #[pyo3(signature = (mailbox, run, params, ticket = None))]
    fn middleware_next(
        &self,
        mailbox: &Mailbox,
        run: u32,
        params: &[u8],
        ticket: Option<u64>,
    ) -> PyResult<u64> {
        let sent = self.shared.middleware.next(run, params);
        let ticket = ticket.unwrap_or_else(next);
        self.shared.inner_calls.start(Some(self.shared.number), ticket, &mailbox.0, sent)
    }

    /// Ends a run of middleware with its result, JSON.
    fn middleware_finish(&self, run: u32, result: &[u8]) {
        self.shared.middleware.finish(run, result);
    }

    /// Ends a run of middleware with its exception.
    fn middleware_fail(&self, run: u32, exception: &Bound<'_, PyAny>) {
        self.shared.middleware.fail(run, middleware_failed(exception));
    }

    /// Closes the connection. Returns the ticket.
    fn close(&self, mailbox: &Mailbox) -> PyResult<u64> {
        self.check_process()?;
        let client = lock(&self.shared.client).take();
        self.start(&mailbox.0, async move {
            if let Some(client) = client {
                client.close().await;
            }
            Ok(json::raw("{}".into()).into())
        })
    }
}

pub(crate) fn refused(place: &str, problem: Problem) -> PyErr {
    let Problem { message, is_range, shows_value } = problem;
    let message = format!("{place}: {message}");
    raised(&Problem { message, is_range, shows_value }, String::new)
}

impl NativeClient {
    fn open(
        &self,
        mailbox: &Mailbox,
        builder: Result<ClientBuilder, Error>,
        group: Option<String>,
    ) -> PyResult<u64> {
        let builder = builder.map_err(|error| raise(&error))?;
        let builder = if group.is_some() { builder.for_group() } else { builder };
        let builder =
            self.shared.authorize(builder, &self.options).map_err(|error| raise(&error))?;
        let builder = self.shared.listen(builder, &self.options);
        let member =
            Member::new(group.unwrap_or_default(), builder).map_err(|error| raise(&error))?;
        *lock(&self.shared.home) = Some(Arc::clone(&mailbox.0));
        remember(&self.shared);
        *lock(&self.shared.client) = Some(Arc::clone(&member));
        self.start(&mailbox.0, async move {
            let client = member.connect().await?;
            Ok(describe(&client.server()).into())
        })
    }

    /// Returns the client as a member of a group.
    pub(crate) fn member(&self) -> Option<Arc<Member>> {
        lock(&self.shared.client).clone()
    }

    fn client(&self) -> PyResult<Client> {
        self.check_process()?;
        let client = self.shared.connected();
        client.ok_or_else(|| PyValueError::new_err("this client is not connected"))
    }

    /// The IO thread does not exist in a forked process.
    fn check_process(&self) -> PyResult<()> {
        if self.process == std::process::id() {
            return Ok(());
        }
        Err(PyValueError::new_err(
            "this client was made before the process was forked: make one in each process",
        ))
    }

    fn start(
        &self,
        entries: &Arc<Entries>,
        doing: impl Future<Output = Result<OperationReply, Error>> + Send + 'static,
    ) -> PyResult<u64> {
        self.shared.calls.start(Some(self.shared.number), next(), entries, doing)
    }
}

impl Drop for NativeClient {
    fn drop(&mut self) {
        if self.process != std::process::id() {
            // The other end belongs to another process.
            std::mem::forget(Arc::clone(&self.shared));
        }
    }
}

/// Returns a duplicate of the descriptor.
fn duplicate(fd: i32) -> std::io::Result<OwnedFd> {
    if fd < 0 {
        return Err(std::io::Error::new(
            std::io::ErrorKind::InvalidInput,
            "no file descriptor is negative",
        ));
    }
    // SAFETY: it is borrowed for as long as it takes to duplicate it; a closed one is an error of `fcntl`.
    #[expect(unsafe_code, reason = "descriptors come from Python as numbers")]
    let fd = unsafe { BorrowedFd::borrow_raw(fd) };
    Ok(rustix::io::fcntl_dupfd_cloexec(fd, 3)?)
}

/// Returns the server's description of itself as JSON.
pub(crate) fn describe(server: &ServerIdentity) -> Raw {
    let mut out = json::ObjectWriter::with_capacity(256);
    out.member("info", &server.info)
        .member("revision", server.spoken().name())
        .raw("capabilities", server.capabilities.get())
        .member("instructions", &server.instructions);
    json::raw(out.finish())
}

pub(crate) fn next() -> u64 {
    NEXT.fetch_add(1, Ordering::Relaxed)
}

fn read<T: DeserializeOwned>(json: &[u8]) -> PyResult<T> {
    serde_json::from_slice(json).map_err(|error| PyValueError::new_err(error.to_string()))
}
