//! Values to check, which borrow from the text they were read from: quicker to build and to look at than
//! [`serde_json::Value`].

use std::{borrow::Cow, collections::HashMap, fmt, ptr, slice};

use jsonschema::{
    JsonType,
    json::{self, Json, Node, NodeIdentity},
};
use serde::{
    Deserialize, Deserializer,
    de::{MapAccess, SeqAccess, Visitor},
};
use serde_json::{Number, Value};

/// The most members of an object that are searched one after the other.
const SEARCHED: usize = 8;

/// The representation of values by [`Instance`].
pub(super) struct Borrowing;

/// A JSON value.
#[derive(Debug)]
pub(super) enum Instance<'a> {
    Null,
    Bool(bool),
    Number(Number),
    String(Cow<'a, str>),
    Array(Vec<Instance<'a>>),
    Object(Object<'a>),
}

/// The members of a JSON object, in order. Of several with one name the last counts.
#[derive(Debug, Default)]
pub(super) struct Object<'a> {
    members: Vec<(Cow<'a, str>, Instance<'a>)>,
    /// The places of all members, if there are more than [`SEARCHED`].
    #[expect(clippy::box_collection, reason = "most objects have none, and should be small")]
    places: Option<Box<HashMap<Cow<'a, str>, usize>>>,
}

impl<'a> Object<'a> {
    fn insert(&mut self, name: Cow<'a, str>, value: Instance<'a>) {
        if let Some(place) = self.place(&name) {
            self.members[place].1 = value;
            return;
        }
        if let Some(places) = &mut self.places {
            places.insert(name.clone(), self.members.len());
        }
        self.members.push((name, value));
        if self.members.len() > SEARCHED && self.places.is_none() {
            let names = self.members.iter().map(|(name, _)| name.clone());
            self.places = Some(Box::new(names.zip(0..).collect()));
        }
    }

    fn place(&self, name: &str) -> Option<usize> {
        match &self.places {
            None => self.members.iter().position(|(it, _)| it == name),
            Some(places) => places.get(name).copied(),
        }
    }

    pub(super) fn len(&self) -> usize {
        self.members.len()
    }

    pub(super) fn iter(&self) -> Members<'_> {
        Members(self.members.iter())
    }

    pub(super) fn member(&self, name: &str) -> Option<&Instance<'a>> {
        self.place(name).map(|it| &self.members[it].1)
    }
}

impl Instance<'_> {
    /// Returns whether the value equals another; numbers are compared by value.
    pub(super) fn equals(&self, other: &Value) -> bool {
        match (self, other) {
            (Self::Null, Value::Null) => true,
            (Self::Bool(one), Value::Bool(other)) => one == other,
            (Self::Number(one), Value::Number(other)) => json::cmp::equal_numbers(&one, other),
            (Self::String(one), Value::String(other)) => one == other,
            (Self::Array(some), Value::Array(others)) => {
                some.len() == others.len()
                    && some.iter().zip(others).all(|(it, other)| it.equals(other))
            }
            (Self::Object(some), Value::Object(others)) => {
                let equals = |(name, it): &(Cow<'_, str>, Instance<'_>)| {
                    others.get(&**name).is_some_and(|other| it.equals(other))
                };
                some.members.len() == others.len() && some.members.iter().all(equals)
            }
            _ => false,
        }
    }

    /// Returns whether one of these members is a string.
    pub(super) fn has_text(&self, members: &[String]) -> bool {
        let Self::Object(object) = self else { return false };
        members.iter().any(|it| matches!(object.member(it), Some(Self::String(_))))
    }

    fn to_value(&self) -> Value {
        match self {
            Self::Null => Value::Null,
            Self::Bool(it) => Value::Bool(*it),
            Self::Number(it) => Value::Number(it.clone()),
            Self::String(it) => Value::String(it.to_string()),
            Self::Array(items) => Value::Array(items.iter().map(Self::to_value).collect()),
            Self::Object(Object { members, .. }) => Value::Object(
                members.iter().map(|(name, it)| (name.to_string(), it.to_value())).collect(),
            ),
        }
    }
}

impl Json for Borrowing {
    type Node<'a> = &'a Instance<'a>;
    type PreparedKey = String;
    type StringBuffer = ();

    // A member is searched among several.
    const KEYS_PER_LOOKUP: usize = 2;

    fn prepare_key(key: &str) -> String {
        key.to_owned()
    }

    fn with_string_node<T>((): &mut (), string: &str, f: impl FnOnce(Self::Node<'_>) -> T) -> T {
        f(&Instance::String(Cow::Borrowed(string)))
    }
}

impl<'a> Node<'a, Borrowing> for &'a Instance<'a> {
    type Object = &'a Object<'a>;
    type Array = &'a [Instance<'a>];
    type Number = &'a Number;

    fn as_object(&self) -> Option<&'a Object<'a>> {
        if let Instance::Object(it) = self { Some(it) } else { None }
    }

    fn as_array(&self) -> Option<&'a [Instance<'a>]> {
        if let Instance::Array(it) = self { Some(it) } else { None }
    }

    fn as_string(&self) -> Option<Cow<'a, str>> {
        if let Instance::String(it) = self { Some(Cow::Borrowed(it)) } else { None }
    }

    fn as_number(&self) -> Option<&'a Number> {
        if let Instance::Number(it) = self { Some(it) } else { None }
    }

    fn as_boolean(&self) -> Option<bool> {
        if let Instance::Bool(it) = self { Some(*it) } else { None }
    }

    fn is_null(&self) -> bool {
        matches!(self, Instance::Null)
    }

    fn json_type(&self) -> JsonType {
        match self {
            Instance::Null => JsonType::Null,
            Instance::Bool(_) => JsonType::Boolean,
            Instance::Number(_) => JsonType::Number,
            Instance::String(_) => JsonType::String,
            Instance::Array(_) => JsonType::Array,
            Instance::Object(_) => JsonType::Object,
        }
    }

    fn equals_value(&self, expected: &Value) -> bool {
        self.equals(expected)
    }

    fn to_value(&self) -> Cow<'a, Value> {
        Cow::Owned(Instance::to_value(self))
    }

    fn identity(&self) -> Option<NodeIdentity> {
        Some(NodeIdentity::new(ptr::from_ref::<Instance<'_>>(self).addr()))
    }
}

impl<'a> json::Object<'a, Borrowing> for &'a Object<'a> {
    type Node = &'a Instance<'a>;
    type MemberName = &'a str;
    type MembersIter = Members<'a>;

    fn len(&self) -> usize {
        self.members.len()
    }

    fn get(&self, key: &String) -> Option<&'a Instance<'a>> {
        self.member(key)
    }

    fn members(&self) -> Members<'a> {
        Members(self.members.iter())
    }
}

pub(super) struct Members<'a>(slice::Iter<'a, (Cow<'a, str>, Instance<'a>)>);

impl<'a> Iterator for Members<'a> {
    type Item = (&'a str, &'a Instance<'a>);

    fn next(&mut self) -> Option<Self::Item> {
        self.0.next().map(|(name, value)| (&**name, value))
    }
}

impl<'a> json::Array<'a, Borrowing> for &'a [Instance<'a>] {
    type Node = &'a Instance<'a>;
    type ElementsIter = slice::Iter<'a, Instance<'a>>;

    fn len(&self) -> usize {
        <[Instance<'_>]>::len(self)
    }

    fn elements(&self) -> Self::ElementsIter {
        self.iter()
    }
}

impl<'de> Deserialize<'de> for Instance<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Reader)
    }
}

struct Reader;

impl<'de> Visitor<'de> for Reader {
    type Value = Instance<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any valid JSON value")
    }

    fn visit_unit<E>(self) -> Result<Instance<'de>, E> {
        Ok(Instance::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Instance<'de>, E> {
        Ok(Instance::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Instance<'de>, E> {
        Ok(Instance::Number(value.into()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Instance<'de>, E> {
        Ok(Instance::Number(value.into()))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Instance<'de>, E> {
        Ok(Number::from_f64(value).map_or(Instance::Null, Instance::Number))
    }

    fn visit_borrowed_str<E>(self, value: &'de str) -> Result<Instance<'de>, E> {
        Ok(Instance::String(Cow::Borrowed(value)))
    }

    fn visit_str<E>(self, value: &str) -> Result<Instance<'de>, E> {
        Ok(Instance::String(Cow::Owned(value.to_owned())))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Instance<'de>, A::Error> {
        let mut array = Vec::new();
        while let Some(item) = items.next_element()? {
            array.push(item);
        }
        Ok(Instance::Array(array))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Instance<'de>, A::Error> {
        let mut object = Object::default();
        while let Some((Name(name), value)) = members.next_entry()? {
            object.insert(name, value);
        }
        Ok(Instance::Object(object))
    }
}

/// The name of a member.
#[derive(Deserialize)]
struct Name<'a>(#[serde(borrow)] Cow<'a, str>);

#[cfg(test)]
pub(super) mod tests;
