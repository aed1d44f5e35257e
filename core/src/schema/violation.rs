//! What is wrong with a value, in words a model can mend its call by.

use std::fmt;

use jsonschema::ValidationError;
use jsonschema::error::ValidationErrorKind as Kind;
use serde_json::Value;

/// At most this many errors are told.
const TOLD: usize = 5;
/// A longer value, name or path is not echoed whole.
const ECHOED: usize = 100;
/// What one error may say.
const SAID: usize = 300;

/// Why a value does not fit its schema: "`/path`: what is wrong", joined with "; ".
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Violation(String);

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Violation {}

impl Violation {
    pub(super) fn new(message: impl Into<String>) -> Self {
        Self(message.into())
    }

    pub(super) fn explain<'a>(errors: impl Iterator<Item = ValidationError<'a>>) -> Self {
        let mut told = Vec::new();
        let mut more = 0;
        for error in errors {
            if told.len() < TOLD {
                told.push(placed(&error));
            } else {
                more += 1;
            }
        }
        if more > 0 {
            told.push(format!("and {more} more"));
        }
        Self(told.join("; "))
    }

    pub(super) fn unexplained() -> Self {
        Self::new(
            "`/`: does not fit the schema, and is too large or too deeply nested to say where; send less at once",
        )
    }
}

fn placed(error: &ValidationError<'_>) -> String {
    let path = error.instance_path().as_str();
    format!("`{}`: {}", clipped(if path.is_empty() { "/" } else { path }, ECHOED), describe(error))
}

/// One error without its place.
pub(super) fn describe(error: &ValidationError<'_>) -> String {
    let said = match error.kind() {
        Kind::Required { property } => {
            format!("the required property {} is missing", shown(property))
        }
        Kind::AdditionalProperties { unexpected } | Kind::UnevaluatedProperties { unexpected } => {
            let names: Vec<_> = unexpected
                .iter()
                .take(TOLD)
                .map(|name| format!("{:?}", clipped(name, ECHOED)))
                .collect();
            let more = if unexpected.len() > TOLD { ", …" } else { "" };
            format!("unknown properties are not allowed: {}{more}", names.join(", "))
        }
        Kind::AnyOf { context } | Kind::OneOfNotValid { context } => {
            let firsts = context.iter().filter_map(|errors| errors.first()).take(3);
            let firsts: Vec<_> =
                firsts.map(|first| clipped(&placed_plainly(first), ECHOED)).collect();
            format!("fits none of {} alternatives: {}", context.len(), firsts.join(", or "))
        }
        Kind::PropertyNames { error } => format!("a property's name is wrong: {}", plain(error)),
        // All options, since one of them is the mend.
        Kind::Enum { options } => {
            format!("{} is not one of {options}", shown(error.instance()))
        }
        Kind::FalseSchema => "nothing is allowed here".to_owned(),
        _ => plain(error),
    };
    clipped(&said, SAID)
}

/// Without looking into the alternatives of an alternative.
fn placed_plainly(error: &ValidationError<'_>) -> String {
    match error.instance_path().as_str() {
        "" => plain(error),
        path => format!("`{}`: {}", clipped(path, ECHOED), plain(error)),
    }
}

fn plain(error: &ValidationError<'_>) -> String {
    clipped(&error.masked_with(shown(error.instance())).to_string(), SAID)
}

fn shown(value: &Value) -> String {
    match value {
        Value::String(text) if text.len() > ECHOED => {
            format!("a string of {} characters", text.chars().count())
        }
        Value::Array(items) => format!("an array of {} items", items.len()),
        Value::Object(members) => format!("an object of {} members", members.len()),
        short => short.to_string(),
    }
}

pub(super) fn clipped(text: &str, length: usize) -> String {
    match text.char_indices().nth(length) {
        None => text.to_owned(),
        Some((end, _)) => format!("{}…", &text[..end]),
    }
}
