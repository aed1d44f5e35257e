//! The server API for applications: [`Server`] and its tools, resources and prompts.

mod answer;
pub mod ask;
#[cfg(all(feature = "auth", feature = "http"))]
pub mod auth;
mod changes;
mod connection;
mod content;
mod context;
mod endpoint;
mod entry;
mod error;
mod forms;
mod handler;
#[cfg(unix)]
mod hangup;
#[cfg(feature = "http")]
mod http;
#[cfg(feature = "http")]
mod listen;
pub mod kind;
mod lifecycle;
mod metrics;
pub mod middleware;
#[cfg(feature = "bindings")]
mod native;
#[cfg(feature = "bindings")]
mod nested;
mod optional_text;
mod options;
mod pace;
mod parameter;
mod prompt;
mod registry;
pub(crate) mod resolve_inside;
mod resource;
mod process_end;
#[cfg(feature = "http")]
mod route;
mod run;
mod schema;
mod serve;
mod session;
mod spans;
mod state;
mod stdio;
mod tool;
mod visible;
mod wire;
mod workers;

use std::{fmt, sync::Arc};

use serde_json::Value;

#[cfg(feature = "bindings")]
#[doc(hidden)]
pub use self::handler::NativeSubject;
#[cfg(not(feature = "bindings"))]
pub(crate) use self::handler::NativeSubject;
pub(crate) use self::handler::{OnSubscribed, native_handler};
#[cfg(feature = "http")]
pub use self::http::{HttpOptions, HttpService};
#[cfg(feature = "bindings")]
#[doc(hidden)]
pub use self::native::{NativeServing, native_subject};
pub use self::{
    answer::{Answer, Fails, Output},
    content::{Audio, File, Image, Json},
    context::{Context, RequestInfo},
    entry::Entry,
    error::{HandlerError, ResourceNotFound, ToolError},
    handler::{Async, Handler, HandlerOf, Signature},
    metrics::MetricsReader,
    optional_text::OptionalText,
    options::ServerOptions,
    parameter::{CompletionInput, OfCaller, OfServer, Parameter, Roles, TakesReferences},
    prompt::{Prompt, PromptParts},
    registry::{Component, Registry},
    resolve_inside::resolve_inside,
    resource::{Resource, ResourceParts},
    session::Session,
    state::{Method, MethodOf, State},
    tool::{Tool, ToolParts},
};
use self::{
    changes::Outer,
    kind::{CompletionKind, MethodKind, NotificationKind, ToolKind},
    lifecycle::Lifecycle,
    middleware::{Next, Request, Stack},
    registry::Hub,
};
/// Types of hidden items.
#[doc(hidden)]
pub use self::{handler::Erased, registry::Registered, state::States};
#[cfg(feature = "auth")]
#[doc(hidden)]
pub use crate::auth::fetch::{FetchError, FetchResponse};
pub use crate::metrics::{Bucket, Metric, Sample, SampleValue};
#[cfg(feature = "redis")]
pub use crate::stores::RedisStore;
#[cfg(feature = "sqlite")]
pub use crate::stores::SqliteStore;
use crate::{
    error::Error,
    protocol::Implementation,
    router::{self, Definition, Registrar, ServerFacts, check_server},
};
#[cfg(feature = "http")]
pub use crate::{
    http::{Cors, SessionMode},
    transport::{http::server::AnswerBody, listen::Listening},
};
/// Types of the trait that the stores of this crate have, which programs need not name.
#[doc(hidden)]
pub use crate::{
    replier::{GivenUp, Replier},
    store::{StoreEngine, StoreOperation, StoreReply},
};
pub use crate::{router::List, schema::SchemaProfile, transport::Transport};
pub use crate::{
    store::{Expect, StoreEvent, StoreListener, StoreSubscription},
    stores::{MemoryStore, Store},
};

/// A Model Context Protocol server that speaks all revisions at the same time.
///
/// ```no_run
/// use gudgeon::Server;
///
/// #[derive(serde::Deserialize, schemars::JsonSchema)]
/// struct Args {
///     a: i64,
///     b: i64,
/// }
///
/// #[tokio::main]
/// async fn main() -> Result<(), gudgeon::error::Error> {
///     Server::new("shelf")
///         .version("1.0.0")
///         .tool("add", |Args { a, b }: Args| async move { Ok(a + b) })
///         .run_stdio()
///         .await
/// }
/// ```
///
/// # Panics
/// A wrong registration (a duplicate name, an unusable schema, an invalid URI) panics with the fix, because it is a
/// mistake in the program. [`Registry::add`] returns an error instead.
#[must_use = "a server does nothing until it is run"]
pub struct Server {
    hub: Arc<Hub>,
    options: ServerOptions,
    lifecycle: Arc<Lifecycle>,
    stack: Stack,
    /// Methods that mounted servers have middleware for.
    wanted_below: Vec<String>,
}

impl Server {
    /// Creates a server with this name, or with an [`Implementation`], which also has a title, a description, a web page
    /// and icons to display.
    ///
    /// ```
    /// # use gudgeon::{Server, protocol::Implementation};
    /// let mut shelf = Implementation::new("shelf", "1.0.0");
    /// shelf.title = Some("Ada's shelf".into());
    /// let server = Server::new(shelf);
    /// ```
    ///
    /// # Panics
    /// Panics if the name is empty.
    #[track_caller]
    pub fn new(info: impl Into<Implementation>) -> Self {
        let info = info.into();
        let checked = check_server(&info.name);
        let components = handler::Components::new(ServerFacts::from(info));
        let hub = Arc::new(Hub::new(components));
        let server = Self {
            lifecycle: Arc::new(Lifecycle::new(hub.states())),
            hub,
            options: ServerOptions::default(),
            stack: Stack::default(),
            wanted_below: Vec::new(),
        };
        server.registered(checked).options(|_| ())
    }

    /// Sets the server's version. Default: empty.
    pub fn version(self, version: impl Into<String>) -> Self {
        self.facts(|facts| facts.info.version = version.into())
    }

    /// Sets instructions for models on how to use the server as a whole.
    pub fn instructions(self, instructions: impl Into<String>) -> Self {
        self.facts(|facts| facts.instructions = Some(instructions.into()))
    }

    /// Adds a tool. [`Server::add`] takes a [`Tool`] with more options.
    ///
    /// # Panics
    /// Panics if the name is invalid or taken, or a schema can't be used.
    #[track_caller]
    #[doc(alias("add_tool", "register_tool"))]
    pub fn tool<H: Handler<Form>, Form: HandlerOf<ToolKind>>(
        self,
        name: impl Into<String>,
        handler: H,
    ) -> Self {
        self.add(Tool::new(name, handler))
    }

    /// Adds a tool, resource, resource template or prompt.
    ///
    /// # Panics
    /// Panics if the name is invalid or taken, or a part of it can't be used.
    #[track_caller]
    #[expect(clippy::should_implement_trait, reason = "nobody writes `server + tool`")]
    pub fn add(self, component: impl Component) -> Self {
        let added = self.hub.add(component);
        self.registered(added)
    }

    /// Adds a completion handler for an argument of a prompt (given by name) or a variable of a resource template
    /// (given by URI template). The handler takes the text typed so far as a `String`, or a [`CompletionInput`]
    /// (Completion).
    ///
    /// ```
    /// # use gudgeon::{Prompt, Server};
    /// # #[derive(serde::Deserialize, schemars::JsonSchema)]
    /// # struct Review { title: String }
    /// let server = Server::new("shelf")
    ///     .add(Prompt::new("review", |review: Review| async move {
    ///         format!("Review {}.", review.title)
    ///     }))
    ///     .complete("review", "title", |typed: String| async move {
    ///         let titles = ["Dune", "Emma"];
    ///         titles.into_iter().filter(|title| title.starts_with(&typed)).collect::<Vec<_>>()
    ///     });
    /// ```
    ///
    /// # Panics
    /// Panics if the prompt, template or argument has not been added yet.
    #[track_caller]
    pub fn complete<H: Handler<Form>, Form: HandlerOf<CompletionKind>>(
        self,
        target: &str,
        argument: &str,
        handler: H,
    ) -> Self {
        let handler = self.erased(Form::erase(handler));
        let completion =
            Definition::Completion { target: target.into(), argument: argument.into() };
        let added = self.hub.edit(|components| components.add(completion, handler)).map(drop);
        self.registered(added)
    }

    /// Adds a handler for a vendor's request, such as `acme/reindex`. The handler takes the params and returns an
    /// object, or `()`.
    ///
    /// # Panics
    /// Panics if the name is invalid or taken.
    #[track_caller]
    pub fn method<H: Handler<Form>, Form: HandlerOf<MethodKind>>(
        self,
        name: &str,
        handler: H,
    ) -> Self {
        let params = Form::arguments().map(|schema| schema.to_string());
        let handler = self.erased(Form::erase(handler));
        let added = self.hub.edit(|components| {
            components.add(Definition::Method(name.into()), handler)?;
            params.map_or(Ok(()), |schema| components.check_params(name, &schema))
        });
        self.registered(added)
    }

    /// Adds a handler for a vendor's notification, such as `acme/changed`, or for `notifications/roots/list_changed`.
    ///
    /// # Panics
    /// Panics if the name is invalid or taken.
    #[track_caller]
    pub fn notification<H: Handler<Form>, Form: HandlerOf<NotificationKind>>(
        self,
        name: &str,
        handler: H,
    ) -> Self {
        let handler = self.erased(Form::erase(handler));
        let notification = Definition::Notification(name.into());
        let added = self.hub.edit(|components| components.add(notification, handler)).map(drop);
        self.registered(added)
    }

    /// Adds middleware: a function that runs around requests and passes them on with `next.run(request)`. It sees
    /// params and results in the newest revision's form. The first one added is the outermost.
    ///
    /// `methods` are names such as `tools/call`, `tools/list` or `initialize`, or `*` for all. A vendor's method may
    /// be added later.
    ///
    /// # Panics
    /// Panics if clients never send a request with such a name.
    ///
    /// ```
    /// # use gudgeon::{Server, ToolError};
    /// let server = Server::new("shelf")
    ///     .tool("open", || async { "open" })
    ///     .middleware(["tools/call"], |request, next| async move {
    ///         match request.params["name"].as_str() {
    ///             Some("open") => Err(ToolError::new("the shelf is locked")),
    ///             _ => next.run(request).await,
    ///         }
    ///     });
    /// ```
    #[track_caller]
    #[doc(alias = "add_middleware")]
    pub fn middleware<F, Answering, M: Into<String>>(
        mut self,
        methods: impl IntoIterator<Item = M>,
        middleware: F,
    ) -> Self
    where
        F: Fn(Request, Next) -> Answering + Send + Sync + 'static,
        Answering: Future<Output = Result<Value, ToolError>> + Send + 'static,
    {
        let methods: Vec<String> = methods.into_iter().map(Into::into).collect();
        let known = self.hub.edit(|components| components.check_middleware(&methods));
        self.stack.push(methods, middleware);
        self.set_middleware();
        self.registered(known)
    }

    /// Adds everything that another server has: tools and prompts as `prefix_name`, URIs and methods unchanged,
    /// including later changes and notifications of its [`Registry`]. The other server's middleware runs inside this
    /// one's and sees its own names; its hooks run with this one's.
    ///
    /// ```
    /// # use gudgeon::Server;
    /// let shelf = Server::new("shelf").tool("tidy", || async { "tidy" });
    /// let house = Server::new("house").mount("shelf", shelf); // offers "shelf_tidy"
    /// ```
    ///
    /// # Panics
    /// Panics if a name is taken, or if the prefix contains characters other than letters, digits, `_`, `-` and `.`.
    #[track_caller]
    pub fn mount(mut self, prefix: &str, other: Self) -> Self {
        let components = other.hub.edit(|components| components.clone());
        let stack = Arc::new(other.stack);
        let added = self.hub.mount(prefix, &components, &stack);
        self.wanted_below.extend(stack.methods());
        self.wanted_below.extend(other.wanted_below);
        self.lifecycle.mount(&other.lifecycle);
        self.set_middleware();
        let mounted = self.registered(added);
        let hub = Arc::clone(&mounted.hub);
        other.hub.follow(Outer { hub, prefix: prefix.to_owned(), stack });
        mounted
    }

    /// Returns the registry, which changes the server's tools, resources and prompts while it runs.
    pub fn registry(&self) -> Registry {
        Registry::new(Arc::clone(&self.hub))
    }

    /// Begins to count metrics, and returns a reader of them. An address with the path
    /// [`HttpOptions::metrics`](crate::HttpOptions::metrics) counts them as well.
    ///
    /// ```
    /// # use gudgeon::Server;
    /// let server = Server::new("shelf").tool("open", || async { "open" });
    /// let metrics = server.metrics();
    /// assert!(metrics.to_string().contains("# TYPE gudgeon_calls_total counter\n"));
    /// assert!(metrics.read().iter().any(|metric| metric.name == "gudgeon_in_flight"));
    /// ```
    pub fn metrics(&self) -> MetricsReader {
        MetricsReader::new(self.hub.edit(|components| Arc::clone(&components.server.metrics)))
    }

    /// Returns the owner of what this server offers, for parts that change while it runs.
    pub(crate) fn registrar(&self) -> Arc<dyn Registrar> {
        Arc::clone(&self.hub) as _
    }

    /// Returns a handler with the states of this server.
    fn erased(&self, mut handler: Erased) -> router::Handler {
        handler.join(self.hub.states());
        handler.kept()
    }

    fn set_middleware(&self) {
        let middleware = self.stack.registered(&self.wanted_below);
        self.hub.edit(|components| components.set_middleware(Some(middleware)));
    }

    fn facts(self, change: impl FnOnce(&mut ServerFacts)) -> Self {
        self.hub.edit(|components| change(Arc::make_mut(&mut components.server)));
        self
    }

    #[track_caller]
    fn registered(self, registered: Result<(), Error>) -> Self {
        match registered {
            Ok(()) => self,
            Err(error) => panic!("{error}"),
        }
    }
}

impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Server").field("options", &self.options).finish_non_exhaustive()
    }
}
