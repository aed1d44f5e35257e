//! The schema of an elicitation form: the subset of JSON Schema that elicitation supports.

use serde::{
    Deserialize, Deserializer, Serialize,
    de::{Error, IgnoredAny},
};
use serde_json::Number;

use super::{Members, Raw};

/// The schema of a form: an object with primitive fields (spec: Elicitation).
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(tag = "type", rename = "object")]
#[cfg_attr(not(feature = "bindings"), non_exhaustive)]
pub struct FormSchema {
    #[serde(rename = "$schema", skip_serializing_if = "Option::is_none")]
    pub schema: Option<String>,
    pub properties: Members<FieldSchema>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub required: Option<Vec<String>>,
}

/// The schema of one field, called `PrimitiveSchemaDefinition` in the specification (spec: Elicitation).
#[derive(Clone, Debug, Serialize)]
#[serde(tag = "type")]
#[cfg_attr(not(feature = "bindings"), non_exhaustive)]
pub enum FieldSchema {
    #[serde(rename = "string")]
    String(StringSchema),
    #[serde(rename = "number")]
    Number(NumberSchema),
    #[serde(rename = "integer")]
    Integer(NumberSchema),
    #[serde(rename = "boolean")]
    Boolean(BooleanSchema),
    #[serde(rename = "string")]
    SingleSelect(SingleSelectSchema),
    #[serde(rename = "array")]
    MultiSelect(MultiSelectSchema),
    /// A field of a type unknown to this library, as received.
    #[serde(untagged)]
    Unknown(Raw),
}

/// A string field (spec: Elicitation).
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(not(feature = "bindings"), non_exhaustive)]
pub struct StringSchema {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min_length: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_length: Option<u64>,
    /// `email`, `uri`, `date` or `date-time`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub format: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub default: Option<String>,
}

/// A number field (spec: Elicitation).
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[cfg_attr(not(feature = "bindings"), non_exhaustive)]
pub struct NumberSchema {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub minimum: Option<Number>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub maximum: Option<Number>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub default: Option<Number>,
}

/// A boolean field (spec: Elicitation).
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[cfg_attr(not(feature = "bindings"), non_exhaustive)]
pub struct BooleanSchema {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub default: Option<bool>,
}

/// A single choice: plain values, values with titles, or the older pair of lists (spec: Elicitation).
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(not(feature = "bindings"), non_exhaustive)]
pub struct SingleSelectSchema {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    #[serde(rename = "enum", skip_serializing_if = "Option::is_none")]
    pub values: Option<Vec<String>>,
    /// The titles of the values in `enum`, up to 2025-06-18.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub enum_names: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub one_of: Option<Vec<Choice>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub default: Option<String>,
}

/// A multiple choice (spec: Elicitation).
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(not(feature = "bindings"), non_exhaustive)]
pub struct MultiSelectSchema {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min_items: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_items: Option<u64>,
    pub items: Choices,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub default: Option<Vec<String>>,
}

/// The options of a multiple choice: plain values, or values with titles (spec: Elicitation).
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(not(feature = "bindings"), non_exhaustive)]
pub struct Choices {
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    #[serde(rename = "enum", skip_serializing_if = "Option::is_none")]
    pub values: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub any_of: Option<Vec<Choice>>,
}

/// An option: its value and the title to display (spec: Elicitation).
#[derive(Clone, Debug, Deserialize, Serialize)]
#[cfg_attr(not(feature = "bindings"), non_exhaustive)]
pub struct Choice {
    #[serde(rename = "const")]
    pub value: String,
    pub title: String,
}

impl FieldSchema {
    fn parse(raw: Raw) -> serde_json::Result<Self> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Probe {
            r#type: Option<Raw>,
            r#enum: Option<IgnoredAny>,
            one_of: Option<IgnoredAny>,
        }
        let json = raw.get();
        let Probe { r#type, r#enum, one_of } = serde_json::from_str(json)?;
        Ok(match r#type.as_deref().map_or("", |it| it.get()) {
            r#""string""# if r#enum.is_some() || one_of.is_some() => {
                Self::SingleSelect(serde_json::from_str(json)?)
            }
            r#""string""# => Self::String(serde_json::from_str(json)?),
            r#""number""# => Self::Number(serde_json::from_str(json)?),
            r#""integer""# => Self::Integer(serde_json::from_str(json)?),
            r#""boolean""# => Self::Boolean(serde_json::from_str(json)?),
            r#""array""# => Self::MultiSelect(serde_json::from_str(json)?),
            _ => Self::Unknown(raw),
        })
    }
}

impl<'de> Deserialize<'de> for FieldSchema {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::parse(Raw::deserialize(deserializer)?).map_err(D::Error::custom)
    }
}
