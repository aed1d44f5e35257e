//! Modules in TypeScript, in the form of Prettier.

use serde_json::Value;

use super::{
    docs,
    layout::{Doc, append, columns, group, indent, joined, render, text},
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
    let has = |kinds: &[CallKind]| module.calls.iter().any(|call| kinds.contains(&call.kind));
    let imports: Vec<_> = ["CallOptions", "Client", "PromptResult", "ResourceResult", "ToolResult"]
        .into_iter()
        .filter(|name| match *name {
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
                    kind(module, &field.kind, TypePosition::Start),
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
        Shape::Object { .. } => {
            let parts = vec![text("string"), text(","), Doc::Line, text("never")];
            let empty = group(vec![
                text("Record<"),
                indent([vec![Doc::Soft], parts].concat()),
                Doc::Soft,
                text(">"),
            ]);
            format!("{doc}{}", alias(name, Doc::All(vec![text(" "), empty.clone()]), empty))
        }
        Shape::Alias(value) => {
            let kind = |place| kind(module, value, place);
            format!("{doc}{}", alias(name, kind(TypePosition::Start), kind(TypePosition::Inner)))
        }
    }
}

/// Returns the declaration of a name for a type: behind the equals sign, or on the next line if its beginning does not fit.
fn alias(name: &str, behind: Doc, below: Doc) -> String {
    let start = format!("export type {name} =");
    let line = Doc::All(vec![text(&start), behind, text(";")]);
    let line = render(&line, WIDTH, STEP, 0);
    if line.lines().next().is_none_or(|line| columns(line) <= WIDTH) {
        return format!("{line}\n");
    }
    let below = Doc::All(vec![below, text(";")]);
    format!("{start}\n{}\n", render(&below, WIDTH, STEP, STEP))
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
        parameters.push(Doc::All(vec![
            text(format!("{parameter}:")),
            self::kind(module, kind, TypePosition::Start),
            text(default),
        ]));
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
    let call_start = format!("this.client.{function}");
    let (returned, statement) = if let Some(kind) = &call.result {
        values.push(text("options"));
        let returned =
            reference(returned, self::kind(module, kind, TypePosition::Inner), is_plain(kind));
        let call = vec![text(format!("return (await {call_start}")), group(arguments(values))];
        let cast = vec![text(") as "), returned.clone(), text(";")];
        (reference("Promise", returned, false), Doc::All([call, cast].concat()))
    } else {
        let statement = match call.kind {
            CallKind::Template if has_arguments => {
                with_variables(&format!("return {call_start}"), &call.target)
            }
            _ => {
                values.push(text("options"));
                let start = text(format!("return {call_start}"));
                Doc::All(vec![start, group(arguments(values)), text(";")])
            }
        };
        (text(format!("Promise<{returned}>")), statement)
    };
    let keyword = if call.result.is_some() { "async " } else { "" };
    let signature = Doc::All(vec![
        text(format!("{keyword}{name}")),
        group([arguments(parameters), vec![text(": "), returned]].concat()),
        text(" {"),
    ]);
    format!(
        "{}{}\n{}\n  }}\n",
        comment(&call.doc, STEP),
        render(&signature, WIDTH, STEP, STEP),
        render(&statement, WIDTH, STEP, 2 * STEP)
    )
}

/// Returns the statement that reads a template. The object at the end stays on the line of the call if its brace fits there.
fn with_variables(start: &str, target: &str) -> Doc {
    let target = literal::typescript(target);
    let is_short = 2 * STEP + columns(start) + columns(&target) + "(, {".len() <= WIDTH;
    let members =
        vec![text("...options"), text("variables: { ...variables } as Record<string, string>")];
    let mut inner = joined(members, &[text(","), Doc::Line]);
    inner.push(Doc::IfBroken(","));
    let parts = vec![text("{"), indent([vec![Doc::Line], inner].concat()), Doc::Line, text("}")];
    match is_short {
        true => {
            let first = text(format!("{start}({target}, "));
            Doc::All([vec![first], parts, vec![text(");")]].concat())
        }
        false => Doc::All(vec![
            text(start),
            group(arguments(vec![text(target), group(parts)])),
            text(";"),
        ]),
    }
}

/// Returns items in parentheses, without a group.
fn arguments(items: Vec<Doc>) -> Vec<Doc> {
    let mut inner = joined(items, &[text(","), Doc::Line]);
    inner.push(Doc::IfBroken(","));
    vec![text("("), indent([vec![Doc::Soft], inner].concat()), Doc::Soft, text(")")]
}

/// Returns a type with an argument. A plain argument is never on a line of its own.
fn reference(name: &str, argument: Doc, is_plain: bool) -> Doc {
    let start = text(format!("{name}<"));
    match is_plain {
        true => Doc::All(vec![start, argument, text(">")]),
        false => group(vec![start, indent(vec![Doc::Soft, argument]), Doc::Soft, text(">")]),
    }
}

fn is_plain(kind: &Type) -> bool {
    !matches!(kind, Type::Array(_) | Type::Tuple(..) | Type::Union(_) | Type::Literal(_))
}

/// The place of a type.
#[derive(Clone, Copy, Eq, PartialEq)]
enum TypePosition {
    /// After a colon or an equals sign, which it separates with a space or a line break.
    Start,
    /// The only one in brackets.
    Inner,
    /// One of several in brackets.
    Member,
    /// Before `[]`.
    Item,
}

fn kind(module: &Module, kind: &Type, place: TypePosition) -> Doc {
    let mut members: Vec<(Alternative<'_>, Doc, String)> = Vec::new();
    for alternative in alternatives(kind) {
        let doc = match alternative {
            Alternative::Type(kind) => single(module, kind),
            Alternative::Value(value) => text(self::value(value)),
        };
        // Integers and other numbers have the same type.
        let flat = render(&doc, usize::MAX / 2, STEP, 0);
        if members.iter().all(|member| member.2 != flat) {
            members.push((alternative, doc, flat));
        }
    }
    let count = members.len();
    let has = |is: fn(&Type) -> bool| {
        members
            .iter()
            .filter(|member| matches!(member.0, Alternative::Type(kind) if is(kind)))
            .count()
    };
    let is_named = has(|kind| matches!(kind, Type::Named(_) | Type::Map(_))) > 0;
    // `Name | null` is never broken between the two.
    let is_hugged = count == 1 || is_named && has(|kind| *kind == Type::Null) == count - 1;
    let members: Vec<_> = members
        .into_iter()
        .map(|(_, doc, _)| if is_hugged { doc } else { indent(vec![doc]) })
        .collect();
    if is_hugged {
        let inner = Doc::All(joined(members, &[text(" | ")]));
        return match place {
            TypePosition::Start => Doc::All(vec![text(" "), inner]),
            TypePosition::Item if count > 1 => Doc::All(vec![text("("), inner, text(")")]),
            _ => inner,
        };
    }
    let mut inner = vec![Doc::IfBroken("| ")];
    inner.extend(joined(members, &[Doc::Line, text("| ")]));
    match place {
        TypePosition::Start => group(vec![indent(vec![Doc::Line, group(inner)])]),
        TypePosition::Item => {
            group(vec![text("("), indent(vec![Doc::Soft, group(inner)]), Doc::Soft, text(")")])
        }
        TypePosition::Member => group(vec![
            Doc::IfBroken("("),
            indent(vec![Doc::Soft, group(inner)]),
            Doc::Soft,
            Doc::IfBroken(")"),
        ]),
        TypePosition::Inner => group(inner),
    }
}

/// One of the types of which a value has one.
enum Alternative<'a> {
    Type(&'a Type),
    Value(&'a Value),
}

fn alternatives(kind: &Type) -> Vec<Alternative<'_>> {
    match kind {
        Type::Union(members) => members.iter().flat_map(alternatives).collect(),
        Type::Literal(values) => values.iter().map(Alternative::Value).collect(),
        other => vec![Alternative::Type(other)],
    }
}

fn single(module: &Module, kind: &Type) -> Doc {
    match kind {
        Type::Array(inner) => {
            Doc::All(vec![self::kind(module, inner, TypePosition::Item), text("[]")])
        }
        Type::Tuple(items, rest) => {
            let is_alone = items.len() == 1 && rest.is_none();
            let place = if is_alone { TypePosition::Inner } else { TypePosition::Member };
            let mut parts: Vec<_> =
                items.iter().map(|item| group(vec![self::kind(module, item, place)])).collect();
            if let Some(rest) = rest {
                parts.push(group(vec![
                    text("..."),
                    self::kind(module, rest, TypePosition::Item),
                    text("[]"),
                ]));
            }
            let mut inner = joined(parts, &[text(","), Doc::Line]);
            inner.push(Doc::IfBroken(","));
            group(vec![text("["), indent([vec![Doc::Soft], inner].concat()), Doc::Soft, text("]")])
        }
        // A mapped type such as Record may not refer to itself.
        Type::Map(inner) => group(vec![
            text("{"),
            indent(vec![
                Doc::Line,
                group(vec![
                    text("["),
                    indent(vec![Doc::Soft, text("key: string")]),
                    Doc::Soft,
                    text("]"),
                ]),
                text(":"),
                self::kind(module, inner, TypePosition::Start),
                Doc::IfBroken(";"),
            ]),
            Doc::Line,
            text("}"),
        ]),
        Type::Named(index) => text(module.declarations[*index].name.clone()),
        Type::Null => text("null"),
        Type::Boolean => text("boolean"),
        Type::Integer | Type::Number => text("number"),
        Type::String => text("string"),
        Type::Any | Type::Union(_) | Type::Literal(_) => text("unknown"),
    }
}

fn value(value: &Value) -> String {
    match value {
        Value::String(text) => literal::typescript(text),
        other => other.to_string(),
    }
}

/// Returns the name of a member, in quotes where it needs them.
fn key(name: &str) -> String {
    let is_plain = !name.is_empty()
        && name.chars().all(|character| character.is_ascii_digit() || is_letter(character))
        && !name.starts_with(|character: char| character.is_ascii_digit());
    if is_plain { name.to_owned() } else { literal::typescript(name) }
}

/// Returns whether an identifier may begin with a character. Of those outside of ASCII, only the letters of scripts without
/// combining marks are known here; a name with others is quoted, which is never wrong.
fn is_letter(character: char) -> bool {
    let is_known = matches!(
        character,
        '\u{aa}'..='\u{2af}'
            | '\u{370}'..='\u{481}'
            | '\u{48a}'..='\u{587}'
            | '\u{5d0}'..='\u{5ea}'
            | '\u{620}'..='\u{64a}'
            | '\u{1e00}'..='\u{1fff}'
            | '\u{3041}'..='\u{3096}'
            | '\u{30a1}'..='\u{30fa}'
            | '\u{3400}'..='\u{9fff}'
            | '\u{ac00}'..='\u{d7a3}'
    );
    character.is_ascii_alphabetic()
        || matches!(character, '_' | '$')
        || is_known && character.is_alphabetic()
}

/// Returns a comment with its line end; "" without text.
fn comment(doc: &str, indentation: usize) -> String {
    let lines = docs::lines(doc, WIDTH - indentation - 6);
    let lines: Vec<_> = lines.iter().map(|line| escaped(line)).collect();
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
