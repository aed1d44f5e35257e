//! JSON Schemas as types.

mod all_of;
mod reader;
mod reference;
mod union;

use std::collections::HashMap;

use serde_json::Value;

pub use self::union::union;
use self::{reader::Reader, reference::refers_to};
use super::{
    model::{Declaration, Field, Shape, Type},
    names::{Names, started},
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

impl Builder {
    pub fn new(names: Names) -> Self {
        Self { names, declarations: Vec::new(), known: HashMap::new(), left: MOST }
    }

    /// Reads a schema. Types that are not names themselves are declared, so that signatures stay short.
    pub fn root(&mut self, root: &Root<'_>) -> Type {
        let schema = root.schema.pointer(root.pointer).unwrap_or(&Value::Null);
        let before = self.declarations.len();
        let mut reader = Reader::new(self, root.schema);
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

fn is_short(kind: &Type) -> bool {
    match kind {
        Type::Literal(_) | Type::Tuple(..) | Type::Union(_) => false,
        Type::Array(inner) | Type::Map(inner) => is_short(inner),
        _ => true,
    }
}

#[cfg(test)]
mod tests;
