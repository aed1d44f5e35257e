//! A quick check by the most used keywords. What it can't decide is left to the thorough check.

mod read;

use std::{cmp::Ordering, collections::BTreeMap};

use jsonschema::{Draft, json::JsonNumber};
use serde_json::{Number, Value};

use super::instance::{Instance, Object};
use super::limits;
use super::pattern::Pattern;

/// The types and their bits. A number that is an integer has both bits.
const TYPES: [(&str, u8); 7] = [
    ("null", NULL),
    ("boolean", BOOLEAN),
    ("number", NUMBER),
    ("integer", INTEGER),
    ("string", STRING),
    ("array", ARRAY),
    ("object", OBJECT),
];
const NULL: u8 = 1;
const BOOLEAN: u8 = 2;
const NUMBER: u8 = 4;
const INTEGER: u8 = 8;
const STRING: u8 = 16;
const ARRAY: u8 = 32;
const OBJECT: u8 = 64;
/// Floating-point numbers hold the integers up to this one exactly.
const MAX_EXACT: f64 = 9_007_199_254_740_992.0;

/// A document's schemas, the first of which is its root.
#[derive(Debug)]
pub(super) struct Quick(Vec<Vec<Keyword>>);

/// A keyword, or several that belong together. Schemas are named by their index.
#[derive(Debug)]
enum Keyword {
    /// The schema `false`.
    Never,
    /// Bits of [`TYPES`].
    Types(u8),
    /// `enum` and `const`.
    Values(Vec<Value>),
    Bound {
        limit: Number,
        accepts: fn(Ordering) -> bool,
    },
    MultipleOf(i64),
    Size {
        of: Measured,
        at_least: bool,
        limit: usize,
    },
    Pattern(Pattern),
    Required(Vec<String>),
    /// `properties` and `additionalProperties`.
    Members {
        properties: BTreeMap<String, usize>,
        others: Option<usize>,
    },
    /// `prefixItems` and `items`.
    Items {
        first: Vec<usize>,
        others: Option<usize>,
    },
    /// `allOf` and `$ref`.
    All(Vec<usize>),
    Any(Vec<usize>),
    One(Vec<usize>),
}

#[derive(Clone, Copy, Debug)]
enum Measured {
    Text,
    Items,
    Members,
}

impl Quick {
    /// Returns `None` for a schema with keywords that only the thorough check knows, and for one that is not valid.
    /// `pattern_size` is the most bytes of a compiled pattern.
    pub(super) fn compile(document: &Value, draft: Draft, pattern_size: usize) -> Option<Self> {
        read::schemas(document, draft, pattern_size).map(Self)
    }

    /// Returns whether a value is valid, and `None` if that has to be checked thoroughly.
    pub(super) fn accepts(&self, value: &Instance<'_>) -> Option<bool> {
        let mut steps = limits::CHECKED_STEPS;
        self.fits(0, value, &mut steps)
    }

    /// Returns the compiled patterns.
    pub(super) fn patterns(&self) -> impl Iterator<Item = &Pattern> {
        let keywords = self.0.iter().flatten();
        keywords.filter_map(|it| if let Keyword::Pattern(it) = it { Some(it) } else { None })
    }

    fn fits(&self, schema: usize, value: &Instance<'_>, steps: &mut usize) -> Option<bool> {
        for keyword in &self.0[schema] {
            if !self.holds(keyword, value, steps)? {
                return Some(false);
            }
        }
        Some(true)
    }

    fn holds(&self, keyword: &Keyword, value: &Instance<'_>, steps: &mut usize) -> Option<bool> {
        Some(match (keyword, value) {
            (Keyword::Never, _) => false,
            (Keyword::Types(types), _) => types & type_of(value) != 0,
            (Keyword::Values(values), _) => values.iter().any(|it| value.equals(it)),
            (Keyword::Bound { limit, accepts }, Instance::Number(it)) => accepts(order(it, limit)?),
            (Keyword::MultipleOf(divisor), Instance::Number(it)) => exact(it)? % divisor == 0,
            (&Keyword::Size { of, at_least, limit }, _) => has_size(value, of, at_least, limit),
            (Keyword::Pattern(pattern), Instance::String(text)) => pattern.matches(text),
            (Keyword::Required(names), Instance::Object(object)) => {
                names.iter().all(|it| object.member(it).is_some())
            }
            (Keyword::Members { properties, others }, Instance::Object(object)) => {
                return self.members(properties, *others, object, steps);
            }
            (Keyword::Items { first, others }, Instance::Array(items)) => {
                return self.items(first, *others, items, steps);
            }
            (Keyword::All(schemas), _) => return self.count(schemas, schemas.len(), value, steps),
            (Keyword::Any(schemas), _) => {
                for &schema in schemas {
                    if self.applies(schema, value, steps)? {
                        return Some(true);
                    }
                }
                false
            }
            (Keyword::One(schemas), _) => return self.count(schemas, 1, value, steps),
            _ => true,
        })
    }

    fn members(
        &self,
        properties: &BTreeMap<String, usize>,
        others: Option<usize>,
        object: &Object<'_>,
        steps: &mut usize,
    ) -> Option<bool> {
        for (name, member) in object.iter() {
            if let Some(schema) = properties.get(name).copied().or(others)
                && !self.fits(schema, member, steps)?
            {
                return Some(false);
            }
        }
        Some(true)
    }

    fn items(
        &self,
        first: &[usize],
        others: Option<usize>,
        items: &[Instance<'_>],
        steps: &mut usize,
    ) -> Option<bool> {
        for (place, item) in items.iter().enumerate() {
            let Some(schema) = first.get(place).copied().or(others) else { break };
            if !self.fits(schema, item, steps)? {
                return Some(false);
            }
        }
        Some(true)
    }

    /// Returns whether a value is valid for exactly `wanted` of these schemas.
    fn count(
        &self,
        schemas: &[usize],
        wanted: usize,
        value: &Instance<'_>,
        steps: &mut usize,
    ) -> Option<bool> {
        let mut found = 0;
        for (place, &schema) in schemas.iter().enumerate() {
            found += usize::from(self.applies(schema, value, steps)?);
            // Neither too many any more, nor too few.
            if found > wanted || found + schemas.len() - place - 1 < wanted {
                return Some(false);
            }
        }
        Some(found == wanted)
    }

    /// Checks a value by a further schema. Their number is limited, because it may be exponential in the value's depth.
    fn applies(&self, schema: usize, value: &Instance<'_>, steps: &mut usize) -> Option<bool> {
        *steps = steps.checked_sub(1)?;
        self.fits(schema, value, steps)
    }
}

fn type_of(value: &Instance<'_>) -> u8 {
    match value {
        Instance::Null => NULL,
        Instance::Bool(_) => BOOLEAN,
        Instance::Number(it) if JsonNumber::is_integer(&it) => NUMBER | INTEGER,
        Instance::Number(_) => NUMBER,
        Instance::String(_) => STRING,
        Instance::Array(_) => ARRAY,
        Instance::Object(_) => OBJECT,
    }
}

/// Returns whether a value has no wrong size.
fn has_size(value: &Instance<'_>, of: Measured, at_least: bool, limit: usize) -> bool {
    let size = match (of, value) {
        (Measured::Text, Instance::String(text)) => {
            // A character has one to four bytes.
            let may_decide =
                if at_least { text.len().div_ceil(4) < limit } else { text.len() > limit };
            match may_decide {
                true => text.chars().count(),
                false => return true,
            }
        }
        (Measured::Items, Instance::Array(items)) => items.len(),
        (Measured::Members, Instance::Object(object)) => object.len(),
        _ => return true,
    };
    if at_least { size >= limit } else { size <= limit }
}

/// Compares numbers, unless that takes more digits than a floating-point number has.
fn order(one: &Number, other: &Number) -> Option<Ordering> {
    let integer = |it: &Number| it.as_i64().map(i128::from).or(it.as_u64().map(i128::from));
    match (integer(one), integer(other)) {
        (Some(one), Some(other)) => Some(one.cmp(&other)),
        _ => float(one)?.partial_cmp(&float(other)?),
    }
}

fn float(number: &Number) -> Option<f64> {
    number.as_f64().filter(|it| number.is_f64() || it.abs() < MAX_EXACT)
}

fn exact(number: &Number) -> Option<i64> {
    number.as_i64().filter(|_| float(number).is_some())
}

#[cfg(test)]
mod tests;
