//! Reads a schema document: its schemas, their names, and the targets of references.

mod keywords;
mod resources;

use std::collections::HashMap;

use serde_json::{Map, Value};

use super::dialect::Dialect;
use super::explain::clipped;
use super::keyword::{Keyword, Node, Schemas};
use super::pattern::Pattern;
use super::{MAX_PATTERNS, MAX_SUBSCHEMAS, SchemaError, limits};
use keywords::{Inside, Subschemas};
use resources::Resources;

/// A document that was read.
pub(super) struct Document {
    pub(super) schemas: Schemas,
    pub(super) backtracking: Vec<String>,
}

/// Reads a document. Errors for what JSON Schema does not allow, for references that lead nowhere or outside, and above a
/// limit.
pub(super) fn read(document: &Value) -> Result<Document, SchemaError> {
    let dialect = Dialect::named_by(document)?.unwrap_or(Dialect::Draft2020);
    let mut reader = Reader {
        schemas: Schemas::default(),
        backtracking: Vec::new(),
        pattern_size: limits::pattern_size(limits::count_patterns(document)),
        pattern_count: 0,
        patterns: HashMap::new(),
        seen: HashMap::new(),
        references: Vec::new(),
        resources: Resources::new(document, dialect),
    };
    reader.visit(document, "", 0)?;
    while let Some(reference) = reader.references.pop() {
        reader.follow(&reference)?;
    }
    let Reader { mut schemas, backtracking, seen, resources, .. } = reader;
    schemas.dynamic = resources.dynamic_anchors(&seen);
    Ok(Document { schemas, backtracking })
}

struct Reader<'a> {
    schemas: Schemas,
    /// The patterns with look-around or back-references.
    backtracking: Vec<String>,
    /// The most bytes of a compiled pattern.
    pattern_size: usize,
    pattern_count: usize,
    /// The compiled patterns by their text.
    patterns: HashMap<&'a str, Pattern>,
    /// The index of each schema, by its address: several references may lead to it.
    seen: HashMap<*const Value, usize>,
    /// The references to follow.
    references: Vec<Reference<'a>>,
    resources: Resources<'a>,
}

struct Reference<'a> {
    text: &'a str,
    keyword: &'static str,
    /// The schema with the reference, and the index of the keyword in it.
    node: usize,
    index: usize,
}

impl<'a> Reader<'a> {
    /// Reads a schema and all schemas inside it. Returns its index.
    fn visit(
        &mut self,
        schema: &'a Value,
        pointer: &str,
        resource: usize,
    ) -> Result<usize, SchemaError> {
        if let Some(&known) = self.seen.get(&std::ptr::from_ref(schema)) {
            return Ok(known);
        }
        let index = self.schemas.nodes.len();
        if index >= MAX_SUBSCHEMAS {
            let message = format!("more than {MAX_SUBSCHEMAS} schemas within one; split it");
            return Err(SchemaError::new(message));
        }
        self.seen.insert(std::ptr::from_ref(schema), index);
        let node = Node { pointer: pointer.to_owned(), resource, keywords: Vec::new() };
        self.schemas.nodes.push(node);
        match schema {
            Value::Bool(true) => {}
            Value::Bool(false) => self.add(index, Keyword::Never),
            Value::Object(members) => self.visit_object(index, schema, members, resource)?,
            other => {
                let message = format!("a schema is an object or a boolean, not {}", shown(other));
                return Err(SchemaError::at(pointer, message));
            }
        }
        Ok(index)
    }

    fn visit_object(
        &mut self,
        index: usize,
        schema: &'a Value,
        members: &'a Map<String, Value>,
        resource: usize,
    ) -> Result<(), SchemaError> {
        let pointer = self.schemas.nodes[index].pointer.clone();
        let named = Dialect::named_by(schema)?;
        let ignores_others =
            self.resources.dialect(resource).ignores_siblings() && members.contains_key("$ref");
        let resource = match ignores_others {
            true => resource,
            false => self.resources.identify(schema, members, resource, named, &pointer)?,
        };
        self.schemas.nodes[index].resource = resource;
        let subschemas = self.subschemas(members, &pointer, resource)?;
        if ignores_others {
            return self.reference(index, "$ref", &members["$ref"]);
        }
        self.keywords(index, members, &subschemas)
    }

    /// Reads the schemas inside the keywords of a schema.
    fn subschemas(
        &mut self,
        members: &'a Map<String, Value>,
        pointer: &str,
        resource: usize,
    ) -> Result<Inside<'a>, SchemaError> {
        let dialect = self.resources.dialect(resource);
        let mut found = Inside::new();
        for (keyword, value) in members {
            let Some(shape) = keywords::shape(keyword, dialect) else { continue };
            let place = format!("{pointer}/{}", escaped(keyword));
            let subschemas = match value {
                Value::Array(schemas) if shape.may_be_list() => {
                    let schemas = schemas.iter().enumerate();
                    let visited = schemas
                        .map(|(at, schema)| self.visit(schema, &format!("{place}/{at}"), resource));
                    Subschemas::List(visited.collect::<Result<_, _>>()?)
                }
                Value::Object(schemas) if shape.is_named() => {
                    let schemas = schemas
                        .iter()
                        .filter(|(_, schema)| !shape.may_be_names() || !schema.is_array());
                    let visited = schemas.map(|(name, schema)| {
                        let place = format!("{place}/{}", escaped(name));
                        Ok((name.clone(), self.visit(schema, &place, resource)?))
                    });
                    Subschemas::Named(visited.collect::<Result<_, SchemaError>>()?)
                }
                Value::Object(_) | Value::Bool(_) if shape.may_be_one() => {
                    Subschemas::One(self.visit(value, &place, resource)?)
                }
                other => {
                    let message = format!("must be {}, not {}", shape.describe(), shown(other));
                    return Err(SchemaError::at(&place, message));
                }
            };
            found.insert(keyword.as_str(), subschemas);
        }
        Ok(found)
    }

    /// Adds a reference, whose target is looked for when the names of all schemas are known.
    fn reference(
        &mut self,
        node: usize,
        keyword: &'static str,
        value: &'a Value,
    ) -> Result<(), SchemaError> {
        let text = self.text(node, keyword, value)?;
        let index = self.schemas.nodes[node].keywords.len();
        self.references.push(Reference { text, keyword, node, index });
        self.add(node, Keyword::Reference(usize::MAX));
        Ok(())
    }

    /// Finds the target of a reference.
    fn follow(&mut self, reference: &Reference<'a>) -> Result<(), SchemaError> {
        let node = &self.schemas.nodes[reference.node];
        let target = self.resources.resolve(reference.text, node.resource).map_err(|problem| {
            let text = clipped(reference.text, 100);
            let message = format!("`{}` to {text:?}: {problem}", reference.keyword);
            SchemaError::at(&node.pointer, message).foreign()
        })?;
        let schema = self.visit(target.schema, &target.pointer, target.resource)?;
        let anchor = match reference.keyword {
            "$dynamicRef" => target.dynamic_anchor,
            "$recursiveRef" => target.is_recursive.then(String::new),
            _ => None,
        };
        self.schemas.nodes[reference.node].keywords[reference.index] = match anchor {
            Some(anchor) => Keyword::DynamicReference { anchor, target: schema },
            None => Keyword::Reference(schema),
        };
        Ok(())
    }

    /// Compiles a pattern, once for each text.
    fn pattern(&mut self, text: &'a str, place: &str) -> Result<Pattern, SchemaError> {
        self.pattern_count += 1;
        if self.pattern_count > MAX_PATTERNS {
            let message = format!("more than {MAX_PATTERNS} patterns; simplify the schema");
            return Err(SchemaError::new(message));
        }
        if let Some(known) = self.patterns.get(text) {
            return Ok(known.clone());
        }
        let pattern = Pattern::compile(text, self.pattern_size).ok_or_else(|| {
            let text = clipped(text, 100);
            let message =
                format!("{text:?} is not a regular expression of ECMA-262, or it is too large");
            SchemaError::at(place, message)
        })?;
        if pattern.backtracks() {
            self.backtracking.push(text.to_owned());
        }
        self.patterns.insert(text, pattern.clone());
        Ok(pattern)
    }

    fn add(&mut self, node: usize, keyword: Keyword) {
        self.schemas.nodes[node].keywords.push(keyword);
    }

    fn text(&self, node: usize, keyword: &str, value: &'a Value) -> Result<&'a str, SchemaError> {
        value.as_str().ok_or_else(|| self.wrong(node, keyword, "a string", value))
    }

    /// Creates the error for a wrong value, at a place in a schema.
    fn wrong(&self, node: usize, place: &str, expected: &str, value: &Value) -> SchemaError {
        let place = format!("{}/{place}", self.schemas.nodes[node].pointer);
        SchemaError::at(&place, format!("must be {expected}, not {}", shown(value)))
    }
}

fn shown(value: &Value) -> String {
    clipped(&value.to_string(), 100)
}

/// Escapes a name for a JSON pointer.
fn escaped(name: &str) -> String {
    name.replace('~', "~0").replace('/', "~1")
}
