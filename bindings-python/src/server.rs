//! The registrations of a Python server, and the streams to notify of changes.

use std::{
    os::fd::BorrowedFd,
    path::PathBuf,
    sync::{Arc, OnceLock, Weak},
};

use gudgeon::{
    auth::server::config::AuthConfig,
    bindings::{
        client_settings::ClientSettings, host_store::HostStore, http_options::HttpOptions,
        upstreams::Upstreams, worker_group,
    },
    driver::{EndpointServer, auth_config},
    error::{Error, Language},
    http::EndpointConfig,
    router::{
        AnyRegistry, Components, Definition, List, Middleware, Registrar as _, ServerFacts,
        Visibility, find_resource, late_route,
    },
    session::server::ListKind,
    transport::listen::{Address, ListenOptions},
};
use pyo3::{PyTraverseError, PyVisit, prelude::*, types::PyTuple};

use crate::{
    client::{NativePlace, refused as refused_option},
    components::ServerComponents,
    endpoint::Endpoint,
    error::raise,
    handler::{Handler, PyHandler, Registered, VisibilityFilter},
    hooks, interpreter,
    listening::{Listener, refused},
    registration,
    resource_read::Read,
    serving::Serving,
    serving_limits::Limits,
    source::Source,
    store::PythonStore,
    stream::{Stream, lock},
    telemetry::Telemetry,
    test_serving::TestServing,
    upstreams,
    verifier::PythonVerifier,
};

/// The registrations of one server.
#[pyclass(frozen, name = "Server")]
#[derive(Debug)]
pub(crate) struct NativeServer {
    pub(crate) components: ServerComponents,
    upstreams: Arc<Upstreams>,
    visibility_filter: VisibilityFilter,
    limits: Limits,
    /// The methods by which callers are authenticated, and the functions that they call.
    auth: OnceLock<(Arc<AuthConfig>, Arc<PythonVerifier>)>,
    /// The store; absent if each process has its own. An object of the program comes with it.
    store: OnceLock<(HostStore, Option<Arc<PythonStore>>)>,
}

#[pymethods]
impl NativeServer {
    /// `facts`: the server's declaration, as JSON.
    #[new]
    fn new(py: Python<'_>, facts: &[u8]) -> PyResult<Self> {
        interpreter::check_is_main()?;
        hooks::hooks(py)?;
        let (server, options) = registration::server(facts).map_err(|error| raise(&error))?;
        let limits = Limits::new(options.max_message, options.threads, options.io_threads);
        Ok(Self {
            components: ServerComponents::new(Components::new(server)),
            upstreams: Arc::new(Upstreams::new(Language::Python)),
            visibility_filter: Arc::default(),
            limits,
            auth: OnceLock::new(),
            store: OnceLock::new(),
        })
    }

    /// Sets the methods by which callers are authenticated, as JSON. `verify` calls a function of the program:
    /// `verify(method, token, request)`, which returns the kind of the reply and its data. Needs the store before, if there is
    /// one.
    fn set_auth(&self, methods: &[u8], verify: Py<PyAny>) -> PyResult<()> {
        let config = auth_config(methods).map_err(|error| raise(&error))?;
        let verifier = Arc::new(PythonVerifier::new(verify));
        config.set_verifier(Arc::clone(&verifier) as Arc<_>);
        if let Some((store, _)) = self.store.get() {
            config.set_store(store.engine());
        }
        // A server is made with its methods, so they are set once.
        let _ = self.auth.set((Arc::new(config), verifier));
        Ok(())
    }

    /// Sets the store at an address. Raises `ValueError` if there is none.
    fn set_store_address(&self, address: &str) -> PyResult<()> {
        let store = HostStore::at(address).map_err(|error| raise(&error))?;
        // A server is made with its store, so it is set once.
        let _ = self.store.set((store, None));
        Ok(())
    }

    /// Sets the store of the program: `call(operation)` returns the reply, both as JSON. `methods` are the names of those that
    /// the object has.
    fn set_store(&self, call: Py<PyAny>, methods: Vec<String>) {
        let object = Arc::new(PythonStore::new(call));
        let store = HostStore::from_object(Arc::clone(&object) as Arc<_>, methods);
        let _ = self.store.set((store, Some(object)));
    }

    /// Begins to count metrics, and returns them for OpenTelemetry.
    fn telemetry(&self) -> Telemetry {
        let facts = Arc::clone(&self.components.snapshot().server);
        Telemetry::new(Arc::clone(&facts.metrics), &facts.info.name)
    }

    /// Raises `ValueError` for a server that can't be mounted into this one.
    fn check_mount(&self, inner: &Self) -> PyResult<()> {
        let outer = Arc::clone(&self.components.snapshot().server);
        let inner_facts = Arc::clone(&inner.components.snapshot().server);
        outer.check_mount(&inner_facts, inner.auth.get().is_some()).map_err(|error| raise(&error))
    }

    /// Declares the extensions of a server that is mounted into this one.
    fn declare_mounted(&self, py: Python<'_>, inner: &Self) -> PyResult<()> {
        let facts = Arc::clone(&inner.components.snapshot().server);
        self.change(py, None, false, |components| {
            Arc::make_mut(&mut components.server).declare_mounted(&facts);
            Ok(true)
        })
    }

    /// Returns `true` if a handler needs an event loop.
    #[getter]
    fn has_async(&self) -> bool {
        self.components.lock().has_async
    }

    /// The maximum number of threads held by handlers, including those that wait for their clients.
    #[getter]
    fn handler_threads(&self) -> usize {
        self.limits.threads + self.components.snapshot().server.rounds.suspended_threads + 1
    }

    #[pyo3(signature = (kind, spec, invoke, is_async, expose, thread))]
    #[expect(clippy::too_many_arguments, reason = "one call a registration")]
    fn add(
        &self,
        py: Python<'_>,
        kind: &str,
        spec: &[u8],
        invoke: Py<PyAny>,
        is_async: bool,
        expose: Py<PyAny>,
        thread: Option<bool>,
    ) -> PyResult<Registered> {
        let list = List::of_kind(kind).map_err(|error| raise(&error))?;
        let handler = self.handler(invoke, is_async, expose, thread);
        let given = handler.clone();
        let mut warnings = Vec::new();
        self.change(py, Some(list.kind()), is_async, |components| {
            warnings = components.declare(list, spec, given)?;
            Ok(true)
        })?;
        Ok(Registered { handler, warnings })
    }

    fn add_completion(
        &self,
        py: Python<'_>,
        target: &str,
        argument: &str,
        invoke: Py<PyAny>,
        is_async: bool,
        expose: Py<PyAny>,
    ) -> PyResult<Registered> {
        let handler = self.handler(invoke, is_async, expose, None);
        let given = handler.clone();
        let completion =
            Definition::Completion { target: target.into(), argument: argument.into() };
        self.change(py, None, is_async, |components| {
            components.add(completion, given).map(|_| true)
        })?;
        Ok(Registered::quiet(handler))
    }

    /// `params` is the JSON Schema that the params are checked against.
    #[pyo3(signature = (name, params, invoke, is_async, expose))]
    fn add_method(
        &self,
        py: Python<'_>,
        name: &str,
        params: &str,
        invoke: Py<PyAny>,
        is_async: bool,
        expose: Py<PyAny>,
    ) -> PyResult<Registered> {
        let handler = self.handler(invoke, is_async, expose, None);
        let given = handler.clone();
        self.change(py, None, is_async, |components| {
            components.add(Definition::Method(name.into()), given)?;
            components.check_params(name, params).map(|()| true)
        })?;
        Ok(Registered::quiet(handler))
    }

    fn add_notification(
        &self,
        py: Python<'_>,
        name: &str,
        invoke: Py<PyAny>,
        is_async: bool,
        expose: Py<PyAny>,
    ) -> PyResult<Registered> {
        let handler = self.handler(invoke, is_async, expose, None);
        let given = handler.clone();
        let notification = Definition::Notification(name.into());
        self.change(py, None, is_async, |components| {
            components.add(notification, given).map(|_| true)
        })?;
        Ok(Registered::quiet(handler))
    }

    /// Adds a route: a handler of HTTP requests with this method and path. `needs_auth`: callers are authenticated as those of the
    /// endpoint.
    #[expect(clippy::too_many_arguments, reason = "one call a registration")]
    fn add_route(
        &self,
        py: Python<'_>,
        method: &str,
        path: &str,
        needs_auth: bool,
        invoke: Py<PyAny>,
        is_async: bool,
        thread: Option<bool>,
    ) -> PyResult<()> {
        if self.components.is_served() {
            return Err(raise(&late_route(path)));
        }
        let nothing = PyTuple::empty(py).into_any().unbind();
        let handler = self.handler(invoke, is_async, nothing, thread);
        self.change(py, None, is_async, |components| {
            components.add_route(method, path, needs_auth, handler).map(|()| true)
        })
    }

    /// Errors if there are routes, which a server inside another application does not serve.
    fn check_without_routes(&self) -> PyResult<()> {
        self.components.snapshot().check_without_routes().map_err(|error| raise(&error))
    }

    /// Errors for method names for which middleware would never run.
    #[expect(clippy::needless_pass_by_value, reason = "that is how they come from Python")]
    fn check_middleware(&self, methods: Vec<String>) -> PyResult<()> {
        self.components.snapshot().check_middleware(&methods).map_err(|error| raise(&error))
    }

    /// Sets the middleware for these methods (`*`: all), as far as no handler answers them: an async function
    /// `invoke(raw, call)` → a coroutine of the reply; None leaves the answer unchanged.
    fn set_middleware(
        &self,
        py: Python<'_>,
        invoke: Py<PyAny>,
        methods: Vec<String>,
        expose: Py<PyAny>,
    ) -> PyResult<()> {
        let handler = self.handler(invoke, true, expose, None);
        self.change(py, None, true, |components| {
            components.set_middleware(Some(Middleware::new(handler, methods, false)));
            Ok(true)
        })
    }

    /// Sets the visibility filter: `invoke(raw)` → a list of booleans as JSON, one for each component in question.
    fn set_visibility_filter(&self, py: Python<'_>, invoke: Py<PyAny>) {
        let nothing = PyTuple::empty(py).into_any().unbind();
        let filter = self.handler(invoke, false, nothing, None);
        let before = lock(&self.visibility_filter).replace(filter);
        drop(before);
    }

    fn remove(&self, py: Python<'_>, kind: &str, key: &str) -> PyResult<()> {
        self.change_list(py, kind, |list| list.remove(key).map(|()| true))
    }

    /// `changes`: new values by their JSON names; null removes a member.
    fn update(&self, py: Python<'_>, kind: &str, key: &str, changes: &[u8]) -> PyResult<()> {
        let changes = registration::changes(changes).map_err(|error| raise(&error))?;
        self.change_list(py, kind, |list| list.update(key, &changes).map(|()| true))
    }

    #[expect(clippy::needless_pass_by_value, reason = "that is how they come from Python")]
    fn set_enabled(
        &self,
        py: Python<'_>,
        kind: &str,
        keys: Vec<String>,
        tags: Vec<String>,
        enabled: bool,
    ) -> PyResult<()> {
        self.change_list(py, kind, |list| list.set_enabled(&keys, &tags, enabled))
    }

    fn keys(&self, kind: &str) -> PyResult<Vec<String>> {
        let list = List::of_kind(kind).map_err(|error| raise(&error))?;
        Ok(self.components.snapshot().list(list).keys())
    }

    /// Returns the listed entry of a component, as JSON; `None` if it is not registered.
    fn get(&self, kind: &str, key: &str) -> PyResult<Option<String>> {
        let list = List::of_kind(kind).map_err(|error| raise(&error))?;
        Ok(self.components.snapshot().list(list).listed(key))
    }

    /// Returns the handler that reads this URI: `(invoke, is_async, raw, finish)`, where `finish(reply)` returns the
    /// contents as JSON; `None` if there is none.
    fn find_resource(&self, py: Python<'_>, uri: &str) -> Option<(Py<PyAny>, bool, String, Read)> {
        let components = self.components.snapshot();
        let job = find_resource(&components, uri.to_owned(), &Visibility::everything()).ok()?;
        let (invoke, is_async) = job.handler.downcast_ref::<PyHandler>()?.target();
        Some((invoke.clone_ref(py), is_async, job.input, Read(job.result_builder)))
    }

    /// Serves one stream of frames. The descriptors are duplicated; the caller keeps its own.
    #[pyo3(signature = (fd_in, fd_out, app, context, testing = None))]
    fn serve(
        &self,
        py: Python<'_>,
        fd_in: i32,
        fd_out: i32,
        app: Py<PyAny>,
        context: Py<PyAny>,
        testing: Option<&TestServing>,
    ) -> PyResult<Serving> {
        if fd_in < 0 || fd_out < 0 {
            return Err(pyo3::exceptions::PyValueError::new_err("no file descriptor is negative"));
        }
        // SAFETY: they are borrowed for as long as it takes to duplicate them; a closed one is an error of `fcntl`.
        #[expect(unsafe_code, reason = "descriptors come from Python as numbers")]
        let (input, output) =
            unsafe { (BorrowedFd::borrow_raw(fd_in), BorrowedFd::borrow_raw(fd_out)) };
        let input = rustix::io::fcntl_dupfd_cloexec(input, 3).map_err(std::io::Error::from)?;
        let output = rustix::io::fcntl_dupfd_cloexec(output, 3).map_err(std::io::Error::from)?;
        let components = self.components.snapshot();
        let testing = testing.map(TestServing::parts);
        let source = Source::frames(components, testing, (input, output.into()), self.limits.line);
        let stream = Stream::open(Arc::new(source), app, context, self)?;
        self.components.keep_informed(&stream.server);
        self.ready(py, &stream)?;
        py.detach(|| Serving::start(stream))
    }

    /// Makes a key for the processes that are forked from this one, unless keys were given.
    fn share_key(&self) -> PyResult<()> {
        if self.components.snapshot().server.request_state_keys.is_empty() {
            let key = worker_group::fresh_key()?;
            self.components.set_state_key(key);
        }
        Ok(())
    }

    /// Creates a folder for the processes that are forked from this one. Raises `ValueError` if none can be made.
    #[staticmethod]
    fn new_group() -> PyResult<PathBuf> {
        worker_group::new_folder().map_err(|error| raise(&error))
    }

    /// Has the processes that are forked from this one share what a store has, in a file in their folder, if the server has no
    /// store.
    #[expect(clippy::needless_pass_by_value, reason = "that is how it comes from Python")]
    fn share_store(&self, folder: PathBuf) {
        if self.store.get().is_none()
            && let Some(store) = worker_group::store_of(&folder)
        {
            if let Some((auth, _)) = self.auth.get() {
                auth.set_store(store.engine());
            }
            let _ = self.store.set((store, None));
        }
    }

    /// Listens at an address. `options`: the HTTP options, as JSON. `shares_port`: other processes listen on the same
    /// port. `group`: the folder in which they find each other.
    #[pyo3(signature = (at, options, app, context, *, shares_port = false, group = None))]
    #[expect(clippy::too_many_arguments, reason = "one call a server")]
    fn listen(
        &self,
        py: Python<'_>,
        at: &str,
        options: &[u8],
        app: Py<PyAny>,
        context: Py<PyAny>,
        shares_port: bool,
        group: Option<PathBuf>,
    ) -> PyResult<Serving> {
        let at: Address = at.parse().map_err(|error| raise(&error))?;
        let options = HttpOptions::parse(options).map_err(|error| raise(&error))?;
        let components = self.components.snapshot();
        let mut config = options.endpoint(at.endpoint_config());
        config.auth = self.auth.get().map(|auth| Arc::clone(&auth.0));
        config.store = self.store.get().map(|(store, _)| store.shared());
        let server = EndpointServer::new(components, config);
        let source = Source::Peers { server: Arc::clone(&server), notifier: None };
        let stream = Stream::open(Arc::new(source), app, context, self)?;
        self.components.keep_informed(&stream.server);
        self.ready(py, &stream)?;
        py.detach(|| {
            let max_message = self.limits.line;
            let options = ListenOptions { shares_port, group, max_message, ..options.listen() };
            let threads = self.limits.io_threads;
            let listener = Listener::start(&at, server, &stream, options, threads);
            *lock(&stream.listener) = Some(listener.map_err(|error| refused(&error))?);
            Serving::start(stream)
        })
    }

    /// Creates an endpoint whose IO is done by an event loop, at any path. `options`: the HTTP options, as JSON.
    fn endpoint(&self, options: &[u8]) -> PyResult<Endpoint> {
        let options = HttpOptions::parse(options).map_err(|error| raise(&error))?;
        let anywhere = EndpointConfig { path: None, ..EndpointConfig::default() };
        let mut config = options.endpoint(anywhere);
        config.auth = self.auth.get().map(|auth| Arc::clone(&auth.0));
        config.store = self.store.get().map(|(store, _)| store.shared());
        self.check_without_routes()?;
        let components = self.components.snapshot();
        let endpoint = Endpoint::new(EndpointServer::new(components, config))?;
        self.components.keep_informed(endpoint.source());
        Ok(endpoint)
    }

    /// Running handlers hold the server as well, so objects held only by registrations are garbage together with it.
    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        // A locked server is in use.
        let Some(shared) = self.components.try_lock() else { return Ok(()) };
        if let Some((_, verifier)) = self.auth.get() {
            verifier.traverse(&visit)?;
        }
        if let Some((_, Some(object))) = self.store.get() {
            object.traverse(&visit)?;
        }
        shared
            .handlers
            .iter()
            .filter_map(Weak::upgrade)
            .try_for_each(|handler| handler.traverse(&visit))
    }

    fn __clear__(&self) {
        let mut shared = self.components.lock();
        let nothing = Arc::new(Components::new(ServerFacts::clone(&shared.components.server)));
        let components = std::mem::replace(&mut shared.components, nothing);
        drop(shared);
        drop(components);
        self.upstreams.clear();
        let filter = lock(&self.visibility_filter).take();
        drop(filter);
    }

    /// Mounts the server at a place, which a client with these options, JSON, reaches. `around(raw, call)` is an async function
    /// that runs middleware around its calls; `ask(question)` answers what the client asks the program, on any thread.
    #[pyo3(signature = (prefix, place, options, around, expose, ask))]
    fn mount_upstream(
        &self,
        prefix: &str,
        place: &NativePlace,
        options: &[u8],
        around: Py<PyAny>,
        expose: Py<PyAny>,
        ask: Py<PyAny>,
    ) -> PyResult<()> {
        let settings = ClientSettings::parse(options)
            .map_err(|problem| refused_option("Upstream", problem))?;
        let around = self.handler(around, true, expose, None);
        let (place, ask) = (place.0.clone(), upstreams::asking(ask));
        let mounted = self.upstreams.mount(prefix, place, settings, around, ask, |builder| builder);
        mounted.map_err(|error| raise(&error))?;
        self.components.expect_growth();
        Ok(())
    }

    /// Has middleware run around these kinds of registrations of a mounted upstream server.
    fn wrap_upstream(&self, prefix: &str, kinds: Vec<String>) {
        self.components.lock().has_async |= !kinds.is_empty();
        self.upstreams.wrap(prefix, kinds);
    }

    /// Notifies subscribers that this resource has changed.
    fn updated(&self, py: Python<'_>, uri: &str) {
        self.for_each_source(py, |source| source.updated(uri));
    }

    /// Notifies clients that the page of this elicitation is completed.
    fn page_done(&self, py: Python<'_>, page: &str) {
        self.for_each_source(py, |source| source.page_done(page));
    }
}

impl NativeServer {
    fn handler(
        &self,
        invoke: Py<PyAny>,
        is_async: bool,
        expose: Py<PyAny>,
        thread: Option<bool>,
    ) -> Handler {
        let handler = Arc::new(PyHandler::new(invoke, is_async, expose, thread));
        let mut shared = self.components.lock();
        if shared.handlers.len() == shared.handlers.capacity() {
            shared.handlers.retain(|handler| handler.strong_count() > 0);
        }
        shared.handlers.push(Arc::downgrade(&handler));
        handler
    }

    /// Changes the components and notifies all streams, unless the change had no effect.
    fn change(
        &self,
        py: Python<'_>,
        list: Option<ListKind>,
        is_async: bool,
        change: impl FnOnce(&mut Components) -> Result<bool, Error>,
    ) -> PyResult<()> {
        let changed = self.components.change(is_async, change).map_err(|error| raise(&error))?;
        if let Some(components) = changed.filter(|_| self.components.is_served()) {
            py.detach(|| self.components.show(&components, list));
        }
        Ok(())
    }

    /// Changes one list.
    fn change_list(
        &self,
        py: Python<'_>,
        kind: &str,
        change: impl FnOnce(&mut dyn AnyRegistry) -> Result<bool, Error>,
    ) -> PyResult<()> {
        let list = List::of_kind(kind).map_err(|error| raise(&error))?;
        self.change(py, Some(list.kind()), false, |components| change(components.list_mut(list)))
    }

    /// Calls every stream.
    fn for_each_source(&self, py: Python<'_>, call: impl Fn(&Source) + Send + Sync) {
        if self.components.is_served() {
            py.detach(|| self.components.tell(call));
        }
    }

    /// Starts what a stream needs before its first call.
    pub(crate) fn ready(&self, py: Python<'_>, stream: &Arc<Stream>) -> PyResult<()> {
        upstreams::start(py, &self.components, stream)
    }

    pub(crate) fn upstreams(&self) -> Arc<Upstreams> {
        Arc::clone(&self.upstreams)
    }

    pub(crate) fn limits(&self) -> Limits {
        self.limits
    }

    pub(crate) fn visibility_filter(&self) -> VisibilityFilter {
        Arc::clone(&self.visibility_filter)
    }
}
