//! The strings in a tool's data that stand for values of other types, such as dates, found by the tool's output schema.

use std::{
    collections::{BTreeMap, HashMap, VecDeque},
    ptr,
    sync::{Arc, OnceLock},
};

use serde::Serialize;
use serde_json::{Map, Value};

use super::tools::ListedSchema;
use crate::schema::target;

/// The formats that hosts may have types for. `base64` stands for `contentEncoding: base64`.
const FORMATS: [&str; 6] = ["date-time", "date", "time", "duration", "uuid", "decimal"];
const BASE64: &str = "base64";
/// The steps in which a schema is searched. One that takes more has no formats.
const MAX_STEPS: usize = 100_000;
/// The number of references and combinations that are followed inside each other.
const MAX_DEPTH: usize = 64;
/// The length of a reference that is followed, in bytes.
const MAX_REFERENCE: usize = 1_024;

/// The formats in the data of a tool's result.
#[derive(Clone, Debug)]
pub struct DataFormats {
    schema: Arc<ListedSchema>,
    /// True if the data is the value of `result` in what the schema describes.
    is_unwrapped: bool,
}

/// The formats that an output schema names, which are searched for at first use.
#[derive(Debug, Default)]
pub(super) struct FoundFormats {
    /// False if the schema has none for certain.
    may_be_found: OnceLock<bool>,
    /// The nodes for the whole value, and for the value of `result` in it.
    nodes: OnceLock<[Option<String>; 2]>,
}

impl DataFormats {
    /// Returns the formats that the schema may have; `None` if it has none for certain.
    pub(super) fn of(schema: &Arc<ListedSchema>, is_unwrapped: bool) -> Option<Self> {
        let text = schema.text();
        let may_be_found = schema
            .formats()
            .may_be_found
            .get_or_init(|| text.contains("\"format\"") || text.contains("\"contentEncoding\""));
        may_be_found.then(|| Self { schema: Arc::clone(schema), is_unwrapped })
    }

    /// Returns the formats by their places, a JSON array of nodes of which the first is the data itself; `None` if there
    /// are none. Other nodes are referred to by their index in the array.
    ///
    /// A node has `formats`, which a string may have, the likeliest first: `date-time`, `date`, `time`, `duration`,
    /// `uuid`, `decimal` or `base64`; the nodes of an object's `members` by name and of its `others`; and the nodes of an
    /// array's `first` elements, `null` where there is none, and of the `rest`.
    pub fn to_json(&self) -> Option<&str> {
        let found = self.schema.formats().nodes.get_or_init(|| {
            let Ok(root) = serde_json::from_str(self.schema.text()) else { return [None, None] };
            [Place::Whole, Place::Member("result")].map(|start| Search::nodes(&root, start).ok()?)
        });
        found[usize::from(self.is_unwrapped)].as_deref()
    }
}

impl FoundFormats {
    /// Returns whether formats were searched for and found.
    pub(super) fn are_in_use(&self) -> bool {
        self.nodes.get().is_some_and(|it| it.iter().any(Option::is_some))
    }
}

/// A schema that takes more steps than allowed.
#[derive(Debug)]
struct TooLarge;

/// The schemas that may apply to one value, by address. Each has true if it is one of several alternatives.
type Schemas<'a> = BTreeMap<usize, (&'a Map<String, Value>, bool)>;

/// A place relative to a value.
#[derive(Clone, Copy)]
enum Place<'a> {
    Whole,
    Member(&'a str),
    Others,
    First(usize),
    Rest,
}

#[derive(Debug, Default, Serialize)]
struct Node {
    #[serde(skip_serializing_if = "Vec::is_empty")]
    formats: Vec<&'static str>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    members: BTreeMap<String, usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    others: Option<usize>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    first: Vec<Option<usize>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    rest: Option<usize>,
}

struct Search<'a> {
    root: &'a Map<String, Value>,
    steps: usize,
    /// The index of the node for each set of schemas, so that recursive schemas end.
    known: HashMap<Vec<(usize, bool)>, usize>,
    waiting: VecDeque<Schemas<'a>>,
}

impl<'a> Search<'a> {
    fn nodes(root: &'a Map<String, Value>, start: Place<'_>) -> Result<Option<String>, TooLarge> {
        let mut search = Self { root, steps: 0, known: HashMap::new(), waiting: VecDeque::new() };
        let mut whole = Schemas::new();
        search.add(root, false, &mut whole, 0)?;
        let first = if matches!(start, Place::Whole) { whole } else { search.at(&whole, start)? };
        search.index(first);
        let mut nodes = Vec::new();
        while let Some(schemas) = search.waiting.pop_front() {
            nodes.push(search.node(&schemas)?);
        }
        Ok(without_empty(nodes).map(|it| serde_json::to_string(&it).unwrap_or_default()))
    }

    fn count(&mut self, steps: usize) -> Result<(), TooLarge> {
        self.steps = self.steps.saturating_add(steps);
        if self.steps > MAX_STEPS { Err(TooLarge) } else { Ok(()) }
    }

    /// Adds a schema, and those that it combines or refers to.
    fn add(
        &mut self,
        schema: &'a Map<String, Value>,
        is_alternative: bool,
        schemas: &mut Schemas<'a>,
        depth: usize,
    ) -> Result<(), TooLarge> {
        self.count(1)?;
        let address = ptr::from_ref(schema).addr();
        if schemas.get(&address).is_some_and(|(_, known)| *known <= is_alternative) {
            return Ok(());
        }
        if depth > MAX_DEPTH {
            return Err(TooLarge);
        }
        schemas.insert(address, (schema, is_alternative));
        let reference = schema.get("$ref").and_then(Value::as_str);
        if let Some(target) = reference.and_then(|it| self.target(it)) {
            self.add(target, is_alternative, schemas, depth + 1)?;
        }
        for (keyword, offers_choice) in [("allOf", false), ("anyOf", true), ("oneOf", true)] {
            let Some(Value::Array(members)) = schema.get(keyword) else { continue };
            let is_alternative = is_alternative || offers_choice && members.len() > 1;
            for member in members.iter().filter_map(Value::as_object) {
                self.add(member, is_alternative, schemas, depth + 1)?;
            }
        }
        Ok(())
    }

    /// Returns the target of a reference inside the document. Anchors are not searched for, because each search would
    /// visit the whole document.
    fn target(&self, reference: &str) -> Option<&'a Map<String, Value>> {
        let is_pointer = reference == "#" || reference.starts_with("#/");
        let is_followed = is_pointer && reference.len() <= MAX_REFERENCE;
        is_followed.then(|| target(self.root, reference)).flatten()
    }

    /// Returns the schemas that apply at a place of the value that these apply to.
    fn at(&mut self, schemas: &Schemas<'a>, place: Place<'_>) -> Result<Schemas<'a>, TooLarge> {
        let mut found = Schemas::new();
        for (schema, is_alternative) in schemas.values() {
            self.count(1)?;
            if let Some(inner) = inner(schema, place) {
                self.add(inner, *is_alternative, &mut found, 0)?;
            }
        }
        Ok(found)
    }

    /// Returns the index of the node for these schemas; a new node waits.
    fn index(&mut self, schemas: Schemas<'a>) -> usize {
        let key = schemas.iter().map(|(address, (_, it))| (*address, *it)).collect();
        let next = self.known.len();
        *self.known.entry(key).or_insert_with(|| {
            self.waiting.push_back(schemas);
            next
        })
    }

    fn child(
        &mut self,
        schemas: &Schemas<'a>,
        place: Place<'_>,
    ) -> Result<Option<usize>, TooLarge> {
        let found = self.at(schemas, place)?;
        Ok((!found.is_empty()).then(|| self.index(found)))
    }

    fn node(&mut self, schemas: &Schemas<'a>) -> Result<Node, TooLarge> {
        let mut node = Node { formats: formats(schemas), ..Node::default() };
        for (schema, _) in schemas.values() {
            for name in members(schema) {
                // Each node has its own copy.
                self.count(1 + name.len() / 16)?;
                if !node.members.contains_key(name)
                    && let Some(index) = self.child(schemas, Place::Member(name))?
                {
                    node.members.insert(name.clone(), index);
                }
            }
        }
        node.others = self.child(schemas, Place::Others)?;
        let count = schemas.values().map(|(it, _)| first(it).len()).max().unwrap_or_default();
        for at in 0..count {
            node.first.push(self.child(schemas, Place::First(at))?);
        }
        node.rest = self.child(schemas, Place::Rest)?;
        Ok(node)
    }
}

fn members(schema: &Map<String, Value>) -> impl Iterator<Item = &String> {
    schema.get("properties").and_then(Value::as_object).into_iter().flat_map(Map::keys)
}

/// Returns the schemas of an array's first elements.
fn first(schema: &Map<String, Value>) -> &[Value] {
    let named = schema.get("prefixItems").or_else(|| schema.get("items"));
    named.and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// Returns the schema that a schema has for a place.
fn inner<'a>(schema: &'a Map<String, Value>, place: Place<'_>) -> Option<&'a Map<String, Value>> {
    let found = match place {
        Place::Whole => None,
        Place::Member(name) => {
            let Some(named) = schema.get("properties").and_then(|it| it.get(name)) else {
                return inner(schema, Place::Others);
            };
            Some(named)
        }
        // Which of them a pattern matches is not looked at.
        Place::Others if schema.contains_key("patternProperties") => None,
        Place::Others => schema.get("additionalProperties"),
        Place::First(at) => {
            let Some(first) = first(schema).get(at) else { return inner(schema, Place::Rest) };
            Some(first)
        }
        Place::Rest => {
            let rest = schema.get("items").filter(|it| it.is_object());
            rest.or_else(|| schema.get("additionalItems"))
        }
    };
    found?.as_object()
}

/// Returns the formats of a string; none if it may also be any other string.
fn formats(schemas: &Schemas<'_>) -> Vec<&'static str> {
    let mut found = Vec::new();
    for is_alternative in [false, true] {
        let mut is_any = false;
        for (schema, _) in schemas.values().filter(|(_, it)| *it == is_alternative) {
            match format(schema) {
                Some(format) if !found.contains(&format) => found.push(format),
                Some(_) => (),
                None => is_any |= may_be_string(schema),
            }
        }
        // All schemas outside of alternatives apply, so that one with a format decides.
        if is_alternative && is_any {
            found.clear();
        }
        if !found.is_empty() {
            break;
        }
    }
    found.sort_by_key(|it| FORMATS.iter().position(|format| format == it));
    found
}

fn format(schema: &Map<String, Value>) -> Option<&'static str> {
    if schema.contains_key("type") && !may_be_string(schema) {
        return None;
    }
    let text = |name| schema.get(name).and_then(Value::as_str);
    let format = text("format").and_then(|it| FORMATS.into_iter().find(|format| *format == it));
    format.or_else(|| (text("contentEncoding") == Some(BASE64)).then_some(BASE64))
}

/// Returns whether the schema itself says that the value may be a string.
fn may_be_string(schema: &Map<String, Value>) -> bool {
    let has_string = |values: &Vec<Value>| values.iter().any(Value::is_string);
    match schema.get("type") {
        Some(Value::String(name)) => name == "string",
        Some(Value::Array(names)) => names.iter().any(|it| it == "string"),
        _ => {
            schema.get("const").is_some_and(Value::is_string)
                || schema.get("enum").and_then(Value::as_array).is_some_and(has_string)
        }
    }
}

/// Removes what leads to no format; `None` if nothing is left.
fn without_empty(mut nodes: Vec<Node>) -> Option<Vec<Node>> {
    let mut leads: Vec<_> = nodes.iter().map(|it| !it.formats.is_empty()).collect();
    let mut sources = vec![Vec::new(); nodes.len()];
    for (source, node) in nodes.iter().enumerate() {
        let first = node.first.iter().flatten();
        let inner = first.chain(node.members.values()).chain(&node.others).chain(&node.rest);
        inner.for_each(|target| sources[*target].push(source));
    }
    let mut reached: Vec<_> = (0..nodes.len()).filter(|it| leads[*it]).collect();
    while let Some(target) = reached.pop() {
        for &source in &sources[target] {
            if !leads[source] {
                leads[source] = true;
                reached.push(source);
            }
        }
    }
    if !*leads.first()? {
        return None;
    }
    for node in &mut nodes {
        node.members.retain(|_, it| leads[*it]);
        node.others = node.others.filter(|it| leads[*it]);
        node.rest = node.rest.filter(|it| leads[*it]);
        node.first.iter_mut().for_each(|it| *it = it.filter(|it| leads[*it]));
        while node.first.last().is_some_and(Option::is_none) {
            // Without a node of its own, an element would be read as one of the rest.
            if node.rest.is_some() {
                break;
            }
            node.first.pop();
        }
    }
    Some(nodes)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test that fails here says where")]

    use serde_json::json;

    use super::*;
    use crate::{peer::KnownTools, protocol::json};

    fn listed(schema: &Value) -> KnownTools {
        let mut tools = KnownTools::default();
        let tool = json!({"name": "t", "inputSchema": {}, "outputSchema": schema});
        tools.learn(&[json::to_raw(&tool)], true);
        tools.use_formats();
        tools
    }

    fn formats(tools: &KnownTools, result: &Value) -> Option<DataFormats> {
        tools.read_result("t", &json::to_raw(result)).unwrap().formats
    }

    /// Returns the nodes for the data `1`.
    fn nodes(schema: &Value) -> Option<Value> {
        let formats = formats(&listed(schema), &json!({"content": [], "structuredContent": 1}))?;
        formats.to_json().map(|it| serde_json::from_str(it).unwrap())
    }

    fn string(format: &str) -> Value {
        json!({"type": "string", "format": format})
    }

    #[test]
    fn each_format_is_found_and_others_are_not() {
        for format in FORMATS {
            assert_eq!(nodes(&string(format)), Some(json!([{"formats": [format]}])));
        }
        let bytes = json!({"type": "string", "contentEncoding": "base64"});
        assert_eq!(nodes(&bytes), Some(json!([{"formats": ["base64"]}])));
        for schema in [
            string("email"),
            json!({"type": "integer", "format": "date"}),
            json!({"properties": {"format": {"type": "string"}}}),
            json!({"type": "string", "contentEncoding": "gzip"}),
            json!({"format": 1}),
            json!({"format": "date", "type": 1}),
            json!(true),
            json!("\"format\""),
        ] {
            assert_eq!(nodes(&schema), None, "{schema}");
        }
    }

    #[test]
    fn places_are_found_inside_of_objects_and_arrays() {
        let (day, id) = (string("date"), string("uuid"));
        let schema = json!({
            "properties": {"day": day, "title": {"type": "string"}, "all": {"items": {"$ref": "#/$defs/a~1%62"}}},
            "additionalProperties": id,
            "$defs": {"a/b": {"prefixItems": [{"type": "string"}, day], "items": id}},
        });
        assert_eq!(
            nodes(&schema),
            Some(json!([
                {"members": {"all": 3, "day": 1}, "others": 4},
                {"formats": ["date"]},
                {},
                {"rest": 5},
                {"formats": ["uuid"]},
                {"first": [null, 7], "rest": 8},
                {},
                {"formats": ["date"]},
                {"formats": ["uuid"]},
            ]))
        );
        let earlier = json!({"items": [day], "additionalItems": id});
        let expected =
            json!([{"first": [1], "rest": 2}, {"formats": ["date"]}, {"formats": ["uuid"]}]);
        assert_eq!(nodes(&earlier), Some(expected));
        let pattern = json!({"patternProperties": {"^x": {}}, "additionalProperties": day});
        assert_eq!(nodes(&pattern), None);
    }

    #[test]
    fn a_string_with_a_format_among_alternatives_has_it_unless_it_may_be_any_string() {
        let (day, moment, nothing) = (string("date"), string("date-time"), json!({"type": "null"}));
        for (schema, formats) in [
            (json!({"anyOf": [day, nothing]}), json!(["date"])),
            (json!({"oneOf": [day, {"type": "integer"}]}), json!(["date"])),
            (json!({"type": ["string", "null"], "format": "date"}), json!(["date"])),
            (json!({"anyOf": [day, moment]}), json!(["date-time", "date"])),
            (json!({"allOf": [{"type": "string"}, {"format": "date"}]}), json!(["date"])),
            (json!({"type": "string", "anyOf": [{"format": "date"}]}), json!(["date"])),
            (json!({"format": "date", "anyOf": [{"type": "string"}, nothing]}), json!(["date"])),
        ] {
            assert_eq!(nodes(&schema), Some(json!([{"formats": formats}])), "{schema}");
        }
        for schema in [
            json!({"anyOf": [day, {"type": "string"}]}),
            json!({"anyOf": [day, {"enum": ["never"]}]}),
            json!({"anyOf": [day, {"const": "never"}]}),
            json!({"anyOf": [{"properties": {"a": day}}, {"properties": {"a": {"type": "string"}}}]}),
        ] {
            assert_eq!(nodes(&schema), None, "{schema}");
        }
    }

    #[test]
    fn recursive_schemas_have_as_many_nodes_as_kinds_of_places() {
        let tree = json!({
            "$ref": "#/$defs/tree",
            "$defs": {"tree": {"properties": {
                "at": string("date-time"),
                "below": {"anyOf": [{"items": {"$ref": "#/$defs/tree"}}, {"type": "null"}]},
            }}},
        });
        assert!(nodes(&tree).unwrap().as_array().unwrap().len() < 8);
        let circles = [
            json!({"$ref": "#", "format": "date"}),
            json!({"allOf": [{"$ref": "#"}], "anyOf": [{"$ref": "#"}, {"$ref": "#"}], "format": "date"}),
        ];
        for circle in circles {
            assert_eq!(nodes(&circle), Some(json!([{"formats": ["date"]}])));
        }
    }

    #[test]
    fn hostile_schemas_end_and_nothing_is_fetched() {
        // Each level doubles the combinations of schemas that may apply.
        let level = |at: usize| {
            let next =
                [2 * at, 2 * at + 1].map(|it| json!({"$ref": format!("#/$defs/{}", it % 97)}));
            json!({"properties": {"a": {"anyOf": next}, "b": next[0]}, "additionalProperties": next[1]})
        };
        let levels: Map<_, _> = (0..97).map(|at| (at.to_string(), level(at))).collect();
        let mut chain: Map<_, _> = (0..200)
            .map(|at| (at.to_string(), json!({"$ref": format!("#/$defs/{}", at + 1)})))
            .collect();
        chain.insert("200".into(), string("date"));
        let name = "n".repeat(1_000_000);
        let long =
            |it: usize| json!({"properties": {&name: string("date"), "x": {"minLength": it}}});
        for schema in [
            json!({"anyOf": [{"$ref": "#/$defs/1"}, string("date")], "$defs": levels}),
            json!({"$ref": "#/$defs/0", "$defs": chain}),
            json!({"anyOf": (0..5).map(long).collect::<Vec<_>>()}),
            json!({"$ref": "https://example.org/a.json", "x": string("date")}),
            json!({"$ref": format!("#/{name}"), "x": string("date")}),
            json!({"$ref": "#date", "$defs": {"a": {"$anchor": "date", "format": "date"}}}),
        ] {
            let text = schema.to_string();
            let nodes = nodes(&schema).map_or(0, |it| it.as_array().unwrap().len());
            assert!(nodes < 10_000, "{}", &text[..100]);
        }
    }

    #[test]
    fn wrapped_data_and_texts_have_the_formats_of_the_value_itself() {
        let schema = |mark: bool| json!({"type": "object", "properties": {"result": string("date")}, "x-gudgeon-wrapped": mark});
        let structured = json!({"content": [], "structuredContent": {"result": "2026-01-02"}});
        let text = json!({"content": [{"type": "text", "text": "2026-01-02"}]});
        let found = |mark, result| {
            let json = formats(&listed(&schema(mark)), result)?.to_json()?.to_owned();
            Some(serde_json::from_str::<Value>(&json).unwrap())
        };
        for result in [&structured, &text] {
            assert_eq!(found(true, result), Some(json!([{"formats": ["date"]}])));
            assert_eq!(found(false, result).unwrap()[0], json!({"members": {"result": 1}}));
        }
        let failed =
            json!({"isError": true, "content": [], "structuredContent": {"result": "2026-01-02"}});
        assert_eq!(found(true, &failed), None);
    }

    #[test]
    fn formats_are_those_of_tools_that_the_program_listed() {
        let mut tools = KnownTools::default();
        let tool = json!({"name": "t", "inputSchema": {}, "outputSchema": string("date")});
        let result = json!({"content": [], "structuredContent": "2026-01-02"});
        let needs_schema = |tools: &KnownTools| {
            tools.read_result("t", &json::to_raw(&result)).unwrap().needs_schema
        };
        tools.learn(&[json::to_raw(&tool)], true);
        assert!(formats(&tools, &result).is_none());
        tools.use_formats();
        let listed = formats(&tools, &result).unwrap();
        tools.forget();
        assert!(!needs_schema(&tools), "they were never used");
        tools.learn(&[json::to_raw(&tool)], true);
        assert!(
            listed.to_json().is_some() && formats(&tools, &result).unwrap().to_json().is_some()
        );
        // In a list that changed, or after the connection was made anew.
        tools.forget();
        let mut next = KnownTools::default();
        next.expect(tools.expected());
        for mut tools in [tools, next] {
            assert!(needs_schema(&tools) && formats(&tools, &result).is_none());
            tools.forget();
            assert!(needs_schema(&tools));
            tools.learn(&[json::to_raw(&tool)], true);
            assert!(!needs_schema(&tools) && formats(&tools, &result).is_some());
            tools.learn(&[json::to_raw(&tool)], true);
            tools.forget();
            assert!(needs_schema(&tools), "a second list does not undo the use");
            tools.learn(&[], true);
            tools.forget();
            assert!(!needs_schema(&tools), "the server has it no more");
        }
    }
}
