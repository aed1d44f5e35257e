//! Compiled schemas: what a document's keywords require.

use std::collections::HashMap;

use indexmap::IndexMap;
use serde_json::Number;

use super::instance::Instance;
use super::number;
use super::pattern::Pattern;
use super::value_set::Allowed;

/// The bits of the types. A number that is an integer has both bits.
const NULL: u8 = 1;
const BOOLEAN: u8 = 2;
const NUMBER: u8 = 4;
const INTEGER: u8 = 8;
const STRING: u8 = 16;
const ARRAY: u8 = 32;
const OBJECT: u8 = 64;
/// An integer that is written without a fraction, which is what draft-04 calls an integer.
const WRITTEN_INTEGER: u8 = 128;

/// Schemas by the names of properties, in the order of the document.
pub(super) type Properties = IndexMap<String, usize, foldhash::fast::RandomState>;

/// The schemas of a document. They refer to each other by their index; the first is the document's root.
#[derive(Debug, Default)]
pub(super) struct Schemas {
    pub(super) nodes: Vec<Node>,
    /// The schemas with a `$dynamicAnchor`, by its name and by the index of their resource. A `$recursiveAnchor` has
    /// an empty name.
    pub(super) dynamic: HashMap<String, HashMap<usize, usize>>,
    /// True if integers that a double can't hold are of no type.
    pub(super) has_doubles_only: bool,
}

/// A schema.
#[derive(Debug)]
pub(super) struct Node {
    /// The place in the document, as a JSON pointer.
    pub(super) pointer: String,
    /// The index of the resource: the nearest schema around it that has a URI of its own.
    pub(super) resource: usize,
    pub(super) keywords: Vec<Keyword>,
}

/// A keyword, or several that belong together.
#[derive(Debug)]
pub(super) enum Keyword {
    /// The schema `false`.
    Never,
    Types(Types),
    /// `enum`.
    Values(Allowed),
    Const(Instance<'static>),
    /// `minimum`, `maximum` and their exclusive forms.
    Bound {
        limit: Number,
        bound: Bound,
    },
    MultipleOf(Number),
    Size {
        measure: Measure,
        is_minimum: bool,
        limit: u64,
    },
    Pattern(Pattern),
    UniqueItems,
    Required(Vec<String>),
    /// `dependentRequired`, and names in `dependencies`.
    DependentRequired(Vec<(String, Vec<String>)>),
    /// `dependentSchemas`, and schemas in `dependencies`.
    DependentSchemas(Vec<(String, usize)>),
    /// `properties`, `patternProperties` and `additionalProperties`.
    Members {
        properties: Properties,
        patterns: Vec<(Pattern, usize)>,
        others: Option<usize>,
    },
    PropertyNames(usize),
    /// `prefixItems` and `items`; before 2020-12 `items` and `additionalItems`.
    Items {
        first: Vec<usize>,
        others: Option<usize>,
    },
    /// `contains`, `minContains` and `maxContains`.
    Contains {
        schema: usize,
        min: u64,
        max: Option<u64>,
        /// `true` if `unevaluatedItems` ignores the items found, as from 2020-12 on.
        marks: bool,
    },
    /// `allOf`.
    All(Vec<usize>),
    Any(Vec<usize>),
    One(Vec<usize>),
    Not {
        schema: usize,
        /// The start of the schema as JSON, for messages.
        text: String,
    },
    If {
        condition: usize,
        then: Option<usize>,
        otherwise: Option<usize>,
    },
    Reference(usize),
    /// A `$dynamicRef` or `$recursiveRef` whose target depends on the schemas that led to it.
    DynamicReference {
        /// The name of the target's `$dynamicAnchor`.
        anchor: String,
        /// The target where none of these schemas has such an anchor.
        target: usize,
    },
    UnevaluatedMembers(usize),
    UnevaluatedItems(usize),
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Bound {
    AtLeast,
    MoreThan,
    AtMost,
    LessThan,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Measure {
    Characters,
    Items,
    Members,
}

/// A set of types.
#[derive(Clone, Copy, Debug)]
pub(super) struct Types(u8);

impl Schemas {
    /// Returns the schemas that a keyword applies to the same value as its own schema.
    pub(super) fn in_place(&self, keyword: &Keyword) -> Vec<usize> {
        match keyword {
            Keyword::All(schemas) | Keyword::Any(schemas) | Keyword::One(schemas) => {
                schemas.clone()
            }
            Keyword::Reference(schema) | Keyword::Not { schema, .. } => vec![*schema],
            Keyword::DynamicReference { anchor, target } => {
                let others = self.dynamic.get(anchor).into_iter().flat_map(HashMap::values);
                others.chain([target]).copied().collect()
            }
            Keyword::If { condition, then, otherwise } => {
                [Some(*condition), *then, *otherwise].into_iter().flatten().collect()
            }
            Keyword::DependentSchemas(schemas) => {
                schemas.iter().map(|(_, schema)| *schema).collect()
            }
            _ => Vec::new(),
        }
    }

    /// Returns the schemas that a keyword applies to members and items of the value.
    pub(super) fn inside(keyword: &Keyword) -> Vec<usize> {
        match keyword {
            Keyword::Members { properties, patterns, others } => {
                let patterns = patterns.iter().map(|(_, schema)| schema);
                properties.values().chain(patterns).chain(others).copied().collect()
            }
            Keyword::Items { first, others } => first.iter().chain(others).copied().collect(),
            Keyword::PropertyNames(schema)
            | Keyword::Contains { schema, .. }
            | Keyword::UnevaluatedMembers(schema)
            | Keyword::UnevaluatedItems(schema) => vec![*schema],
            _ => Vec::new(),
        }
    }
}

impl Node {
    /// Returns `true` for the schema `false`.
    pub(super) fn is_never(&self) -> bool {
        matches!(self.keywords[..], [Keyword::Never])
    }

    /// Returns `true` if it matters to a keyword which members or items other keywords applied to.
    pub(super) fn needs_marks(&self) -> bool {
        let last = self.keywords.last();
        matches!(last, Some(Keyword::UnevaluatedMembers(_) | Keyword::UnevaluatedItems(_)))
    }
}

impl Bound {
    pub(super) fn accepts(self, number: &Number, limit: &Number) -> bool {
        let order = number::compare(number, limit);
        match self {
            Self::AtLeast => order.is_ge(),
            Self::MoreThan => order.is_gt(),
            Self::AtMost => order.is_le(),
            Self::LessThan => order.is_lt(),
        }
    }
}

impl Types {
    /// The names of the types, and their bits.
    const NAMES: [(&str, u8); 7] = [
        ("array", ARRAY),
        ("boolean", BOOLEAN),
        ("integer", INTEGER),
        ("null", NULL),
        ("number", NUMBER),
        ("object", OBJECT),
        ("string", STRING),
    ];

    pub(super) const NONE: Self = Self(0);

    /// Returns the set with one more type; `None` for an unknown one.
    pub(super) fn with(self, name: &str) -> Option<Self> {
        let (_, bit) = Self::NAMES.iter().find(|(known, _)| *known == name)?;
        Some(Self(self.0 | bit))
    }

    /// Returns the set as draft-04 defines it: there, `1.0` is not an integer.
    pub(super) fn of_draft_4(self) -> Self {
        match self.0 & INTEGER {
            0 => self,
            _ => Self(self.0 & !INTEGER | WRITTEN_INTEGER),
        }
    }

    pub(super) fn names(self) -> impl Iterator<Item = &'static str> {
        let bits = if self.0 & WRITTEN_INTEGER == 0 { self.0 } else { self.0 | INTEGER };
        Self::NAMES.iter().filter(move |(_, bit)| bits & bit != 0).map(|(name, _)| *name)
    }

    pub(super) fn known_names() -> impl Iterator<Item = &'static str> {
        Self::NAMES.iter().map(|(name, _)| *name)
    }

    /// Returns whether these types name numbers.
    pub(super) fn are_numeric(self) -> bool {
        self.0 & (NUMBER | INTEGER | WRITTEN_INTEGER) != 0
    }

    pub(super) fn accepts(self, value: &Instance<'_>) -> bool {
        let bits = match value {
            Instance::Null => NULL,
            Instance::Bool(_) => BOOLEAN,
            Instance::Number(number) if !number.is_f64() => NUMBER | INTEGER | WRITTEN_INTEGER,
            // One that does not fit an integer may have been written without a fraction.
            Instance::Number(number) if number::is_large(number) => {
                NUMBER | INTEGER | WRITTEN_INTEGER
            }
            Instance::Number(number) if number::is_integer(number) => NUMBER | INTEGER,
            Instance::Number(_) => NUMBER,
            Instance::String(_) => STRING,
            Instance::Array(_) => ARRAY,
            Instance::Object(_) => OBJECT,
        };
        self.0 & bits != 0
    }
}

impl Measure {
    /// Returns `true` if the value is within the limit, and if it has no such size.
    pub(super) fn accepts(self, value: &Instance<'_>, is_minimum: bool, limit: u64) -> bool {
        let limit = usize::try_from(limit).unwrap_or(usize::MAX);
        let size = match (self, value) {
            (Self::Characters, Instance::String(text)) => {
                // A character has one to four bytes, so that most strings need no counting.
                let may_fail = match is_minimum {
                    true => text.len().div_ceil(4) < limit,
                    false => text.len() > limit,
                };
                match may_fail {
                    true => text.chars().count(),
                    false => return true,
                }
            }
            (Self::Items, Instance::Array(items)) => items.len(),
            (Self::Members, Instance::Object(object)) => object.len(),
            _ => return true,
        };
        if is_minimum { size >= limit } else { size <= limit }
    }
}
