//! The components of a server and the dispatch of requests to handlers. Knows no frames, no revisions, no IO.

mod completion;
mod content;
#[cfg(feature = "bindings")]
mod declaration;
mod definition;
mod dispatch;
mod failure;
mod handler;
mod hidden_error;
mod kept_handler;
mod known_name;
pub mod limits;
mod lint;
mod list;
mod meta_keys;
mod method_filter;
mod middleware;
mod middleware_params;
mod middleware_results;
mod mount;
mod names;
mod paths;
mod component;
mod prompt;
mod registrar;
mod registry;
mod resource;
mod route;
mod route_response;
mod served;
mod visibility;
mod tool;
mod traces;
pub mod uri_template;

use std::{
    collections::{BTreeMap, HashMap},
    path::PathBuf,
    sync::Arc,
    time::Duration,
};

#[cfg(test)]
pub(crate) use self::registry::counted;
pub(crate) use self::{
    component::changeable,
    meta_keys::without_own,
    method_filter::MethodFilter,
    paths::leaves_folder,
    route::{Route, RouteRequest, Routes, allowed, is_path, with_method},
};
pub use self::{
    component::{Changes, Component, ComponentOptions},
    definition::Definition,
    dispatch::{Cursors, Dispatch, Job, RequestScope, dispatch, find_resource},
    handler::{Failure, Reading, Reply, ResultBuilder},
    kept_handler::Handler,
    lint::tool as lint_tool,
    list::{AnyRegistry, List},
    meta_keys::problems as meta_problems,
    middleware::{Middleware, MiddlewareFrame, Prepared, Resolution},
    middleware_params::HandlerKind,
    middleware_results::{nothing_returned, params_changed},
    mount::mounted_key,
    names::{check_prefix, check_server},
    prompt::RegisteredPrompt,
    registrar::Registrar,
    registry::{Page, Registry},
    resource::{RegisteredResource, RegisteredTemplate},
    route::late_route,
    tool::RegisteredTool,
    traces::Traces,
    visibility::{Visibility, visibility_question},
};
use crate::{
    error::Error,
    metrics::Metrics,
    protocol::{
        CacheHint, Dialect, Implementation, ListCapability, Method, MethodName, OwnCapabilities,
        Raw, Request, ResourcesCapability, Revision, ServerCapabilities, ServerDescription,
        SubscriptionFilter, json::raw,
    },
    schema::{Schema, SchemaProfile},
    session::server::ListKind,
};

/// The default number of entries on one page of a list.
const PAGE_SIZE: usize = 100;

/// An immutable snapshot of everything a server provides. Cheap to clone; a change creates the next snapshot.
#[derive(Clone, Debug)]
pub struct Components {
    pub server: Arc<ServerFacts>,
    #[doc(hidden)]
    pub tools: Registry<RegisteredTool>,
    #[doc(hidden)]
    pub resources: Registry<RegisteredResource>,
    #[doc(hidden)]
    pub templates: Registry<RegisteredTemplate>,
    #[doc(hidden)]
    pub prompts: Registry<RegisteredPrompt>,
    /// The style in which tool schemas are published.
    #[doc(hidden)]
    pub schemas: SchemaProfile,
    methods: Arc<HashMap<String, Handler>>,
    /// The schemas of params, for vendor methods that declared one.
    params: Arc<HashMap<String, Arc<Schema>>>,
    notifications: Arc<HashMap<String, Handler>>,
    pub(crate) routes: Arc<Routes>,
    middleware: Option<Arc<Middleware>>,
    /// `true` if entries may be added to lists that are empty now, which are declared therefore.
    pub(crate) grows: bool,
}

/// The server's description of itself, and its settings.
#[derive(Clone, Debug)]
pub struct ServerFacts {
    pub info: Implementation,
    pub instructions: Option<String>,
    /// The supported revisions, newest first.
    pub revisions: Vec<Revision>,
    /// The supported dialects.
    pub dialects: Vec<Dialect>,
    /// The number of entries on one page of a list.
    pub page_size: usize,
    /// The time that clients may cache lists for.
    pub list_ttl: Duration,
    /// `true` if error results include the traceback of an exception.
    pub debug: bool,
    /// Tells whether the host makes spans.
    pub traces: Traces,
    /// Keys that seal the state carried by clients between the rounds of a call: the first key seals, all keys open.
    /// Empty: a random key per process.
    pub request_state_keys: Vec<Vec<u8>>,
    /// The file that the keys are from, which is read again when it changes.
    pub request_state_keys_file: Option<PathBuf>,
    pub rounds: RoundLimits,
    /// The scopes that include other scopes.
    pub scope_implies: BTreeMap<String, Vec<String>>,
    /// `true` if components are hidden from callers that lack their scopes. Otherwise they are listed, and calls are refused
    /// with the scopes to ask for.
    pub hide_unauthorized: bool,
    /// Decodes arguments that a model quoted by mistake, unless a tool says otherwise.
    pub convert_arguments: bool,
    /// Extensions and experimental capabilities.
    pub own: OwnCapabilities,
    /// Those of mounted servers.
    pub mounted: OwnCapabilities,
    /// The numbers of this server, of all endpoints that serve it.
    pub metrics: Arc<Metrics>,
}

/// Limits for questions that travel in results (Multi Round-Trip Requests).
#[derive(Clone, Copy, Debug)]
pub struct RoundLimits {
    /// The maximum size of a sealed state, in bytes.
    pub max_state: usize,
    /// The time limit for the client's answers.
    pub state_ttl: Duration,
    /// The maximum number of suspended handlers.
    pub suspended_limit: usize,
    /// The maximum number of suspended handlers that block a thread.
    pub suspended_threads: usize,
    /// The maximum time that a suspended handler waits. Afterwards it is run again from its start when the answers
    /// arrive, or, if the answers come as responses to requests, its call fails.
    pub suspended_ttl: Duration,
}

/// The default settings: all revisions, no dialects.
impl From<Implementation> for ServerFacts {
    fn from(info: Implementation) -> Self {
        Self {
            info,
            instructions: None,
            revisions: Revision::ALL.into_iter().rev().collect(),
            dialects: Vec::new(),
            page_size: PAGE_SIZE,
            list_ttl: Duration::ZERO,
            debug: false,
            traces: Traces::default(),
            request_state_keys: Vec::new(),
            request_state_keys_file: None,
            rounds: RoundLimits::default(),
            scope_implies: BTreeMap::new(),
            hide_unauthorized: false,
            convert_arguments: true,
            own: OwnCapabilities::default(),
            mounted: OwnCapabilities::default(),
            metrics: Arc::default(),
        }
    }
}

impl ServerFacts {
    /// Sets the supported revisions, in any order. Errors if there are none.
    #[doc(hidden)] // For the drivers and the language bindings.
    pub fn set_revisions(
        &mut self,
        revisions: impl IntoIterator<Item = Revision>,
    ) -> Result<(), Error> {
        let mut revisions: Vec<_> = revisions.into_iter().collect();
        if revisions.is_empty() {
            return Err(Error::misuse(
                "a server supports at least one revision: name one, or leave the option out",
            ));
        }
        revisions.sort_unstable_by(|one, other| other.cmp(one));
        revisions.dedup();
        self.revisions = revisions;
        Ok(())
    }
}

impl Default for RoundLimits {
    fn default() -> Self {
        Self {
            max_state: 256 * 1024,
            state_ttl: Duration::from_secs(15 * 60),
            suspended_limit: 1_000,
            suspended_threads: 32,
            suspended_ttl: Duration::from_secs(5 * 60),
        }
    }
}

impl Components {
    pub fn new(server: ServerFacts) -> Self {
        Self {
            server: Arc::new(server),
            tools: Registry::new("tool"),
            resources: Registry::new("resource"),
            templates: Registry::new("resource template"),
            prompts: Registry::new("prompt"),
            schemas: SchemaProfile::default(),
            methods: Arc::default(),
            params: Arc::default(),
            notifications: Arc::default(),
            routes: Arc::default(),
            middleware: None,
            grows: false,
        }
    }

    /// Validates the params of this method against a schema before its handler runs.
    #[doc(hidden)] // For the drivers and the language bindings.
    pub fn check_params(&mut self, method: &str, schema: &str) -> Result<(), Error> {
        let schema = Schema::compile(schema).map_err(|error| {
            Error::misuse(format!("the params' schema of method {method:?} can't be used: {error}"))
        })?;
        Arc::make_mut(&mut self.params).insert(method.to_owned(), Arc::new(schema));
        Ok(())
    }

    /// Refuses integers that a double can't hold in the params of this method, where their schema names types.
    #[doc(hidden)] // For the language bindings.
    pub fn refuse_beyond_doubles(&mut self, method: &str) {
        if let Some(schema) = Arc::make_mut(&mut self.params).get_mut(method).and_then(Arc::get_mut)
        {
            schema.refuse_beyond_doubles();
        }
    }

    /// Errors if middleware for one of these methods would never run: a name that is neither `*`, a client request, a
    /// registered method nor a valid vendor method.
    #[doc(hidden)] // For the drivers and the language bindings.
    pub fn check_middleware<N: AsRef<str>>(&self, methods: &[N]) -> Result<(), Error> {
        if methods.is_empty() {
            return Err(Error::misuse(
                "no methods are named, so middleware would never run: name some, such as \"tools/call\", or \"*\" for all",
            ));
        }
        let is_here =
            |name: &str| self.methods.contains_key(name) || self.notifications.contains_key(name);
        let mut unknown = methods.iter().map(AsRef::as_ref).filter(|name| !is_here(name));
        unknown.try_for_each(names::check_middleware)
    }

    /// Declares all lists from now on, because entries may be added to lists that are empty now.
    #[doc(hidden)] // For the drivers and the language bindings.
    pub fn expect_growth(&mut self) {
        self.grows = true;
    }

    /// Returns the handler of a notification.
    pub(crate) fn listener(&self, name: &str) -> Option<&Handler> {
        self.notifications.get(name)
    }

    /// Sets or removes the middleware.
    #[doc(hidden)] // For the drivers and the language bindings.
    pub fn set_middleware(&mut self, middleware: Option<Middleware>) {
        self.middleware = middleware.map(Arc::new);
    }

    /// Returns the standard methods that registered handlers replace.
    pub(crate) fn replaced(&self) -> Vec<Method> {
        self.methods.keys().filter_map(|name| Method::parse(name)).collect()
    }

    /// Returns the methods that sessions must pass on to the router, because a handler or middleware replaces or
    /// observes them.
    pub(crate) fn routed(&self) -> Vec<Method> {
        let middleware = self.middleware.as_ref();
        [Method::Ping, Method::SetLevel]
            .into_iter()
            .filter(|method| {
                self.replaces(&[*method])
                    || middleware.is_some_and(|one| one.wants(&(*method).into()))
            })
            .collect()
    }

    /// Returns `true` if a handler replaces at least one of these methods.
    fn replaces(&self, methods: &[Method]) -> bool {
        methods.iter().any(|method| self.methods.contains_key(method.as_str()))
    }

    /// Returns `true` if at least one component has a predicate that restricts its visibility.
    pub(crate) fn is_guarded(&self) -> bool {
        self.tools.is_guarded()
            || self.resources.is_guarded()
            || self.templates.is_guarded()
            || self.prompts.is_guarded()
    }

    /// Returns whether the check of a small request, or of the reply to it, may take long.
    pub(crate) fn checks_slowly(&self) -> bool {
        self.tools.checks_slowly()
    }

    /// Returns whether the check of this request may take long although it is small.
    pub(crate) fn checks_slowly_for(&self, request: &Request) -> bool {
        self.checks_slowly()
            && matches!(request, Request::CallTool { name, .. }
                if self.tools.get(name).is_some_and(|tool| tool.checks_arguments_slowly()))
    }

    fn method(&self, name: &str) -> Option<&Handler> {
        self.methods.get(name)
    }

    /// Returns the part of a subscription filter that the server supports: declared lists, and resources if it has any.
    fn supported_filter(&self, asked: SubscriptionFilter) -> SubscriptionFilter {
        let has_resources = self.has_resources();
        let keep =
            |asked: Option<bool>, offered: bool| asked.filter(|is_asked| *is_asked && offered);
        SubscriptionFilter {
            tools_list_changed: keep(asked.tools_list_changed, self.has(&self.tools)),
            prompts_list_changed: keep(asked.prompts_list_changed, self.has(&self.prompts)),
            resources_list_changed: keep(asked.resources_list_changed, has_resources),
            resource_subscriptions: asked.resource_subscriptions.filter(|_| has_resources),
        }
    }

    /// Returns whether a list is declared: it has or had entries, or will have some.
    fn has<T: Component>(&self, registry: &Registry<T>) -> bool {
        self.grows || !registry.is_empty()
    }

    /// Returns whether resources are declared, which count as one with templates.
    fn has_resources(&self) -> bool {
        self.has(&self.resources) || self.has(&self.templates)
    }

    fn list_hint(&self) -> CacheHint {
        let ttl_ms = u64::try_from(self.server.list_ttl.as_millis()).unwrap_or(u64::MAX);
        CacheHint { ttl_ms, private: false }
    }

    fn declares(&self, list: ListKind) -> bool {
        match list {
            ListKind::Tools => {
                self.has(&self.tools) || self.replaces(&[Method::ListTools, Method::CallTool])
            }
            ListKind::Prompts => {
                self.has(&self.prompts) || self.replaces(&[Method::ListPrompts, Method::GetPrompt])
            }
            ListKind::Resources => {
                self.has_resources()
                    || self.replaces(&[Method::ListResources, Method::ReadResource])
            }
        }
    }

    fn describe(&self) -> ServerDescription {
        let list = ListCapability { list_changed: Some(true) };
        let resources = ResourcesCapability { subscribe: Some(true), list_changed: Some(true) };
        let [has_tools, has_prompts, has_resources] =
            [ListKind::Tools, ListKind::Prompts, ListKind::Resources]
                .map(|list| self.declares(list));
        let completes = completion::any(self) || self.replaces(&[Method::Complete]);
        let mut capabilities = ServerCapabilities {
            tools: has_tools.then(|| list.clone()),
            prompts: has_prompts.then_some(list),
            resources: has_resources.then_some(resources),
            completions: completes.then(|| raw("{}".into())),
            logging: Some(raw("{}".into())),
            ..ServerCapabilities::default()
        };
        for own in [&self.server.own, &self.server.mounted] {
            own.declare(&mut capabilities.extensions, &mut capabilities.experimental);
        }
        ServerDescription {
            info: self.server.info.clone(),
            capabilities,
            instructions: self.server.instructions.clone(),
            revisions: self.server.revisions.clone(),
            cache: self.list_hint(),
            meta: None,
        }
    }
}

impl Components {
    /// Returns the lists whose changes the server reports.
    pub(crate) fn declared_lists(&self) -> Vec<ListKind> {
        let lists = [ListKind::Tools, ListKind::Resources, ListKind::Prompts];
        lists.into_iter().filter(|list| self.declares(*list)).collect()
    }

    /// Returns the middleware frame for the handler of a notification.
    pub(crate) fn middleware_frame_of(
        &self,
        notification: &MethodName,
        params: &Raw,
    ) -> Option<Box<MiddlewareFrame>> {
        let middleware = self.middleware.as_ref()?;
        let is_run = middleware.wraps_handlers && middleware.wants(notification);
        is_run.then(|| Box::new(MiddlewareFrame::of_notification(middleware, notification, params)))
    }
}
