//! JSON Schemas as types.

use std::collections::{BTreeMap, HashMap};

use serde_json::{Map, Value};

use super::{
    model::{Declaration, Field, Shape, Type},
    names::{Names, pascal, started},
};

/// Levels below which a type is not described any more.
const DEEPEST: usize = 48;
/// Schemas of one server that are read; a small schema can stand for very many types.
const MOST: usize = 100_000;

/// Reads schemas, and keeps the types that they declare.
#[derive(Debug)]
pub struct Builder {
    names: Names,
    declarations: Vec<Declaration>,
    /// Definitions of schemas by their texts: servers repeat them in every tool.
    known: HashMap<String, usize>,
    left: usize,
}

/// A schema of a tool.
#[derive(Debug)]
pub struct Root<'a> {
    pub schema: &'a Value,
    /// The part of the schema that is read.
    pub pointer: &'a str,
    pub name: &'a str,
    /// The documentation, if the schema has none.
    pub doc: &'a str,
}

/// Reads one schema.
struct Reader<'a> {
    builder: &'a mut Builder,
    root: &'a Value,
    /// The declarations of definitions that were read, by their pointers.
    pointers: HashMap<String, usize>,
    depth: usize,
}

impl Builder {
    pub fn new(names: Names) -> Self {
        Self { names, declarations: Vec::new(), known: HashMap::new(), left: MOST }
    }

    /// Reads a schema. Types that are no names themselves are declared, so that signatures stay short.
    pub fn root(&mut self, root: &Root<'_>) -> Type {
        let schema = root.schema.pointer(root.pointer).unwrap_or(&Value::Null);
        let mut reader =
            Reader { builder: self, root: root.schema, pointers: HashMap::new(), depth: 0 };
        let before = reader.builder.declarations.len();
        let kind = match refers_to(root.schema, root.pointer) {
            true => reader.definition(root.pointer, Some(root.name)),
            false => reader.read(schema, root.name),
        };
        let kind = if is_short(&kind) {
            kind
        } else {
            let index = self.reserve(root.name, root.doc.to_owned());
            self.declarations[index].shape = Shape::Alias(kind);
            Type::Named(index)
        };
        if let Type::Named(index) = kind
            && index >= before
            && self.declarations[index].doc.is_empty()
        {
            root.doc.clone_into(&mut self.declarations[index].doc);
        }
        kind
    }

    /// Declares an object.
    pub fn object(&mut self, name: &str, doc: String, fields: Vec<Field>) -> Type {
        let index = self.reserve(name, doc);
        self.declarations[index].shape = Shape::Object { fields, open: false };
        Type::Named(index)
    }

    pub fn declarations(&self) -> &[Declaration] {
        &self.declarations
    }

    /// Returns all declarations. An alias that stands for itself is replaced, since languages refuse it.
    pub fn finish(mut self) -> Vec<Declaration> {
        for index in 0..self.declarations.len() {
            if self.is_circular(index) {
                self.declarations[index].shape = Shape::Alias(Type::Any);
            }
        }
        self.declarations
    }

    /// Returns whether an alias leads to itself without an array or an object between.
    fn is_circular(&self, start: usize) -> bool {
        let mut seen = vec![false; self.declarations.len()];
        let mut open = vec![start];
        while let Some(index) = open.pop() {
            let Shape::Alias(kind) = &self.declarations[index].shape else { continue };
            let mut kinds = vec![kind];
            while let Some(kind) = kinds.pop() {
                match kind {
                    Type::Union(members) => kinds.extend(members),
                    Type::Named(it) if *it == start => return true,
                    Type::Named(it) if !seen[*it] => {
                        seen[*it] = true;
                        open.push(*it);
                    }
                    _ => (),
                }
            }
        }
        false
    }

    fn reserve(&mut self, name: &str, doc: String) -> usize {
        let name = self.names.claim(&started(name, "Type"));
        self.declarations.push(Declaration { name, doc, shape: Shape::Alias(Type::Any) });
        self.declarations.len() - 1
    }
}

impl Reader<'_> {
    fn read(&mut self, schema: &Value, name: &str) -> Type {
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
    fn definition(&mut self, pointer: &str, name: Option<&str>) -> Type {
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
            let kinds: Vec<_> = parts.iter().map(|it| self.read(it, name)).collect();
            return Shape::Alias(
                kinds.into_iter().find(|it| *it != Type::Any).unwrap_or(Type::Any),
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
                .map(|(index, it)| self.read(it, &variant(name, it, index, variants.len())))
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
            let kind = rest.map_or(Type::Any, |it| self.read(&it, &item));
            return Type::Array(Box::new(kind));
        }
        let kinds: Vec<_> = first
            .iter()
            .enumerate()
            .map(|(index, it)| self.read(it, &format!("{item}{}", index + 1)))
            .collect();
        let is_closed =
            rest == Some(Value::Bool(false)) || limit.is_some_and(|it| it <= first.len() as u64);
        let rest =
            (!is_closed).then(|| Box::new(rest.map_or(Type::Any, |it| self.read(&it, &item))));
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
            if fields.iter().all(|it| it.name != property) {
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
            .any(|it| schema.contains_key(*it))
    };
    let is_value = ["$ref", "const", "enum"].iter().any(|it| schema.contains_key(*it));
    let has_variants = schema.contains_key("anyOf") || schema.contains_key("oneOf");
    let has_properties =
        schema.get("properties").and_then(Value::as_object).is_some_and(|it| !it.is_empty());
    !is_value
        && (kind.is_some_and(|it| it == "object") || kind.is_none() && has_members())
        && (!has_variants || has_properties)
}

/// Returns the union of types: flat, without repetitions, and null at the end.
fn union(kinds: Vec<Type>) -> Type {
    let mut members: Vec<Type> = Vec::new();
    let mut values: Vec<Value> = Vec::new();
    let mut open: Vec<Type> = kinds.into_iter().rev().collect();
    while let Some(kind) = open.pop() {
        match kind {
            Type::Union(inner) => open.extend(inner.into_iter().rev()),
            Type::Any => return Type::Any,
            Type::Literal(inner) => {
                if values.is_empty() {
                    members.push(Type::Literal(Vec::new()));
                }
                for value in inner {
                    if !values.contains(&value) {
                        values.push(value);
                    }
                }
            }
            kind if members.contains(&kind) => (),
            kind => members.push(kind),
        }
    }
    if let Some(all) = members.iter_mut().find(|it| matches!(it, Type::Literal(_))) {
        *all = Type::Literal(values);
    }
    if let Some(null) = members.iter().position(|it| *it == Type::Null) {
        let null = members.remove(null);
        members.push(null);
    }
    match members.len() {
        0 => Type::Any,
        1 => members.remove(0),
        _ => Type::Union(members),
    }
}

/// Returns the type of the values of `enum` or `const`.
fn literals(values: &[Value]) -> Type {
    let kind = |value: &Value| match value {
        Value::Null => Type::Null,
        Value::String(_) | Value::Bool(_) => Type::Literal(vec![value.clone()]),
        Value::Number(it) if it.is_i64() || it.is_u64() => Type::Literal(vec![value.clone()]),
        Value::Number(_) => Type::Number,
        Value::Array(_) => Type::Array(Box::new(Type::Any)),
        Value::Object(_) => Type::Map(Box::new(Type::Any)),
    };
    union(values.iter().map(kind).collect())
}

/// Returns the name of a variant: after its title, its constant member, or its position.
fn variant(name: &str, schema: &Value, index: usize, count: usize) -> String {
    let constant = schema
        .get("properties")
        .and_then(Value::as_object)
        .and_then(|it| it.values().find_map(|it| it.get("const")?.as_str()));
    let title =
        schema.get("title").and_then(Value::as_str).filter(|_| schema.get("properties").is_some());
    let kinds = if count == 2 && index == 0 { String::new() } else { (index + 1).to_string() };
    match constant.or(title).map(pascal) {
        Some(own) if !own.is_empty() => format!("{name}{own}"),
        _ => format!("{name}{kinds}"),
    }
}

/// Returns one object schema for all parts of `allOf` and what stands beside them; `None` if a part is no object.
fn merged(
    root: &Value,
    schema: &Map<String, Value>,
    parts: &[Value],
) -> Option<Map<String, Value>> {
    let mut merged = schema.clone();
    merged.remove("allOf");
    let (mut properties, mut required) = (Map::new(), Vec::new());
    let mut open: Vec<(Value, usize)> = parts.iter().rev().map(|it| (it.clone(), 0)).collect();
    let mut left = 1_000_usize;
    let own = Value::Object(merged.clone());
    open.insert(0, (own, 0));
    while let Some((part, depth)) = open.pop() {
        left = left.checked_sub(1)?;
        let part = part.as_object()?;
        if depth > DEEPEST {
            return None;
        }
        if let Some(reference) = part.get("$ref") {
            let pointer = reference.as_str()?.strip_prefix('#')?;
            open.push((root.pointer(&unescaped(pointer))?.clone(), depth + 1));
        }
        let inner = part.get("allOf").and_then(Value::as_array);
        open.extend(inner.into_iter().flatten().rev().map(|it| (it.clone(), depth + 1)));
        if part.get("type").is_some_and(|it| it != "object")
            || ["anyOf", "oneOf", "enum", "const", "items"].iter().any(|it| part.contains_key(*it))
        {
            return None;
        }
        for (name, schema) in
            part.get("properties").and_then(Value::as_object).into_iter().flatten()
        {
            properties.insert(name.clone(), schema.clone());
        }
        required
            .extend(part.get("required").and_then(Value::as_array).into_iter().flatten().cloned());
        if let Some(description) = part.get("description")
            && !merged.contains_key("description")
        {
            merged.insert("description".to_owned(), description.clone());
        }
    }
    if properties.is_empty() {
        return None;
    }
    merged.remove("$ref");
    merged.insert("type".to_owned(), "object".into());
    merged.insert("properties".to_owned(), Value::Object(properties));
    merged.insert("required".to_owned(), Value::Array(required));
    Some(merged)
}

/// Returns the texts of a definition and of all that it refers to.
fn closure(root: &Value, pointer: &str) -> String {
    let mut texts = BTreeMap::new();
    let mut open = vec![pointer.to_owned()];
    while let Some(pointer) = open.pop() {
        if texts.contains_key(&pointer) {
            continue;
        }
        let Some(definition) = root.pointer(&pointer) else { continue };
        let mut values = vec![definition];
        while let Some(value) = values.pop() {
            match value {
                Value::Object(members) => {
                    let reference = members.get("$ref").and_then(Value::as_str);
                    if let Some(next) = reference.and_then(|it| it.strip_prefix('#')) {
                        open.push(unescaped(next));
                    }
                    values.extend(members.values());
                }
                Value::Array(items) => values.extend(items),
                _ => (),
            }
        }
        texts.insert(pointer, definition.to_string());
    }
    format!("{pointer} {texts:?}")
}

/// Returns whether a schema refers to the part of it at a pointer.
fn refers_to(root: &Value, pointer: &str) -> bool {
    let mut values = vec![root];
    while let Some(value) = values.pop() {
        match value {
            Value::Object(members) => {
                if members.get("$ref").and_then(Value::as_str).and_then(|it| it.strip_prefix('#'))
                    == Some(pointer)
                {
                    return true;
                }
                values.extend(members.values());
            }
            Value::Array(items) => values.extend(items),
            _ => (),
        }
    }
    false
}

/// Returns a JSON pointer of a fragment, in which characters may be percent-encoded.
fn unescaped(fragment: &str) -> String {
    let mut bytes = Vec::with_capacity(fragment.len());
    let mut rest = fragment.as_bytes();
    while let Some((&first, tail)) = rest.split_first() {
        let hex = tail.get(..2).and_then(|it| std::str::from_utf8(it).ok());
        let byte = hex.and_then(|it| u8::from_str_radix(it, 16).ok()).filter(|_| first == b'%');
        bytes.push(byte.unwrap_or(first));
        rest = if byte.is_some() { &tail[2..] } else { tail };
    }
    String::from_utf8(bytes).unwrap_or_else(|_| fragment.to_owned())
}

fn is_short(kind: &Type) -> bool {
    match kind {
        Type::Literal(_) | Type::Tuple(..) | Type::Union(_) => false,
        Type::Array(inner) | Type::Map(inner) => is_short(inner),
        _ => true,
    }
}

fn description(schema: &Map<String, Value>) -> String {
    schema.get("description").and_then(Value::as_str).unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(schema: &Value) -> (Type, Vec<Declaration>) {
        let mut builder = Builder::new(Names::of_types());
        let kind = builder.root(&Root { schema, pointer: "", name: "Root", doc: "The root." });
        (kind, builder.finish())
    }

    #[test]
    fn values_have_the_types_of_both_languages() {
        let union = |members: &[Type]| Type::Union(members.to_vec());
        for (schema, expected) in [
            (json!({ "type": "string" }), Type::String),
            (json!({ "type": ["integer", "null"] }), union(&[Type::Integer, Type::Null])),
            (json!({ "type": "string", "nullable": true }), union(&[Type::String, Type::Null])),
            (
                json!({ "enum": ["a", null, "a", 1] }),
                union(&[Type::Literal(vec![json!("a"), json!(1)]), Type::Null]),
            ),
            (json!({ "const": 1.5 }), Type::Number),
            (json!({ "type": "string", "anyOf": [{ "minLength": 1 }, {}] }), Type::String),
            (
                json!({ "anyOf": [{ "type": "null" }, { "type": "string" }] }),
                union(&[Type::String, Type::Null]),
            ),
            (json!({ "items": { "type": "number" } }), Type::Array(Box::new(Type::Number))),
            (json!({ "type": "object" }), Type::Map(Box::new(Type::Any))),
            (json!({ "$ref": "https://example.com" }), Type::Any),
            (json!({ "$ref": "#/$defs/gone" }), Type::Any),
            (json!(true), Type::Any),
        ] {
            let (kind, declarations) = read(&schema);
            let kind = match (&kind, declarations.first()) {
                (Type::Named(0), Some(Declaration { shape: Shape::Alias(kind), .. })) => {
                    kind.clone()
                }
                _ => kind,
            };
            assert_eq!(kind, expected, "{schema}");
        }
    }

    #[test]
    fn definitions_are_declared_once_and_may_refer_to_themselves() {
        let schema = json!({
            "type": "object",
            "properties": { "a": { "$ref": "#/$defs/node" }, "b": { "$ref": "#/$defs/node" } },
            "$defs": { "node": { "type": "object", "properties": { "next": { "$ref": "#/$defs/node" } } } },
        });
        let (_, declarations) = read(&schema);
        let names: Vec<_> = declarations.iter().map(|it| it.name.as_str()).collect();
        assert_eq!(names, ["Node", "Root"]);
        assert_eq!(declarations[1].doc, "The root.");
    }

    #[test]
    fn an_alias_of_itself_is_anything() {
        let schema = json!({
            "type": "object",
            "properties": { "a": { "$ref": "#/$defs/a" } },
            "$defs": { "a": { "anyOf": [{ "$ref": "#/$defs/b" }, { "type": "null" }] }, "b": { "$ref": "#/$defs/a" } },
        });
        let (_, declarations) = read(&schema);
        assert!(matches!(declarations[0].shape, Shape::Alias(Type::Any)), "{declarations:?}");
    }

    #[test]
    fn parts_of_all_of_are_one_object() {
        let schema = json!({
            "allOf": [
                { "$ref": "#/$defs/base" },
                { "properties": { "b": { "type": "integer" } }, "required": ["b"] },
            ],
            "$defs": { "base": { "type": "object", "properties": { "a": { "type": "string" } } } },
        });
        let (_, declarations) = read(&schema);
        let Shape::Object { fields, .. } = &declarations[0].shape else {
            panic!("{declarations:?}")
        };
        let fields: Vec<_> = fields.iter().map(|it| (it.name.as_str(), it.required)).collect();
        assert_eq!(fields, [("a", false), ("b", true)]);
    }

    #[test]
    fn a_schema_that_stands_for_very_many_types_is_bounded() {
        let mut definitions = Map::new();
        for level in 0..40 {
            let next = json!({ "$ref": format!("#/$defs/l{}", level + 1) });
            definitions.insert(format!("l{level}"), json!({ "allOf": [next, next] }));
        }
        definitions.insert("l40".into(), json!({ "properties": { "a": { "type": "string" } } }));
        let (kind, _) = read(&json!({ "$ref": "#/$defs/l0", "$defs": definitions }));
        assert!(matches!(kind, Type::Named(_) | Type::Any), "{kind:?}");
        let mut deep = json!({ "type": "string" });
        for _ in 0..1_000 {
            deep = json!({ "type": "array", "items": deep });
        }
        read(&deep);
    }
}
