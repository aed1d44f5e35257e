//! RFC 6570 URI templates: expansion, and matching of URIs back to variable values.

mod expand;
mod matching;
mod parse;

use std::fmt;

pub use expand::expand_template;
use matching::Matcher;
use serde_json::Value;

/// The maximum length of a template, in bytes.
pub const MAX_TEMPLATE_BYTES: usize = 8 * 1024;
/// The maximum number of expressions in a template.
pub const MAX_EXPRESSIONS: usize = 64;
/// The maximum length of a URI, in bytes; longer URIs match nothing.
pub const MAX_URI_BYTES: usize = 64 * 1024;

/// A template that can be expanded and matched unambiguously.
#[derive(Clone, Debug)]
pub struct UriTemplate {
    text: String,
    parts: Vec<Part>,
    matcher: Matcher,
}

/// A variable of a template.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Variable {
    pub name: String,
    pub operator: Operator,
    /// `{name:3}`: the maximum number of characters.
    pub prefix: Option<usize>,
    /// `{name*}`: a list whose members are expanded separately.
    pub explode: bool,
}

impl Variable {
    /// `{?name}` or `{&name}`: a query variable, optional and in any order.
    pub fn is_query(&self) -> bool {
        matches!(self.operator, Operator::Query | Operator::QueryContinuation)
    }

    /// Returns `true` if a URI can match without the variable: all except `{name}` and `{+name}`.
    pub fn is_optional(&self) -> bool {
        !matches!(self.operator, Operator::Simple | Operator::Reserved)
    }
}

/// RFC 6570 §2.2: the operator at the beginning of an expression.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Operator {
    /// `{x}`: within one path segment.
    Simple,
    /// `{+x}`: may span several path segments.
    Reserved,
    /// `{#x}`
    Fragment,
    /// `{.x}`
    Label,
    /// `{/x}`
    PathSegment,
    /// `{;x}`
    PathParameter,
    /// `{?x}`
    Query,
    /// `{&x}`
    QueryContinuation,
}

/// An error in a template: position, problem and fix.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct TemplateError {
    /// The position in bytes.
    pub position: usize,
    pub message: String,
}

impl fmt::Display for TemplateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "at position {}: {}", self.position, self.message)
    }
}

impl std::error::Error for TemplateError {}

#[derive(Clone, Debug)]
enum Part {
    /// The literal as it occurs in an expanded URI.
    Literal(String),
    Expression {
        operator: Operator,
        variables: Vec<Variable>,
        position: usize,
    },
}

impl UriTemplate {
    /// Parses a template. Errors if it can't be matched unambiguously; [`expand_template`] accepts such templates.
    pub fn parse(text: &str) -> Result<Self, TemplateError> {
        let parts = parse::parse(text)?;
        let matcher =
            Matcher::new(&parts).map_err(|(position, message)| parse::error(position, message))?;
        Ok(Self { text: text.to_owned(), parts, matcher })
    }

    pub fn text(&self) -> &str {
        &self.text
    }

    /// Returns the names of the variables, in the order of the template.
    pub fn variables(&self) -> impl Iterator<Item = &str> {
        self.kinds().map(|variable| variable.name.as_str())
    }

    /// Returns the variables with their modifiers, in the order of the template.
    pub fn kinds(&self) -> impl Iterator<Item = &Variable> {
        self.parts.iter().flat_map(|part| match part {
            Part::Literal(_) => &[][..],
            Part::Expression { variables, .. } => variables,
        })
    }

    /// Expands the template (RFC 6570 §3). Variables without a value, nulls and empty lists are omitted.
    pub fn expand(&self, values: &[(String, Value)]) -> String {
        expand::expand(&self.parts, values)
    }

    /// Returns the values that `uri` was expanded from, percent-decoded, or `None` if it does not match. A value is a
    /// string, or a list of strings for `{x*}`.
    ///
    /// - `{x}` takes one or more characters of one path segment, `{+x}` spans segments; both take as much as they can. A value
    ///   of `{x}` may have a `/`, which is `%2F` in the URI.
    /// - Query variables come in any order and may be absent; query parameters the template doesn't know are ignored.
    /// - Against path traversal, nothing matches where a decoded value of the path has a `..` segment, a backslash or a
    ///   NUL. A value may still begin with a `/`; [`RegisteredTemplate`](crate::router::RegisteredTemplate) refuses that.
    /// - Nothing matches where a value has a broken percent escape or is not UTF-8.
    ///
    /// The time is linear in the length of `uri` times the number of the template's parts.
    pub fn match_uri(&self, uri: &str) -> Option<Vec<(String, Value)>> {
        self.matcher.match_uri(uri)
    }
}

fn is_unreserved(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"-._~".contains(&byte)
}

fn is_reserved(byte: u8) -> bool {
    b":/?#[]@!$&'()*+,;=".contains(&byte)
}

#[cfg(test)]
mod tests;
