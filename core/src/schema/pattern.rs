//! The keyword `pattern`. Patterns run in linear time; those that need look-around or back-references run on a backtracking
//! engine, under a budget for the whole check.

use std::{
    cell::{Cell, RefCell},
    sync::{Arc, OnceLock},
};

use fancy_regex::{Error, RegexBuilder, RuntimeError};
use jsonschema::{Keyword, ValidationError};
use serde_json::Value;

use super::limits;

/// The backtracking limits of the attempts to match a string, in order. The engine does not report how many steps it took, so an
/// attempt is charged its whole limit; the first limits are low, because most texts match in a few steps.
const ATTEMPTS: [usize; 4] = [50, 1_000, 10_000, 50_000];
/// The bytes that a shorter text counts for.
const MIN_TEXT: usize = 32;

thread_local! {
    /// The steps that are left for the check that runs on this thread.
    static LEFT: Cell<usize> = const { Cell::new(0) };
    /// The pattern for which they were not enough.
    static REFUSED: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// Runs a check with a new budget for its patterns. Fails with the pattern for which the budget was not enough: whatever the
/// check answered is not valid then, because a pattern may stand below `not`.
pub(super) fn within_budget<R>(check: impl FnOnce() -> R) -> Result<R, String> {
    LEFT.set(limits::PATTERN_STEPS);
    REFUSED.set(None);
    let result = check();
    REFUSED.take().map_or(Ok(result), Err)
}

/// Makes the keyword, from a compiled pattern if it could be compiled.
pub(super) fn keyword(
    pattern: Option<Pattern>,
) -> Result<Box<dyn for<'i> Keyword<'i>>, ValidationError<'static>> {
    let pattern = pattern.ok_or_else(|| {
        ValidationError::schema("this is not a regular expression of ECMA-262, or it is too large")
    })?;
    Ok(Box::new(pattern))
}

/// Returns whether a pattern needs the backtracking engine.
pub(super) fn backtracks(pattern: &str) -> bool {
    jsonschema_regex::to_rust_regex(pattern).is_ok_and(|it| !is_linear(&it))
}

/// Returns whether a pattern in Rust's syntax has neither look-around nor back-references.
fn is_linear(translated: &str) -> bool {
    regex_syntax::Parser::new().parse(translated).is_ok()
}

/// A compiled pattern. Clones share it.
#[derive(Clone, Debug)]
pub(super) struct Pattern {
    /// The pattern as it stands in the schema.
    text: Arc<str>,
    engine: Engine,
}

#[derive(Clone, Debug)]
enum Engine {
    Linear(regex::Regex),
    Backtracking(Arc<Backtracking>),
}

#[derive(Debug)]
struct Backtracking {
    translated: String,
    size: usize,
    /// The pattern with the limit of each attempt, compiled when it is needed first.
    attempts: [OnceLock<Option<fancy_regex::Regex>>; ATTEMPTS.len()],
}

impl Pattern {
    /// Returns `None` for what is no pattern, and for one that would take more than `size` bytes.
    pub(super) fn compile(text: &str, size: usize) -> Option<Self> {
        let translated = jsonschema_regex::to_rust_regex(text).ok()?;
        let engine = if is_linear(&translated) {
            let regex = regex::RegexBuilder::new(&translated).size_limit(size).build();
            Engine::Linear(regex.ok()?)
        } else {
            let attempts = [const { OnceLock::new() }; ATTEMPTS.len()];
            let pattern = Backtracking { translated: translated.into_owned(), size, attempts };
            pattern.attempt(0)?;
            Engine::Backtracking(Arc::new(pattern))
        };
        Some(Self { text: text.into(), engine })
    }

    /// Returns the pattern as the schema has it.
    pub(super) fn text(&self) -> &str {
        &self.text
    }

    pub(super) fn matches(&self, text: &str) -> bool {
        let matches = match &self.engine {
            Engine::Linear(regex) => Some(regex.is_match(text)),
            Engine::Backtracking(pattern) => pattern.matches(text),
        };
        matches.unwrap_or_else(|| {
            LEFT.set(0);
            REFUSED.with_borrow_mut(|it| it.get_or_insert_with(|| self.text.to_string()).len());
            false
        })
    }
}

impl Backtracking {
    fn attempt(&self, number: usize) -> Option<&fancy_regex::Regex> {
        let build = || {
            RegexBuilder::new(&self.translated)
                .backtrack_limit(ATTEMPTS[number])
                .delegate_size_limit(self.size)
                .build()
                .ok()
        };
        self.attempts[number].get_or_init(build).as_ref()
    }

    /// Returns `None` where matching takes too many steps.
    fn matches(&self, text: &str) -> Option<bool> {
        for (number, limit) in ATTEMPTS.into_iter().enumerate() {
            // Going back once may cost a look at the whole text.
            LEFT.set(LEFT.get().checked_sub(limit * text.len().max(MIN_TEXT))?);
            match self.attempt(number)?.is_match(text) {
                Ok(matches) => return Some(matches),
                Err(Error::RuntimeError(RuntimeError::BacktrackLimitExceeded)) => {}
                Err(_) => return None,
            }
        }
        None
    }
}

impl<'i> Keyword<'i> for Pattern {
    fn validate(&self, value: &'i Value) -> Result<(), ValidationError<'i>> {
        let is_valid = Keyword::is_valid(self, value);
        if is_valid { Ok(()) } else { Err(ValidationError::custom(&*self.text)) }
    }

    fn is_valid(&self, value: &'i Value) -> bool {
        value.as_str().is_none_or(|text| self.matches(text))
    }
}

#[cfg(test)]
mod tests;
