//! Builds the graph of a schema document: keywords that contain schemas, and targets of references.

use std::collections::HashMap;

use serde_json::{Map, Value};

use super::explain::clipped;
use super::graph::Node;
use super::{MAX_PATTERNS, MAX_SUBSCHEMAS, SchemaError, dialect, pattern};

struct Reference<'a> {
    node: usize,
    text: &'a str,
    /// The nearest enclosing schema with an `$id`, which `#…` is relative to.
    resource: &'a Value,
    dynamic: bool,
}

/// Patterns with look-around or back-references.
#[derive(Debug, Default)]
pub(super) struct Backtracking {
    /// Patterns of the keyword `pattern`.
    pub(super) values: Vec<String>,
    /// Patterns of `patternProperties`.
    pub(super) names: Vec<String>,
}

impl Backtracking {
    pub(super) fn is_empty(&self) -> bool {
        self.values.is_empty() && self.names.is_empty()
    }
}

#[derive(Default)]
pub(super) struct Builder<'a> {
    pub(super) nodes: Vec<Node>,
    pub(super) patterns: usize,
    pub(super) backtracking: Backtracking,
    /// Keyed by address, since a schema can be reached in several ways.
    seen: HashMap<*const Value, usize>,
    references: Vec<Reference<'a>>,
    identifiers: Vec<(&'a str, &'a Value)>,
    anchors: Vec<(&'a str, &'a Value)>,
}

impl<'a> Builder<'a> {
    /// Visits the document and the targets of its references.
    pub(super) fn read(document: &'a Value) -> Result<Self, SchemaError> {
        let mut builder = Self::default();
        builder.visit(document, "", document)?;
        while let Some(reference) = builder.references.pop() {
            for (target, pointer) in builder.resolve(document, &reference)? {
                let target = builder.visit(target, &pointer, reference.resource)?;
                builder.nodes[reference.node].all.push(target);
            }
        }
        if builder.patterns > MAX_PATTERNS {
            let message = format!("more than {MAX_PATTERNS} patterns; simplify the schema");
            return Err(SchemaError::new(message));
        }
        Ok(builder)
    }

    fn visit(
        &mut self,
        schema: &'a Value,
        pointer: &str,
        resource: &'a Value,
    ) -> Result<usize, SchemaError> {
        if let Some(&known) = self.seen.get(&std::ptr::from_ref(schema)) {
            return Ok(known);
        }
        let index = self.nodes.len();
        if index >= MAX_SUBSCHEMAS {
            return Err(SchemaError::new(format!(
                "more than {MAX_SUBSCHEMAS} schemas within one; split it"
            )));
        }
        self.seen.insert(std::ptr::from_ref(schema), index);
        let refuses_strings = refuses_strings(schema);
        self.nodes.push(Node { pointer: pointer.to_owned(), refuses_strings, ..Node::default() });
        let Value::Object(keywords) = schema else {
            return Ok(index);
        };
        dialect::of(schema)?;
        let resource = self.names(schema, keywords, resource);
        for (keyword, value) in keywords {
            let place = format!("{pointer}/{keyword}");
            self.keyword(index, keyword, value, &place, resource)?;
        }
        Ok(index)
    }

    /// Records the identifiers of a schema. Returns the resource that its own references are relative to.
    fn names(
        &mut self,
        schema: &'a Value,
        keywords: &'a Map<String, Value>,
        resource: &'a Value,
    ) -> &'a Value {
        let text = |keyword: &str| keywords.get(keyword).and_then(Value::as_str);
        self.anchors.extend(
            text("$anchor").into_iter().chain(text("$dynamicAnchor")).map(|name| (name, schema)),
        );
        match text("$id").or_else(|| text("id")) {
            None => resource,
            Some(identifier) => {
                if let Some(anchor) = identifier.strip_prefix('#') {
                    self.anchors.push((anchor, schema));
                    return resource;
                }
                self.identifiers.push((identifier.trim_end_matches('#'), schema));
                schema
            }
        }
    }

    fn keyword(
        &mut self,
        index: usize,
        keyword: &str,
        value: &'a Value,
        place: &str,
        resource: &'a Value,
    ) -> Result<(), SchemaError> {
        match (keyword, value) {
            ("$ref" | "$dynamicRef" | "$recursiveRef", Value::String(text)) => {
                self.references.push(Reference {
                    node: index,
                    text,
                    resource,
                    dynamic: keyword != "$ref",
                });
            }
            ("allOf", Value::Array(_)) => {
                let targets = self.visit_all(value, place, resource)?;
                self.nodes[index].all.extend(targets);
            }
            ("anyOf" | "oneOf", Value::Array(_)) => {
                let targets = self.visit_all(value, place, resource)?;
                self.nodes[index].any.push(targets);
            }
            ("not" | "if" | "then" | "else", _) => {
                let target = self.visit(value, place, resource)?;
                self.nodes[index].beside.push(target);
            }
            ("dependentSchemas" | "dependencies", Value::Object(_)) => {
                let targets = self.visit_all(value, place, resource)?;
                self.nodes[index].beside.extend(targets);
            }
            ("properties", Value::Object(members)) => {
                for (name, member) in members {
                    let target = self.visit(member, &format!("{place}/{name}"), resource)?;
                    self.nodes[index].properties.insert(name.clone(), target);
                }
            }
            ("patternProperties", Value::Object(members)) => {
                self.patterns += members.len();
                let names = members.keys().filter(|it| pattern::backtracks(it));
                self.backtracking.names.extend(names.cloned());
                let targets = self.visit_all(value, place, resource)?;
                self.nodes[index].inner.extend(targets);
            }
            ("prefixItems" | "items", Value::Array(_)) => {
                let targets = self.visit_all(value, place, resource)?;
                self.nodes[index].inner.extend(targets);
            }
            (
                "items"
                | "additionalItems"
                | "additionalProperties"
                | "unevaluatedItems"
                | "unevaluatedProperties"
                | "contains"
                | "propertyNames",
                Value::Object(_) | Value::Bool(_),
            ) => {
                let target = self.visit(value, place, resource)?;
                self.nodes[index].inner.push(target);
            }
            ("$defs" | "definitions", Value::Object(_)) => {
                self.visit_all(value, place, resource)?;
            }
            ("pattern", Value::String(text)) => {
                self.patterns += 1;
                if pattern::backtracks(text) {
                    self.backtracking.values.push(text.clone());
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// Visits every schema that is a direct member of an array or object.
    fn visit_all(
        &mut self,
        value: &'a Value,
        place: &str,
        resource: &'a Value,
    ) -> Result<Vec<usize>, SchemaError> {
        match value {
            Value::Array(items) => {
                let items = items.iter().enumerate();
                items
                    .map(|(at, item)| self.visit(item, &format!("{place}/{at}"), resource))
                    .collect()
            }
            Value::Object(members) => {
                let members = members.iter();
                members
                    .map(|(name, member)| self.visit(member, &format!("{place}/{name}"), resource))
                    .collect()
            }
            _ => Ok(Vec::new()),
        }
    }

    /// Returns the possible targets of a reference, all inside the document.
    fn resolve(
        &self,
        document: &'a Value,
        reference: &Reference<'a>,
    ) -> Result<Vec<(&'a Value, String)>, SchemaError> {
        let refuse = |message: &str| {
            let text = clipped(reference.text, 100);
            Err(SchemaError::at(
                &self.nodes[reference.node].pointer,
                format!("`$ref` to {text:?}: {message}"),
            )
            .foreign())
        };
        let (identifier, fragment) = reference.text.split_once('#').unwrap_or((reference.text, ""));
        let resource = if identifier.is_empty() {
            Some(reference.resource)
        } else {
            let last = |text: &'a str| text.rsplit('/').next();
            let mut known = self.identifiers.iter();
            known.find(|(it, _)| last(it) == last(identifier)).map(|(_, schema)| *schema)
        };
        let Some(resource) = resource else {
            return refuse(
                "a schema outside this document is never fetched; put it into `$defs` and refer to that",
            );
        };
        let Some(fragment) = percent_decode(fragment) else {
            return refuse("its percent escapes can't be read");
        };
        let targets: Vec<_> = if fragment.is_empty() {
            let root = reference.dynamic.then_some(document);
            root.into_iter().chain([resource]).map(|target| (target, String::new())).collect()
        } else if fragment.starts_with('/') {
            resource.pointer(&fragment).map(|target| (target, fragment)).into_iter().collect()
        } else {
            let named = self.anchors.iter().filter(|(name, _)| *name == fragment);
            named.map(|(name, target)| (*target, (*name).to_owned())).collect()
        };
        if targets.is_empty() {
            refuse("the document has nothing at that place; define it or correct the `$ref`")
        } else {
            Ok(targets)
        }
    }
}

fn refuses_strings(schema: &Value) -> bool {
    let no_string = |values: &Vec<Value>| !values.iter().any(Value::is_string);
    let by_type = match schema.get("type") {
        Some(Value::String(name)) => name != "string",
        Some(Value::Array(names)) => !names.iter().any(|name| name == "string"),
        _ => false,
    };
    by_type
        || *schema == Value::Bool(false)
        || schema.get("const").is_some_and(|value| !value.is_string())
        || schema.get("enum").and_then(Value::as_array).is_some_and(no_string)
}

pub(super) fn percent_decode(text: &str) -> Option<String> {
    let mut bytes = text.bytes();
    let mut decoded = Vec::with_capacity(text.len());
    while let Some(byte) = bytes.next() {
        decoded.push(match byte {
            b'%' => {
                let mut digit = || char::from(bytes.next()?).to_digit(16);
                u8::try_from(digit()? * 16 + digit()?).ok()?
            }
            plain => plain,
        });
    }
    String::from_utf8(decoded).ok()
}
