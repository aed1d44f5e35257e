//! Modules in Python, in the form of `ruff format`.

use std::collections::HashSet;

use serde_json::Value;

use super::{
    docs,
    layout::{Doc, append, columns, group, indent, joined, render, text},
    literal,
    model::{Call, CallKind, Declaration, Field, Module, Shape, Type},
    names::{MARK, Names, snake},
    schema::union,
};

const WIDTH: usize = 88;
const STEP: usize = 4;

const KEYWORDS: [&str; 35] = [
    "False", "None", "True", "and", "as", "assert", "async", "await", "break", "class", "continue",
    "def", "del", "elif", "else", "except", "finally", "for", "from", "global", "if", "import",
    "in", "is", "lambda", "nonlocal", "not", "or", "pass", "raise", "return", "try", "while",
    "with", "yield",
];

/// Returns the text of a module.
pub fn write(module: &Module) -> String {
    let mut body = String::new();
    for declaration in &module.declarations {
        body.push_str(&declared(module, declaration));
        body.push_str("\n\n");
    }
    for awaits in [true, false] {
        class(module, awaits, &mut body);
        if awaits {
            body.push_str("\n\n");
        }
    }
    let lines = if body.starts_with("class ") { "\n\n" } else { "\n" };
    format!("{}{lines}{body}", header(module, &body))
}

fn header(module: &Module, body: &str) -> String {
    let version = if module.version.is_empty() {
        String::new()
    } else {
        format!(", version {}", module.version)
    };
    let title = format!("Client of the MCP server {:?}{version}.", module.server);
    let mut text =
        docstring(&format!("{title}\n\n{MARK}; changes are lost when that is repeated."), 0);
    text.push_str("\nfrom __future__ import annotations\n\n");
    let code = without_docstrings(body);
    let words: HashSet<_> =
        code.split(|character: char| !character.is_alphanumeric() && character != '_').collect();
    let uses = |name: &str| words.contains(name);
    let mut names = vec!["TYPE_CHECKING"];
    names.extend(
        ["Any", "Literal", "TypeAlias", "TypedDict", "cast"].iter().filter(|name| uses(name)),
    );
    append(
        &mut text,
        format_args!("from typing import {}\n\nif TYPE_CHECKING:\n", names.join(", ")),
    );
    let clients: Vec<_> =
        ["CallOptions", "Client", "SyncClient"].into_iter().filter(|name| uses(name)).collect();
    append(&mut text, format_args!("    from gudgeon.client import {}\n", clients.join(", ")));
    let results: Vec<_> = ["PromptResult", "ResourceResult", "ToolResult"]
        .into_iter()
        .filter(|name| uses(name))
        .collect();
    if !results.is_empty() {
        append(&mut text, format_args!("    from gudgeon.types import {}\n", results.join(", ")));
    }
    let extensions: Vec<_> =
        ["NotRequired", "Unpack"].into_iter().filter(|name| uses(name)).collect();
    if !extensions.is_empty() {
        append(
            &mut text,
            format_args!("    from typing_extensions import {}\n", extensions.join(", ")),
        );
    }
    text
}

/// Returns the lines of a module outside of docstrings, which may have any words.
fn without_docstrings(body: &str) -> String {
    let mut code = String::new();
    let mut inside = false;
    for line in body.lines() {
        let text = line.trim();
        let begins = !inside && text.starts_with("\"\"\"");
        let ends = text.ends_with("\"\"\"") && (inside || text.len() >= 6);
        if !begins && !inside {
            code.push_str(line);
            code.push('\n');
        }
        inside = (inside || begins) && !ends;
    }
    code
}

fn declared(module: &Module, declaration: &Declaration) -> String {
    let name = &declaration.name;
    match &declaration.shape {
        Shape::Object { fields, .. } if fields.iter().all(|field| is_attribute(&field.name)) => {
            let mut lines = format!("class {name}(TypedDict):\n");
            let doc = docstring(&declaration.doc, STEP);
            lines.push_str(&doc);
            if !doc.is_empty() && !fields.is_empty() {
                lines.push('\n');
            }
            if doc.is_empty() && fields.is_empty() {
                lines.push_str("    pass\n");
            }
            for field in fields {
                lines.push_str(&attribute(module, field));
            }
            lines
        }
        Shape::Object { fields, .. } => {
            // Members whose names are not identifiers. Their types are strings, since they are evaluated here.
            let items = fields.iter().map(|field| {
                let kind = nested(module, &field.kind);
                let kind = if field.required { kind } else { format!("NotRequired[{kind}]") };
                Doc::All(vec![
                    text(literal::python(&field.name)),
                    text(": "),
                    text(format!("\"{kind}\"")),
                ])
            });
            let mut inner = joined(items.collect(), &[text(","), Doc::Line]);
            inner.push(Doc::IfBroken(","));
            let members = group(vec![
                text("{"),
                indent([vec![Doc::Soft], inner].concat()),
                Doc::Soft,
                text("}"),
            ]);
            let arguments = vec![
                text(format!("\"{name}\"")),
                text(","),
                Doc::Line,
                members,
                Doc::IfBroken(","),
            ];
            let call = Doc::All(vec![
                text(format!("{name} = TypedDict")),
                brackets("(", group(arguments), ")"),
            ]);
            format!("{}\n{}", render(&call, WIDTH, STEP, 0), docstring(&declaration.doc, 0))
        }
        Shape::Alias(kind) => {
            let value = match refers(kind) {
                // A string may name types that are declared below.
                true => parenthesized_text(format!("\"{}\"", nested(module, kind)), 0),
                false => self::kind(module, kind, true),
            };
            let alias = Doc::All(vec![text(format!("{name}: TypeAlias = ")), value]);
            format!("{}\n{}", render(&alias, WIDTH, STEP, 0), docstring(&declaration.doc, 0))
        }
    }
}

fn attribute(module: &Module, field: &Field) -> String {
    let kind = match field.required {
        true => kind(module, &field.kind, true),
        false => Doc::All(vec![
            text("NotRequired"),
            brackets("[", kind(module, &field.kind, false), "]"),
        ]),
    };
    let line = Doc::All(vec![text(format!("{}: ", field.name)), kind]);
    format!("{}\n{}", render(&line, WIDTH, STEP, STEP), docstring(&field.doc, STEP))
}

fn class(module: &Module, awaits: bool, body: &mut String) {
    let prefix = if awaits { "" } else { "Sync" };
    let client = format!("{prefix}Client");
    append(body, format_args!("class {prefix}{}:\n", module.class));
    let how = if awaits { "Calls" } else { "Calls, without awaiting," };
    body.push_str(&docstring(&format!("{how} what the server {:?} offers.", module.server), STEP));
    append(
        body,
        format_args!(
            "\n    def __init__(self, client: {client}) -> None:\n        self.client = client\n"
        ),
    );
    let mut names = Names::default();
    for call in &module.calls {
        body.push('\n');
        body.push_str(&method(module, call, awaits, &mut names));
    }
}

fn method(module: &Module, call: &Call, awaits: bool, names: &mut Names) -> String {
    let (prefix, parameter, returned, function) = match call.kind {
        CallKind::Tool => ("", "arguments", "ToolResult", "call_tool"),
        CallKind::Resource | CallKind::Template => {
            ("read", "variables", "ResourceResult", "read_resource")
        }
        CallKind::Prompt => ("prompt", "arguments", "PromptResult", "get_prompt"),
    };
    let name = names.claim(&snake(prefix, &call.name));
    let mut parameters = vec![text("self")];
    let mut values = vec![text(literal::python(&call.target))];
    if let Some(kind) = &call.arguments {
        let kind = vec![text(format!("{parameter}: ")), self::kind(module, kind, false)];
        parameters.push(match call.needs_arguments {
            true => Doc::All(kind),
            false => group([kind, vec![Doc::Line, text("| None = None")]].concat()),
        });
        parameters.push(text("/"));
        values.push(match (call.kind, call.needs_arguments) {
            // Checkers do not take an object with these members for a mapping of strings.
            (CallKind::Prompt, true) => text("cast(\"dict[str, str]\", arguments)"),
            (CallKind::Prompt, false) => text("cast(\"dict[str, str] | None\", arguments)"),
            _ => text(parameter),
        });
    } else if call.kind == CallKind::Tool {
        values.push(text("None"));
    }
    if call.kind == CallKind::Tool {
        parameters.push(text("**options: Unpack[CallOptions]"));
        values.push(text("**options"));
    }
    let returned = match &call.result {
        Some(kind) => {
            let flat = format!("{returned}[{}]", nested(module, kind));
            match STEP + ") -> :".len() + columns(&flat) <= WIDTH {
                true => text(flat),
                false => Doc::All(vec![
                    text(returned),
                    brackets("[", self::kind(module, kind, false), "]"),
                ]),
            }
        }
        None => text(returned),
    };
    let keyword = if awaits { "async def" } else { "def" };
    let signature = Doc::All(vec![
        text(format!("{keyword} {name}")),
        brackets("(", list(parameters), ")"),
        text(" -> "),
        returned,
        text(":"),
    ]);
    let keyword = if awaits { "return await" } else { "return" };
    let statement = Doc::All(vec![
        text(format!("{keyword} self.client.{function}")),
        brackets("(", list(values), ")"),
    ]);
    let doc = docstring(&call.doc, 2 * STEP);
    format!(
        "{}\n{doc}{}\n",
        render(&signature, WIDTH, STEP, STEP),
        render(&statement, WIDTH, STEP, 2 * STEP)
    )
}

/// Returns a type as an annotation. A union that stands alone is put in parentheses where it is broken.
fn kind(module: &Module, kind: &Type, alone: bool) -> Doc {
    match kind {
        Type::Union(members) => {
            let members = distinct(module, members);
            let members: Vec<_> =
                members.iter().map(|member| self::kind(module, member.0, false)).collect();
            let inner = group(joined(members, &[Doc::Line, text("| ")]));
            if alone { parenthesized(inner) } else { inner }
        }
        Type::Array(inner) => {
            Doc::All(vec![text("list"), brackets("[", self::kind(module, inner, false), "]")])
        }
        // JSON has no tuples: the client receives lists.
        Type::Tuple(items, rest) => self::kind(module, &listed(items, rest.as_deref()), alone),
        Type::Map(inner) => {
            let parts = vec![text("str"), self::kind(module, inner, false)];
            Doc::All(vec![text("dict"), brackets("[", list(parts), "]")])
        }
        Type::Literal(values) => {
            let values =
                values.iter().map(|constant| text(value(constant, literal::python))).collect();
            Doc::All(vec![text("Literal"), brackets("[", list(values), "]")])
        }
        Type::Named(index) => {
            let name = module.declarations[*index].name.clone();
            if alone { parenthesized_text(name, STEP) } else { text(name) }
        }
        other => text(simple(other)),
    }
}

/// Returns a string without spaces in parentheses if it does not fit on the line, but on a line of its own. `indentation` is
/// that of the statement.
fn parenthesized_text(inner: String, indentation: usize) -> Doc {
    match indentation + STEP + columns(&inner) <= WIDTH {
        true => parenthesized(text(inner)),
        false => text(inner),
    }
}

/// Returns a document in parentheses if it does not fit on the line.
fn parenthesized(inner: Doc) -> Doc {
    group(vec![Doc::IfBroken("("), indent(vec![Doc::Soft, inner]), Doc::Soft, Doc::IfBroken(")")])
}

/// Returns a type on one line, which may stand in a string in double quotes.
fn nested(module: &Module, kind: &Type) -> String {
    match kind {
        Type::Union(members) => {
            let members = distinct(module, members).into_iter().map(|member| member.1);
            members.collect::<Vec<_>>().join(" | ")
        }
        Type::Array(inner) => format!("list[{}]", nested(module, inner)),
        Type::Tuple(items, rest) => nested(module, &listed(items, rest.as_deref())),
        Type::Map(inner) => format!("dict[str, {}]", nested(module, inner)),
        Type::Literal(values) => {
            let plain: Option<Vec<_>> = values
                .iter()
                .map(|constant| match constant {
                    Value::String(text) => literal::python_nested(text),
                    other => Some(value(other, literal::python)),
                })
                .collect();
            // Strings in annotations may hold no escapes.
            plain.map_or_else(
                || "Any".to_owned(),
                |literals| format!("Literal[{}]", literals.join(", ")),
            )
        }
        Type::Named(index) => module.declarations[*index].name.clone(),
        other => simple(other).to_owned(),
    }
}

/// Returns the members of a union with their texts. Types that differ in JSON, such as tuples of different lengths, may be the
/// same in Python.
fn distinct<'a>(module: &Module, members: &'a [Type]) -> Vec<(&'a Type, String)> {
    let mut distinct: Vec<(&Type, String)> = Vec::with_capacity(members.len());
    for member in members {
        let text = nested(module, member);
        if distinct.iter().all(|known| known.1 != text) {
            distinct.push((member, text));
        }
    }
    distinct
}

fn simple(kind: &Type) -> &'static str {
    match kind {
        Type::Null => "None",
        Type::Boolean => "bool",
        Type::Integer => "int",
        Type::Number => "float",
        Type::String => "str",
        _ => "Any",
    }
}

fn listed(items: &[Type], rest: Option<&Type>) -> Type {
    Type::Array(Box::new(union(items.iter().chain(rest).cloned().collect())))
}

fn value(value: &Value, quote: fn(&str) -> String) -> String {
    match value {
        Value::String(text) => quote(text),
        Value::Bool(true) => "True".to_owned(),
        Value::Bool(false) => "False".to_owned(),
        other => other.to_string(),
    }
}

/// Returns whether a type names a declaration.
fn refers(kind: &Type) -> bool {
    match kind {
        Type::Named(_) => true,
        Type::Array(inner) | Type::Map(inner) => refers(inner),
        Type::Union(members) => members.iter().any(refers),
        Type::Tuple(members, rest) => {
            members.iter().any(refers) || rest.as_deref().is_some_and(refers)
        }
        _ => false,
    }
}

/// Returns items that are on one line, or each on a line of its own.
fn list(items: Vec<Doc>) -> Doc {
    let many = items.len() > 1;
    let mut inner = joined(items, &[text(","), Doc::Line]);
    if many {
        inner.push(Doc::IfBroken(","));
    }
    group(inner)
}

fn brackets(open: &str, inner: Doc, close: &str) -> Doc {
    group(vec![text(open), indent(vec![Doc::Soft, inner]), Doc::Soft, text(close)])
}

/// Returns whether a member may be declared in the body of a class. Names with two underscores are changed there.
fn is_attribute(name: &str) -> bool {
    let mut characters = name.chars();
    let is_identifier = characters
        .next()
        .is_some_and(|character| character.is_ascii_alphabetic() || character == '_')
        && characters.all(|character| character.is_ascii_alphanumeric() || character == '_');
    is_identifier && !name.starts_with("__") && !KEYWORDS.contains(&name)
}

/// Returns a docstring with its line end; "" without text.
fn docstring(doc: &str, indentation: usize) -> String {
    let lines = docs::lines(doc, WIDTH - indentation - 8);
    let lines: Vec<_> =
        lines.iter().map(|line| line.replace('\\', "\\\\").replace("\"\"\"", "'''")).collect();
    let Some(first) = lines.first() else { return String::new() };
    let margin = " ".repeat(indentation);
    let start = if first.starts_with('"') { " " } else { "" };
    let mut text = format!("{margin}\"\"\"{start}{first}");
    if lines.len() > 1 {
        for line in &lines[1..] {
            text.push('\n');
            if !line.is_empty() {
                append(&mut text, format_args!("{margin}{line}"));
            }
        }
        append(&mut text, format_args!("\n{margin}"));
    } else if first.ends_with('"') || first.ends_with('\\') {
        text.push(' ');
    }
    text.push_str("\"\"\"\n");
    text
}
