//! JSON Schema: compiled once, checked often. Nothing is fetched from the network, and neither a schema nor a value can
//! make a check hang or exhaust the stack.

mod alternatives;
mod arguments;
mod build;
mod closed;
mod dialect;
mod explain;
mod graph;
mod instance;
mod limits;
mod nearest;
mod object;
mod pattern;
mod place;
mod portable;
mod quick;
mod violation;

use std::{collections::HashMap, fmt};

use jsonschema::{Draft, PatternOptions, Validator, json::SerdeJson};
use serde_json::Value;

pub use arguments::Checked;
pub use closed::closed;
use graph::Graph;
use instance::{Borrowing, Instance};
pub use limits::{MAX_IN_PLACE, MAX_PATTERNS, MAX_SUBSCHEMAS, MAX_TEXT};
pub use nearest::nearest;
pub use object::of_object;
use pattern::Pattern;
pub use portable::{SchemaProfile, portable, target};
use quick::Quick;
pub use violation::{Subject, Violation};

/// A compiled schema and its text.
#[derive(Debug)]
pub struct Schema {
    text: Box<str>,
    /// Answers quickly whether a value is valid. `None` if a check must be bounded first, or if the schema has other keywords.
    quick: Option<Quick>,
    /// Knows all keywords, and says what is wrong with a value.
    thorough: Validator,
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
        let backtracks = !graph.backtracking().is_empty();
        let multiplies = graph.expansion() > limits::CHECKED_STEPS;
        let pattern_size = limits::pattern_size(graph.patterns());
        let quick = match backtracks || multiplies {
            true => None,
            false => Quick::compile(&document, draft, pattern_size),
        };
        Ok(Self {
            text: text.into(),
            thorough: thorough(&document, draft, pattern_size, quick.as_ref())?,
            quick,
            backtracks,
            multiplies,
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

    /// Returns whether a check of a small value may take long: a pattern backtracks, or schemas multiply the steps.
    pub fn is_slow(&self) -> bool {
        self.backtracks || self.multiplies
    }

    /// Validates a value.
    pub fn check(&self, value: &Value) -> Result<(), Violation> {
        if self.fits(value)? { Ok(()) } else { Err(self.violation(value)) }
    }

    /// Validates a value given as JSON.
    pub fn check_json(&self, json: &str) -> Result<(), Violation> {
        if self.fits_quickly(json)? {
            return Ok(());
        }
        self.check(&read_value(json)?)
    }

    /// Validates a string, given also as JSON.
    pub(crate) fn check_text(&self, text: &str, json: &str) -> Result<(), Violation> {
        let value = Instance::String(text.into());
        match self.quick.as_ref().and_then(|it| it.accepts(&value)) {
            Some(true) => Ok(()),
            Some(false) | None => self.check_json(json),
        }
    }

    /// Returns `true` if the quick check accepts a value. If not, it may still be valid, also with strings in it decoded.
    /// Errors if the value is not valid, and so large that nothing else can be said of it.
    fn fits_quickly(&self, json: &str) -> Result<bool, Violation> {
        let Some(quick) = &self.quick else { return Ok(false) };
        let Ok(value) = serde_json::from_str::<Instance<'_>>(json) else { return Ok(false) };
        match quick.accepts(&value) {
            Some(true) => return Ok(true),
            Some(false) => {}
            None => return Ok(false),
        }
        let is_explained = self.graph.can_afford::<Borrowing>(&value, limits::EXPLAINED_STEPS);
        match is_explained || value.has_text(&self.textless) {
            true => Ok(false),
            false => Err(Violation::unexplained()),
        }
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
        (!self.multiplies || self.graph.can_afford::<SerdeJson>(value, limits::CHECKED_STEPS))
            && self.thorough.is_valid(value)
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
        if self.graph.can_afford::<SerdeJson>(value, limits::EXPLAINED_STEPS) {
            Violation::explain(self.thorough.iter_errors(value), value, &self.text)
        } else {
            Violation::unexplained()
        }
    }
}

/// Compiles the thorough check. `pattern_size` is the most bytes of a compiled pattern; the patterns of `quick` are shared.
fn thorough(
    document: &Value,
    draft: Draft,
    pattern_size: usize,
    quick: Option<&Quick>,
) -> Result<Validator, SchemaError> {
    let names = PatternOptions::fancy_regex()
        .backtrack_limit(limits::NAME_BACKTRACKS)
        .size_limit(pattern_size);
    let shared = quick.into_iter().flat_map(Quick::patterns);
    let shared: HashMap<String, Pattern> =
        shared.map(|it| (it.text().to_owned(), it.clone())).collect();
    jsonschema::options()
        .with_draft(draft)
        .offline()
        .with_pattern_options(names)
        .with_keyword("pattern", move |_, value, _| {
            let text = value.as_str().unwrap_or_default();
            let known = shared.get(text).cloned();
            pattern::keyword(known.or_else(|| Pattern::compile(text, pattern_size)))
        })
        .build(document)
        .map_err(|error| SchemaError::at(error.instance_path().as_str(), explain::describe(&error)))
}

fn read_value(json: &str) -> Result<Value, Violation> {
    serde_json::from_str(json).map_err(|it| Violation::new(format!("can't be read: {it}")))
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
