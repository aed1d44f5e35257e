//! The client of one server, as used by applications.
//!
//! ```no_run
//! # async fn run() -> Result<(), gudgeon::error::Error> {
//! use gudgeon::{client::Client, transport::Command};
//!
//! let client = Client::connect(Command::new("my-server")).await?;
//! let sum: i64 = client.call_tool("add", serde_json::json!({ "a": 1, "b": 2 })).await?.data()?;
//! client.close().await;
//! # Ok(())
//! # }
//! ```

mod actor;
mod alarm;
#[cfg(feature = "auth")]
pub mod auth;
mod builder;
#[cfg(feature = "bindings")]
#[doc(hidden)]
pub mod configuration;
#[cfg(not(feature = "bindings"))]
mod configuration;
mod configured_target;
mod connected;
mod connection;
mod entries;
mod error_context;
mod failures;
mod group;
mod known;
mod listed;
mod listeners;
mod listing;
mod message_log;
mod middleware;
mod operation;
mod options;
mod params;
mod perform;
mod questions;
mod reconnect;
#[cfg(feature = "bindings")]
mod relay;
mod retry;
mod round;
mod running_call;
mod subscription;
mod target;
mod test_server;
mod unread;
mod wire;
mod wire_form;

use std::{ops::Deref, sync::Arc, time::Duration};

use serde::Serialize;

#[cfg(not(feature = "bindings"))]
use self::configured_target::ConfiguredTarget;
pub use self::{
    builder::ClientBuilder,
    configuration::read_configuration,
    connection::Event,
    group::{ClientGroup, GroupSubscription},
    listed::{Listed, PageOf},
    middleware::{Next, Request},
    operation::CallOptions,
    options::ClientOptions,
    retry::Retry,
    round::ToolRound,
    subscription::Subscription,
    target::{CustomWire, ServedTarget, Target},
    test_server::TestServer,
};
#[cfg(feature = "bindings")]
#[doc(hidden)]
pub use self::{
    configured_target::ConfiguredTarget,
    connection::{BoxFuture, Question},
    failures::describe,
    group::targets as group_targets,
    questions::Answerer,
    relay::{Relay, Relayed},
};
use self::{connected::Connected, middleware::Stack, reconnect::Reconnecting};
#[cfg(not(feature = "bindings"))]
pub(crate) use self::{connection::Question, questions::Answerer};
pub(crate) use self::{group::Backoff, operation::Questioner};
/// Types of hidden items.
#[doc(hidden)]
pub use self::{
    group::Member,
    operation::{Operation, OperationReply},
};
#[doc(hidden)]
pub use crate::peer::{ListKind as ListName, ToolData};
pub use crate::session::client::{Change, ListKind, LogMessage, Progress, ServerIdentity};
pub use crate::transport::Pem;
use crate::{
    clock,
    error::{Error, ErrorKind},
    peer,
    protocol::{
        CallToolResult, Completion, CompletionTarget, ContentBlock, GetPromptResult, LoggingLevel,
        Members, MethodName, Raw, ReadResourceResult, Root, exact, json,
    },
};

/// A connected client. Clones share the connection, which closes with the last clone or by [`Self::close`].
#[derive(Clone, Debug)]
pub struct Client {
    reconnecting: Arc<Reconnecting>,
    middleware: Arc<Stack>,
    options: CallOptions,
}

/// The result of a tool call.
#[derive(Clone, Debug)]
pub struct ToolResult {
    result: CallToolResult,
    /// JSON.
    data: Option<String>,
}

impl Client {
    /// Connects with default options; see [`Self::builder`] for options. Errors if the server can't be reached or
    /// started, or shares no revision with the client.
    pub async fn connect(target: impl Into<Target>) -> Result<Self, Error> {
        Self::builder(target).connect().await
    }

    /// Returns a builder for a client with options.
    pub fn builder(target: impl Into<Target>) -> ClientBuilder {
        ClientBuilder::new(target.into())
    }

    /// Returns the server's identity and capabilities, as it named them when it was connected last.
    pub fn server(&self) -> Arc<ServerIdentity> {
        Arc::clone(self.connected().connection.describe())
    }

    /// Returns the session's id; only legacy HTTP has one.
    pub fn session_id(&self) -> Option<String> {
        self.connected().connection.session_id()
    }

    /// Returns the options of this client's requests.
    #[doc(hidden)] // For the language bindings.
    pub fn options(&self) -> CallOptions {
        self.options.clone()
    }

    /// Returns a client of the same connection whose requests have other options: timeouts, progress, `_meta`.
    ///
    /// ```
    /// # use gudgeon::{Client, Server};
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), gudgeon::Error> {
    /// # let server = Server::new("greeter").tool("greet", || async { "hello" });
    /// # let client = Client::connect(&server).await?;
    /// let hurried = client.with_options(|options| options.timeout = Some(std::time::Duration::from_secs(5)));
    /// let greeting = hurried.call_tool("greet", ()).await?;
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn with_options(&self, change: impl FnOnce(&mut CallOptions)) -> Self {
        let mut client = self.clone();
        change(&mut client.options);
        client
    }

    /// Lists all tools, resources, resource templates or prompts, fetching all pages.
    ///
    /// ```
    /// # use gudgeon::{Client, Server, protocol::Tool};
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), gudgeon::Error> {
    /// # let server = Server::new("greeter").tool("greet", || async { "hello" });
    /// # let client = Client::connect(&server).await?;
    /// assert_eq!(client.list::<Tool>().await?[0].name, "greet");
    /// # Ok(())
    /// # }
    /// ```
    #[doc(alias("list_tools", "list_resources", "list_resource_templates", "list_prompts"))]
    pub async fn list<T: Listed>(&self) -> Result<Vec<T>, Error> {
        self.fetch(T::LIST.method().as_str(), Operation::List(T::LIST)).await
    }

    /// Fetches one page of the list of tools, resources, resource templates or prompts; `None` requests the first
    /// page.
    ///
    /// ```
    /// # use gudgeon::{Client, Server, protocol::Tool};
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), gudgeon::Error> {
    /// # let server = Server::new("greeter").tool("greet", || async { "hello" });
    /// # let client = Client::connect(&server).await?;
    /// let page = client.list_page::<Tool>(None).await?;
    /// assert_eq!((page.items.len(), page.next_cursor), (1, None));
    /// # Ok(())
    /// # }
    /// ```
    pub async fn list_page<T: Listed>(&self, cursor: Option<String>) -> Result<PageOf<T>, Error> {
        let list = T::LIST;
        self.fetch(list.method().as_str(), Operation::ListPage(list, cursor)).await
    }

    /// Calls a tool. A result with `isError` becomes an error of kind [`ErrorKind::Tool`].
    pub async fn call_tool(
        &self,
        name: &str,
        arguments: impl Serialize,
    ) -> Result<ToolResult, Error> {
        let arguments = object("arguments", &arguments)?;
        let operation = Operation::CallTool { name: name.to_owned(), arguments };
        let reply = self.call(operation, self.options.clone()).await?;
        ToolResult::read(&reply)
    }

    /// Reads a resource by its URI. Spec: Server Features › Resources › Reading resources.
    pub async fn read_resource(&self, uri: &str) -> Result<ReadResourceResult, Error> {
        let operation = Operation::ReadResource { uri: uri.to_owned(), variables: None };
        self.fetch("resources/read", operation).await
    }

    /// Reads a resource of a template, with these values for its variables.
    pub async fn read_template(
        &self,
        template: &str,
        variables: impl Serialize,
    ) -> Result<ReadResourceResult, Error> {
        let variables = object("variables", &variables)?;
        let operation = Operation::ReadResource { uri: template.to_owned(), variables };
        self.fetch("resources/read", operation).await
    }

    /// Gets a prompt with its arguments filled in, which are sent as strings: numbers and booleans in their JSON form; `None` is
    /// left out. Errors if an argument is a list or an object. Spec: Server Features › Prompts.
    ///
    /// ```
    /// # use gudgeon::{Client, Prompt, Server};
    /// #[derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
    /// struct Review {
    ///     title: String,
    ///     stars: Option<u8>,
    /// }
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), gudgeon::Error> {
    /// let review = |Review { title, stars }| async move { format!("Review {title} with {stars:?} stars.") };
    /// let server = Server::new("shelf").add(Prompt::new("review", review));
    /// let client = Client::connect(&server).await?;
    /// let prompt = client.get_prompt("review", Review { title: "Dune".into(), stars: Some(5) }).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn get_prompt(
        &self,
        name: &str,
        arguments: impl Serialize,
    ) -> Result<GetPromptResult, Error> {
        let arguments = texts("arguments", &arguments)?;
        let operation = Operation::GetPrompt { name: name.to_owned(), arguments };
        self.fetch("prompts/get", operation).await
    }

    /// Completes an argument of a prompt or a variable of a resource template. `given` maps arguments that are already
    /// filled in to strings; pass `()` if there are none. Spec: Utilities › Completion.
    pub async fn complete(
        &self,
        target: CompletionTarget,
        argument: &str,
        value: &str,
        given: impl Serialize,
    ) -> Result<Completion, Error> {
        let given = texts("given", &given)?;
        let operation = Operation::Complete {
            target,
            argument: argument.to_owned(),
            value: value.to_owned(),
            given,
        };
        self.fetch("completion/complete", operation).await
    }

    /// Sets the minimum level of log messages. For a modern server it is sent with each further request.
    pub async fn set_log_level(&self, level: LoggingLevel) -> Result<(), Error> {
        self.call(Operation::SetLogLevel(level), self.options.clone()).await.map(drop)
    }

    /// Measures the time of a round trip: `ping`, or `server/discover` for a modern server.
    pub async fn ping(&self) -> Result<Duration, Error> {
        let start = clock::now();
        self.call(Operation::Ping, self.options.clone()).await?;
        Ok(clock::since(start))
    }

    /// Replaces the roots. A legacy server is notified of the change; a modern one asks for the roots in each call.
    ///
    /// # Errors
    /// [`ErrorKind::Unsupported`] if the client declared no roots in a legacy handshake; declare them by
    /// [`ClientOptions::roots`], if necessary with an empty list. [`ErrorKind::Misuse`] for a URI other than
    /// `file://`. Spec: Client Features › Roots.
    pub fn set_roots<R: Into<Root>>(
        &self,
        roots: impl IntoIterator<Item = R>,
    ) -> Result<(), Error> {
        self.reconnecting.set_roots(roots.into_iter().map(Into::into).collect())
    }

    /// Sends a request with any method, such as a vendor's.
    pub async fn request(&self, method: &str, params: impl Serialize) -> Result<Raw, Error> {
        let params = object("params", &params)?;
        let operation = Operation::Request { method: method.to_owned(), params };
        self.call(operation, self.options.clone()).await.map(|reply| reply.result)
    }

    /// Sends a notification with any method. One that the specification defines but the negotiated revision lacks is
    /// not sent.
    pub fn notify(&self, method: &str, params: impl Serialize) -> Result<(), Error> {
        let params = object("params", &params)?.unwrap_or_else(|| json::raw("{}".into()));
        self.reconnecting.notify(MethodName::parse(method), params)
    }

    /// Closes the connection and ends the server's process: it has 2 s to exit after the end of its input, then it gets
    /// SIGTERM, and after 2 s more SIGKILL.
    pub async fn close(&self) {
        self.reconnecting.close().await;
    }

    /// Performs an operation inside the middleware, again if that is allowed after an outage.
    #[doc(hidden)] // For the language bindings.
    pub async fn call(
        &self,
        operation: Operation,
        options: CallOptions,
    ) -> Result<OperationReply, Error> {
        match self.middleware.applies(operation.method()) {
            // Boxed, so that the future of each call does not have the size of the way through middleware.
            true => Box::pin(self.call_through(operation, options)).await,
            false => self.reconnecting.perform(operation, options).await,
        }
    }

    /// Returns the connection that is or was open.
    fn connected(&self) -> Arc<Connected> {
        self.reconnecting.current()
    }

    async fn fetch<T: for<'de> serde::Deserialize<'de>>(
        &self,
        method: &str,
        operation: Operation,
    ) -> Result<T, Error> {
        peer::read(method, &self.call(operation, self.options.clone()).await?.result)
    }
}

impl ToolResult {
    fn read(reply: &OperationReply) -> Result<Self, Error> {
        let result = peer::read("tools/call", &reply.result)?;
        Ok(Self { result, data: reply.data().map(ToOwned::to_owned) })
    }

    /// Deserializes the structured content. Without structured content, deserializes the text as a string, or else, if the
    /// type does not fit, as JSON. Errors if neither fits. Types that serde reads from strings, such as those for dates,
    /// UUIDs and decimals, may be used in every revision.
    pub fn data<T: for<'de> serde::Deserialize<'de>>(&self) -> Result<T, Error> {
        let parsed = match &self.data {
            Some(data) => serde_json::from_str(data),
            None => self.text_data(),
        };
        parsed.map_err(|error| {
            let message = format!("the tool's result does not have the requested type: {error}");
            Error::new(ErrorKind::Misuse, message)
        })
    }

    /// Deserializes the text itself, or else the JSON in it.
    fn text_data<T: for<'de> serde::Deserialize<'de>>(&self) -> serde_json::Result<T> {
        let text = self.text();
        serde_json::from_value(serde_json::Value::String(text.clone())).or_else(|misfit| {
            match serde_json::from_str(&text) {
                Err(error) if !error.is_data() => Err(misfit),
                read => read,
            }
        })
    }

    /// Returns the structured content, or the text that stands for it, as JSON; `None` if there is neither.
    #[doc(hidden)] // For the tests; programs call `data`.
    pub fn raw_data(&self) -> Option<&str> {
        self.data.as_deref()
    }

    /// Returns all text blocks, joined by newlines.
    pub fn text(&self) -> String {
        let blocks = self.result.content.iter();
        let texts = blocks.filter_map(|block| match block {
            ContentBlock::Text(text) => Some(text.text.as_str()),
            _ => None,
        });
        texts.collect::<Vec<_>>().join("\n")
    }
}

/// The result as defined by the protocol.
impl From<ToolResult> for CallToolResult {
    fn from(result: ToolResult) -> Self {
        result.result
    }
}

impl Deref for ToolResult {
    type Target = CallToolResult;

    fn deref(&self) -> &CallToolResult {
        &self.result
    }
}

/// Serializes a value as a JSON object; `()` and `None` become `None`.
fn object(what: &str, value: &impl Serialize) -> Result<Option<Raw>, Error> {
    let raw = exact::to_raw(value, what).map_err(|error| Error::misuse(error.to_string()))?;
    match raw.get().as_bytes().first() {
        Some(b'n') => Ok(None),
        Some(b'{') => Ok(Some(raw)),
        _ => Err(Error::misuse(format!("{what} must be an object, not {}", raw.get()))),
    }
}

/// Serializes a value as a JSON object of strings, as the arguments of prompts are.
fn texts(what: &str, value: &impl Serialize) -> Result<Option<Raw>, Error> {
    let Some(raw) = object(what, value)? else { return Ok(None) };
    let Members(given): Members<Raw> =
        serde_json::from_str(raw.get()).map_err(|error| Error::misuse(error.to_string()))?;
    let mut texts = Vec::with_capacity(given.len());
    for (name, value) in given {
        match value.get().as_bytes().first() {
            Some(b'"') => texts.push((name, value)),
            Some(b'n') => (),
            Some(b'{' | b'[') => {
                return Err(Error::misuse(format!(
                    "{what}: {name:?} must be a string, a number or a boolean, not {}",
                    value.get()
                )));
            }
            _ => texts.push((name, json::to_raw(value.get()))),
        }
    }
    Ok(Some(json::to_raw(&Members(texts))))
}
