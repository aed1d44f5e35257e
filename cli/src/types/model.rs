//! The declarations of a module, in the terms of both languages.

use gudgeon::protocol::{Implementation, Prompt, Resource, ResourceTemplate, Tool};
use serde_json::Value;

use super::{
    names::{Names, pascal, started},
    schema::{Builder, Root},
};

/// The language of a module.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Language {
    Python,
    Typescript,
}

/// The components of a server, in the order of its lists.
#[derive(Debug)]
pub struct Components {
    pub server: Implementation,
    pub tools: Vec<Tool>,
    pub resources: Vec<Resource>,
    pub templates: Vec<ResourceTemplate>,
    pub prompts: Vec<Prompt>,
}

/// A typed client of one server.
#[derive(Debug)]
pub struct Module {
    pub server: String,
    pub version: String,
    /// The name of the class whose methods are calls.
    pub class: String,
    pub declarations: Vec<Declaration>,
    pub calls: Vec<Call>,
}

/// A method of the class.
#[derive(Debug)]
pub struct Call {
    pub kind: CallKind,
    /// The name at the server; of a resource too, for which `target` is what a request names.
    pub name: String,
    pub target: String,
    pub doc: String,
    /// The type of the arguments or variables; `None` if there are none.
    pub arguments: Option<Type>,
    /// `false` if the arguments may be left out.
    pub needs_arguments: bool,
    /// The type of a tool's data.
    pub result: Option<Type>,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum CallKind {
    Tool,
    Resource,
    Template,
    Prompt,
}

/// A named type.
#[derive(Debug)]
pub struct Declaration {
    pub name: String,
    pub doc: String,
    pub shape: Shape,
}

#[derive(Clone, Debug)]
pub enum Shape {
    Object { fields: Vec<Field>, open: bool },
    Alias(Type),
}

#[derive(Clone, Debug)]
pub struct Field {
    pub name: String,
    pub required: bool,
    pub doc: String,
    pub kind: Type,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Type {
    Any,
    Null,
    Boolean,
    Integer,
    Number,
    String,
    /// One of these values, which are strings, integers and booleans.
    Literal(Vec<Value>),
    Array(Box<Self>),
    /// The first items, and the type of further ones.
    Tuple(Vec<Self>, Option<Box<Self>>),
    Map(Box<Self>),
    Union(Vec<Self>),
    /// The declaration with this index.
    Named(usize),
}

impl Module {
    pub fn new(components: &Components) -> Self {
        let mut names = Names::of_types();
        let server = &components.server;
        let class = names.claim(&started(&pascal(&server.name), "Server"));
        // The name of the same class for programs that do not await.
        names.claim(&format!("Sync{class}"));
        let mut builder = Builder::new(names);
        let mut calls = Vec::new();
        calls.extend(components.tools.iter().map(|component| tool(&mut builder, component)));
        calls.extend(components.resources.iter().map(resource));
        calls
            .extend(components.templates.iter().map(|component| template(&mut builder, component)));
        calls.extend(components.prompts.iter().map(|component| prompt(&mut builder, component)));
        Self {
            server: server.name.clone(),
            version: server.version.clone(),
            class,
            declarations: builder.finish(),
            calls,
        }
    }

    /// Returns whether a type is a declared object of which all members may be left out.
    fn is_optional(declarations: &[Declaration], kind: &Type) -> bool {
        match kind {
            Type::Map(_) => true,
            Type::Named(index) => match &declarations[*index].shape {
                Shape::Object { fields, .. } => fields.iter().all(|field| !field.required),
                Shape::Alias(_) => false,
            },
            _ => false,
        }
    }
}

fn tool(builder: &mut Builder, tool: &Tool) -> Call {
    let name = started(&pascal(&tool.name), "Tool");
    let input: Value = serde_json::from_str(tool.input_schema.get()).unwrap_or_default();
    let takes_none = input.as_object().is_some_and(|members| {
        ![
            "properties",
            "patternProperties",
            "additionalProperties",
            "$ref",
            "allOf",
            "anyOf",
            "oneOf",
        ]
        .iter()
        .any(|key| {
            members.get(*key).is_some_and(|value| *value != Value::Bool(false) && !is_empty(value))
        })
    });
    let arguments = (!takes_none).then(|| {
        let doc = format!("Arguments of the tool {:?}.", tool.name);
        let kind = builder.root(&Root {
            schema: &input,
            pointer: "",
            name: &format!("{name}Arguments"),
            doc: &doc,
        });
        // Arguments are an object, whatever the schema leaves open.
        if kind == Type::Any { Type::Map(Box::new(Type::Any)) } else { kind }
    });
    let result = tool.output_schema.as_ref().map(|output| {
        let output: Value = serde_json::from_str(output.get()).unwrap_or_default();
        let is_wrapped =
            ["x-gudgeon-wrapped", "x-fastmcp-wrap-result"].iter().any(|key| output[*key] == true);
        // The client takes the value out of its wrapper.
        let pointer = if is_wrapped { "/properties/result" } else { "" };
        let doc = format!("Data of the tool {:?}.", tool.name);
        builder.root(&Root { schema: &output, pointer, name: &format!("{name}Result"), doc: &doc })
    });
    let needs_arguments =
        arguments.as_ref().is_some_and(|kind| !Module::is_optional(builder.declarations(), kind));
    Call {
        kind: CallKind::Tool,
        name: tool.name.clone(),
        target: tool.name.clone(),
        doc: documentation(tool.description.as_ref(), tool.title.as_ref(), || {
            format!("Calls the tool {:?}.", tool.name)
        }),
        arguments,
        needs_arguments,
        result,
    }
}

fn resource(resource: &Resource) -> Call {
    Call {
        kind: CallKind::Resource,
        name: resource.name.clone(),
        target: resource.uri.clone(),
        doc: documentation(resource.description.as_ref(), resource.title.as_ref(), || {
            format!("Reads the resource {}.", resource.uri)
        }),
        arguments: None,
        needs_arguments: false,
        result: None,
    }
}

fn template(builder: &mut Builder, template: &ResourceTemplate) -> Call {
    let value = Type::Union(vec![Type::String, Type::Integer, Type::Array(Box::new(Type::String))]);
    let fields: Vec<_> = variables(&template.uri_template)
        .into_iter()
        .map(|(name, required)| Field { name, required, doc: String::new(), kind: value.clone() })
        .collect();
    let needs_arguments = fields.iter().any(|field| field.required);
    let name = format!("{}Variables", started(&pascal(&template.name), "Resource"));
    let doc = format!("Variables of the resource template {:?}.", template.uri_template);
    let arguments = (!fields.is_empty()).then(|| builder.object(&name, doc, fields));
    Call {
        kind: CallKind::Template,
        name: template.name.clone(),
        target: template.uri_template.clone(),
        doc: documentation(template.description.as_ref(), template.title.as_ref(), || {
            format!("Reads a resource {}.", template.uri_template)
        }),
        arguments,
        needs_arguments,
        result: None,
    }
}

fn prompt(builder: &mut Builder, prompt: &Prompt) -> Call {
    let mut fields: Vec<Field> = Vec::new();
    for argument in prompt.arguments.iter().flatten() {
        if fields.iter().all(|field| field.name != argument.name) {
            fields.push(Field {
                name: argument.name.clone(),
                required: argument.required == Some(true),
                doc: argument.description.clone().unwrap_or_default(),
                kind: Type::String,
            });
        }
    }
    let needs_arguments = fields.iter().any(|field| field.required);
    let name = format!("{}PromptArguments", started(&pascal(&prompt.name), "Some"));
    let doc = format!("Arguments of the prompt {:?}.", prompt.name);
    let arguments = (!fields.is_empty()).then(|| builder.object(&name, doc, fields));
    Call {
        kind: CallKind::Prompt,
        name: prompt.name.clone(),
        target: prompt.name.clone(),
        doc: documentation(prompt.description.as_ref(), prompt.title.as_ref(), || {
            format!("Gets the prompt {:?}.", prompt.name)
        }),
        arguments,
        needs_arguments,
        result: None,
    }
}

/// Returns the names of a URI template's variables (RFC 6570) in their order, and whether each must have a value. Those of
/// a query need none.
fn variables(template: &str) -> Vec<(String, bool)> {
    let mut variables: Vec<(String, bool)> = Vec::new();
    for part in template.split('{').skip(1) {
        let Some((expression, _)) = part.split_once('}') else { continue };
        let names = expression.trim_start_matches(['+', '#', '.', '/', ';', '?', '&']);
        let required = !expression.starts_with(['?', '&']);
        for name in names.split(',') {
            let name = name.trim_end_matches('*');
            let name = name.split_once(':').map_or(name, |parts| parts.0);
            if !name.is_empty() && variables.iter().all(|(known, _)| known != name) {
                variables.push((name.to_owned(), required));
            }
        }
    }
    variables
}

fn documentation(
    description: Option<&String>,
    title: Option<&String>,
    default: impl FnOnce() -> String,
) -> String {
    let given = description.or(title).filter(|text| !text.trim().is_empty());
    given.cloned().unwrap_or_else(default)
}

fn is_empty(value: &Value) -> bool {
    value.as_object().is_some_and(serde_json::Map::is_empty)
        || value.as_array().is_some_and(Vec::is_empty)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_of_a_template_and_whether_they_are_needed() {
        let read = variables("shelf://{owner}/{+path*}{?page,size:3}{&page}{bad");
        let names: Vec<_> =
            read.iter().map(|(name, required)| (name.as_str(), *required)).collect();
        assert_eq!(names, [("owner", true), ("path", true), ("page", false), ("size", false)]);
    }
}
