//! Values of options as the languages give them.

/// A value that a language gives for an option.
pub trait Given: Sized {
    /// Returns the value itself; lists and objects without their contents.
    fn value(&self) -> Value;

    /// Returns the elements of a list.
    fn items(&self) -> Vec<Self>;

    /// Returns the keys and values of an object.
    fn entries(&self) -> Vec<(Self, Self)>;
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
    List,
    Object,
    Function,
    Other,
}

impl Value {
    pub(super) fn as_number(&self) -> Option<f64> {
        match self {
            Self::Integer(value) | Self::Fraction(value) => Some(*value),
            _ => None,
        }
    }

    pub(super) fn as_integer(&self) -> Option<f64> {
        match self {
            Self::Integer(value) => Some(*value),
            _ => None,
        }
    }

    pub(super) fn as_text(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            _ => None,
        }
    }
}
