//! Edits of JSON, with and without comments.

use gudgeon::client::configuration::{self, JsonForm};
use jsonc_parser::{
    ParseOptions,
    cst::{CstInputValue, CstLeafNode, CstNode, CstObject, CstRootNode},
};
use serde_json::{Map, Value};

use crate::hosts::Syntax;

const MARK: &str = "\u{feff}";

/// Returns the values of a document; those of a text without a value are an empty object. Errors with the line and the column, and if
/// an object of the upper levels names a member twice.
pub fn read(text: &str, syntax: Syntax) -> Result<Value, String> {
    let root = parse(text, syntax);
    if root.as_ref().is_ok_and(|root| root.value().is_none()) {
        return Ok(Value::Object(Map::new()));
    }
    let form = match syntax {
        Syntax::Json => JsonForm::Strict,
        _ => JsonForm::Commented,
    };
    let value = configuration::parse(text.as_bytes(), form)?;
    check_names(&root?)?;
    Ok(value)
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
    let entries = root.object_value().and_then(|object| object.object_value(servers));
    if let Some(entry) = entries.and_then(|entries| entries.get(name)) {
        entry.remove();
    }
    Ok(marked(text, &root))
}

/// Returns the text with other values in the same structure.
pub fn with_values(text: &str, syntax: Syntax, values: &Value) -> Result<String, String> {
    let root = parse(text, syntax)?;
    if let Some(members) = root.object_value() {
        set_members(&members, values);
    }
    Ok(root.to_string())
}

fn set_members(object: &CstObject, values: &Value) {
    for member in object.properties() {
        let value = member.decoded_name().and_then(|name| values.get(name));
        if let (Some(node), Some(value)) = (member.value(), value) {
            set(node, value);
        }
    }
}

fn set(node: CstNode, value: &Value) {
    if let Some(object) = node.as_object() {
        return set_members(&object, value);
    }
    if let (Some(array), Some(values)) = (node.as_array(), value.as_array()) {
        return array.elements().into_iter().zip(values).for_each(|(node, value)| set(node, value));
    }
    if node.to_serde_value().as_ref() != Some(value) {
        match node {
            CstNode::Leaf(CstLeafNode::StringLit(node)) => drop(node.replace_with(input(value))),
            CstNode::Leaf(CstLeafNode::NumberLit(node)) => drop(node.replace_with(input(value))),
            _ => {}
        }
    }
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
    CstRootNode::parse(text, &options).map_err(|error| {
        format!(
            "line {}, column {}: {}",
            error.line_display(),
            error.column_display(),
            error.kind()
        )
    })
}

/// Errors if an object of the upper levels names a member twice, since hosts use the last and an edit would change the
/// first.
fn check_names(root: &CstRootNode) -> Result<(), String> {
    let mut objects: Vec<(CstObject, usize)> =
        root.object_value().map(|object| (object, 0)).into_iter().collect();
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
        Value::Bool(flag) => CstInputValue::Bool(*flag),
        Value::Number(number) => CstInputValue::Number(number.to_string()),
        Value::String(text) => CstInputValue::String(text.clone()),
        Value::Array(items) => CstInputValue::Array(items.iter().map(input).collect()),
        Value::Object(members) => {
            let member = |(name, value): (&String, &Value)| (name.clone(), input(value));
            CstInputValue::Object(members.iter().map(member).collect())
        }
    }
}
