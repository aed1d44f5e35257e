//! The reading of one schema, from its root into its parts.

use std::collections::HashMap;

use serde_json::{Map, Value};

use super::{
    Builder, DEEPEST,
    all_of::merged,
    reference::{closure, unescaped},
    union::{literals, union},
};
use crate::types::{
    model::{Field, Shape, Type},
    names::pascal,
};

/// Reads one schema.
pub struct Reader<'a> {
    builder: &'a mut Builder,
    root: &'a Value,
    /// The declarations of definitions that were read, by their pointers.
    pointers: HashMap<String, usize>,
    depth: usize,
}

impl<'a> Reader<'a> {
    pub fn new(builder: &'a mut Builder, root: &'a Value) -> Self {
        Self { builder, root, pointers: HashMap::new(), depth: 0 }
    }

    pub fn read(&mut self, schema: &Value, name: &str) -> Type {
        let Value::Object(schema) = schema else { return Type::Any };
        if self.depth >= DEEPEST || self.builder.left == 0 {
            return Type::Any;
        }
        self.builder.left -= 1;
        self.depth += 1;
        let kind = match self.shape(schema, name) {
            Shape::Alias(kind) => kind,
            Shape::Object { fields, open } => {
                let index = self.builder.reserve(name, description(schema));
                self.builder.declarations[index].shape = Shape::Object { fields, open };
                Type::Named(index)
            }
        };
        self.depth -= 1;
        match schema.get("nullable") == Some(&Value::Bool(true)) {
            true => union(vec![kind, Type::Null]),
            false => kind,
        }
    }

    /// Reads the definition that a pointer names, once.
    pub fn definition(&mut self, pointer: &str, name: Option<&str>) -> Type {
        if let Some(index) = self.pointers.get(pointer) {
            return Type::Named(*index);
        }
        let Some(Value::Object(schema)) = self.root.pointer(pointer) else { return Type::Any };
        if self.depth >= DEEPEST || self.builder.left == 0 {
            return Type::Any;
        }
        let last = pointer.rsplit('/').next().unwrap_or_default();
        let key = format!("{}{}", name.unwrap_or_default(), closure(self.root, pointer));
        if let Some(index) = self.builder.known.get(&key) {
            self.pointers.insert(pointer.to_owned(), *index);
            return Type::Named(*index);
        }
        let wanted = name.map_or_else(|| pascal(last), str::to_owned);
        let index = self.builder.reserve(&wanted, description(schema));
        self.builder.known.insert(key, index);
        self.pointers.insert(pointer.to_owned(), index);
        self.builder.left -= 1;
        self.depth += 1;
        let name = self.builder.declarations[index].name.clone();
        let schema = schema.clone();
        let shape = self.shape(&schema, &name);
        self.depth -= 1;
        self.builder.declarations[index].shape = shape;
        Type::Named(index)
    }

    fn shape(&mut self, schema: &Map<String, Value>, name: &str) -> Shape {
        if let Some(parts) = schema.get("allOf").and_then(Value::as_array) {
            if let Some(merged) = merged(self.root, schema, parts) {
                return self.shape(&merged, name);
            }
            let kinds: Vec<_> = parts.iter().map(|part| self.read(part, name)).collect();
            return Shape::Alias(
                kinds.into_iter().find(|kind| *kind != Type::Any).unwrap_or(Type::Any),
            );
        }
        if is_object(schema) {
            return self.object(schema, name);
        }
        Shape::Alias(self.value(schema, name))
    }

    fn value(&mut self, schema: &Map<String, Value>, name: &str) -> Type {
        if let Some(reference) = schema.get("$ref").and_then(Value::as_str) {
            return match reference.strip_prefix('#') {
                Some(pointer) if pointer.is_empty() || pointer.starts_with('/') => {
                    self.definition(&unescaped(pointer), None)
                }
                // References are never fetched.
                _ => Type::Any,
            };
        }
        if let Some(value) = schema.get("const") {
            return literals(std::slice::from_ref(value));
        }
        if let Some(values) = schema.get("enum").and_then(Value::as_array) {
            return literals(values);
        }
        let variants =
            schema.get("anyOf").or_else(|| schema.get("oneOf")).and_then(Value::as_array);
        if let Some(variants) = variants {
            let kinds: Vec<_> = variants
                .iter()
                .enumerate()
                .map(|(index, schema)| {
                    self.read(schema, &variant(name, schema, index, variants.len()))
                })
                .collect();
            let kind = union(kinds);
            // Variants without types refine the type beside them.
            if kind != Type::Any {
                return kind;
            }
        }
        match schema.get("type") {
            Some(Value::String(kind)) => self.typed(kind, schema, name),
            Some(Value::Array(kinds)) => {
                let kinds = kinds.iter().filter_map(Value::as_str);
                let mut all = Vec::new();
                for kind in kinds {
                    let mut one = schema.clone();
                    one.insert("type".to_owned(), kind.into());
                    one.remove("anyOf");
                    one.remove("oneOf");
                    all.push(self.read(&Value::Object(one), name));
                }
                union(all)
            }
            _ if schema.contains_key("items") || schema.contains_key("prefixItems") => {
                self.typed("array", schema, name)
            }
            _ => Type::Any,
        }
    }

    fn typed(&mut self, kind: &str, schema: &Map<String, Value>, name: &str) -> Type {
        match kind {
            "string" => Type::String,
            "integer" => Type::Integer,
            "number" => Type::Number,
            "boolean" => Type::Boolean,
            "null" => Type::Null,
            "array" => self.array(schema, name),
            _ => Type::Any,
        }
    }

    fn array(&mut self, schema: &Map<String, Value>, name: &str) -> Type {
        let item = format!("{name}Item");
        let first = match (schema.get("prefixItems"), schema.get("items")) {
            (Some(Value::Array(first)), _) | (None, Some(Value::Array(first))) => first.clone(),
            _ => Vec::new(),
        };
        let rest = match schema.get("items") {
            Some(Value::Array(_)) => schema.get("additionalItems"),
            rest => rest,
        };
        let rest = rest.cloned();
        let limit = schema.get("maxItems").and_then(Value::as_u64);
        if first.is_empty() {
            let kind = rest.map_or(Type::Any, |rest| self.read(&rest, &item));
            return Type::Array(Box::new(kind));
        }
        let kinds: Vec<_> = first
            .iter()
            .enumerate()
            .map(|(index, schema)| self.read(schema, &format!("{item}{}", index + 1)))
            .collect();
        let is_closed = rest == Some(Value::Bool(false))
            || limit.is_some_and(|limit| limit <= first.len() as u64);
        let rest =
            (!is_closed).then(|| Box::new(rest.map_or(Type::Any, |rest| self.read(&rest, &item))));
        Type::Tuple(kinds, rest)
    }

    fn object(&mut self, schema: &Map<String, Value>, name: &str) -> Shape {
        let empty = Map::new();
        let properties = schema.get("properties").and_then(Value::as_object).unwrap_or(&empty);
        let required: Vec<_> = schema
            .get("required")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .collect();
        let additional = schema.get("additionalProperties");
        if properties.is_empty() && required.is_empty() {
            let patterns = schema.get("patternProperties").and_then(Value::as_object);
            let kind = match (additional, patterns) {
                (Some(value @ Value::Object(_)), _) => {
                    self.read(&value.clone(), &format!("{name}Value"))
                }
                (Some(Value::Bool(false)), Some(patterns)) if patterns.len() == 1 => {
                    let value = patterns.values().next().cloned().unwrap_or_default();
                    self.read(&value, &format!("{name}Value"))
                }
                (Some(Value::Bool(false)), None) => {
                    return Shape::Object { fields: Vec::new(), open: false };
                }
                _ => Type::Any,
            };
            return Shape::Alias(Type::Map(Box::new(kind)));
        }
        let mut fields = Vec::with_capacity(properties.len());
        for (property, schema) in properties {
            let kind = self.read(schema, &format!("{name}{}", pascal(property)));
            fields.push(Field {
                name: property.clone(),
                required: required.contains(&property.as_str()),
                doc: schema.as_object().map(description).unwrap_or_default(),
                kind,
            });
        }
        for property in required {
            if fields.iter().all(|field| field.name != property) {
                let (name, doc) = (property.to_owned(), String::new());
                fields.push(Field { name, required: true, doc, kind: Type::Any });
            }
        }
        let open = matches!(additional, Some(Value::Bool(true) | Value::Object(_)));
        Shape::Object { fields, open }
    }
}

fn is_object(schema: &Map<String, Value>) -> bool {
    let kind = schema.get("type");
    let has_members = || {
        ["properties", "additionalProperties", "patternProperties"]
            .iter()
            .any(|keyword| schema.contains_key(*keyword))
    };
    let is_value = ["$ref", "const", "enum"].iter().any(|keyword| schema.contains_key(*keyword));
    let has_variants = schema.contains_key("anyOf") || schema.contains_key("oneOf");
    let has_properties = schema
        .get("properties")
        .and_then(Value::as_object)
        .is_some_and(|properties| !properties.is_empty());
    !is_value
        && (kind.is_some_and(|kind| kind == "object") || kind.is_none() && has_members())
        && (!has_variants || has_properties)
}

/// Returns the name of a variant: after its title, its constant member, or its position.
fn variant(name: &str, schema: &Value, index: usize, count: usize) -> String {
    let constant = schema.get("properties").and_then(Value::as_object).and_then(|properties| {
        properties.values().find_map(|property| property.get("const")?.as_str())
    });
    let title =
        schema.get("title").and_then(Value::as_str).filter(|_| schema.get("properties").is_some());
    let kinds = if count == 2 && index == 0 { String::new() } else { (index + 1).to_string() };
    match constant.or(title).map(pascal) {
        Some(own) if !own.is_empty() => format!("{name}{own}"),
        _ => format!("{name}{kinds}"),
    }
}

fn description(schema: &Map<String, Value>) -> String {
    schema.get("description").and_then(Value::as_str).unwrap_or_default().to_owned()
}
