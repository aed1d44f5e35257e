//! Warnings about tools that the protocol allows and known hosts or their models reject. Each message names the tool,
//! the place and the fix.

use serde_json::{Map, Value};

use super::names::is_letter;
use crate::{protocol::Tool, schema::Schema};

/// The longest tool name that every known host accepts.
const MAX_NAME: usize = 64;
/// The most characters of a pattern that are shown.
const MAX_PATTERN_SHOWN: usize = 100;
/// Keywords that hosts reject at the top level of an input schema.
const CHOICES: [&str; 5] = ["anyOf", "oneOf", "allOf", "not", "enum"];
/// Keywords whose values are a map of schemas, a list of schemas, and a single schema.
const NAMING: [&str; 5] =
    ["properties", "patternProperties", "dependentSchemas", "$defs", "definitions"];
const LISTING: [&str; 4] = ["anyOf", "oneOf", "allOf", "prefixItems"];
const HOLDING: [&str; 9] = [
    "items",
    "additionalProperties",
    "propertyNames",
    "contains",
    "not",
    "if",
    "then",
    "else",
    "unevaluatedProperties",
];

/// Returns one message per problem, even if it occurs several times.
pub fn tool(tool: &Tool, input: &Schema) -> Vec<String> {
    let mut found = Found { tool: &tool.name, texts: Vec::new(), kinds: Vec::new() };
    if tool.name.contains('.') {
        found.add("name", "its name has a \".\", which some hosts reject, that accept letters, digits, \"_\" and \"-\" only: use \"_\"");
    }
    if tool.name.len() > MAX_NAME {
        found.add(
            "length",
            &format!(
                "its name is longer than the {MAX_NAME} characters that hosts accept: shorten it"
            ),
        );
    }
    for pattern in input.backtracking_patterns() {
        let pattern: String = pattern.chars().take(MAX_PATTERN_SHOWN).collect();
        found.add("pattern", &format!("matching {pattern:?} needs look-around or back-references, so a long text may be refused because it takes too many steps: use a pattern without them, or limit the text with maxLength"));
    }
    // An unreadable schema was rejected at registration.
    if let Ok(Value::Object(schema)) = serde_json::from_str(tool.input_schema.get()) {
        found.around(&schema);
        found.inside(&schema, "");
    }
    found.texts
}

struct Found<'a> {
    tool: &'a str,
    texts: Vec<String>,
    kinds: Vec<&'static str>,
}

impl Found<'_> {
    fn add(&mut self, kind: &'static str, problem: &str) {
        if !self.kinds.contains(&kind) {
            self.kinds.push(kind);
            self.texts.push(format!("tool {:?}: {problem}", self.tool));
        }
    }

    /// Checks the top level of the input schema.
    fn around(&mut self, schema: &Map<String, Value>) {
        if schema.contains_key("$schema") {
            self.add("dialect", "its input schema has \"$schema\", which hosts reject: leave it out, 2020-12 is the default");
        }
        for keyword in CHOICES.into_iter().filter(|keyword| schema.contains_key(*keyword)) {
            self.add("choice", &format!("its input schema has {keyword:?} around all arguments, which model APIs reject: put the choice into a property"));
        }
        let names = schema.get("properties").and_then(Value::as_object).into_iter().flatten();
        for (name, _) in names {
            let fits = (1..=MAX_NAME).contains(&name.len()) && name.bytes().all(is_letter);
            if !fits {
                self.add("argument", &format!("its argument {name:?} is not accepted by model APIs: use 1 to {MAX_NAME} letters, digits, \"_\", \"-\", \".\""));
            }
        }
    }

    /// Checks one nested schema; `at` is its path among the arguments.
    fn inside(&mut self, schema: &Map<String, Value>, at: &str) {
        let place = if at.is_empty() { String::new() } else { format!(" at {at}") };
        if schema.contains_key("$ref") || schema.contains_key("$dynamicRef") {
            self.add("reference", &format!("its input schema has \"$ref\"{place}, which many hosts don't follow: write the schema out there"));
        }
        let is_array = schema.get("type").is_some_and(|kind| {
            kind == "array"
                || kind.as_array().is_some_and(|kinds| kinds.iter().any(|kind| kind == "array"))
        });
        if is_array && !schema.get("items").is_some_and(Value::is_object) {
            self.add("items", &format!("its input schema has an array without an \"items\" schema{place}, which model APIs reject: say what it holds, or \"items\": {{}}"));
        }
        if let Some(options @ [_, _]) =
            schema.get("anyOf").and_then(Value::as_array).map(Vec::as_slice)
            && options.iter().any(|option| option == &serde_json::json!({"type": "null"}))
            && options
                .iter()
                .any(|option| option["type"].as_str().is_some_and(|kind| kind != "null"))
        {
            self.add("null", &format!("its input schema has \"anyOf\" with null{place}, which hosts reject: write \"type\": [\"…\", \"null\"], or leave the argument out of \"required\""));
        }
        for (keyword, value) in schema {
            let below = |name: &str| match at {
                "" => name.to_owned(),
                at => format!("{at}.{name}"),
            };
            if NAMING.contains(&keyword.as_str()) {
                for (name, value) in value.as_object().into_iter().flatten() {
                    self.maybe(value, &below(name));
                }
            } else if LISTING.contains(&keyword.as_str()) {
                for value in value.as_array().into_iter().flatten() {
                    self.maybe(value, at);
                }
            } else if HOLDING.contains(&keyword.as_str()) {
                self.maybe(value, &below("*"));
            }
        }
    }

    fn maybe(&mut self, value: &Value, at: &str) {
        if let Value::Object(schema) = value {
            self.inside(schema, at);
        }
    }
}
