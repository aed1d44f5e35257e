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
    /// array's `first` elements, `null` for an element without a node, and of the `rest`.
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
        // Patterns are not matched against the names.
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
mod tests;
