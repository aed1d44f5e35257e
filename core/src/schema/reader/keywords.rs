//! Reads the keywords of one schema.

use std::collections::HashMap;

use serde_json::{Map, Number, Value};

use super::{Reader, escaped};
use crate::schema::{
    SchemaError,
    dialect::Dialect::{self, Draft4, Draft6, Draft7, Draft2019, Draft2020},
    explain::clipped,
    instance::Instance,
    keyword::{Bound, Keyword, Measure, Properties, Types},
    value_set::Allowed,
};

/// The schemas inside the keywords of a schema.
pub(super) type Inside<'a> = HashMap<&'a str, Subschemas>;

pub(super) enum Subschemas {
    One(usize),
    List(Vec<usize>),
    Named(Vec<(String, usize)>),
}

/// The form in which a keyword holds schemas.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Shape {
    One,
    List,
    OneOrList,
    Named,
    /// `dependencies`, whose members are schemas or arrays of names.
    NamedOrNames,
}

/// The keywords that hold schemas, with the first and the last dialect that have them.
const HOLDING: [(&str, Shape, Dialect, Dialect); 22] = [
    ("$defs", Shape::Named, Draft2019, Draft2020),
    ("additionalItems", Shape::One, Draft4, Draft2019),
    ("additionalProperties", Shape::One, Draft4, Draft2020),
    ("allOf", Shape::List, Draft4, Draft2020),
    ("anyOf", Shape::List, Draft4, Draft2020),
    ("contains", Shape::One, Draft6, Draft2020),
    ("definitions", Shape::Named, Draft4, Draft2020),
    // Later dialects advise against it, and their validators still know it.
    ("dependencies", Shape::NamedOrNames, Draft4, Draft2020),
    ("dependentSchemas", Shape::Named, Draft2019, Draft2020),
    ("else", Shape::One, Draft7, Draft2020),
    ("if", Shape::One, Draft7, Draft2020),
    ("items", Shape::OneOrList, Draft4, Draft2019),
    ("items", Shape::One, Draft2020, Draft2020),
    ("not", Shape::One, Draft4, Draft2020),
    ("oneOf", Shape::List, Draft4, Draft2020),
    ("patternProperties", Shape::Named, Draft4, Draft2020),
    ("prefixItems", Shape::List, Draft2020, Draft2020),
    ("properties", Shape::Named, Draft4, Draft2020),
    ("propertyNames", Shape::One, Draft6, Draft2020),
    ("then", Shape::One, Draft7, Draft2020),
    ("unevaluatedItems", Shape::One, Draft2019, Draft2020),
    ("unevaluatedProperties", Shape::One, Draft2019, Draft2020),
];

/// Annotations that are strings, or booleans.
const STRINGS: [&str; 4] = ["$comment", "description", "format", "title"];
const BOOLEANS: [&str; 3] = ["deprecated", "readOnly", "writeOnly"];

/// Returns the form in which a keyword holds schemas; `None` for one that holds none.
pub(super) fn shape(keyword: &str, dialect: Dialect) -> Option<Shape> {
    let mut named = HOLDING.iter().filter(|(known, ..)| *known == keyword);
    let found = named.find(|(_, _, first, last)| (*first..=*last).contains(&dialect));
    found.map(|(_, shape, ..)| *shape)
}

impl Shape {
    pub(super) fn may_be_one(self) -> bool {
        matches!(self, Self::One | Self::OneOrList)
    }

    pub(super) fn may_be_list(self) -> bool {
        matches!(self, Self::List | Self::OneOrList)
    }

    pub(super) fn is_named(self) -> bool {
        matches!(self, Self::Named | Self::NamedOrNames)
    }

    pub(super) fn may_be_names(self) -> bool {
        self == Self::NamedOrNames
    }

    pub(super) fn describe(self) -> &'static str {
        match self {
            Self::One => "a schema: an object or a boolean",
            Self::List => "an array of schemas",
            Self::OneOrList => "a schema or an array of schemas",
            Self::Named => "an object of schemas",
            Self::NamedOrNames => "an object of schemas and arrays of names",
        }
    }
}

impl<'a> Reader<'a> {
    /// Adds the keywords of a schema, in the order of the document. Those that depend on others come last.
    pub(super) fn keywords(
        &mut self,
        node: usize,
        members: &'a Map<String, Value>,
        inside: &Inside<'a>,
    ) -> Result<(), SchemaError> {
        let dialect = self.resources.dialect(self.schemas.nodes[node].resource);
        for (name, value) in members {
            match shape(name, dialect) {
                Some(_) => self.applicator(node, name, members, inside, dialect)?,
                None => self.assertion(node, name, value, members, dialect)?,
            }
        }
        if let Some(schema) = one(inside, "unevaluatedItems") {
            self.add(node, Keyword::UnevaluatedItems(schema));
        }
        if let Some(schema) = one(inside, "unevaluatedProperties") {
            self.add(node, Keyword::UnevaluatedMembers(schema));
        }
        Ok(())
    }

    /// Adds a keyword with schemas. Several that belong together are added where the first of them stands.
    fn applicator(
        &mut self,
        node: usize,
        name: &str,
        members: &'a Map<String, Value>,
        inside: &Inside<'a>,
        dialect: Dialect,
    ) -> Result<(), SchemaError> {
        let is_first_of = |keywords: &[&str]| {
            members
                .keys()
                .find(|member| keywords.contains(&member.as_str()))
                .is_some_and(|first| first == name)
        };
        let keyword = match (name, &inside[name]) {
            ("allOf" | "anyOf" | "oneOf", Subschemas::List(schemas)) if schemas.is_empty() => {
                return Err(self.wrong(
                    node,
                    name,
                    "an array of at least one schema",
                    &members[name],
                ));
            }
            ("allOf", Subschemas::List(schemas)) => Keyword::All(schemas.clone()),
            ("anyOf", Subschemas::List(schemas)) => Keyword::Any(schemas.clone()),
            ("oneOf", Subschemas::List(schemas)) => Keyword::One(schemas.clone()),
            ("not", &Subschemas::One(schema)) => {
                Keyword::Not { schema, text: clipped(&members[name].to_string(), 100) }
            }
            ("if", &Subschemas::One(condition)) => {
                Keyword::If { condition, then: one(inside, "then"), otherwise: one(inside, "else") }
            }
            ("propertyNames", &Subschemas::One(schema)) => Keyword::PropertyNames(schema),
            ("contains", &Subschemas::One(schema)) => {
                self.contains(node, members, schema, dialect)?
            }
            ("dependentSchemas", Subschemas::Named(schemas)) => {
                Keyword::DependentSchemas(schemas.clone())
            }
            ("dependencies", Subschemas::Named(schemas)) => {
                self.add(node, Keyword::DependentSchemas(schemas.clone()));
                let names = members[name].as_object().into_iter().flatten();
                self.dependent(node, name, names.filter(|(_, needed)| needed.is_array()))?
            }
            ("properties" | "patternProperties" | "additionalProperties", _)
                if is_first_of(&["properties", "patternProperties", "additionalProperties"]) =>
            {
                self.members(node, members, inside)?
            }
            ("items" | "prefixItems", _) if is_first_of(&["items", "prefixItems"]) => {
                match (inside.get("prefixItems"), inside.get("items")) {
                    (Some(Subschemas::List(first)), _) => {
                        Keyword::Items { first: first.clone(), others: one(inside, "items") }
                    }
                    (_, Some(Subschemas::List(first))) => Keyword::Items {
                        first: first.clone(),
                        others: one(inside, "additionalItems"),
                    },
                    _ => Keyword::Items { first: Vec::new(), others: one(inside, "items") },
                }
            }
            _ => return Ok(()),
        };
        self.add(node, keyword);
        Ok(())
    }

    /// Adds a keyword without schemas. Those that no dialect or only a later one has are ignored.
    fn assertion(
        &mut self,
        node: usize,
        name: &'a str,
        value: &'a Value,
        members: &'a Map<String, Value>,
        dialect: Dialect,
    ) -> Result<(), SchemaError> {
        let keyword = match name {
            "$ref" => return self.reference(node, "$ref", value),
            "$dynamicRef" if dialect >= Draft2020 => {
                return self.reference(node, "$dynamicRef", value);
            }
            "$recursiveRef" if dialect == Draft2019 => {
                return self.reference(node, "$recursiveRef", value);
            }
            "type" => Keyword::Types(self.types(node, value, dialect)?),
            "enum" => {
                let values = value.as_array();
                let values = values.ok_or_else(|| self.wrong(node, name, "an array", value))?;
                Keyword::Values(Allowed::new(values.iter().map(owned).collect()))
            }
            "const" if dialect >= Draft6 => Keyword::Const(owned(value)),
            "minimum" | "maximum" | "exclusiveMinimum" | "exclusiveMaximum" => {
                let Some((limit, bound)) = self.bound(node, name, value, members, dialect)? else {
                    return Ok(());
                };
                Keyword::Bound { limit, bound }
            }
            "multipleOf" => {
                let divisor = value
                    .as_number()
                    .filter(|divisor| Bound::MoreThan.accepts(divisor, &Number::from(0)));
                let divisor =
                    divisor.ok_or_else(|| self.wrong(node, name, "a number above 0", value))?;
                Keyword::MultipleOf(divisor.clone())
            }
            "minLength" | "maxLength" => self.size(node, name, value, Measure::Characters)?,
            "minItems" | "maxItems" => self.size(node, name, value, Measure::Items)?,
            "minProperties" | "maxProperties" => self.size(node, name, value, Measure::Members)?,
            "uniqueItems" => match value.as_bool() {
                Some(true) => Keyword::UniqueItems,
                Some(false) => return Ok(()),
                None => return Err(self.wrong(node, name, "a boolean", value)),
            },
            "pattern" => {
                let text = self.text(node, name, value)?;
                let place = format!("{}/pattern", self.schemas.nodes[node].pointer);
                Keyword::Pattern(self.pattern(text, &place)?)
            }
            "required" => Keyword::Required(self.names(node, name, value)?),
            "dependentRequired" if dialect >= Draft2019 => {
                let dependent = value.as_object();
                let dependent = dependent
                    .ok_or_else(|| self.wrong(node, name, "an object of arrays of names", value))?;
                self.dependent(node, name, dependent.iter())?
            }
            _ => {
                let expected = match name {
                    name if STRINGS.contains(&name) && !value.is_string() => "a string",
                    name if BOOLEANS.contains(&name) && !value.is_boolean() => "a boolean",
                    "examples" if !value.is_array() => "an array",
                    _ => return Ok(()),
                };
                return Err(self.wrong(node, name, expected, value));
            }
        };
        self.add(node, keyword);
        Ok(())
    }

    fn types(&self, node: usize, value: &Value, dialect: Dialect) -> Result<Types, SchemaError> {
        let names = match value {
            Value::Array(names) if !names.is_empty() => names.as_slice(),
            one => std::slice::from_ref(one),
        };
        let types = names.iter().try_fold(Types::NONE, |types, name| types.with(name.as_str()?));
        let types = types.ok_or_else(|| {
            let known: Vec<_> = Types::known_names().collect();
            let expected = format!("one or an array of {}", known.join(", "));
            self.wrong(node, "type", &expected, value)
        })?;
        Ok(if dialect == Draft4 { types.of_draft_4() } else { types })
    }

    /// Returns `None` for the exclusive keywords of draft-04, which change what `minimum` and `maximum` mean.
    fn bound(
        &self,
        node: usize,
        name: &str,
        value: &Value,
        members: &Map<String, Value>,
        dialect: Dialect,
    ) -> Result<Option<(Number, Bound)>, SchemaError> {
        let is_exclusive =
            |keyword: &str| dialect == Draft4 && members.get(keyword) == Some(&Value::Bool(true));
        let bound = match name {
            "minimum" if is_exclusive("exclusiveMinimum") => Bound::MoreThan,
            "minimum" => Bound::AtLeast,
            "maximum" if is_exclusive("exclusiveMaximum") => Bound::LessThan,
            "maximum" => Bound::AtMost,
            _ if dialect == Draft4 => {
                return match value {
                    Value::Bool(_) => Ok(None),
                    other => Err(self.wrong(node, name, "a boolean, as in draft-04", other)),
                };
            }
            "exclusiveMinimum" => Bound::MoreThan,
            _ => Bound::LessThan,
        };
        match value {
            Value::Number(limit) => Ok(Some((limit.clone(), bound))),
            other => Err(self.wrong(node, name, "a number", other)),
        }
    }

    fn size(
        &self,
        node: usize,
        name: &str,
        value: &Value,
        measure: Measure,
    ) -> Result<Keyword, SchemaError> {
        let limit = self.count(node, name, value)?;
        Ok(Keyword::Size { measure, is_minimum: name.starts_with("min"), limit })
    }

    fn count(&self, node: usize, name: &str, value: &Value) -> Result<u64, SchemaError> {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "only integers from 0 on are cast, and those that do not fit become the largest limit"
        )]
        let whole = |number: f64| (number >= 0.0 && number.fract() == 0.0).then_some(number as u64);
        let count = value.as_u64().or_else(|| value.as_f64().and_then(whole));
        count.ok_or_else(|| self.wrong(node, name, "an integer from 0 on", value))
    }

    fn names(&self, node: usize, keyword: &str, value: &Value) -> Result<Vec<String>, SchemaError> {
        let names = value.as_array().and_then(|names| {
            names.iter().map(|name| name.as_str().map(str::to_owned)).collect::<Option<Vec<_>>>()
        });
        names.ok_or_else(|| self.wrong(node, keyword, "an array of strings", value))
    }

    fn dependent(
        &self,
        node: usize,
        keyword: &str,
        members: impl Iterator<Item = (&'a String, &'a Value)>,
    ) -> Result<Keyword, SchemaError> {
        let members = members.map(|(name, needed)| {
            let place = format!("{keyword}/{}", escaped(name));
            Ok((name.clone(), self.names(node, &place, needed)?))
        });
        Ok(Keyword::DependentRequired(members.collect::<Result<_, SchemaError>>()?))
    }

    fn members(
        &mut self,
        node: usize,
        members: &'a Map<String, Value>,
        inside: &Inside<'a>,
    ) -> Result<Keyword, SchemaError> {
        let mut properties = Properties::default();
        if let Some(Subschemas::Named(schemas)) = inside.get("properties") {
            properties.extend(schemas.iter().cloned());
        }
        let mut patterns = Vec::new();
        if let Some(Subschemas::Named(schemas)) = inside.get("patternProperties") {
            let texts = members["patternProperties"].as_object().into_iter().flat_map(Map::keys);
            for (text, (_, schema)) in texts.zip(schemas) {
                let pointer = &self.schemas.nodes[node].pointer;
                let place = format!("{pointer}/patternProperties/{}", escaped(text));
                patterns.push((self.pattern(text, &place)?, *schema));
            }
        }
        let others = one(inside, "additionalProperties");
        Ok(Keyword::Members { properties, patterns, others })
    }

    fn contains(
        &self,
        node: usize,
        members: &Map<String, Value>,
        schema: usize,
        dialect: Dialect,
    ) -> Result<Keyword, SchemaError> {
        let count = |name: &str| match members.get(name) {
            Some(value) if dialect >= Draft2019 => self.count(node, name, value).map(Some),
            _ => Ok(None),
        };
        Ok(Keyword::Contains {
            schema,
            min: count("minContains")?.unwrap_or(1),
            max: count("maxContains")?,
            marks: dialect >= Draft2020,
        })
    }
}

fn owned(value: &Value) -> Instance<'static> {
    Instance::from_value(value).into_owned()
}

fn one(inside: &Inside<'_>, keyword: &str) -> Option<usize> {
    if let Some(Subschemas::One(schema)) = inside.get(keyword) { Some(*schema) } else { None }
}
