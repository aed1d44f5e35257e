//! The keywords that a value does not fit.

use super::instance::Instance;
use super::keyword::Keyword;

/// A keyword that a value, or a part of it, does not fit.
#[derive(Debug)]
pub(super) struct Failure<'r> {
    /// The place of the part in the whole value.
    pub(super) path: Vec<Segment<'r>>,
    pub(super) value: &'r Instance<'r>,
    pub(super) reason: Reason<'r>,
}

#[derive(Debug)]
pub(super) enum Reason<'r> {
    /// This keyword.
    Keyword(&'r Keyword),
    /// A missing property.
    Missing(&'r str),
    /// Properties that the schema with this index does not allow.
    Unknown { names: Vec<&'r str>, schema: usize },
    /// A property whose name is wrong, for the reason given.
    Name(String),
    /// No alternative of an `anyOf` or `oneOf` fits; each has its failures.
    NoAlternative(Vec<Vec<Failure<'r>>>),
    /// More than one alternative of a `oneOf` fits.
    SeveralAlternatives,
}

/// A step from a value into it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Segment<'r> {
    Member(&'r str),
    Item(usize),
}
