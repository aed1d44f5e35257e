//! JSON Schema: compiled once, checked often. Nothing is fetched from the network, and neither a schema nor a value can
//! make a check hang or exhaust the stack.

mod alternatives;
mod arguments;
mod check;
mod closed;
mod dialect;
mod explain;
mod failure;
mod graph;
mod instance;
mod keyword;
mod limits;
mod marks;
mod nearest;
mod number;
mod object;
mod pattern;
mod place;
mod portable;
mod quoted;
mod reader;
mod uri;
mod value_set;
mod violation;

use std::fmt;

use serde_json::Value;

pub use arguments::Checked;
use check::Unfinished;
pub use closed::closed;
use instance::Instance;
use keyword::Schemas;
pub use limits::{MAX_IN_PLACE, MAX_PATTERNS, MAX_SUBSCHEMAS, MAX_TEXT};
pub use nearest::nearest;
pub use object::of_object;
pub use pattern::without_flags;
pub use portable::{SchemaProfile, portable, target};
pub use violation::{Subject, Violation};

use crate::protocol::json;

/// A compiled schema and its text.
#[derive(Debug)]
pub struct Schema {
    text: Box<str>,
    schemas: Schemas,
    /// The patterns that need look-around or back-references, so that they have a budget.
    backtracking: Vec<String>,
    /// `true` if a check of a small value may take many steps.
    multiplies: bool,
}

/// The reason why a schema can't be used, its place, and the fix.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct SchemaError {
    message: String,
    is_foreign: bool,
}

impl SchemaError {
    fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), is_foreign: false }
    }

    /// A reference that leads outside the document.
    fn foreign(self) -> Self {
        Self { is_foreign: true, ..self }
    }

    /// Returns `true` for an unknown dialect or an external reference. A tool with such a schema must be rejected
    /// rather than left unchecked (Base Protocol, "JSON Schema Usage").
    pub fn is_foreign(&self) -> bool {
        self.is_foreign
    }

    /// Creates an error; `pointer` is the JSON pointer into the schema, empty for its root.
    fn at(pointer: &str, message: impl fmt::Display) -> Self {
        Self::new(format!("at `#{}`: {message}", explain::clipped(pointer, 100)))
    }
}

impl fmt::Display for SchemaError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for SchemaError {}

impl Schema {
    /// Compiles a schema. The dialect is that of `$schema`, by default 2020-12.
    pub fn compile(text: &str) -> Result<Self, SchemaError> {
        let document = limits::read(text)?;
        let reader::Document { schemas, backtracking } = reader::read(&document)?;
        graph::check_chains(&schemas)?;
        Ok(Self {
            text: text.into(),
            backtracking,
            multiplies: graph::expansion(&schemas) > limits::CHECKED_STEPS,
            schemas,
        })
    }

    /// Refuses integers that a double can't hold where the schema names types, for a language whose numbers are doubles.
    pub fn refuse_beyond_doubles(&mut self) {
        self.schemas.has_doubles_only = true;
    }

    /// Returns the text given to [`Schema::compile`].
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Returns the patterns that need look-around or back-references. They are checked under a limit of steps, so a check of a
    /// long text may be refused.
    pub fn backtracking_patterns(&self) -> impl Iterator<Item = &str> {
        self.backtracking.iter().map(String::as_str)
    }

    /// Returns whether a check of a small value may take long: a pattern backtracks, or schemas multiply the steps.
    pub fn is_slow(&self) -> bool {
        self.multiplies || !self.backtracking.is_empty()
    }

    /// Validates a value.
    pub fn check(&self, value: &Value) -> Result<(), Violation> {
        self.check_instance(&Instance::from_value(value))
    }

    /// Validates a value given as JSON.
    pub fn check_json(&self, json: &str) -> Result<(), Violation> {
        let value = serde_json::from_str(json)
            .map_err(|error| Violation::new(format!("can't be read: {}", json::problem(&error))))?;
        self.check_instance(&value)
    }

    /// Validates a string.
    pub(crate) fn check_text(&self, text: &str) -> Result<(), Violation> {
        self.check_instance(&Instance::String(text.into()))
    }

    fn check_instance(&self, value: &Instance<'_>) -> Result<(), Violation> {
        if self.fits(value)? { Ok(()) } else { Err(self.violation(value)) }
    }

    /// Errors if the check takes too many steps.
    fn fits(&self, value: &Instance<'_>) -> Result<bool, Violation> {
        check::is_valid(&self.schemas, value).map_err(|unfinished| match unfinished {
            Unfinished::Steps => Violation::unchecked(),
            Unfinished::Pattern(pattern) => Violation::unmatched(&pattern),
        })
    }

    #[cold]
    fn violation(&self, value: &Instance<'_>) -> Violation {
        match check::failures(&self.schemas, value) {
            Ok(failures) => Violation::explain(&self.schemas, &failures),
            Err(Unfinished::Steps) => Violation::unexplained(),
            Err(Unfinished::Pattern(pattern)) => Violation::unmatched(&pattern),
        }
    }
}

#[cfg(test)]
mod tests;
