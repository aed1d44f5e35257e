//! Values to check, which borrow from the text they were read from: quicker to build and to look at than
//! [`serde_json::Value`].

use std::{borrow::Cow, cmp::Ordering, collections::HashMap, fmt};

use serde::{
    Deserialize, Deserializer,
    de::{MapAccess, SeqAccess, Visitor},
};
use serde_json::{Number, Value};

use super::{limits, number};

/// The most members of an object that are searched one after the other.
const SEARCHED: usize = 8;

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
            None => self.members.iter().position(|(key, _)| key == name),
            Some(places) => places.get(name).copied(),
        }
    }

    pub(super) fn len(&self) -> usize {
        self.members.len()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (&str, &Instance<'a>)> {
        self.members.iter().map(|(name, value)| (&**name, value))
    }

    pub(super) fn member(&self, name: &str) -> Option<&Instance<'a>> {
        self.place(name).map(|index| &self.members[index].1)
    }
}

impl<'a> Instance<'a> {
    /// Returns the value of a [`Value`].
    pub(super) fn from_value(value: &'a Value) -> Self {
        match value {
            Value::Null => Self::Null,
            Value::Bool(value) => Self::Bool(*value),
            Value::Number(number) => Self::Number(number.clone()),
            Value::String(text) => Self::String(Cow::Borrowed(text)),
            Value::Array(items) => Self::Array(items.iter().map(Self::from_value).collect()),
            Value::Object(members) => {
                let mut object = Object::default();
                for (name, member) in members {
                    object.insert(Cow::Borrowed(name), Self::from_value(member));
                }
                Self::Object(object)
            }
        }
    }

    /// Returns the same value without borrowed strings.
    pub(super) fn into_owned(self) -> Instance<'static> {
        match self {
            Self::Null => Instance::Null,
            Self::Bool(value) => Instance::Bool(value),
            Self::Number(number) => Instance::Number(number),
            Self::String(text) => Instance::String(Cow::Owned(text.into_owned())),
            Self::Array(items) => {
                Instance::Array(items.into_iter().map(Instance::into_owned).collect())
            }
            Self::Object(object) => {
                let mut owned = Object::default();
                for (name, value) in object.members {
                    owned.insert(Cow::Owned(name.into_owned()), value.into_owned());
                }
                Instance::Object(owned)
            }
        }
    }

    /// Returns whether the value equals another; numbers are compared by value.
    pub(super) fn equals(&self, other: &Instance<'_>) -> bool {
        match (self, other) {
            (Self::Null, Instance::Null) => true,
            (Self::Bool(one), Instance::Bool(other)) => one == other,
            (Self::Number(one), Instance::Number(other)) => {
                number::compare(one, other) == Ordering::Equal
            }
            (Self::String(one), Instance::String(other)) => one == other,
            (Self::Array(some), Instance::Array(others)) => {
                some.len() == others.len()
                    && some.iter().zip(others).all(|(one, other)| one.equals(other))
            }
            (Self::Object(some), Instance::Object(others)) => {
                some.len() == others.len()
                    && some.iter().all(|(name, value)| {
                        others.member(name).is_some_and(|other| value.equals(other))
                    })
            }
            _ => false,
        }
    }

    pub(super) fn to_value(&self) -> Value {
        match self {
            Self::Null => Value::Null,
            Self::Bool(value) => Value::Bool(*value),
            Self::Number(number) => Value::Number(number.clone()),
            Self::String(text) => Value::String(text.to_string()),
            Self::Array(items) => Value::Array(items.iter().map(Self::to_value).collect()),
            Self::Object(object) => {
                let members = object.iter();
                Value::Object(
                    members.map(|(name, value)| (name.into(), value.to_value())).collect(),
                )
            }
        }
    }

    /// Returns the number of values inside this one, and itself.
    pub(super) fn count(&self) -> usize {
        match self {
            Self::Array(items) => items.iter().map(Self::count).sum::<usize>() + 1,
            Self::Object(object) => {
                object.iter().map(|(_, value)| value.count()).sum::<usize>() + 1
            }
            _ => 1,
        }
    }
}

impl Instance<'_> {
    /// Returns the steps that it takes to look at the whole value, with the bytes of its strings and names.
    pub(super) fn steps(&self) -> usize {
        match self {
            Self::String(text) => 1 + limits::steps_of(text),
            Self::Array(items) => 1 + items.iter().map(Self::steps).sum::<usize>(),
            Self::Object(object) => {
                let members =
                    object.iter().map(|(name, value)| limits::steps_of(name) + value.steps());
                1 + members.sum::<usize>()
            }
            _ => 1,
        }
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
