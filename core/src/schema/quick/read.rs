//! Reads the schemas of a document for the quick check.

use std::{
    cmp::Ordering,
    collections::{BTreeMap, HashMap},
    ptr,
};

use jsonschema::Draft;
use serde_json::{Map, Value};

use super::{Keyword, Measured, TYPES, exact};
use crate::schema::{build::percent_decode, pattern::Pattern};

/// Keywords that are checked thoroughly only.
const THOROUGH: [&str; 17] = [
    "$dynamicRef",
    "$recursiveRef",
    "additionalItems",
    "contains",
    "contentEncoding",
    "contentMediaType",
    "contentSchema",
    "dependencies",
    "dependentRequired",
    "dependentSchemas",
    "if",
    "not",
    "patternProperties",
    "propertyNames",
    "unevaluatedItems",
    "unevaluatedProperties",
    "uniqueItems",
];
/// Returns the keywords of the document's schemas, the first of which is its root. `None` for a document with a keyword of
/// [`THOROUGH`], and for one that is not valid.
pub(super) fn schemas(
    document: &Value,
    draft: Draft,
    pattern_size: usize,
) -> Option<Vec<Vec<Keyword>>> {
    // Its numbers and bounds mean something else.
    if draft == Draft::Draft4 {
        return None;
    }
    let (found, indexes) = (Vec::new(), HashMap::new());
    let mut reader = Reader { document, draft, pattern_size, found, indexes };
    reader.index(document);
    let mut schemas = Vec::new();
    while let Some(&schema) = reader.found.get(schemas.len()) {
        schemas.push(reader.schema(schema)?);
    }
    Some(schemas)
}

/// Reads the schemas of a document.
struct Reader<'a> {
    document: &'a Value,
    draft: Draft,
    pattern_size: usize,
    found: Vec<&'a Value>,
    /// Indexes into `found`.
    indexes: HashMap<*const Value, usize>,
}

impl<'a> Reader<'a> {
    fn index(&mut self, schema: &'a Value) -> usize {
        *self.indexes.entry(ptr::from_ref(schema)).or_insert_with(|| {
            self.found.push(schema);
            self.found.len() - 1
        })
    }

    fn indexes(&mut self, schemas: &'a Value) -> Option<Vec<usize>> {
        Some(schemas.as_array()?.iter().map(|it| self.index(it)).collect())
    }

    fn schema(&mut self, schema: &'a Value) -> Option<Vec<Keyword>> {
        let members = match schema {
            Value::Bool(true) => return Some(Vec::new()),
            Value::Bool(false) => return Some(vec![Keyword::Never]),
            Value::Object(members) => members,
            _ => return None,
        };
        // Others are relative to another document, or of another dialect.
        let is_root = ptr::eq(schema, self.document);
        if !is_root && (members.contains_key("$id") || members.contains_key("$schema")) {
            return None;
        }
        if self.is_old() && members.contains_key("$ref") && members.len() > 1 {
            return None;
        }
        let mut keywords = Vec::new();
        for (name, value) in members {
            keywords.extend(self.keyword(name, value)?);
        }
        keywords.extend(self.properties(members)?);
        keywords.extend(self.items(members)?);
        Some(keywords)
    }

    /// Returns no keyword for an annotation, and for what [`Reader::properties`] and [`Reader::items`] read.
    #[expect(clippy::option_option, reason = "the outer one is the whole schema's")]
    fn keyword(&mut self, name: &str, value: &'a Value) -> Option<Option<Keyword>> {
        let bound = |accepts| Some(Keyword::Bound { limit: value.as_number()?.clone(), accepts });
        let size = |of, at_least| {
            let limit = usize::try_from(value.as_u64()?).ok()?;
            Some(Keyword::Size { of, at_least, limit })
        };
        let keyword = match name {
            "$ref" => Keyword::All(vec![self.target(value.as_str()?)?]),
            "allOf" => Keyword::All(self.indexes(value)?),
            "anyOf" => Keyword::Any(self.indexes(value)?),
            "oneOf" => Keyword::One(self.indexes(value)?),
            "type" => Keyword::Types(types(value)?),
            "enum" => Keyword::Values(value.as_array()?.clone()),
            "const" => Keyword::Values(vec![value.clone()]),
            "minimum" => bound(Ordering::is_ge)?,
            "exclusiveMinimum" => bound(Ordering::is_gt)?,
            "maximum" => bound(Ordering::is_le)?,
            "exclusiveMaximum" => bound(Ordering::is_lt)?,
            "multipleOf" => Keyword::MultipleOf(exact(value.as_number()?).filter(|it| *it > 0)?),
            "minLength" => size(Measured::Text, true)?,
            "maxLength" => size(Measured::Text, false)?,
            "minItems" => size(Measured::Items, true)?,
            "maxItems" => size(Measured::Items, false)?,
            "minProperties" => size(Measured::Members, true)?,
            "maxProperties" => size(Measured::Members, false)?,
            "pattern" => Keyword::Pattern(Pattern::compile(value.as_str()?, self.pattern_size)?),
            "required" => {
                let names = value.as_array()?.iter().map(|it| it.as_str().map(str::to_owned));
                Keyword::Required(names.collect::<Option<_>>()?)
            }
            // Before 2019-09, an assertion.
            "format" if self.is_old() => return None,
            name if THOROUGH.contains(&name) => return None,
            _ => return Some(None),
        };
        Some(Some(keyword))
    }

    #[expect(clippy::option_option, reason = "the outer one is the whole schema's")]
    fn properties(&mut self, members: &'a Map<String, Value>) -> Option<Option<Keyword>> {
        let mut properties = BTreeMap::new();
        if let Some(value) = members.get("properties") {
            let named = value.as_object()?.iter();
            properties.extend(named.map(|(name, it)| (name.clone(), self.index(it))));
        }
        let others = members.get("additionalProperties").map(|it| self.index(it));
        let is_empty = properties.is_empty() && others.is_none();
        Some((!is_empty).then_some(Keyword::Members { properties, others }))
    }

    #[expect(clippy::option_option, reason = "the outer one is the whole schema's")]
    fn items(&mut self, members: &'a Map<String, Value>) -> Option<Option<Keyword>> {
        let first = match members.get("prefixItems") {
            None => Vec::new(),
            Some(items) if self.draft == Draft::Draft202012 => self.indexes(items)?,
            Some(_) => return None,
        };
        let others = members.get("items").map(|it| self.index(it));
        let is_empty = first.is_empty() && others.is_none();
        Some((!is_empty).then_some(Keyword::Items { first, others }))
    }

    fn target(&mut self, reference: &str) -> Option<usize> {
        let pointer = percent_decode(reference.strip_prefix('#')?)?;
        // References inside of a schema with an id of its own are relative to that schema.
        for (end, _) in pointer.match_indices('/').filter(|(end, _)| *end > 0) {
            if self.document.pointer(&pointer[..end])?.get("$id").is_some() {
                return None;
            }
        }
        Some(self.index(self.document.pointer(&pointer)?))
    }

    /// Returns `true` before 2019-09.
    fn is_old(&self) -> bool {
        !matches!(self.draft, Draft::Draft202012 | Draft::Draft201909)
    }
}

fn types(value: &Value) -> Option<u8> {
    let bit = |it: &Value| TYPES.iter().find(|(name, _)| it == name).map(|(_, bit)| *bit);
    match value {
        Value::Array(names) => names.iter().try_fold(0, |bits, it| Some(bits | bit(it)?)),
        _ => bit(value),
    }
}
