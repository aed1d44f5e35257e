//! RFC 6570 URI templates: expanding one, and finding out which values a URI was expanded from.

mod expand;
mod matching;
mod parse;

use std::fmt;

pub use expand::expand_template;
use matching::Matcher;
use serde_json::Value;

/// A template is refused beyond this many bytes.
pub const MAX_TEMPLATE_BYTES: usize = 8 * 1024;
/// A template has at most this many expressions.
pub const MAX_EXPRESSIONS: usize = 64;
/// A longer URI matches nothing: matching takes time and memory linear in it.
pub const MAX_URI_BYTES: usize = 64 * 1024;

/// A template that can be expanded and matched without doubt.
#[derive(Clone, Debug)]
pub struct UriTemplate {
    text: String,
    parts: Vec<Part>,
    matcher: Matcher,
}

/// One variable of a template.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Variable {
    pub name: String,
    pub operator: Operator,
    /// `{name:3}`: only the first characters.
    pub prefix: Option<usize>,
    /// `{name*}`: a list, each member by itself.
    pub explode: bool,
}

impl Variable {
    /// `{?name}` or `{&name}`: may be absent, and stands in any order.
    pub fn is_query(&self) -> bool {
        matches!(self.operator, Operator::Query | Operator::QueryContinuation)
    }

    /// Whether a URI can match without it: all but `{name}` and `{+name}`.
    pub fn is_optional(&self) -> bool {
        !matches!(self.operator, Operator::Simple | Operator::Reserved)
    }
}

/// RFC 6570 §2.2: the character that begins an expression.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Operator {
    /// `{x}`: within one path segment.
    Simple,
    /// `{+x}`: may span several.
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

/// What is wrong with a template, where, and the mend.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct TemplateError {
    /// In bytes from the beginning.
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
    /// As it stands in an expanded URI.
    Literal(String),
    Expression {
        operator: Operator,
        variables: Vec<Variable>,
        position: usize,
    },
}

impl UriTemplate {
    /// Reads a template that a server offers. One that can't be matched without doubt is an error;
    /// [`expand_template`] takes those too.
    pub fn parse(text: &str) -> Result<Self, TemplateError> {
        let parts = parse::parse(text)?;
        let matcher =
            Matcher::new(&parts).map_err(|(position, message)| parse::error(position, message))?;
        Ok(Self { text: text.to_owned(), parts, matcher })
    }

    pub fn text(&self) -> &str {
        &self.text
    }

    /// The names of the variables, in the order of the template.
    pub fn variables(&self) -> impl Iterator<Item = &str> {
        self.kinds().map(|variable| variable.name.as_str())
    }

    /// The variables with all that the template says of them, in its order.
    pub fn kinds(&self) -> impl Iterator<Item = &Variable> {
        self.parts.iter().flat_map(|part| match part {
            Part::Literal(_) => &[][..],
            Part::Expression { variables, .. } => variables,
        })
    }

    /// RFC 6570 §3: variables without a value, null and empty lists are left out.
    pub fn expand(&self, values: &[(String, Value)]) -> String {
        expand::expand(&self.parts, values)
    }

    /// The values `uri` was expanded from, percent-decoded, or `None` when it does not match. A value is a string, or for
    /// `{x*}` a list of strings.
    ///
    /// - `{x}` takes one or more characters of one path segment, `{+x}` spans segments; both take as much as they can.
    /// - Query variables come in any order and may be absent; query parameters the template doesn't know are ignored.
    /// - Against path traversal, nothing matches where a decoded value of the path has a `..` segment, a backslash or a
    ///   NUL, or, anywhere but in `{+x}`, a `/`. A value of `{+x}` may still begin with a `/`.
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
