//! JSON Schema: compiled once, checked often. Nothing is fetched from the network, and neither a schema nor a value can
//! make a check hang or exhaust the stack.

mod alternatives;
mod arguments;
mod build;
mod closed;
mod dialect;
mod explain;
mod graph;
mod limits;
mod nearest;
mod object;
mod pattern;
mod place;
mod portable;
mod violation;

use std::fmt;

use jsonschema::{PatternOptions, Validator};
use serde_json::Value;

pub use arguments::Checked;
pub use closed::closed;
use graph::Graph;
pub use limits::{MAX_IN_PLACE, MAX_PATTERNS, MAX_SUBSCHEMAS, MAX_TEXT};
pub use nearest::nearest;
pub use object::of_object;
pub use portable::{SchemaProfile, portable, target};
pub use violation::{Subject, Violation};

/// A compiled schema and its text.
#[derive(Debug)]
pub struct Schema {
    text: Box<str>,
    validator: Validator,
    graph: Graph,
    /// `true` if the cost of a check must be bounded per value first.
    multiplies: bool,
    /// `true` if patterns need the backtracking engine, so that a check needs a budget.
    backtracks: bool,
    /// The top-level properties that accept no string.
    textless: Box<[String]>,
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
        let draft = dialect::of(&document)?;
        let graph = Graph::build(&document)?;
        let size = limits::pattern_size(graph.patterns());
        let names =
            PatternOptions::fancy_regex().backtrack_limit(limits::NAME_BACKTRACKS).size_limit(size);
        let options = jsonschema::options()
            .with_draft(draft)
            .offline()
            .with_pattern_options(names)
            .with_keyword("pattern", move |_, pattern, _| pattern::keyword(pattern, size));
        let validator = options.build(&document).map_err(|error| {
            SchemaError::at(error.instance_path().as_str(), explain::describe(&error))
        })?;
        Ok(Self {
            text: text.into(),
            backtracks: !graph.backtracking().is_empty(),
            multiplies: graph.expansion() > limits::CHECKED_STEPS,
            validator,
            textless: graph.textless_properties().into(),
            graph,
        })
    }

    /// Returns the text given to [`Schema::compile`].
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Returns the patterns that need look-around or back-references. They are checked under a limit of steps, so a check of a
    /// long text may be refused.
    pub fn backtracking_patterns(&self) -> impl Iterator<Item = &str> {
        let patterns = self.graph.backtracking();
        patterns.values.iter().chain(&patterns.names).map(String::as_str)
    }

    /// Validates a value.
    pub fn check(&self, value: &Value) -> Result<(), Violation> {
        if self.fits(value)? { Ok(()) } else { Err(self.violation(value)) }
    }

    /// Errors if the check needs more steps than its budget.
    fn fits(&self, value: &Value) -> Result<bool, Violation> {
        if !self.backtracks {
            return Ok(self.is_valid(value));
        }
        self.check_names(value)?;
        pattern::within_budget(|| self.is_valid(value)).map_err(|it| Violation::unmatched(&it))
    }

    fn is_valid(&self, value: &Value) -> bool {
        (!self.multiplies || self.graph.can_afford(value, limits::CHECKED_STEPS))
            && self.validator.is_valid(value)
    }

    /// Refuses names of members that are too long, in sum, for the backtracking patterns of `patternProperties`.
    fn check_names(&self, value: &Value) -> Result<(), Violation> {
        let patterns = &self.graph.backtracking().names;
        let Some(pattern) = patterns.first() else { return Ok(()) };
        let allowed = limits::PATTERN_STEPS / limits::NAME_BACKTRACKS / patterns.len();
        if name_bytes(value) <= allowed { Ok(()) } else { Err(Violation::unmatched(pattern)) }
    }

    #[cold]
    fn violation(&self, value: &Value) -> Violation {
        if !self.backtracks {
            return self.explain(value);
        }
        pattern::within_budget(|| self.explain(value))
            .unwrap_or_else(|it| Violation::unmatched(&it))
    }

    fn explain(&self, value: &Value) -> Violation {
        // Collecting errors does not memoize: for some schemas it is exponential in the depth of the value, unlike the
        // check itself.
        if self.graph.can_afford(value, limits::EXPLAINED_STEPS) {
            Violation::explain(self.validator.iter_errors(value), value, &self.text)
        } else {
            Violation::unexplained()
        }
    }
}

/// The bytes of the names of all members, at every depth.
fn name_bytes(value: &Value) -> usize {
    match value {
        Value::Object(members) => {
            members.iter().map(|(it, value)| it.len() + name_bytes(value)).sum()
        }
        Value::Array(items) => items.iter().map(name_bytes).sum(),
        _ => 0,
    }
}

#[cfg(test)]
mod tests;
