//! Regular expressions. Most run in linear time; those that need look-around or back-references run on a backtracking
//! engine, under a budget for the whole check.

use std::sync::{Arc, OnceLock};

use fancy_regex::{Error, RegexBuilder, RuntimeError};

use super::limits;

mod class_sets;
mod ecma;
mod flags;

pub use flags::without_flags;

/// The backtracking limits of the attempts to match a string, in order. The engine does not report how many steps it took, so an
/// attempt is charged its whole limit; the first limits are low, because most texts match in a few steps.
const ATTEMPTS: [usize; 4] = [50, 1_000, 10_000, 50_000];
/// The bytes that a shorter text counts for.
const MIN_TEXT: usize = 32;

/// The steps that are left for the patterns of one check.
#[derive(Clone, Copy, Debug)]
pub(super) struct Budget(usize);

impl Default for Budget {
    fn default() -> Self {
        Self(limits::PATTERN_STEPS)
    }
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
    /// Returns `None` for what is not a pattern, and for one that would take more than `size` bytes.
    pub(super) fn compile(text: &str, size: usize) -> Option<Self> {
        let simplified = ecma::simplified(text)?;
        let translated = jsonschema_regex::to_rust_regex(&simplified).ok()?;
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

    /// Returns whether the pattern needs the backtracking engine.
    pub(super) fn backtracks(&self) -> bool {
        matches!(self.engine, Engine::Backtracking(_))
    }

    /// Returns whether a text matches; `None` if that takes more steps than are left.
    pub(super) fn matches(&self, text: &str, budget: &mut Budget) -> Option<bool> {
        match &self.engine {
            Engine::Linear(regex) => Some(regex.is_match(text)),
            Engine::Backtracking(pattern) => pattern.matches(text, budget),
        }
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

    fn matches(&self, text: &str, budget: &mut Budget) -> Option<bool> {
        for (number, limit) in ATTEMPTS.into_iter().enumerate() {
            // Going back once may cost a look at the whole text.
            budget.0 = budget.0.checked_sub(limit * text.len().max(MIN_TEXT))?;
            match self.attempt(number)?.is_match(text) {
                Ok(matches) => return Some(matches),
                Err(Error::RuntimeError(RuntimeError::BacktrackLimitExceeded)) => {}
                Err(_) => return None,
            }
        }
        None
    }
}

#[cfg(test)]
mod tests;
