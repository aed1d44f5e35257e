//! Values as the callers of each language give them, and why one is refused.

use std::fmt;

use serde_json::Value as Json;

/// A value that a language gives for an option.
pub trait Given: Sized {
    /// Returns the value itself; lists and objects without their contents.
    fn value(&self) -> Value;

    /// Returns the elements of a list.
    fn items(&self) -> Vec<Self>;

    /// Returns the keys and values of an object.
    fn entries(&self) -> Vec<(Self, Self)>;

    /// Returns whether an object has a method with this name. JSON has none.
    fn has_method(&self, _: &str) -> bool {
        false
    }
}

/// The reason that a value is refused.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Problem {
    /// The place, the option and the description of what is allowed.
    pub message: String,
    /// `true` if the value is of the right type but not allowed.
    pub is_range: bool,
    /// `true` if the message goes on with `, not ` and the value as the language shows it.
    pub shows_value: bool,
}

impl Problem {
    /// A value of a wrong type.
    pub fn wrong_type(message: impl fmt::Display) -> Self {
        Self { message: message.to_string(), is_range: false, shows_value: false }
    }

    /// A value of the right type that is not allowed.
    pub fn not_allowed(message: impl fmt::Display) -> Self {
        Self { is_range: true, ..Self::wrong_type(message) }
    }
}

/// The part of a value that decides whether an option can have it.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// `None` or `undefined`.
    Absent,
    Boolean(bool),
    Integer(f64),
    /// A number that is not an integer.
    Fraction(f64),
    Text(String),
    /// A path of the file system, in a type of its own.
    Path(String),
    Bytes,
    List,
    Object,
    Function,
    Other,
}

impl Value {
    pub fn as_number(&self) -> Option<f64> {
        match self {
            Self::Integer(value) | Self::Fraction(value) => Some(*value),
            _ => None,
        }
    }

    pub fn as_integer(&self) -> Option<f64> {
        match self {
            Self::Integer(value) => Some(*value),
            _ => None,
        }
    }

    pub fn as_text(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            _ => None,
        }
    }
}

impl Given for Json {
    fn value(&self) -> Value {
        let number = |it: &serde_json::Number| it.as_f64().unwrap_or(f64::INFINITY);
        match self {
            Self::Null => Value::Absent,
            Self::Bool(it) => Value::Boolean(*it),
            Self::Number(it) if it.is_f64() => Value::Fraction(number(it)),
            Self::Number(it) => Value::Integer(number(it)),
            Self::String(it) => Value::Text(it.clone()),
            Self::Array(_) => Value::List,
            Self::Object(_) => Value::Object,
        }
    }

    fn items(&self) -> Vec<Self> {
        self.as_array().cloned().unwrap_or_default()
    }

    fn entries(&self) -> Vec<(Self, Self)> {
        let entries = self.as_object().into_iter().flatten();
        entries.map(|(key, value)| (key.as_str().into(), value.clone())).collect()
    }
}
