//! The server class of JavaScript: its components, and the streams that it serves.

use std::sync::{
    Arc, Mutex, OnceLock,
    atomic::{AtomicBool, Ordering},
};

#[cfg(unix)]
use gudgeon::bindings::worker_group::{self, WorkerGroup};
use gudgeon::{
    auth::server::config::AuthConfig,
    bindings::{client_settings::ClientSettings, host_store::HostStore},
    driver::auth_config,
    error::Error,
    protocol::json,
    router::{
        self, AnyRegistry, Changes, Components, Definition, List, Middleware, ResultBuilder,
        Visibility, find_resource, late_route,
    },
    store::SharedStore,
    transport::stdio,
};
use napi::bindgen_prelude::Function;
use napi_derive::napi;

use crate::{
    client::{NativePlace, refused_value},
    declare,
    error::{io, misuse},
    handler::{Dropped, index},
    listening::NativeListening,
    mounted::NativeMounted,
    served_components::ServedComponents,
    shared::{Wake, lock},
    store::{NativeStoreCall, NodeStore},
    stream,
    telemetry::NativeTelemetry,
    test_mode::NativeTestMode,
    upstreams::{NativeConnection, NativeSignInQuestion, asking, connecting},
    verifier::{NativeVerification, NodeVerifier},
    work_queue::NativeWorkQueue,
};

/// A process has only one standard input.
static STDIO_TAKEN: AtomicBool = AtomicBool::new(false);

#[napi]
#[derive(Debug)]
pub struct NativeServer {
    served: ServedComponents,
    dropped: Dropped,
    max_message: usize,
    /// The methods by which callers are authenticated.
    auth: OnceLock<Arc<AuthConfig>>,
    /// The store; absent if each process has its own.
    store: OnceLock<HostStore>,
    /// The processes of which this one is a worker.
    #[cfg(unix)]
    group: Mutex<Option<WorkerGroup>>,
}

#[napi]
impl NativeServer {
    #[napi(constructor, catch_unwind)]
    pub fn new(declaration: String) -> napi::Result<Self> {
        let (facts, max_message) = declare::server(&declaration).map_err(misuse)?;
        Ok(Self {
            served: ServedComponents::new(Components::new(facts)),
            dropped: Dropped::default(),
            max_message,
            auth: OnceLock::new(),
            store: OnceLock::new(),
            #[cfg(unix)]
            group: Mutex::default(),
        })
    }

    /// Sets the store at an address. Throws if there is none.
    #[napi(catch_unwind)]
    pub fn set_store_address(&self, address: String) -> napi::Result<()> {
        let _ = self.store.set(HostStore::at(&address).map_err(misuse)?);
        Ok(())
    }

    /// Sets the store of the program, an object with these methods. Only the first call has an effect.
    #[napi(
        catch_unwind,
        ts_args_type = "call: (call: NativeStoreCall) => void, methods: Array<string>"
    )]
    pub fn set_store(
        &self,
        call: Function<'_, NativeStoreCall, ()>,
        methods: Vec<String>,
    ) -> napi::Result<()> {
        let _ = self.store.set(HostStore::from_object(Arc::new(NodeStore::new(&call)?), methods));
        Ok(())
    }

    /// Sets the methods by which callers are authenticated, as JSON. `verify` calls a function of the program. Needs the store
    /// before, if there is one. Only the first call has an effect.
    #[napi(
        catch_unwind,
        ts_args_type = "methods: string, verify: (verification: NativeVerification) => void"
    )]
    pub fn set_auth(
        &self,
        methods: String,
        verify: Function<'_, NativeVerification, ()>,
    ) -> napi::Result<()> {
        let config = auth_config(methods.as_bytes()).map_err(misuse)?;
        config.set_verifier(Arc::new(NodeVerifier::new(&verify)?));
        if let Some(store) = self.store.get() {
            config.set_store(store.engine());
        }
        let _ = self.auth.set(Arc::new(config));
        Ok(())
    }

    /// Begins to count metrics, and returns them for OpenTelemetry.
    #[napi(catch_unwind)]
    pub fn telemetry(&self) -> NativeTelemetry {
        let facts = Arc::clone(&self.served.components().server);
        NativeTelemetry::new(Arc::clone(&facts.metrics), &facts.info.name)
    }

    /// Returns `true` if keys for request states were given, so that other processes can open sealed states.
    #[napi(catch_unwind)]
    pub fn has_state_keys(&self) -> bool {
        !self.served.components().server.request_state_keys.is_empty()
    }

    /// Has a worker take the key of all processes with this parent, unless keys were given, and share what a store has if
    /// `shares_store` and the server has no store. Returns the folder in which those that serve one address find each other; null
    /// on Windows.
    #[napi(catch_unwind)]
    pub fn join_workers(&self, parent: u32, shares_store: bool) -> napi::Result<Option<String>> {
        #[cfg(unix)]
        {
            let mut joined = lock(&self.group);
            let folder = if let Some(group) = &*joined {
                group.folder.clone()
            } else {
                let server = self.served.components().server.info.name.clone();
                let group = WorkerGroup::of_parent(parent, &server).map_err(misuse)?;
                if !self.has_state_keys() {
                    self.served.set_state_key(group.key.clone());
                }
                joined.insert(group).folder.clone()
            };
            if shares_store
                && self.store.get().is_none()
                && let Some(store) = worker_group::store_of(&folder)
            {
                if let Some(auth) = self.auth.get() {
                    auth.set_store(store.engine());
                }
                let _ = self.store.set(store);
            }
            Ok(folder.into_os_string().into_string().ok())
        }
        #[cfg(not(unix))]
        {
            let _ = (parent, shares_store);
            Ok(None)
        }
    }

    /// Leaves the processes that were joined, at the end of this one. The last one removes what they had in common.
    #[napi(catch_unwind)]
    pub fn leave_workers(&self) {
        #[cfg(unix)]
        drop(lock(&self.group).take());
    }

    /// `kind` is `tool`, `resource`, `resourceTemplate` or `prompt`. Returns warnings about what known hosts reject.
    #[napi(catch_unwind)]
    pub fn add(
        &self,
        kind: String,
        declaration: String,
        handler: u32,
    ) -> napi::Result<Vec<String>> {
        let list = List::of_kind(&kind).map_err(misuse)?;
        let handler = self.dropped.handler(handler);
        let mut warnings = Vec::new();
        let add = |components: &mut Components| {
            warnings = components.declare(list, declaration.as_bytes(), handler)?;
            Ok(true)
        };
        self.served.change(Some(list.kind()), add).map_err(misuse)?;
        Ok(warnings)
    }

    #[napi(catch_unwind)]
    pub fn add_completion(
        &self,
        target: String,
        argument: String,
        handler: u32,
    ) -> napi::Result<()> {
        let handler = self.dropped.handler(handler);
        let completion = Definition::Completion { target, argument };
        let add = |components: &mut Components| components.add(completion, handler).map(|_| true);
        self.served.change(None, add).map_err(misuse)
    }

    /// `params` is the JSON Schema that the params are checked against; null if the handler checks them itself.
    #[napi(catch_unwind)]
    pub fn add_method(
        &self,
        name: String,
        params: Option<String>,
        handler: u32,
    ) -> napi::Result<()> {
        let handler = self.dropped.handler(handler);
        let add = |components: &mut Components| {
            components.add(Definition::Method(name.clone()), handler)?;
            params.iter().try_for_each(|schema| components.check_params(&name, schema))?;
            components.refuse_beyond_doubles(&name);
            Ok(true)
        };
        self.served.change(None, add).map_err(misuse)
    }

    #[napi(catch_unwind)]
    pub fn add_notification(&self, name: String, handler: u32) -> napi::Result<()> {
        let handler = self.dropped.handler(handler);
        let add = |components: &mut Components| {
            components.add(Definition::Notification(name), handler).map(|_| true)
        };
        self.served.change(None, add).map_err(misuse)
    }

    /// Adds a route: a handler of HTTP requests with this method and path. `needs_auth`: callers are authenticated as those of the
    /// endpoint.
    #[napi(catch_unwind)]
    pub fn add_route(
        &self,
        method: String,
        path: String,
        needs_auth: bool,
        handler: u32,
    ) -> napi::Result<()> {
        if self.served.is_served() {
            return Err(misuse(late_route(&path)));
        }
        let handler = self.dropped.handler(handler);
        let add = |components: &mut Components| {
            components.add_route(&method, &path, needs_auth, handler).map(|()| true)
        };
        self.served.change(None, add).map_err(misuse)
    }

    /// Errors for method names for which middleware would never run.
    #[napi(catch_unwind)]
    pub fn check_middleware(&self, methods: Vec<String>) -> napi::Result<()> {
        self.served.components().check_middleware(&methods).map_err(misuse)
    }

    /// Sets the middleware for these methods (`*`: all), as far as no handler answers them.
    #[napi(catch_unwind)]
    pub fn set_middleware(&self, handler: u32, methods: Vec<String>) -> napi::Result<()> {
        let middleware = Middleware::new(self.dropped.handler(handler), methods, false);
        let set = |components: &mut Components| {
            components.set_middleware(Some(middleware));
            Ok(true)
        };
        self.served.change(None, set).map_err(misuse)
    }

    /// Sets the visibility filter. The handler receives `{"principal", "components"}` and returns a list of booleans,
    /// one for each kind and key in `components`. Only the first call has an effect.
    #[napi(catch_unwind)]
    pub fn set_visibility_filter(&self, handler: u32) {
        self.served.set_visibility_filter(self.dropped.handler(handler));
    }

    /// Returns the listed entry of a component, enabled or not, as JSON.
    #[napi(catch_unwind)]
    pub fn find(&self, kind: String, key: String) -> napi::Result<Option<String>> {
        let list = List::of_kind(&kind).map_err(misuse)?;
        Ok(self.served.components().list(list).listed(&key))
    }

    /// Returns the listed entries of all components, in order, as a JSON array.
    #[napi(catch_unwind)]
    pub fn list(&self, kind: String) -> napi::Result<String> {
        let components = self.served.components();
        let list = components.list(List::of_kind(&kind).map_err(misuse)?);
        let all: Vec<_> = list.keys().iter().filter_map(|key| list.listed(key)).collect();
        Ok(format!("[{}]", all.join(",")))
    }

    #[napi(catch_unwind)]
    pub fn remove(&self, kind: String, key: String) -> napi::Result<()> {
        self.change_list(&kind, |list| list.remove(&key).map(|()| true))
    }

    /// `changes` is a JSON object; null removes a member.
    #[napi(catch_unwind)]
    pub fn update(&self, kind: String, key: String, changes: String) -> napi::Result<()> {
        let changes: Changes = serde_json::from_str(&changes).map_err(|error| {
            misuse(Error::misuse(format!("the changes can't be read: {error}")))
        })?;
        self.change_list(&kind, |list| list.update(&key, &changes).map(|()| true))
    }

    #[napi(catch_unwind)]
    pub fn set_enabled(
        &self,
        kind: String,
        keys: Vec<String>,
        tags: Vec<String>,
        enabled: bool,
    ) -> napi::Result<()> {
        self.change_list(&kind, |list| list.set_enabled(&keys, &tags, enabled))
    }

    /// Returns registered handlers that are no longer referenced.
    #[napi(catch_unwind)]
    pub fn take_dropped(&self) -> Vec<u32> {
        self.dropped.take()
    }

    /// Returns the handler of this URI, as JSON: `[handler, input, mimeType]`; null if no resource has the URI.
    #[napi(catch_unwind)]
    pub fn resolve_resource(&self, uri: String) -> Option<String> {
        let job = find_resource(&self.served.components(), uri, &Visibility::everything()).ok()?;
        let ResultBuilder::Resource(reading) = &job.result_builder else { return None };
        let handler = index(&job.handler)?;
        let mime_type = json::to_raw(&reading.mime_type);
        Some(format!("[{handler},{},{}]", job.input, mime_type.get()))
    }

    /// Serves standard input and output exclusively. `wake` is called when there is a batch to take.
    #[napi(catch_unwind, ts_args_type = "wake: () => void")]
    pub fn serve_stdio(&self, wake: Wake) -> napi::Result<NativeWorkQueue> {
        if STDIO_TAKEN.swap(true, Ordering::SeqCst) {
            return Err(misuse(Error::misuse("this process serves stdio already: one server can")));
        }
        let (input, output) = stdio::take().map_err(|error| {
            io("standard input and output can't be taken for the protocol", error)
        })?;
        stream::open(&self.served, input, output, self.max_message, wake)
    }

    /// Serves the other end of a new in-memory stream, which `NativeWorkQueue.takePeer` returns; `test`: the settings of a
    /// test. It does not keep the process alive: its client does.
    #[napi(catch_unwind, ts_args_type = "wake: () => void, test?: NativeTestMode")]
    pub fn serve_memory(
        &self,
        wake: Wake<true>,
        test: Option<NativeTestMode>,
    ) -> napi::Result<NativeWorkQueue> {
        let test = test.map(NativeTestMode::parts).transpose()?;
        stream::open_memory(&self.served, self.max_message, wake, test)
    }

    /// Creates an endpoint for a host's event loop. `wake` is called when there is a batch or a part to take.
    #[napi(catch_unwind, ts_args_type = "options: string, wake: () => void")]
    pub fn serve_mounted(&self, options: String, wake: Wake<true>) -> napi::Result<NativeMounted> {
        NativeMounted::open(&self.served, &options, (self.auth(), self.shared_store()), wake)
    }

    /// Creates an endpoint that listens at a URL of its own, once it is started.
    #[napi(catch_unwind, ts_args_type = "url: string, options: string, wake: () => void")]
    pub fn serve_listening(
        &self,
        url: String,
        options: String,
        wake: Wake<true>,
    ) -> napi::Result<NativeListening> {
        let shared = (self.auth(), self.shared_store());
        NativeListening::open(&self.served, &url, &options, shared, self.max_message, wake)
    }

    /// Notifies subscribers that this resource has changed.
    #[napi(catch_unwind)]
    pub fn updated(&self, uri: String) {
        self.served.call_all(|endpoint| endpoint.updated(&uri));
    }

    /// Notifies clients that the page of this elicitation is completed.
    #[napi(catch_unwind)]
    pub fn page_done(&self, page: String) {
        self.served.call_all(|endpoint| endpoint.page_done(&page));
    }

    /// Mounts the server at a place, which a client with these settings, JSON, reaches. `around` is the handler that runs
    /// middleware around its calls, `ask` gets what the client asks the program, and `connect` the connections that the settings'
    /// `fetch` serves.
    #[napi(
        catch_unwind,
        ts_args_type = "prefix: string, place: NativePlace, settings: string, around: number, ask: (question: NativeSignInQuestion) => void, connect: (connection: NativeConnection) => void"
    )]
    pub fn mount_upstream(
        &self,
        prefix: String,
        place: &NativePlace,
        settings: String,
        around: u32,
        ask: Function<'_, NativeSignInQuestion, ()>,
        connect: Function<'_, NativeConnection, ()>,
    ) -> napi::Result<()> {
        let settings = ClientSettings::parse(settings.as_bytes()).map_err(refused_value)?;
        let (around, ask) = (self.dropped.handler(around), asking(&ask)?);
        let adapt = connecting(&settings, &connect)?;
        let (place, upstreams) = (place.0.clone(), self.served.upstreams());
        upstreams.mount(&prefix, place, settings, around, ask, adapt).map_err(misuse)?;
        self.served.registrar().expect_growth();
        Ok(())
    }

    /// Has middleware run around these kinds of registrations of a mounted upstream server.
    #[napi(catch_unwind)]
    pub fn wrap_upstream(&self, prefix: String, kinds: Vec<String>) {
        self.served.upstreams().wrap(&prefix, kinds);
    }

    /// Returns the key of a registration of this kind in the server that its server is mounted into.
    #[napi(catch_unwind)]
    pub fn mounted_key(kind: String, prefix: String, key: String) -> String {
        router::mounted_key(&kind, &prefix, &key)
    }

    /// Errors for a server that can't be mounted into this one.
    #[napi(catch_unwind)]
    pub fn check_mount(&self, inner: &NativeServer) -> napi::Result<()> {
        let (outer, facts) = (self.served.components(), inner.served.components());
        let has_auth = inner.auth.get().is_some();
        outer.server.check_mount(&facts.server, has_auth).map_err(misuse)
    }

    /// Declares the extensions of a server that is mounted into this one.
    #[napi(catch_unwind)]
    pub fn declare_mounted(&self, inner: &NativeServer) -> napi::Result<()> {
        let facts = inner.served.components();
        let declare = |components: &mut Components| {
            Arc::make_mut(&mut components.server).declare_mounted(&facts.server);
            Ok(true)
        };
        self.served.change(None, declare).map_err(misuse)
    }

    /// Errors if no name can begin with this prefix.
    #[napi(catch_unwind)]
    pub fn check_prefix(prefix: String) -> napi::Result<()> {
        router::check_prefix(&prefix).map_err(misuse)
    }
}

impl NativeServer {
    fn auth(&self) -> Option<Arc<AuthConfig>> {
        self.auth.get().cloned()
    }

    fn shared_store(&self) -> Option<SharedStore> {
        self.store.get().map(HostStore::shared)
    }

    /// The change returns `true` if it had an effect.
    fn change_list(
        &self,
        kind: &str,
        change: impl FnOnce(&mut dyn AnyRegistry) -> Result<bool, Error>,
    ) -> napi::Result<()> {
        let list = List::of_kind(kind).map_err(misuse)?;
        let change = |components: &mut Components| change(components.list_mut(list));
        self.served.change(Some(list.kind()), change).map_err(misuse)
    }
}
