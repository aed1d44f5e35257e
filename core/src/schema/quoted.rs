//! Values that a model quoted by mistake: `"5"` for 5, `"[1, 2]"` for an array.

use std::borrow::Cow;

use serde_json::value::RawValue;

use super::{
    Schema, graph,
    keyword::{Keyword, Schemas},
};
use crate::protocol::{Members, json};

/// The depth in the value up to which quotes are taken off; each level is parsed again.
const MAX_DEPTH: usize = 16;

impl Schema {
    /// Returns JSON in which each string where the schema accepts none is decoded as JSON once. Keeps the order of members and
    /// the digits of numbers. `None` if there is no such string.
    pub(super) fn unquoted(&self, json: &str) -> Option<String> {
        let value: &RawValue = serde_json::from_str(json).ok()?;
        let mut writer = Writer {
            schemas: &self.schemas,
            takes_strings: vec![None; self.schemas.nodes.len()],
            has_decoded: false,
            out: String::with_capacity(json.len()),
        };
        writer.write(value, &Applicable { always: vec![0], perhaps: Vec::new() }, 0);
        writer.has_decoded.then_some(writer.out)
    }
}

/// The schemas that apply to a value.
#[derive(Default)]
struct Applicable {
    always: Vec<usize>,
    /// Those of alternatives, one of which was meant.
    perhaps: Vec<usize>,
}

struct Writer<'s> {
    schemas: &'s Schemas,
    takes_strings: Vec<Option<bool>>,
    has_decoded: bool,
    out: String,
}

impl Writer<'_> {
    fn write(&mut self, value: &RawValue, schemas: &Applicable, depth: usize) {
        let json = value.get();
        let goes_on =
            depth < MAX_DEPTH && !(schemas.always.is_empty() && schemas.perhaps.is_empty());
        match json.as_bytes().first() {
            Some(b'"') if self.takes_no_string(schemas) => self.write_decoded(json),
            Some(b'{') if goes_on => self.write_object(json, schemas, depth),
            Some(b'[') if goes_on => self.write_array(json, schemas, depth),
            _ => self.out.push_str(json),
        }
    }

    fn write_decoded(&mut self, string: &str) {
        let text: Cow<'_, str> = serde_json::from_str(string).unwrap_or_default();
        match serde_json::from_str::<&RawValue>(&text) {
            Ok(value) => {
                self.has_decoded = true;
                // In JSON a raw newline can only be insignificant whitespace.
                self.out.push_str(&value.get().replace(['\n', '\r'], " "));
            }
            Err(_) => self.out.push_str(string),
        }
    }

    fn write_object(&mut self, object: &str, schemas: &Applicable, depth: usize) {
        let Ok(members) = serde_json::from_str::<Members<&RawValue>>(object) else {
            return self.out.push_str(object);
        };
        let around = self.in_place(schemas);
        self.out.push('{');
        for (at, (name, value)) in members.0.iter().enumerate() {
            if at > 0 {
                self.out.push(',');
            }
            json::push_string(&mut self.out, name);
            self.out.push(':');
            let inside = around.inside(|schema| self.schemas.of_member(schema, name));
            self.write(value, &inside, depth + 1);
        }
        self.out.push('}');
    }

    fn write_array(&mut self, array: &str, schemas: &Applicable, depth: usize) {
        let Ok(items) = serde_json::from_str::<Vec<&RawValue>>(array) else {
            return self.out.push_str(array);
        };
        let around = self.in_place(schemas);
        self.out.push('[');
        for (at, item) in items.into_iter().enumerate() {
            if at > 0 {
                self.out.push(',');
            }
            let inside = around.inside(|schema| self.schemas.of_item(schema, at));
            self.write(item, &inside, depth + 1);
        }
        self.out.push(']');
    }

    /// Returns whether strings are excluded, whichever alternative was meant.
    fn takes_no_string(&mut self, schemas: &Applicable) -> bool {
        let mut takes =
            |schema: &usize| graph::takes_strings(self.schemas, *schema, &mut self.takes_strings);
        if schemas.always.iter().any(|schema| !takes(schema)) {
            return true;
        }
        !schemas.perhaps.is_empty() && !schemas.perhaps.iter().any(takes)
    }

    /// Adds the schemas that these lead to for the same value.
    fn in_place(&self, schemas: &Applicable) -> Applicable {
        let mut all = Applicable::default();
        let mut open: Vec<_> = schemas.always.iter().map(|schema| (*schema, true)).collect();
        open.extend(schemas.perhaps.iter().map(|schema| (*schema, false)));
        while let Some((schema, is_always)) = open.pop() {
            let found = if is_always { &mut all.always } else { &mut all.perhaps };
            if found.contains(&schema) {
                continue;
            }
            found.push(schema);
            for keyword in &self.schemas.nodes[schema].keywords {
                let stays = match keyword {
                    Keyword::All(_) | Keyword::Reference(_) | Keyword::DynamicReference { .. } => {
                        is_always
                    }
                    Keyword::Any(_) | Keyword::One(_) => false,
                    _ => continue,
                };
                open.extend(
                    self.schemas.in_place(keyword).into_iter().map(|schema| (schema, stays)),
                );
            }
        }
        all
    }
}

impl Applicable {
    fn inside(&self, child: impl Fn(usize) -> Vec<usize>) -> Self {
        let children =
            |schemas: &[usize]| schemas.iter().flat_map(|schema| child(*schema)).collect();
        Self { always: children(&self.always), perhaps: children(&self.perhaps) }
    }
}

impl Schemas {
    /// Returns the schemas that one of them has for a member. Those of patterns are left out.
    fn of_member(&self, schema: usize, name: &str) -> Vec<usize> {
        let of_keyword = |keyword: &Keyword| match keyword {
            Keyword::Members { properties, patterns, others } => {
                let other = others.filter(|_| patterns.is_empty());
                properties.get(name).copied().or(other)
            }
            _ => None,
        };
        self.nodes[schema].keywords.iter().filter_map(of_keyword).collect()
    }

    /// Returns the schemas that one of them has for an item.
    fn of_item(&self, schema: usize, place: usize) -> Vec<usize> {
        let of_keyword = |keyword: &Keyword| match keyword {
            Keyword::Items { first, others } => first.get(place).copied().or(*others),
            _ => None,
        };
        self.nodes[schema].keywords.iter().filter_map(of_keyword).collect()
    }
}
