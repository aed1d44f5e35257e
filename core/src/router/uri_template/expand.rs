//! RFC 6570 §3: expansion of templates.

use std::borrow::Cow;

use serde_json::Value;

use super::{Operator, Part, TemplateError, Variable, is_reserved, is_unreserved, parse};

/// Expands any valid template, including those that a server could not match.
pub fn expand_template(
    template: &str,
    values: &[(String, Value)],
) -> Result<String, TemplateError> {
    Ok(expand(&parse::parse(template)?, values))
}

pub(super) fn expand(parts: &[Part], values: &[(String, Value)]) -> String {
    let mut out = String::new();
    for part in parts {
        match part {
            Part::Literal(text) => out.push_str(text),
            Part::Expression { operator, variables, .. } => {
                let mut separator = operator.first();
                for variable in variables {
                    let value = values.iter().find(|(name, _)| *name == variable.name);
                    if let Some((_, value)) = value.filter(|(_, value)| is_defined(value)) {
                        out.push_str(separator);
                        separator = operator.separator();
                        push_value(variable, value, &mut out);
                    }
                }
            }
        }
    }
    out
}

/// RFC 6570 §2.3: a list or associative array without members is undefined.
fn is_defined(value: &Value) -> bool {
    match value {
        Value::Null => false,
        Value::Array(items) => !items.is_empty(),
        Value::Object(members) => !members.is_empty(),
        _ => true,
    }
}

fn text(value: &Value) -> Cow<'_, str> {
    match value {
        Value::String(text) => Cow::Borrowed(text),
        other => Cow::Owned(other.to_string()),
    }
}

/// RFC 6570 appendix A: the behaviour of each operator.
impl Operator {
    pub(super) fn first(self) -> &'static str {
        match self {
            Self::Simple | Self::Reserved => "",
            Self::Fragment => "#",
            Self::Label => ".",
            Self::PathSegment => "/",
            Self::PathParameter => ";",
            Self::Query => "?",
            Self::QueryContinuation => "&",
        }
    }

    pub(super) fn separator(self) -> &'static str {
        match self {
            Self::Simple | Self::Reserved | Self::Fragment => ",",
            Self::Label => ".",
            Self::PathSegment => "/",
            Self::PathParameter => ";",
            Self::Query | Self::QueryContinuation => "&",
        }
    }

    pub(super) fn is_named(self) -> bool {
        matches!(self, Self::PathParameter | Self::Query | Self::QueryContinuation)
    }

    pub(super) fn allows_reserved(self) -> bool {
        matches!(self, Self::Reserved | Self::Fragment)
    }
}

/// RFC 6570 §3.2.1
fn push_value(variable: &Variable, value: &Value, out: &mut String) {
    let operator = variable.operator;
    // Names and values, each written separately; a name is written only if there is one.
    let items: Vec<(Option<&str>, Cow<'_, str>)> = match value {
        Value::Array(items) => items.iter().map(|item| (None, text(item))).collect(),
        Value::Object(members) if variable.explode => {
            members.iter().map(|(key, item)| (Some(key.as_str()), text(item))).collect()
        }
        Value::Object(members) => {
            let flat =
                members.iter().flat_map(|(key, item)| [Cow::Borrowed(key.as_str()), text(item)]);
            flat.map(|item| (None, item)).collect()
        }
        single => {
            let text = text(single);
            let length = variable.prefix.unwrap_or(usize::MAX);
            vec![(None, Cow::Owned(text.chars().take(length).collect()))]
        }
    };
    let together = !variable.explode;
    for (index, (key, item)) in items.iter().enumerate() {
        if index > 0 {
            out.push_str(if together { "," } else { operator.separator() });
        }
        let name = if operator.is_named() { key.or(Some(&variable.name)) } else { *key };
        if let Some(name) = name.filter(|_| index == 0 || !together) {
            push_encoded(name, operator.is_named() || operator.allows_reserved(), out);
            let bare = operator == Operator::PathParameter
                && item.is_empty()
                && (items.len() == 1 || !together);
            out.push_str(if bare { "" } else { "=" });
        }
        push_encoded(item, operator.allows_reserved(), out);
    }
}

/// Writes a literal. RFC 6570 §3.1: reserved characters and percent escapes are kept.
pub(super) fn push_literal(text: &str, out: &mut String) {
    push_encoded(text, true, out);
}

/// Writes a percent-encoded value. With `reserved`, reserved characters and percent escapes are kept (RFC 6570 §1.5,
/// `U+R`).
fn push_encoded(text: &str, reserved: bool, out: &mut String) {
    const HEX: &[u8; 16] = b"0123456789ABCDEF";
    let bytes = text.as_bytes();
    for (index, &byte) in bytes.iter().enumerate() {
        let is_escape = || {
            byte == b'%'
                && bytes[index + 1..]
                    .iter()
                    .take(2)
                    .filter(|digit| digit.is_ascii_hexdigit())
                    .count()
                    == 2
        };
        if is_unreserved(byte) || reserved && (is_reserved(byte) || is_escape()) {
            out.push(char::from(byte));
        } else {
            out.push('%');
            out.push(char::from(HEX[usize::from(byte >> 4)]));
            out.push(char::from(HEX[usize::from(byte & 15)]));
        }
    }
}
