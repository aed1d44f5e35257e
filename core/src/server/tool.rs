//! A tool, as it is put together before a server offers it.

use std::{sync::Arc, time::Duration};

use schemars::JsonSchema;
use serde_json::Value;

use super::{
    common::{Common, common_methods},
    handler::{Erased, Handler},
    kind::ToolKind,
    registry::{Offering, Registered, sealed::Sealed},
    schema,
};
use crate::{
    error::Error,
    protocol::{self, ToolAnnotations, json::to_raw},
    router::{List, Offers, ToolOffer},
};

/// A tool and how it behaves (Tools).
///
/// ```
/// # use std::time::Duration;
/// # use gudgeon::{Server, Tool, ToolError};
/// #[derive(serde::Deserialize, schemars::JsonSchema)]
/// struct Division {
///     /// what is divided
///     dividend: f64,
///     divisor: f64,
/// }
///
/// async fn divide(Division { dividend, divisor }: Division) -> Result<f64, ToolError> {
///     match divisor == 0.0 {
///         true => Err(ToolError::new("can't divide by zero: give another divisor")),
///         false => Ok(dividend / divisor),
///     }
/// }
///
/// let server = Server::new("calculator").add(
///     Tool::new("divide", divide)
///         .description("Divide two numbers.")
///         .read_only()
///         .timeout(Duration::from_secs(5)),
/// );
/// ```
#[derive(Debug)]
#[must_use = "a tool is offered once it is added to a server"]
pub struct Tool {
    listed: protocol::Tool,
    handler: Erased,
    annotations: ToolAnnotations,
    common: Common,
    concurrency: Option<usize>,
    forbids_replay: bool,
}

impl Tool {
    /// The arguments' type makes the input schema, the doc comments of its fields the parameters' descriptions; the type
    /// that the handler returns makes the output schema. A name has 1 to 128 letters, digits, `_`, `-`, `.`.
    pub fn new<H: Handler<ToolKind, Form>, Form>(name: impl Into<String>, handler: H) -> Self {
        let input = H::arguments().unwrap_or_else(schema::empty);
        let mut listed = protocol::Tool::new(name, to_raw(&input));
        listed.output_schema = H::output().as_ref().map(to_raw);
        Self {
            listed,
            handler: handler.erase(),
            annotations: ToolAnnotations::default(),
            common: Common::default(),
            concurrency: None,
            forbids_replay: false,
        }
    }

    /// For people.
    pub fn title(mut self, title: impl Into<String>) -> Self {
        self.listed.title = Some(title.into());
        self
    }

    /// For models: what it does, and when to use it.
    pub fn description(mut self, description: impl Into<String>) -> Self {
        self.listed.description = Some(description.into());
        self
    }

    /// It changes nothing. Hosts may then call it without asking.
    pub fn read_only(mut self) -> Self {
        self.annotations.read_only_hint = Some(true);
        self
    }

    /// Calling it twice with the same arguments does no more than calling it once.
    pub fn idempotent(mut self) -> Self {
        self.annotations.idempotent_hint = Some(true);
        self
    }

    /// Whether it may destroy something, where it is not read-only.
    pub fn destructive(mut self, destructive: bool) -> Self {
        self.annotations.destructive_hint = Some(destructive);
        self
    }

    /// Whether it deals with the world outside, as a web search does.
    pub fn open_world(mut self, open_world: bool) -> Self {
        self.annotations.open_world_hint = Some(open_world);
        self
    }

    /// A call that runs longer is stopped and fails. The time stands still while its handler waits for its client's answer
    /// ([`Server::park`](super::Server::park) bounds that). Default: no limit.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.common.options.timeout = Some(timeout);
        self
    }

    /// At most so many calls run at once, the others wait. A handler that waits for its client's answer leaves its place to
    /// another, and stands in line for one again before it goes on. Default: no limit.
    pub fn concurrency(mut self, calls: usize) -> Self {
        self.concurrency = Some(calls);
        self
    }

    /// It must never be run again from its top: when its client answers a question and the run that asked is gone, because
    /// of a restart or because the answer came to another server, the call fails; and its handler can't return questions.
    /// Default: it is run again, with the answers so far and what [`Context::step`](super::Context::step) remembers.
    pub fn forbid_replay(mut self) -> Self {
        self.forbids_replay = true;
        self
    }

    /// `false`: no output schema; what the handler returns is not checked against one.
    pub fn output(mut self, output: bool) -> Self {
        if !output {
            self.listed.output_schema = None;
        }
        self
    }

    /// The output schema of this type, in place of what the handler's own makes: for one that returns a
    /// [`CallToolResult`](protocol::CallToolResult), to say by its content more than its structured content does.
    ///
    /// ```
    /// # use gudgeon::{Server, Tool, protocol::{CallToolResult, ContentBlock, json::to_raw}};
    /// #[derive(serde::Serialize, schemars::JsonSchema)]
    /// struct Book {
    ///     title: String,
    /// }
    ///
    /// let find = || async {
    ///     let book = Book { title: "Dune".into() };
    ///     CallToolResult {
    ///         content: vec![ContentBlock::text("It is Dune.")],
    ///         structured_content: Some(to_raw(&book)),
    ///         ..CallToolResult::default()
    ///     }
    /// };
    /// let server = Server::new("shelf").add(Tool::new("find", find).output_of::<Book>());
    /// ```
    pub fn output_of<T: JsonSchema>(mut self) -> Self {
        self.listed.output_schema = Some(to_raw(&schema::of_output::<T>()));
        self
    }

    /// A JSON Schema in place of the one that the handler's return type makes.
    pub fn output_schema(mut self, schema: &Value) -> Self {
        self.listed.output_schema = Some(to_raw(schema));
        self
    }

    /// A JSON Schema in place of the one that the arguments' type makes.
    pub fn input_schema(mut self, schema: &Value) -> Self {
        self.listed.input_schema = to_raw(schema);
        self
    }

    common_methods!(listed);
}

impl Sealed for Tool {}

impl Offering for Tool {
    fn register(mut self, offers: &mut Offers) -> Result<Registered, Error> {
        let ToolAnnotations {
            title: _,
            read_only_hint,
            destructive_hint,
            idempotent_hint,
            open_world_hint,
        } = &self.annotations;
        let hints = [read_only_hint, destructive_hint, idempotent_hint, open_world_hint];
        if hints.iter().any(|it| it.is_some()) {
            self.listed.annotations = Some(self.annotations);
        }
        let place = |which: &str| format!("the {which} schema of tool {:?}", self.listed.name);
        let input = schema::shown(self.listed.input_schema, offers.schemas, &place("input"))?;
        let output = self.listed.output_schema.take();
        let output = output.map(|it| schema::shown(it, offers.schemas, &place("output")));
        self.listed.output_schema = output.transpose()?;
        self.listed.input_schema = input;
        let mut offer = ToolOffer::new(self.listed, Arc::new(self.handler))?;
        offer.options = self.common.options;
        offer.concurrency = self.concurrency;
        offer.forbids_replay = self.forbids_replay;
        let key = offer.tool.name.clone();
        let warnings = offers.tools.add(offer, self.common.enabled)?;
        Ok(Registered { list: List::Tools, key, warnings })
    }
}
