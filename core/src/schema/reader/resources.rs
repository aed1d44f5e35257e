//! The names of a document's schemas: URIs, anchors, and JSON pointers.

use std::collections::HashMap;

use serde_json::{Map, Value};

use super::{escaped, shown};
use crate::schema::{SchemaError, dialect::Dialect, uri};

const MISSING: &str = "the document has nothing at that place; define it or correct the reference";

/// The schemas with a URI of their own. The first is the document.
pub(super) struct Resources<'a> {
    all: Vec<Resource<'a>>,
    by_uri: HashMap<String, usize>,
    by_address: HashMap<*const Value, usize>,
}

struct Resource<'a> {
    uri: String,
    dialect: Dialect,
    root: &'a Value,
    /// The JSON pointer of the root in the document.
    pointer: String,
    anchors: HashMap<&'a str, &'a Value>,
    dynamic_anchors: HashMap<&'a str, &'a Value>,
}

/// A schema that a reference leads to.
pub(super) struct Target<'a> {
    pub(super) schema: &'a Value,
    pub(super) pointer: String,
    pub(super) resource: usize,
    /// The `$dynamicAnchor` by which it was found.
    pub(super) dynamic_anchor: Option<String>,
    /// `true` if its resource has a `$recursiveAnchor`.
    pub(super) is_recursive: bool,
}

impl<'a> Resources<'a> {
    pub(super) fn new(document: &'a Value, dialect: Dialect) -> Self {
        let root = Resource::new(String::new(), dialect, document, String::new());
        Self {
            all: vec![root],
            by_uri: HashMap::from([(String::new(), 0)]),
            by_address: HashMap::from([(std::ptr::from_ref(document), 0)]),
        }
    }

    pub(super) fn dialect(&self, resource: usize) -> Dialect {
        self.all[resource].dialect
    }

    /// Records the names of a schema. Returns the resource that it belongs to: its own if it has a URI, else the one around it.
    pub(super) fn identify(
        &mut self,
        schema: &'a Value,
        members: &'a Map<String, Value>,
        outer: usize,
        dialect: Option<Dialect>,
        pointer: &str,
    ) -> Result<usize, SchemaError> {
        let text = |keyword: &str| match members.get(keyword) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text.as_str())),
            Some(other) => {
                let place = format!("{pointer}/{}", escaped(keyword));
                let message = format!("must be a string, not {}", shown(other));
                Err(SchemaError::at(&place, message))
            }
        };
        let mut resource = outer;
        let mut anchors = Vec::new();
        let within = dialect.unwrap_or_else(|| self.dialect(outer));
        if let Some(identifier) = text(within.identifier())? {
            match identifier.strip_prefix('#') {
                // Before 2019-09, an anchor.
                Some(anchor) if within.ignores_siblings() => anchors.push(anchor),
                Some(_) => {}
                None => {
                    let uri = uri::resolve(&self.all[outer].uri, without_fragment(identifier));
                    resource = self.add(uri, within, schema, pointer);
                }
            }
        }
        if !within.ignores_siblings() {
            anchors.extend(text("$anchor")?);
        }
        if within == Dialect::Draft2020
            && let Some(anchor) = text("$dynamicAnchor")?
        {
            anchors.push(anchor);
            self.all[resource].dynamic_anchors.insert(anchor, schema);
        }
        self.all[resource].anchors.extend(anchors.into_iter().map(|anchor| (anchor, schema)));
        Ok(resource)
    }

    /// Finds the target of a reference in a schema of this resource. Errors with the reason why there is none.
    pub(super) fn resolve(&self, text: &str, from: usize) -> Result<Target<'a>, &'static str> {
        let (identifier, fragment) = text.split_once('#').unwrap_or((text, ""));
        let resource = if identifier.is_empty() {
            from
        } else {
            let uri = uri::resolve(&self.all[from].uri, identifier);
            *self.by_uri.get(&uri).ok_or(
                "a schema outside this document is never fetched; put it into `$defs` and refer to that",
            )?
        };
        let fragment = percent_decode(fragment).ok_or("its percent escapes can't be read")?;
        if fragment.is_empty() || fragment.starts_with('/') {
            return self.at_pointer(resource, &fragment).ok_or(MISSING);
        }
        let Resource { anchors, dynamic_anchors, .. } = &self.all[resource];
        let schema = *anchors.get(fragment.as_str()).ok_or(MISSING)?;
        let is_dynamic = dynamic_anchors.get(fragment.as_str()).is_some();
        Ok(Target {
            schema,
            pointer: format!("{}/{fragment}", self.all[resource].pointer),
            resource,
            dynamic_anchor: is_dynamic.then_some(fragment),
            is_recursive: false,
        })
    }

    /// Returns the schemas with a `$dynamicAnchor` or `$recursiveAnchor`, by name and resource, as indexes of `seen`.
    pub(super) fn dynamic_anchors(
        &self,
        seen: &HashMap<*const Value, usize>,
    ) -> HashMap<String, HashMap<usize, usize>> {
        let mut found: HashMap<String, HashMap<usize, usize>> = HashMap::new();
        for (at, resource) in self.all.iter().enumerate() {
            let recursive = resource.is_recursive().then_some(("", resource.root));
            let named = resource.dynamic_anchors.iter().map(|(name, schema)| (*name, *schema));
            for (name, schema) in named.chain(recursive) {
                if let Some(&index) = seen.get(&std::ptr::from_ref(schema)) {
                    found.entry(name.to_owned()).or_default().insert(at, index);
                }
            }
        }
        found
    }

    fn add(&mut self, uri: String, dialect: Dialect, root: &'a Value, pointer: &str) -> usize {
        let known = self.by_address.get(&std::ptr::from_ref(root)).copied();
        let index = known.unwrap_or(self.all.len());
        let resource = Resource::new(uri.clone(), dialect, root, pointer.to_owned());
        match known {
            // The document's own.
            Some(index) => self.all[index] = resource,
            None => self.all.push(resource),
        }
        self.by_address.insert(std::ptr::from_ref(root), index);
        self.by_uri.entry(uri).or_insert(index);
        index
    }

    /// Follows a JSON pointer, which may lead into other resources.
    fn at_pointer(&self, mut resource: usize, pointer: &str) -> Option<Target<'a>> {
        let mut schema = self.all[resource].root;
        for segment in pointer.split('/').skip(1) {
            let name = segment.replace("~1", "/").replace("~0", "~");
            schema = match schema {
                Value::Object(members) => members.get(&name)?,
                Value::Array(items) => items.get(name.parse::<usize>().ok()?)?,
                _ => return None,
            };
            if let Some(&inner) = self.by_address.get(&std::ptr::from_ref(schema)) {
                resource = inner;
            }
        }
        Some(Target {
            schema,
            pointer: pointer.to_owned(),
            resource,
            dynamic_anchor: None,
            is_recursive: pointer.is_empty() && self.all[resource].is_recursive(),
        })
    }
}

impl<'a> Resource<'a> {
    fn new(uri: String, dialect: Dialect, root: &'a Value, pointer: String) -> Self {
        let (anchors, dynamic_anchors) = (HashMap::new(), HashMap::new());
        Self { uri, dialect, root, pointer, anchors, dynamic_anchors }
    }

    fn is_recursive(&self) -> bool {
        self.dialect == Dialect::Draft2019
            && self.root.get("$recursiveAnchor") == Some(&Value::Bool(true))
    }
}

fn without_fragment(uri: &str) -> &str {
    uri.split_once('#').map_or(uri, |(uri, _)| uri)
}

fn percent_decode(text: &str) -> Option<String> {
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
