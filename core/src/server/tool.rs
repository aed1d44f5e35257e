//! Tools as added to a server.

use schemars::JsonSchema;
use serde_json::Value;

use super::{
    entry::Entry,
    handler::{Components, Erased, Handler, HandlerOf},
    kind::ToolKind,
    registry::{Component, Registered, sealed::Sealed},
    schema,
};
use crate::{
    error::Error,
    protocol::{self, Raw, ToolAnnotations, json::to_raw},
    router::{Definition, List},
};

/// A tool and its options (Tools).
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
///         .annotations(|hints| hints.read_only_hint = Some(true))
///         .timeout(Duration::from_secs(5)),
/// );
/// ```
pub type Tool = Entry<ToolParts>;

/// The options that only tools have.
#[derive(Debug)]
pub struct ToolParts {
    name: String,
    input_schema: Raw,
    output_schema: Option<Raw>,
    annotations: ToolAnnotations,
    /// The input schema refuses the arguments that it does not name.
    closed: bool,
}

impl Tool {
    /// Creates a tool. The arguments' type makes the input schema, with the doc comments of its fields as
    /// descriptions; the return type makes the output schema. A name has 1 to 128 letters, digits, `_`, `-` and `.`.
    pub fn new<H: Handler<Form>, Form: HandlerOf<ToolKind>>(
        name: impl Into<String>,
        handler: H,
    ) -> Self {
        let parts = ToolParts {
            name: name.into(),
            input_schema: to_raw(&Form::arguments().unwrap_or_else(schema::empty)),
            output_schema: Form::output().as_ref().map(to_raw),
            annotations: ToolAnnotations::default(),
            closed: true,
        };
        Self::with_parts(parts, Form::erase(handler))
    }

    /// Sets hints for hosts: a tool with `read_only_hint`, for example, may be called without asking the user.
    pub fn annotations(mut self, change: impl FnOnce(&mut ToolAnnotations)) -> Self {
        change(&mut self.parts.annotations);
        self
    }

    /// Sets the maximum number of concurrent calls; others wait. A handler that waits for its client's answer does
    /// not count, and waits for its turn before it continues. Default: no limit.
    pub fn concurrency(mut self, calls: usize) -> Self {
        self.options.concurrency = Some(calls);
        self
    }

    /// Forbids replays: if the client answers a question but the run that asked is gone, because of a restart or
    /// because the answer reached another server, the call fails. The handler can't return questions. Default: the
    /// handler is run again with the answers so far and the results of [`Context::step`](super::Context::step).
    pub fn forbid_replay(mut self) -> Self {
        self.options.forbids_replay = true;
        self
    }

    /// Sets the output schema to that of a type, instead of the return type's. Useful for a handler that returns a
    /// [`CallToolResult`](protocol::CallToolResult) whose content differs from its structured content.
    ///
    /// ```
    /// # use gudgeon::{Server, Tool, ToolError, protocol::CallToolResult};
    /// #[derive(serde::Serialize, schemars::JsonSchema)]
    /// struct Book {
    ///     title: String,
    /// }
    ///
    /// let find = || async {
    ///     let book = Book { title: "Dune".into() };
    ///     let mut result = CallToolResult::default();
    ///     result.content.push("It is Dune.".into());
    ///     result.structured_content = Some(serde_json::value::to_raw_value(&book)?);
    ///     Ok::<_, ToolError>(result)
    /// };
    /// let server = Server::new("shelf").add(Tool::new("find", find).output_of::<Book>());
    /// ```
    pub fn output_of<T: JsonSchema>(mut self) -> Self {
        self.parts.output_schema = Some(to_raw(&schema::of_output::<T>()));
        self
    }

    /// Ignores arguments that the arguments' type has no field for.
    ///
    /// Default: a call with an unknown argument fails, and its error names the argument and the closest known name.
    #[doc(alias("unknown_arguments", "additional_properties"))]
    pub fn ignore_unknown_arguments(mut self) -> Self {
        self.parts.closed = false;
        self
    }

    /// Sets the output schema as a JSON Schema, instead of that of the return type. With `None` the tool has no output
    /// schema, and its results are not checked.
    pub fn output_schema(mut self, schema: impl Into<Option<Value>>) -> Self {
        self.parts.output_schema = schema.into().as_ref().map(to_raw);
        self
    }

    /// Sets the input schema as a JSON Schema, instead of that of the arguments' type. Which other arguments the tool takes is
    /// then up to that schema: it refuses them only with `"additionalProperties": false`.
    pub fn input_schema(mut self, schema: &Value) -> Self {
        self.parts.input_schema = to_raw(schema);
        self.parts.closed = false;
        self
    }
}

impl Sealed for Tool {}

impl Component for Tool {
    fn handler(&mut self) -> &mut Erased {
        &mut self.handler
    }

    fn register(self, components: &mut Components) -> Result<Registered, Error> {
        let Self { parts, handler, options, enabled, .. } = self;
        let place = |which: &str| format!("the {which} schema of tool {:?}", parts.name);
        let input = schema::shown(parts.input_schema, components.schemas, &place("input"))?;
        let input = if parts.closed { crate::schema::closed(input) } else { input };
        let output = parts.output_schema;
        let output =
            output.map(|output| schema::shown(output, components.schemas, &place("output")));
        let ToolAnnotations {
            title: _,
            read_only_hint,
            destructive_hint,
            idempotent_hint,
            open_world_hint,
        } = &parts.annotations;
        let hints = [read_only_hint, destructive_hint, idempotent_hint, open_world_hint];
        let has_hints = hints.iter().any(|hint| hint.is_some());
        let tool = protocol::Tool {
            title: self.title,
            description: self.description,
            icons: self.icons,
            annotations: has_hints.then_some(parts.annotations),
            output_schema: output.transpose()?,
            meta: self.meta,
            ..protocol::Tool::new(&*parts.name, input)
        };
        let warnings =
            components.register(Definition::Tool(tool, options), handler.kept(), enabled)?;
        Ok(Registered { list: List::Tools, key: parts.name, warnings })
    }
}
