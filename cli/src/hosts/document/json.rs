//! Edits of JSON, with and without comments.

use jsonc_parser::{
    ParseOptions,
    cst::{CstInputValue, CstNode, CstObject, CstRootNode},
};
use serde_json::{Map, Value};

use crate::hosts::{Syntax, masked::HIDDEN, variables::is_reference};

const MARK: &str = "\u{feff}";

/// Returns the values of a document. Errors with the line and the column.
pub fn read(text: &str, syntax: Syntax) -> Result<Value, String> {
    let root = parse(text, syntax)?;
    check_names(&root)?;
    if syntax == Syntax::Json && root.object_value().is_some() {
        check_strictly(text)?;
    }
    Ok(root.to_serde_value().unwrap_or_else(|| Value::Object(Map::new())))
}

pub fn with(
    text: &str,
    syntax: Syntax,
    servers: &str,
    name: &str,
    entry: &Map<String, Value>,
) -> Result<String, String> {
    let root = parse(text, syntax)?;
    let is_new = root.object_value().is_none();
    let members = root.object_value_or_set();
    let entries = members.object_value_or_set(servers);
    let entry = input(&Value::Object(entry.clone()));
    match entries.get(name) {
        Some(old) => old.set_value(entry),
        None => {
            entries.append(name, entry);
        }
    }
    let mut text = marked(text, &root);
    if is_new && !text.ends_with('\n') {
        text.push('\n');
    }
    Ok(text)
}

pub fn without(text: &str, syntax: Syntax, servers: &str, name: &str) -> Result<String, String> {
    let root = parse(text, syntax)?;
    let entries = root.object_value().and_then(|it| it.object_value(servers));
    if let Some(entry) = entries.and_then(|it| it.get(name)) {
        entry.remove();
    }
    Ok(marked(text, &root))
}

pub fn masked(text: &str, syntax: Syntax, servers: &str) -> Result<String, String> {
    let root = parse(text, syntax)?;
    let entries = root.object_value().and_then(|it| it.object_value(servers));
    for entry in entries.iter().flat_map(CstObject::properties) {
        let Some(entry) = entry.object_value() else { continue };
        for member in ["env", "headers", "http_headers"] {
            let secrets = entry.object_value(member);
            for secret in secrets.iter().flat_map(CstObject::properties) {
                match secret.value() {
                    Some(CstNode::Leaf(_))
                        if secret
                            .to_serde_value()
                            .is_none_or(|it| !it.as_str().is_some_and(is_reference)) =>
                    {
                        secret.set_value(CstInputValue::String(HIDDEN.to_owned()));
                    }
                    _ => (),
                }
            }
        }
    }
    Ok(root.to_string())
}

fn parse(text: &str, syntax: Syntax) -> Result<CstRootNode, String> {
    let lenient = syntax == Syntax::JsonWithComments;
    let options = ParseOptions {
        allow_comments: lenient,
        allow_trailing_commas: lenient,
        allow_loose_object_property_names: false,
        allow_missing_commas: false,
        allow_single_quoted_strings: false,
        allow_hexadecimal_numbers: false,
        allow_unary_plus_numbers: false,
        allow_bare_decimal_point_numbers: false,
        allow_non_finite_numbers: false,
        allow_extended_string_escapes: false,
    };
    let text = text.strip_prefix(MARK).unwrap_or(text);
    CstRootNode::parse(text, &options).map_err(|it| {
        format!("line {}, column {}: {}", it.line_display(), it.column_display(), it.kind())
    })
}

/// Errors where the text is more than JSON allows: the parser that edits it accepts comments between values.
fn check_strictly(text: &str) -> Result<(), String> {
    let text = text.strip_prefix(MARK).unwrap_or(text);
    serde_json::from_str::<serde::de::IgnoredAny>(text).map(drop).map_err(|it| {
        let (line, column) = (it.line(), it.column());
        format!(
            "line {line}, column {column}: this is no JSON; comments are not allowed in this file"
        )
    })
}

/// Errors if an object of the upper levels names a member twice, since hosts use the last and an edit would change the
/// first.
fn check_names(root: &CstRootNode) -> Result<(), String> {
    let mut objects: Vec<(CstObject, usize)> =
        root.object_value().map(|it| (it, 0)).into_iter().collect();
    while let Some((object, depth)) = objects.pop() {
        let mut names = Vec::new();
        for member in object.properties() {
            let name = member.decoded_name().unwrap_or_default();
            if names.contains(&name) {
                return Err(format!("the member {name:?} occurs twice in one object"));
            }
            if let Some(inner) = member.object_value().filter(|_| depth < 2) {
                objects.push((inner, depth + 1));
            }
            names.push(name);
        }
    }
    Ok(())
}

/// Returns the edited text, with the byte order mark that the old one had.
fn marked(old: &str, root: &CstRootNode) -> String {
    let mark = if old.starts_with(MARK) { MARK } else { "" };
    format!("{mark}{root}")
}

fn input(value: &Value) -> CstInputValue {
    match value {
        Value::Null => CstInputValue::Null,
        Value::Bool(it) => CstInputValue::Bool(*it),
        Value::Number(it) => CstInputValue::Number(it.to_string()),
        Value::String(it) => CstInputValue::String(it.clone()),
        Value::Array(items) => CstInputValue::Array(items.iter().map(input).collect()),
        Value::Object(members) => {
            let member = |(name, value): (&String, &Value)| (name.clone(), input(value));
            CstInputValue::Object(members.iter().map(member).collect())
        }
    }
}
