//! What users hold: a client of one server.
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
mod builder;
mod connection;
mod failures;
mod listeners;
mod operation;
mod questions;
mod rehearsal;
mod round;
mod subscription;
mod target;
mod wire;

use std::{
    ops::Deref,
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use serde::Serialize;

use self::questions::Questions;
pub use self::{
    builder::ClientBuilder,
    connection::{
        BoxFuture, Connection, ConnectionConfig, Event, Mirror, OnEvent, OnProgress, OnQuestion,
        Question, RequestSettings,
    },
    failures::{describe, refusal},
    operation::{CallOptions, Operation, Reply},
    questions::Answerer,
    rehearsal::Rehearsal,
    round::ToolRound,
    subscription::Subscription,
    target::{CustomWire, Target},
};
use crate::{
    error::{Error, ErrorKind},
    peer::{self, KnownTools},
    protocol::{
        CallToolResult, CompleteResult, Completion, CompletionTarget, ContentBlock,
        GetPromptResult, LoggingLevel, Method, MethodName, Prompt, Raw, ReadResourceResult,
        Resource, ResourceTemplate, Root, Tool, exact, json,
    },
};
pub use crate::{
    peer::{ListKind as ListName, subscriptions::SubscriptionSettings},
    session::client::{Change, ListKind, LogMessage, Progress, ServerIdentity},
};

/// A client that is connected. Clones share the connection, which ends with the last one or with [`Self::close`].
#[derive(Clone, Debug)]
pub struct Client {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    connection: Connection,
    questions: Arc<Questions>,
    tools: Arc<Mutex<KnownTools>>,
    options: CallOptions,
    max_rounds: usize,
    validate: bool,
    /// The server was told at the start that there are roots.
    has_roots: bool,
}

/// One page of a list.
#[derive(Clone, Debug, serde::Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PageOf<T> {
    /// What the page holds.
    pub items: Vec<T>,
    /// What asks for the next page; without it this is the last.
    pub next_cursor: Option<String>,
}

/// What a tool answered.
#[derive(Clone, Debug)]
pub struct ToolResult {
    result: CallToolResult,
    data: Option<Raw>,
}

impl Client {
    /// Connects with what is usual; [`Self::builder`] has the options.
    pub async fn connect(target: impl Into<Target>) -> Result<Self, Error> {
        Self::builder(target).connect().await
    }

    /// A client with options, still to be connected.
    pub fn builder(target: impl Into<Target>) -> ClientBuilder {
        ClientBuilder::new(target.into())
    }

    /// What the server said of itself.
    pub fn server(&self) -> &ServerIdentity {
        self.inner.connection.describe()
    }

    /// The session's id, where there is one: legacy HTTP only.
    pub fn session_id(&self) -> Option<String> {
        self.inner.connection.session_id()
    }

    /// What [`Self::call`] is given unless something else is wanted.
    pub fn options(&self) -> CallOptions {
        self.inner.options.clone()
    }

    /// All tools, all pages. Spec: Server Features › Tools.
    pub async fn list_tools(&self) -> Result<Vec<Tool>, Error> {
        self.list(ListName::Tools).await
    }

    /// One page of tools; no cursor asks for the first.
    pub async fn list_tools_page(&self, cursor: Option<String>) -> Result<PageOf<Tool>, Error> {
        self.page(ListName::Tools, cursor).await
    }

    /// All resources, all pages. Spec: Server Features › Resources.
    pub async fn list_resources(&self) -> Result<Vec<Resource>, Error> {
        self.list(ListName::Resources).await
    }

    /// One page of resources; no cursor asks for the first.
    pub async fn list_resources_page(
        &self,
        cursor: Option<String>,
    ) -> Result<PageOf<Resource>, Error> {
        self.page(ListName::Resources, cursor).await
    }

    /// All templates of resources, all pages. Spec: Server Features › Resources › Templates.
    pub async fn list_resource_templates(&self) -> Result<Vec<ResourceTemplate>, Error> {
        self.list(ListName::ResourceTemplates).await
    }

    /// One page of templates; no cursor asks for the first.
    pub async fn list_resource_templates_page(
        &self,
        cursor: Option<String>,
    ) -> Result<PageOf<ResourceTemplate>, Error> {
        self.page(ListName::ResourceTemplates, cursor).await
    }

    /// All prompts, all pages. Spec: Server Features › Prompts.
    pub async fn list_prompts(&self) -> Result<Vec<Prompt>, Error> {
        self.list(ListName::Prompts).await
    }

    /// One page of prompts; no cursor asks for the first.
    pub async fn list_prompts_page(&self, cursor: Option<String>) -> Result<PageOf<Prompt>, Error> {
        self.page(ListName::Prompts, cursor).await
    }

    /// Calls a tool; one that fails is an error of kind [`ErrorKind::Tool`].
    pub async fn call_tool(
        &self,
        name: &str,
        arguments: impl Serialize,
    ) -> Result<ToolResult, Error> {
        self.call_tool_with(name, arguments, self.options()).await
    }

    /// `call_tool` with a timeout, progress or `_meta` of its own.
    pub async fn call_tool_with(
        &self,
        name: &str,
        arguments: impl Serialize,
        options: CallOptions,
    ) -> Result<ToolResult, Error> {
        let arguments = object("arguments", &arguments)?;
        let operation = Operation::CallTool { name: name.to_owned(), arguments };
        let reply = self.call(operation, options).await?;
        Ok(ToolResult { result: peer::read("tools/call", &reply.result)?, data: reply.data })
    }

    /// Reads a resource by its URI. Spec: Server Features › Resources › Reading resources.
    pub async fn read_resource(&self, uri: &str) -> Result<ReadResourceResult, Error> {
        let operation = Operation::ReadResource { uri: uri.to_owned(), variables: None };
        self.fetch("resources/read", operation).await
    }

    /// A prompt with its arguments filled in. Spec: Server Features › Prompts.
    pub async fn get_prompt(
        &self,
        name: &str,
        arguments: impl Serialize,
    ) -> Result<GetPromptResult, Error> {
        let arguments = object("arguments", &arguments)?;
        let operation = Operation::GetPrompt { name: name.to_owned(), arguments };
        self.fetch("prompts/get", operation).await
    }

    /// Suggestions for an argument of a prompt or a variable of a template. Spec: Utilities › Completion.
    pub async fn complete(
        &self,
        target: CompletionTarget,
        argument: &str,
        value: &str,
    ) -> Result<Completion, Error> {
        let operation = Operation::Complete {
            target,
            argument: argument.to_owned(),
            value: value.to_owned(),
            given: None,
        };
        self.fetch::<CompleteResult>("completion/complete", operation).await.map(|it| it.completion)
    }

    /// From now on; a modern server is told with each request.
    pub async fn set_log_level(&self, level: LoggingLevel) -> Result<(), Error> {
        self.call(Operation::SetLogLevel(level), self.options()).await.map(drop)
    }

    /// How long the server takes to answer; a modern one is asked for `server/discover`.
    pub async fn ping(&self) -> Result<Duration, Error> {
        let start = Instant::now();
        self.call(Operation::Ping, self.options()).await?;
        Ok(start.elapsed())
    }

    /// Changes the roots. A legacy server is told that they changed; a modern one asks anew in each call.
    ///
    /// # Errors
    /// [`ErrorKind::Unsupported`] where a legacy server was told at the start that this client has none: there
    /// [`ClientBuilder::roots`] comes first, if only with an empty list. [`ErrorKind::Misuse`] for what is no `file://`
    /// URI. Spec: Client Features › Roots.
    pub fn set_roots(&self, roots: impl IntoIterator<Item = Root>) -> Result<(), Error> {
        let Inner { connection, questions, has_roots, .. } = &*self.inner;
        let spoken = self.server().spoken();
        if !has_roots && !spoken.is_stateless {
            let message = format!(
                "the roots can't be set now: this client had none when it connected, and in {} that is said once",
                spoken.name()
            );
            return Err(Error::new(ErrorKind::Unsupported, message)
                .with_hint("give roots when the client is made; an empty list will do")
                .with_target(&**connection.target())
                .in_phase("call"));
        }
        questions.set_roots(roots.into_iter().collect())?;
        if spoken.is_stateless {
            return connection.declare_roots();
        }
        connection.notify(Method::RootsListChanged.into(), json::raw("{}".into()))
    }

    /// Sends any request, a vendor's own for one.
    pub async fn request(&self, method: &str, params: impl Serialize) -> Result<Raw, Error> {
        let params = object("params", &params)?;
        let operation = Operation::Request { method: method.to_owned(), params };
        self.call(operation, self.options()).await.map(|it| it.result)
    }

    /// Sends any notification; one of the specification's that the revision lacks is not sent.
    pub fn notify(&self, method: &str, params: impl Serialize) -> Result<(), Error> {
        let params = object("params", &params)?.unwrap_or_else(|| json::raw("{}".into()));
        self.inner.connection.notify(MethodName::parse(method), params)
    }

    /// Ends the connection, and the server's process with it.
    pub async fn close(&self) {
        self.inner.connection.close().await;
    }

    async fn list<T: for<'de> serde::Deserialize<'de>>(
        &self,
        list: ListName,
    ) -> Result<Vec<T>, Error> {
        self.fetch(list.method().as_str(), Operation::List(list)).await
    }

    async fn page<T: for<'de> serde::Deserialize<'de>>(
        &self,
        list: ListName,
        cursor: Option<String>,
    ) -> Result<PageOf<T>, Error> {
        self.fetch(list.method().as_str(), Operation::ListPage(list, cursor)).await
    }

    async fn fetch<T: for<'de> serde::Deserialize<'de>>(
        &self,
        method: &str,
        operation: Operation,
    ) -> Result<T, Error> {
        peer::read(method, &self.call(operation, self.options()).await?.result)
    }
}

impl ToolResult {
    /// The structured value; of a tool that has none, its text.
    pub fn data<T: for<'de> serde::Deserialize<'de>>(&self) -> Result<T, Error> {
        let parsed = match &self.data {
            Some(data) => serde_json::from_str(data.get()),
            None => serde_json::from_value(serde_json::Value::String(self.text())),
        };
        parsed.map_err(|it| {
            let message = format!("the tool's answer has another shape than was asked for: {it}");
            Error::new(ErrorKind::Misuse, message)
        })
    }

    /// The structured value as JSON, where there is one.
    pub fn raw_data(&self) -> Option<&Raw> {
        self.data.as_ref()
    }

    /// All text, joined by newlines.
    pub fn text(&self) -> String {
        let blocks = self.result.content.iter();
        let texts = blocks.filter_map(|it| match it {
            ContentBlock::Text(text) => Some(text.text.as_str()),
            _ => None,
        });
        texts.collect::<Vec<_>>().join("\n")
    }

    /// The result as the protocol says it.
    pub fn into_inner(self) -> CallToolResult {
        self.result
    }
}

impl Deref for ToolResult {
    type Target = CallToolResult;

    fn deref(&self) -> &CallToolResult {
        &self.result
    }
}

/// A value as a JSON object; `()` and `None` are left out.
fn object(what: &str, value: &impl Serialize) -> Result<Option<Raw>, Error> {
    let raw = exact::to_raw(value, what).map_err(|it| Error::misuse(it.to_string()))?;
    match raw.get().as_bytes().first() {
        Some(b'n') => Ok(None),
        Some(b'{') => Ok(Some(raw)),
        _ => Err(Error::misuse(format!("{what} must be an object, not {}", raw.get()))),
    }
}
