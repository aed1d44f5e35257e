//! Variables of URI templates that are paths: no value leads out of the folder that a handler serves.

use serde_json::Value;

use super::{
    ComponentOptions,
    uri_template::{Operator, Variable},
};
use crate::error::Error;

/// Returns `false` for a path that leads out of its folder. The values of `{+x}` and of the variables that the options name are
/// paths, and so are all other values with a slash, except those of a query.
pub(super) fn accepts(variable: &Variable, value: &Value, options: &ComponentOptions) -> bool {
    let is_in = |names: &[String]| names.contains(&variable.name);
    let is_path = variable.operator == Operator::Reserved
        || is_in(&options.paths)
        || !variable.is_query() && has_slash(value);
    !is_path || is_in(&options.unchecked_paths) || stays_inside(value)
}

fn has_slash(value: &Value) -> bool {
    match value {
        Value::Array(values) => values.iter().any(has_slash),
        Value::String(text) => text.contains('/'),
        _ => false,
    }
}

/// Returns `true` if a value is a relative path that stays inside its folder, on every operating system.
fn stays_inside(value: &Value) -> bool {
    match value {
        Value::Array(values) => values.iter().all(stays_inside),
        Value::String(path) => !leaves_folder(path),
        _ => true,
    }
}

/// Returns `true` unless this is a relative path that stays inside its folder by its text, on every operating system.
pub(crate) fn leaves_folder(path: &str) -> bool {
    let has_drive = matches!(path.as_bytes(), [drive, b':', ..] if drive.is_ascii_alphabetic());
    let leaves = path.starts_with('/') || path.split('/').any(|segment| segment == "..");
    leaves || has_drive || path.contains(['\\', '\0'])
}

/// Errors if the options name a variable that the URI or template does not have.
pub(super) fn check_names(
    uri: &str,
    variables: &[String],
    options: &ComponentOptions,
) -> Result<(), Error> {
    let mut names = options.paths.iter().chain(&options.unchecked_paths);
    let Some(name) = names.find(|name| !variables.contains(name)) else { return Ok(()) };
    let known = if variables.is_empty() { "none".to_owned() } else { variables.join(", ") };
    Err(Error::misuse(format!(
        "{uri:?} has no variable {name:?}, which is to be a path; its variables: {known}"
    )))
}
