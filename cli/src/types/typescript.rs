//! Modules in TypeScript, in the form of Prettier.

use serde_json::Value;

use super::{
    docs,
    layout::{Doc, append, group, indent, joined, render, text},
    literal,
    model::{Call, CallKind, Declaration, Module, Shape, Type},
    names::{MARK, Names, camel},
};

const WIDTH: usize = 80;
const STEP: usize = 2;

/// Returns the text of a module.
pub fn write(module: &Module) -> String {
    let mut body = String::new();
    for declaration in &module.declarations {
        body.push_str(&declared(module, declaration));
        body.push('\n');
    }
    class(module, &mut body);
    let version = if module.version.is_empty() {
        String::new()
    } else {
        format!(", version {}", module.version)
    };
    let title = format!("Client of the MCP server {:?}{version}.", module.server);
    let header = comment(&format!("{title}\n\n{MARK}; changes are lost when that is repeated."), 0);
    let has = |kinds: &[CallKind]| module.calls.iter().any(|it| kinds.contains(&it.kind));
    let imports: Vec<_> = ["CallOptions", "Client", "PromptResult", "ResourceResult", "ToolResult"]
        .into_iter()
        .filter(|it| match *it {
            "PromptResult" => has(&[CallKind::Prompt]),
            "ResourceResult" => has(&[CallKind::Resource, CallKind::Template]),
            "ToolResult" => has(&[CallKind::Tool]),
            "CallOptions" => !module.calls.is_empty(),
            _ => true,
        })
        .map(text)
        .collect();
    let mut inner = joined(imports, &[text(","), Doc::Line]);
    inner.push(Doc::IfBroken(","));
    let import = group(vec![
        text("import type {"),
        indent([vec![Doc::Line], inner].concat()),
        Doc::Line,
        text("} from \"gudgeon\";"),
    ]);
    format!("{header}\n{}\n\n{body}", render(&import, WIDTH, STEP, 0))
}

fn declared(module: &Module, declaration: &Declaration) -> String {
    let name = &declaration.name;
    let doc = comment(&declaration.doc, 0);
    match &declaration.shape {
        Shape::Object { fields, open } if !fields.is_empty() => {
            let mut lines = format!("{doc}export interface {name} {{\n");
            for field in fields {
                lines.push_str(&comment(&field.doc, STEP));
                let mark = if field.required { "" } else { "?" };
                let line = Doc::All(vec![
                    text(format!("{}{mark}:", key(&field.name))),
                    kind(module, &field.kind, Place::Start),
                    text(";"),
                ]);
                lines.push_str(&render(&line, WIDTH, STEP, STEP));
                lines.push('\n');
            }
            if *open {
                lines.push_str("  [key: string]: unknown;\n");
            }
            lines.push_str("}\n");
            lines
        }
        Shape::Object { .. } => format!("{doc}export type {name} = Record<string, never>;\n"),
        Shape::Alias(value) => {
            let line = Doc::All(vec![
                text(format!("export type {name} =")),
                kind(module, value, Place::Start),
                text(";"),
            ]);
            format!("{doc}{}\n", render(&line, WIDTH, STEP, 0))
        }
    }
}

fn class(module: &Module, body: &mut String) {
    body.push_str(&comment(&format!("Calls what the server {:?} offers.", module.server), 0));
    append(
        body,
        format_args!(
            "export class {} {{\n  readonly client: Client;\n\n  constructor(client: Client) {{\n    this.client = client;\n  }}\n",
            module.class
        ),
    );
    let mut names = Names::default();
    for call in &module.calls {
        body.push('\n');
        body.push_str(&method(module, call, &mut names));
    }
    body.push_str("}\n");
}

fn method(module: &Module, call: &Call, names: &mut Names) -> String {
    let (prefix, parameter, returned, function) = match call.kind {
        CallKind::Tool => ("", "args", "ToolResult", "callTool"),
        CallKind::Resource | CallKind::Template => {
            ("read", "variables", "ResourceResult", "readResource")
        }
        CallKind::Prompt => ("prompt", "args", "PromptResult", "getPrompt"),
    };
    let name = names.claim(&camel(prefix, &call.name));
    let mut parameters = Vec::new();
    let mut values = vec![text(literal::typescript(&call.target))];
    if let Some(kind) = &call.arguments {
        let default = if call.needs_arguments { "" } else { " = {}" };
        parameters.push(text(format!("{parameter}: {}{default}", flat(module, kind))));
    }
    parameters.push(text("options: CallOptions = {}"));
    let has_arguments = call.arguments.is_some();
    match call.kind {
        CallKind::Tool if has_arguments => values.push(text("args")),
        CallKind::Prompt if has_arguments => {
            values.push(text("{ ...args } as Record<string, string>"));
        }
        CallKind::Tool | CallKind::Prompt => values.push(text("{}")),
        CallKind::Resource | CallKind::Template => (),
    }
    values.push(match call.kind {
        CallKind::Template if has_arguments => group(vec![
            text("{"),
            indent(vec![
                Doc::Line,
                text("...options,"),
                Doc::Line,
                text("variables: { ...variables } as Record<string, string>"),
                Doc::IfBroken(","),
            ]),
            Doc::Line,
            text("}"),
        ]),
        _ => text("options"),
    });
    let (returned, start, end) = match &call.result {
        Some(kind) => {
            let returned = format!("{returned}<{}>", flat(module, kind));
            let end = format!(") as {returned};");
            (returned, "return (await ", end)
        }
        None => (returned.to_owned(), "return ", ";".to_owned()),
    };
    let keyword = if call.result.is_some() { "async " } else { "" };
    let signature = Doc::All(vec![
        text(format!("{keyword}{name}")),
        arguments(parameters),
        text(format!(": Promise<{returned}> {{")),
    ]);
    let statement = Doc::All(vec![
        text(format!("{start}this.client.{function}")),
        arguments(values),
        text(end),
    ]);
    format!(
        "{}{}\n{}\n  }}\n",
        comment(&call.doc, STEP),
        render(&signature, WIDTH, STEP, STEP),
        render(&statement, WIDTH, STEP, 2 * STEP)
    )
}

fn arguments(items: Vec<Doc>) -> Doc {
    let mut inner = joined(items, &[text(","), Doc::Line]);
    inner.push(Doc::IfBroken(","));
    group(vec![text("("), indent([vec![Doc::Soft], inner].concat()), Doc::Soft, text(")")])
}

/// The place of a type.
#[derive(Clone, Copy, Eq, PartialEq)]
enum Place {
    /// After a colon or an equals sign, which it separates with a space or a line break.
    Start,
    /// In brackets.
    Inner,
    /// Before `[]`.
    Item,
}

fn kind(module: &Module, kind: &Type, place: Place) -> Doc {
    if !matches!(kind, Type::Union(_) | Type::Literal(_)) {
        let doc = single(module, kind);
        return if place == Place::Start { Doc::All(vec![text(" "), doc]) } else { doc };
    }
    let members = alternatives(module, kind);
    let is_one = members.len() == 1;
    let inner = joined(members, &[Doc::Line, text("| ")]);
    match place {
        Place::Start if is_one => Doc::All([vec![text(" ")], inner].concat()),
        Place::Start => group(vec![indent([vec![Doc::Line, Doc::IfBroken("| ")], inner].concat())]),
        Place::Item if is_one => Doc::All(inner),
        Place::Item => group(vec![
            text("("),
            indent([vec![Doc::Soft, Doc::IfBroken("| ")], inner].concat()),
            Doc::Soft,
            text(")"),
        ]),
        Place::Inner => group(inner),
    }
}

fn alternatives(module: &Module, kind: &Type) -> Vec<Doc> {
    match kind {
        Type::Union(members) => members.iter().flat_map(|it| alternatives(module, it)).collect(),
        Type::Literal(values) => values.iter().map(|it| text(value(it))).collect(),
        other => vec![single(module, other)],
    }
}

fn single(module: &Module, kind: &Type) -> Doc {
    match kind {
        Type::Array(inner) => Doc::All(vec![self::kind(module, inner, Place::Item), text("[]")]),
        Type::Tuple(items, rest) => {
            let mut parts: Vec<_> =
                items.iter().map(|it| self::kind(module, it, Place::Inner)).collect();
            if let Some(rest) = rest {
                parts.push(Doc::All(vec![
                    text("..."),
                    self::kind(module, rest, Place::Item),
                    text("[]"),
                ]));
            }
            let mut inner = joined(parts, &[text(","), Doc::Line]);
            inner.push(Doc::IfBroken(","));
            group(vec![text("["), indent([vec![Doc::Soft], inner].concat()), Doc::Soft, text("]")])
        }
        // A mapped type such as Record may not refer to itself.
        Type::Map(inner) => Doc::All(vec![
            text("{ [key: string]:"),
            self::kind(module, inner, Place::Start),
            text(" }"),
        ]),
        Type::Named(index) => text(module.declarations[*index].name.clone()),
        Type::Null => text("null"),
        Type::Boolean => text("boolean"),
        Type::Integer | Type::Number => text("number"),
        Type::String => text("string"),
        Type::Any | Type::Union(_) | Type::Literal(_) => text("unknown"),
    }
}

/// Returns a type on one line.
fn flat(module: &Module, kind: &Type) -> String {
    render(&self::kind(module, kind, Place::Inner), usize::MAX / 2, STEP, 0)
}

fn value(value: &Value) -> String {
    match value {
        Value::String(text) => literal::typescript(text),
        other => other.to_string(),
    }
}

fn key(name: &str) -> String {
    let is_part = |it: char| it.is_ascii_alphanumeric() || it == '_' || it == '$';
    let is_plain = !name.is_empty()
        && name.chars().all(is_part)
        && !name.starts_with(|it: char| it.is_ascii_digit());
    if is_plain { name.to_owned() } else { literal::typescript(name) }
}

/// Returns a comment with its line end; "" without a text.
fn comment(doc: &str, indentation: usize) -> String {
    let lines = docs::lines(doc, WIDTH - indentation - 6);
    let lines: Vec<_> = lines.iter().map(|it| escaped(it)).collect();
    let margin = " ".repeat(indentation);
    match lines.as_slice() {
        [] => String::new(),
        [line] => format!("{margin}/** {line} */\n"),
        lines => {
            let mut text = format!("{margin}/**\n");
            for line in lines {
                text.push_str(format!("{margin} * {line}").trim_end());
                text.push('\n');
            }
            append(&mut text, format_args!("{margin} */\n"));
            text
        }
    }
}

/// Returns a line in which nothing ends the comment or is a tag of its own.
fn escaped(line: &str) -> String {
    let line = line.replace("*/", "*\\/");
    match line.trim_start().starts_with('@') {
        true => line.replacen('@', "\\@", 1),
        false => line,
    }
}
