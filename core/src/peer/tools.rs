//! Listed tools, and the checks of calls and results that their definitions allow.

mod listed;

use std::{
    collections::HashMap,
    ops::Range,
    sync::{Arc, OnceLock},
};

use serde::{Deserialize, de::IgnoredAny};
use serde_json::{Value, value::RawValue};

pub use self::listed::ListedTools;
use crate::{
    error::{Error, ErrorKind},
    protocol::{
        Members, Params, Raw, ResultType, ToolAnnotations,
        valid_json::{ValidMember, members},
    },
    schema::{Schema, SchemaError, Subject},
    wire::{ParamHeader, inexpressible, json_text, mirror},
};

/// The tools of a server, as last listed.
#[derive(Debug, Default)]
pub struct KnownTools {
    tools: HashMap<String, KnownTool>,
    is_complete: bool,
    /// The tools of an earlier connection, each with true if it is repeatable. Used until this connection's are known.
    expected: HashMap<String, bool>,
    /// The number of times that the tools were forgotten.
    version: u64,
}

#[derive(Debug)]
struct KnownTool {
    input: Option<Arc<ListedSchema>>,
    output: Option<Arc<ListedSchema>>,
    is_wrapped: bool,
    /// True if the server marks the tool as read-only or idempotent.
    is_repeatable: bool,
    /// The arguments that HTTP repeats in headers.
    mirrored: Vec<ParamHeader>,
}

/// A schema of a listed tool, which is compiled at first use. One that exceeds the limits is not checked; one with
/// external references fails every check.
#[derive(Debug)]
pub struct ListedSchema {
    text: Raw,
    compiled: OnceLock<Result<Option<Schema>, SchemaError>>,
}

/// The interpretation of a tool's result.
#[derive(Clone, Debug)]
pub struct ParsedToolResult {
    /// The data; `None` if it is the text as it is.
    pub data: Option<ToolData>,
    /// The error text of a failed call.
    pub failure: Option<String>,
    /// True if `data` can be determined only with the tool's output schema.
    pub needs_schema: bool,
}

/// The JSON value that a tool returned for programs.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum ToolData {
    /// The structured content without its wrapper, at this place in the JSON of the result; `is_unwrapped` is true if it
    /// had a wrapper.
    Structured { range: Range<usize>, is_unwrapped: bool },
    /// JSON in the result's text, which stands for structured content.
    Text(String),
}

impl KnownTools {
    /// Adds tools of a list; `is_complete` is true if they are the whole list.
    pub fn learn(&mut self, listed: ListedTools, is_complete: bool) {
        if is_complete {
            self.tools.clear();
            self.is_complete = true;
        }
        self.tools.extend(listed.tools);
    }

    /// Returns a number that changes when tools are forgotten.
    pub fn version(&self) -> u64 {
        self.version
    }

    /// Forgets all tools, because the list has changed or may have.
    pub fn forget(&mut self) {
        *self = Self { version: self.version + 1, ..Self::default() };
    }

    /// Returns whether the tool is known from a list.
    pub fn knows(&self, name: &str) -> bool {
        self.is_complete || self.tools.contains_key(name)
    }

    /// Returns whether the server marks the tool as read-only or idempotent; `None` if its tools are not known.
    pub fn is_repeatable(&self, name: &str) -> Option<bool> {
        match self.tools.get(name) {
            Some(tool) => Some(tool.is_repeatable),
            None if self.is_complete => Some(false),
            None => self.expected.get(name).copied(),
        }
    }

    /// Returns the names of the tools, each with true if it is repeatable, for [`KnownTools::expect`] of the next
    /// connection.
    pub fn expected(&self) -> HashMap<String, bool> {
        let known = self.tools.iter().map(|(name, tool)| (name.clone(), tool.is_repeatable));
        self.expected.clone().into_iter().chain(known).collect()
    }

    /// Sets the expectations of tools that are not known yet.
    pub fn expect(&mut self, expected: HashMap<String, bool>) {
        self.expected = expected;
    }

    /// Returns the HTTP headers that repeat arguments of a call.
    pub fn mirror(&self, name: &str, arguments: &str) -> Vec<(String, String)> {
        self.tools.get(name).map(|tool| mirror(&tool.mirrored, arguments)).unwrap_or_default()
    }

    /// Errors if an argument that must be repeated in a header can't be written there; `params` are the call's
    /// params.
    pub fn check_mirrored(&self, name: &str, params: &str) -> Result<(), Error> {
        let mirrored = self.tools.get(name).map_or(&[][..], |tool| &tool.mirrored);
        if mirrored.is_empty() {
            return Ok(());
        }
        let params: Params<'_> = serde_json::from_str(params).unwrap_or_default();
        match inexpressible(
            mirrored,
            params.get("arguments").map_or("{}", |arguments| arguments.get()),
        ) {
            None => Ok(()),
            Some(argument) => Err(Error::misuse(format!(
                "argument '{argument}' of tool {name:?} is repeated in an HTTP header; it must be an integer from -(2^53 - 1) \
                 to 2^53 - 1"
            ))),
        }
    }

    /// Interprets a result with the tool's listed definition, if it is known.
    pub fn read_result(&self, name: &str, result: &Raw) -> Result<ParsedToolResult, Error> {
        let read = ToolResultMembers::read(result)?;
        if read.is_error {
            let said = read.text();
            let failure = match said.is_empty() {
                true => format!("tool {name:?} failed without a message"),
                false => said,
            };
            let failure = Some(failure);
            return Ok(ParsedToolResult { data: read.data(None), failure, needs_schema: false });
        }
        let known = self.tools.get(name);
        let is_wrapped = known.is_some_and(|tool| tool.is_wrapped) || read.says_wrapped();
        let inner = read.structured_content.as_ref().and_then(|content| only_result(content.value));
        let is_ambiguous = inner.is_some() && !is_wrapped;
        let data = read.data(inner.filter(|_| is_wrapped));
        let needs_schema = is_ambiguous && !self.knows(name);
        Ok(ParsedToolResult { data, failure: None, needs_schema })
    }

    /// Returns the input schema of a tool, for [`check_arguments`].
    pub fn input_schema(&self, name: &str) -> Option<Arc<ListedSchema>> {
        self.tools.get(name)?.input.clone()
    }

    /// Returns the output schema of a tool, for [`check_result`].
    pub fn output_schema(&self, name: &str) -> Option<Arc<ListedSchema>> {
        self.tools.get(name)?.output.clone()
    }
}

/// Errors if the structured content does not match the output schema: clients SHOULD validate it (Tools, "Output Schema").
/// `may_be_text` allows results without structured content, as in revisions that have none.
pub fn check_result(
    name: &str,
    schema: &ListedSchema,
    result: &Raw,
    may_be_text: bool,
) -> Result<(), Error> {
    let Some(schema) = schema.compiled().transpose() else { return Ok(()) };
    let read = ToolResultMembers::read(result)?;
    if read.is_error || read.result_type != ResultType::Complete {
        return Ok(());
    }
    let Some(value) = read.structured_content else {
        let missing = "has an output schema but returned no structured content";
        let error = || super::broken(format!("tool {name:?} {missing}"));
        return if may_be_text { Ok(()) } else { Err(error()) };
    };
    let schema = schema.map_err(|error| {
        super::broken(format!("the output schema of tool {name:?} can't be used: {error}"))
    })?;
    schema.check_json(value.value).map_err(|error| {
        super::broken(format!(
            "the result of tool {name:?} does not match its output schema: {error}"
        ))
    })
}

/// Errors if the arguments do not match the input schema that the server listed.
pub fn check_arguments(name: &str, schema: &ListedSchema, arguments: &str) -> Result<(), Error> {
    let schema = schema.compiled().map_err(|error| {
        Error::new(ErrorKind::Unsupported, format!("the input schema of tool {name:?}: {error}"))
    })?;
    let Some(schema) = schema else { return Ok(()) };
    let value: Value =
        serde_json::from_str(arguments).map_err(|error| Error::misuse(error.to_string()))?;
    schema.check(&value).map_err(|error| {
        Error::new(
            ErrorKind::Misuse,
            format!(
                "Invalid arguments for tool {name:?}: {}",
                error.with_subject(Subject::Argument)
            ),
        )
    })
}

impl ListedSchema {
    fn new(text: Raw) -> Arc<Self> {
        Arc::new(Self { text, compiled: OnceLock::new() })
    }

    /// Returns whether a check of a small value takes little time. Compiling the schema may take longer.
    pub fn is_quick(&self) -> bool {
        match self.compiled.get() {
            None => false,
            Some(Ok(Some(schema))) => !schema.is_slow(),
            Some(_) => true,
        }
    }

    fn compiled(&self) -> Result<Option<&Schema>, SchemaError> {
        let compile = || match Schema::compile(self.text.get()) {
            Ok(schema) => Ok(Some(schema)),
            Err(error) if error.is_foreign() => Err(error),
            Err(error) => {
                tracing::warn!(%error, "a tool's schema is invalid, so values are not checked");
                Ok(None)
            }
        };
        self.compiled.get_or_init(compile).as_ref().map(Option::as_ref).map_err(Clone::clone)
    }
}

/// The members of a result that are needed here.
#[derive(Default)]
struct ToolResultMembers<'a> {
    /// JSON arrays and objects.
    content: Option<&'a str>,
    meta: Option<&'a str>,
    /// Any JSON, `null` included.
    structured_content: Option<ValidMember<'a>>,
    is_error: bool,
    result_type: ResultType,
}

impl<'a> ToolResultMembers<'a> {
    fn read(result: &'a Raw) -> Result<Self, Error> {
        if !result.get().starts_with('{') {
            read_member::<Members<IgnoredAny>>(result.get())?;
        }
        let mut read = Self::default();
        for member in members(result.get()) {
            match &*member.name {
                "content" => {
                    if !member.value.starts_with('[') {
                        read_member::<Option<Vec<IgnoredAny>>>(member.value)?;
                    }
                    read.content = Some(member.value);
                }
                "structuredContent" => read.structured_content = Some(member),
                "isError" => {
                    read.is_error = read_member(member.value).map(Option::unwrap_or_default)?;
                }
                "resultType" => {
                    read.result_type = read_member(member.value).map(Option::unwrap_or_default)?;
                }
                "_meta" => read.meta = Some(member.value),
                _ => (),
            }
        }
        Ok(read)
    }
}

fn read_member<'a, T: Deserialize<'a>>(json: &'a str) -> Result<T, Error> {
    serde_json::from_str(json).map_err(|error| super::invalid("tools/call", &error))
}

impl ToolResultMembers<'_> {
    /// Returns the data. `inner` is its place in the structured content, if that is a wrapper.
    fn data(&self, inner: Option<Range<usize>>) -> Option<ToolData> {
        let Some(structured) = &self.structured_content else {
            return json_text(self.content?, self.meta?).map(ToolData::Text);
        };
        let Range { start, end } = structured.place;
        let is_unwrapped = inner.is_some();
        let range = inner.map_or(start..end, |place| start + place.start..start + place.end);
        Some(ToolData::Structured { range, is_unwrapped })
    }

    fn text(&self) -> String {
        #[derive(Deserialize)]
        struct Text {
            text: String,
        }
        let blocks =
            self.content.and_then(|content| serde_json::from_str::<Vec<&RawValue>>(content).ok());
        let blocks = blocks.into_iter().flatten();
        let texts = blocks.filter_map(|block| serde_json::from_str::<Text>(block.get()).ok());
        texts.map(|block| block.text).collect::<Vec<_>>().join("\n")
    }

    /// Returns whether `FastMCP` marked the result as wrapped.
    fn says_wrapped(&self) -> bool {
        #[derive(Deserialize)]
        struct Meta {
            fastmcp: Mark,
        }
        #[derive(Deserialize)]
        struct Mark {
            wrap_result: bool,
        }
        self.meta
            .and_then(|meta| serde_json::from_str::<Meta>(meta).ok())
            .is_some_and(|meta| meta.fastmcp.wrap_result)
    }
}

/// Returns whether a tool with these annotations may be called twice.
fn is_repeatable(annotations: &RawValue) -> bool {
    let hints: ToolAnnotations = serde_json::from_str(annotations.get()).unwrap_or_default();
    hints.read_only_hint == Some(true) || hints.idempotent_hint == Some(true)
}

/// Returns whether a schema is marked as a wrapper around `result`.
fn is_marked(schema: &RawValue) -> bool {
    #[derive(Deserialize)]
    struct Marks {
        #[serde(default, rename = "x-gudgeon-wrapped")]
        ours: bool,
        #[serde(default, rename = "x-fastmcp-wrap-result")]
        theirs: bool,
    }
    serde_json::from_str::<Marks>(schema.get()).is_ok_and(|marks| marks.ours || marks.theirs)
}

/// Returns the place of the value of `result` if it is the object's only member.
fn only_result(value: &str) -> Option<Range<usize>> {
    let mut members = members(value);
    let only = members.next().filter(|member| member.name == "result")?;
    members.next().is_none().then_some(only.place)
}

#[cfg(test)]
mod tests;
