//! Members of entries in lists that no revision defines, which a server passes on with the entries of an upstream server.

use serde::Serialize;
use serde_json::value::RawValue;

use super::{Members, Prompt, Raw, Resource, ResourceTemplate, Tool, json};

/// An entry of a list of a server.
pub(crate) trait Entry: Serialize {
    fn meta(&self) -> Option<&Raw>;

    fn unknown(&self) -> Option<&Raw>;

    fn set_unknown(&mut self, unknown: Option<Raw>);
}

macro_rules! impl_entry {
    ($($entry:ty),+) => {$(
        impl Entry for $entry {
            fn meta(&self) -> Option<&Raw> {
                self.meta.as_ref()
            }

            fn unknown(&self) -> Option<&Raw> {
                self.unknown.as_ref()
            }

            fn set_unknown(&mut self, unknown: Option<Raw>) {
                self.unknown = unknown;
            }
        }
    )+};
}

impl_entry!(Tool, Resource, ResourceTemplate, Prompt);

/// Keeps what `given`, the JSON that an entry was read from, has beside the entry.
pub(crate) fn keep_unknown(entry: &mut impl Entry, given: &RawValue) {
    let unknown = beside(&json::to_raw(entry), given);
    entry.set_unknown(unknown);
}

/// Appends an entry as JSON, `lowered` to a revision, with the unknown members of the entry.
pub(crate) fn push_entry(json: &mut String, lowered: &impl Serialize, unknown: Option<&Raw>) {
    match unknown {
        None => json::push(json, lowered),
        Some(unknown) => json.push_str(with(&json::to_raw(lowered), unknown).get()),
    }
}

/// Returns what `given` has beside `known`, at any depth: an object that has, for each member of an object or item of an array, a
/// whole value in an array, or what its value has in turn. Members that are `null` count as absent.
fn beside(known: &RawValue, given: &RawValue) -> Option<Raw> {
    if known.get() == given.get() {
        return None;
    }
    let mut unknown = Vec::new();
    if let (Some(known), Some(given)) = (members(known), members(given)) {
        for (name, value) in given.iter().filter(|(_, value)| value.get() != "null") {
            unknown.extend(match known.get(name) {
                Some(known) => beside(known, value).map(|inside| (name.clone(), inside)),
                None => Some((name.clone(), json::to_raw(&[value]))),
            });
        }
    } else if let (Some(known), Some(given)) = (items(known), items(given))
        && known.len() == given.len()
    {
        for (at, (known, given)) in known.iter().zip(&given).enumerate() {
            unknown.extend(beside(known, given).map(|inside| (at.to_string(), inside)));
        }
    }
    (!unknown.is_empty()).then(|| json::to_raw(&Members(unknown)))
}

/// Returns a value with what [`beside`] found. What is inside of a value that is not there is left out with it.
fn with(known: &RawValue, unknown: &RawValue) -> Raw {
    let Some(unknown) = members(unknown) else { return known.to_owned() };
    if let Some(Members(mut known)) = members(known) {
        for (name, value) in unknown {
            match (items(&value), known.iter_mut().find(|(own, _)| *own == name)) {
                (Some(whole), None) => {
                    known.extend(whole.into_iter().map(|value| (name.clone(), value)));
                }
                (None, Some((_, own))) => *own = with(own, &value),
                (Some(_), Some(_)) | (None, None) => (),
            }
        }
        return json::to_raw(&Members(known));
    }
    let Some(mut known) = items(known) else { return known.to_owned() };
    for (at, value) in unknown {
        if let Some(own) = at.parse().ok().and_then(|at: usize| known.get_mut(at)) {
            *own = with(own, &value);
        }
    }
    json::to_raw(&known)
}

fn members(value: &RawValue) -> Option<Members<Raw>> {
    serde_json::from_str(value.get()).ok()
}

fn items(value: &RawValue) -> Option<Vec<Raw>> {
    serde_json::from_str(value.get()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raw(text: &str) -> Raw {
        json::raw(text.into())
    }

    #[test]
    fn what_is_unknown_is_added_where_it_was_at_any_depth() {
        let given = r#"{"a":1,"x":{"y":[1.50]},"b":{"c":2,"z":null,"q":18446744073709551616},"d":[{"e":1},{"e":2,"w":"é"}]}"#;
        let known = r#"{"a":1,"b":{"c":2},"d":[{"e":1},{"e":2}]}"#;
        let unknown = beside(&raw(known), &raw(given)).unwrap();
        assert_eq!(
            with(&raw(known), &unknown).get(),
            r#"{"a":1,"b":{"c":2,"q":18446744073709551616},"d":[{"e":1},{"e":2,"w":"é"}],"x":{"y":[1.50]}}"#
        );
        // A revision without `d`, and one in which `x` is known.
        assert_eq!(
            with(&raw(r#"{"a":1,"b":{"c":3},"x":0}"#), &unknown).get(),
            r#"{"a":1,"b":{"c":3,"q":18446744073709551616},"x":0}"#
        );
    }

    #[test]
    fn nothing_is_unknown_in_what_was_read_whole() {
        for (known, given) in [
            (r#"{"a":1}"#, r#"{"a":1}"#),
            (r#"{"a":1}"#, r#"{ "a" : 1, "b": null }"#),
            (r#"{"a":5}"#, r#"{"a":5.0}"#),
            (r#"{"a":[]}"#, r#"{"a":[{"b":1}]}"#),
            ("1", "2"),
        ] {
            assert!(beside(&raw(known), &raw(given)).is_none(), "{known} {given}");
        }
    }
}
