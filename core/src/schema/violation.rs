//! The reasons why a value does not fit its schema, in words that a model can correct its call by.

use std::fmt;

use super::explain;
use super::failure::Failure;
use super::keyword::Schemas;

/// The number of problems that are named; the others are counted.
const NAMED: usize = 5;

/// The reasons why a value does not match its schema, as text: `argument 'order.lines[0].sku': expected a string, got 5`. Several problems
/// are joined with "; ".
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Violation {
    subject: Subject,
    problems: Vec<Problem>,
    more: usize,
}

/// The noun for the checked value's members.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Subject {
    /// Arguments of a tool.
    Argument,
    /// Fields of a form.
    Field,
    /// Parameters of a method.
    Parameter,
    #[default]
    Property,
}

/// One reason, and the place in the value that it is about.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct Problem {
    /// Dotted, with indexes; empty for the whole value.
    pub(super) place: String,
    pub(super) kind: ProblemKind,
}

#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) enum ProblemKind {
    Missing,
    Unknown {
        /// The known name that is most like it.
        meant: Option<String>,
        /// All names that the object may have, where they are known.
        known: Option<Vec<String>>,
    },
    /// Any other problem, as text.
    Wrong(String),
}

impl Violation {
    pub(super) fn new(message: impl Into<String>) -> Self {
        let problem = Problem { place: String::new(), kind: ProblemKind::Wrong(message.into()) };
        Self { subject: Subject::default(), problems: vec![problem], more: 0 }
    }

    pub(super) fn explain(schemas: &Schemas, failures: &[Failure<'_>]) -> Self {
        let mut problems = Vec::new();
        let mut more = 0;
        for failure in failures {
            if problems.len() < NAMED {
                explain::problems(schemas, failure, &mut problems);
            } else {
                more += 1;
            }
        }
        more += problems.len().saturating_sub(NAMED);
        problems.truncate(NAMED);
        Self { subject: Subject::default(), problems, more }
    }

    pub(super) fn unexplained() -> Self {
        Self::new(
            "does not fit the schema, and is too large or too deeply nested to say where; send less at once",
        )
    }

    pub(super) fn unchecked() -> Self {
        Self::new(
            "is too large or too deeply nested to be checked by the schema; send less at once",
        )
    }

    /// A string for which a pattern takes too many steps.
    pub(super) fn unmatched(pattern: &str) -> Self {
        let pattern = explain::clipped(pattern, 100);
        Self::new(format!(
            "matching the pattern {pattern:?} takes too many steps for a string this long; send a shorter string"
        ))
    }

    /// Returns the places in the value that the problems are about: dotted, with indexes, and empty for the whole value.
    pub fn places(&self) -> impl Iterator<Item = &str> {
        self.problems.iter().map(|problem| problem.place.as_str())
    }

    /// Returns the same violation with another noun for the value's members.
    #[must_use]
    pub fn with_subject(self, subject: Subject) -> Self {
        Self { subject, ..self }
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, problem) in self.problems.iter().enumerate() {
            if at > 0 {
                f.write_str("; ")?;
            }
            problem.write(self.subject, f)?;
        }
        if self.more > 0 {
            write!(f, "; and {} more", self.more)?;
        }
        Ok(())
    }
}

impl std::error::Error for Violation {}

impl Problem {
    fn write(&self, subject: Subject, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (noun, place) = (subject.noun(), &self.place);
        match &self.kind {
            ProblemKind::Missing => write!(f, "missing {noun} '{place}'"),
            ProblemKind::Wrong(text) if place.is_empty() => f.write_str(text),
            ProblemKind::Wrong(text) => write!(f, "{noun} '{place}': {text}"),
            ProblemKind::Unknown { meant, known } => {
                write!(f, "unknown {noun} '{place}'")?;
                let owner = match subject {
                    Subject::Argument if !place.contains(['.', '[']) => "this tool",
                    _ => "it",
                };
                match (meant, known) {
                    (Some(meant), _) => write!(f, "; did you mean '{meant}'?"),
                    (None, None) => Ok(()),
                    (None, Some(known)) if known.is_empty() => {
                        write!(f, "; {owner} takes no {noun}s")
                    }
                    (None, Some(known)) => {
                        write!(f, "; {owner} takes: {}", explain::clipped_list(known))
                    }
                }
            }
        }
    }
}

impl Subject {
    fn noun(self) -> &'static str {
        match self {
            Self::Argument => "argument",
            Self::Field => "field",
            Self::Parameter => "parameter",
            Self::Property => "property",
        }
    }
}
