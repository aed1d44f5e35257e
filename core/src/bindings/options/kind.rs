//! The kinds of options: the values that each can have, and how errors describe them.

use super::{Given, Value};
use crate::{
    bindings::store_object::GROUPS,
    error::Language,
    protocol::{Dialect, Revision},
    stores::address::{ADDRESSES, is_address},
};

/// The values that an option can have.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Kind {
    /// Checked by the language, for example a schema or a class.
    Checked,
    /// Checked and converted by the language, then read by the native half, for example annotations.
    Converted,
    /// A function; the text follows "must be a function".
    Function(&'static str),
    Boolean,
    Text,
    /// Strings, with an example of them.
    Texts(&'static str),
    Choice(&'static [&'static str]),
    /// A URL with its host, with an example. The flag: of http or https only.
    Url(&'static str, bool),
    /// An object, with an example in TypeScript.
    Object(&'static str),
    /// An integer from this number on.
    Count(u8),
    /// A number of bytes from this one on.
    Bytes(u8),
    Duration(Least),
    /// "auto", one or more revisions, or a dialect.
    Revisions,
    /// The limits for repeating requests.
    Retry,
    /// A list of origins, or a boolean.
    Origins,
    /// The paths of a certificate chain and of its key.
    KeyPair,
    /// Certificates in PEM format: the path of a file, or their text. It may have a private key as well.
    Pem,
    /// A certificate chain and its key, each as [`Self::Pem`].
    PemPair,
    /// The address of a store, or an object with the methods of one. A string may have a password, as URLs of databases do.
    Store,
}

/// The methods of a store.
const STORE_METHODS: [&str; 3] = ["get", "put", "take"];

/// The lower bound of a duration.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Least {
    Zero,
    AboveZero,
    /// Above zero; `None` or `Infinity` means no limit.
    AboveZeroOrNoLimit,
}

impl Kind {
    /// Returns `true` if the value may be given to the option.
    pub(super) fn allows(self, language: Language, given: &impl Given) -> bool {
        let value = given.value();
        match self {
            Self::Checked | Self::Converted => true,
            Self::Function(_) => value == Value::Function,
            Self::Boolean => matches!(value, Value::Boolean(_)),
            Self::Text => value.as_text().is_some(),
            Self::Texts(_) => are_texts(given, &value),
            Self::Choice(names) => value.as_text().is_some_and(|name| names.contains(&name)),
            Self::Url(_, is_http) => value.as_text().is_some_and(|text| is_url(text, is_http)),
            Self::Object(_) => value == Value::Object,
            Self::Count(least) | Self::Bytes(least) => {
                value.as_integer().is_some_and(|number| number >= f64::from(least))
            }
            Self::Duration(least) => value.as_number().is_some_and(|number| least.allows(number)),
            Self::Revisions => are_revisions(given, &value),
            Self::Retry => {
                value == Value::Object || matches!(value.as_text(), Some("safe" | "never"))
            }
            Self::Origins => matches!(value, Value::Boolean(_)) || are_texts(given, &value),
            Self::KeyPair => is_pair(language, given, &value, is_path),
            Self::Pem => is_pem(&value),
            Self::PemPair => is_pair(language, given, &value, is_pem),
            Self::Store => value.as_text().map_or_else(|| is_store(given), is_address),
        }
    }

    /// Returns the description of the allowed values that follows the option's name in errors.
    pub(super) fn wanted(self, language: Language) -> String {
        let is_python = language != Language::TypeScript;
        let yes_or_no = if is_python { "True or False" } else { "true or false" };
        match self {
            Self::Checked | Self::Converted => String::new(),
            Self::Function(more) => format!("must be a function{more}"),
            Self::Boolean => format!("must be {yes_or_no}"),
            Self::Text => "must be a string".into(),
            Self::Texts(example) => format!("must be a list of strings such as {example}"),
            Self::Choice(names) => {
                let names: Vec<_> = names.iter().map(|name| format!("\"{name}\"")).collect();
                format!("must be {}", names.join(" or "))
            }
            Self::Url(example, _) => format!("must be a URL such as \"{example}\""),
            Self::Object(_) if is_python => "must be a mapping".into(),
            Self::Object(example) => format!("must be an object{example}"),
            Self::Count(0) => "must be an integer, or 0 for none".into(),
            Self::Count(least) => format!("must be an integer from {least}"),
            Self::Bytes(0) => "must be a number of bytes".into(),
            Self::Bytes(least) => format!("must be a number of bytes, an integer from {least}"),
            Self::Duration(least) => {
                let (unit, no_limit) =
                    if is_python { ("seconds", "None") } else { ("milliseconds", "Infinity") };
                let bound = match least {
                    Least::Zero => String::new(),
                    Least::AboveZero => " above 0".into(),
                    Least::AboveZeroOrNoLimit => format!(" above 0, or {no_limit} for no limit"),
                };
                format!("must be a number of {unit}{bound}")
            }
            Self::Revisions => format!(
                "must be \"auto\", one or more of {}, or one of {} by itself",
                Revision::ALL.map(Revision::as_str).join(", "),
                Dialect::ALL.map(Dialect::as_str).join(" and ")
            ),
            Self::Retry if is_python => "must be \"safe\", \"never\" or a Retry".into(),
            Self::Retry => {
                "must be \"safe\" or \"never\", or an object { attempts, deadlineMs }".into()
            }
            Self::Origins => {
                format!("must be a list of strings such as \"https://example.org\", or {yes_or_no}")
            }
            Self::KeyPair if is_python => {
                "must be the paths of two PEM files: (\"certificate.pem\", \"key.pem\")".into()
            }
            Self::KeyPair => "must be { cert, key }, the paths of two PEM files".into(),
            Self::Pem if is_python => "must be the path of a PEM file, or its bytes".into(),
            Self::Pem => "must be the path of a PEM file, or its text or bytes".into(),
            Self::PemPair if is_python => {
                "must be two PEM files, each as path or bytes: (\"certificate.pem\", \"key.pem\")"
                    .into()
            }
            Self::PemPair => {
                "must be { cert, key }, two PEM files, each as path, text or bytes".into()
            }
            Self::Store => {
                let kind = if is_python { "gudgeon.types.Store" } else { "the interface Store" };
                format!(
                    "must be {ADDRESSES}, or an object with the methods get, put and take, and both or none of append and read, and of \
                     publish and subscribe, and all or none of lease, renew and release ({kind})"
                )
            }
        }
    }

    /// Returns `true` if an error may show a value that is not allowed.
    pub(super) fn may_be_shown(self) -> bool {
        !matches!(self, Self::Store | Self::Pem | Self::PemPair)
    }

    /// Returns `true` if a value that is not allowed is out of range, and `false` if it is of the wrong type.
    pub(super) fn is_range(self) -> bool {
        matches!(
            self,
            Self::Choice(_)
                | Self::Url(..)
                | Self::Count(_)
                | Self::Bytes(_)
                | Self::Duration(_)
                | Self::Revisions
                | Self::Retry
                | Self::Store
        )
    }
}

/// Returns `true` for an object with the methods of a store.
fn is_store(given: &impl Given) -> bool {
    let has = |method: &&str| given.has_method(method);
    let is_whole = |group: &&[&str]| group.iter().all(has) || !group.iter().any(has);
    STORE_METHODS.iter().all(has) && GROUPS.iter().all(is_whole)
}

impl Least {
    fn allows(self, value: f64) -> bool {
        match self {
            Self::Zero => value >= 0.0 && value.is_finite(),
            Self::AboveZero => value > 0.0 && value.is_finite(),
            Self::AboveZeroOrNoLimit => value > 0.0,
        }
    }
}

fn are_texts(given: &impl Given, value: &Value) -> bool {
    *value == Value::List && given.items().iter().all(|item| item.value().as_text().is_some())
}

fn are_revisions(given: &impl Given, value: &Value) -> bool {
    let is_revision = |name: &str| name.parse::<Revision>().is_ok();
    match value {
        Value::Text(name) => name == "auto" || is_revision(name) || name.parse::<Dialect>().is_ok(),
        Value::List => {
            let names = given.items();
            !names.is_empty()
                && names.iter().all(|name| name.value().as_text().is_some_and(is_revision))
        }
        _ => false,
    }
}

fn is_url(text: &str, is_http: bool) -> bool {
    let Some((scheme, rest)) = text.split_once("://") else { return false };
    let is_scheme = scheme.starts_with(|first: char| first.is_ascii_alphabetic())
        && scheme.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+.-".contains(&byte));
    let is_allowed =
        !is_http || ["http", "https"].iter().any(|known| known.eq_ignore_ascii_case(scheme));
    let has_host = !rest.is_empty() && !rest.starts_with(['/', '?', '#']);
    is_scheme && is_allowed && has_host && !text.contains(char::is_whitespace)
}

fn is_path(value: &Value) -> bool {
    matches!(value, Value::Text(_) | Value::Path(_))
}

fn is_pem(value: &Value) -> bool {
    is_path(value) || *value == Value::Bytes
}

/// Returns `true` for a certificate and its key.
fn is_pair(
    language: Language,
    given: &impl Given,
    value: &Value,
    is_part: fn(&Value) -> bool,
) -> bool {
    if language == Language::TypeScript {
        let entries = if *value == Value::Object { given.entries() } else { Vec::new() };
        return ["cert", "key"].iter().all(|name| {
            let mut named = entries.iter().filter(|(key, _)| key.value().as_text() == Some(name));
            named.next().is_some_and(|(_, part)| is_part(&part.value()))
        });
    }
    let items = if *value == Value::List { given.items() } else { Vec::new() };
    items.len() == 2 && items.iter().all(|part| is_part(&part.value()))
}
