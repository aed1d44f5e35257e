//! Options as a binding gives them: JSON objects, whose members are taken out one by one. Code that serde derives for
//! these types would be an eighth of a megabyte of the npm package.

use std::{collections::BTreeMap, time::Duration};

use serde_json::{Map, Value};

use crate::{
    error::{Error, option_name},
    protocol::json,
};

/// The members of an object that have not been taken out.
pub(super) struct Given {
    /// The beginning of errors.
    place: &'static str,
    /// True if the names are the same in every language, in snake case.
    is_snake: bool,
    members: Map<String, Value>,
    /// The names that were asked for, as errors show them.
    known: Vec<String>,
}

impl Given {
    pub(super) fn parse(place: &'static str, json: &[u8]) -> Result<Self, Error> {
        Self::new(place, json::from_bytes(json).unwrap_or_default())
    }

    pub(super) fn new(place: &'static str, value: Value) -> Result<Self, Error> {
        match value {
            Value::Object(members) => {
                Ok(Self { place, is_snake: false, members, known: Vec::new() })
            }
            _ => Err(Error::misuse(format!("{place}must be a JSON object"))),
        }
    }

    /// Reads an object whose names are the same in every language, in snake case.
    pub(super) fn of_snake(place: &'static str, value: Value) -> Result<Self, Error> {
        Ok(Self { is_snake: true, ..Self::new(place, value)? })
    }

    /// Takes a member, whose name is given in snake case.
    pub(super) fn value(&mut self, name: &str) -> Option<Value> {
        self.known.push(self.shown(name));
        let key = if self.is_snake { name.to_owned() } else { camel_case(name) };
        self.members.shift_remove(&key).filter(|value| !value.is_null())
    }

    fn shown(&self, name: &str) -> String {
        if self.is_snake { name.to_owned() } else { option_name(name) }
    }

    fn wrong(&self, name: &str, kind: &str) -> Error {
        Error::misuse(format!("{}{}: it must be {kind}", self.place, self.shown(name)))
    }

    pub(super) fn text(&mut self, name: &str) -> Result<Option<String>, Error> {
        match self.value(name) {
            Some(Value::String(text)) => Ok(Some(text)),
            None => Ok(None),
            Some(_) => Err(self.wrong(name, "a string")),
        }
    }

    pub(super) fn texts(&mut self, name: &str) -> Result<Option<Vec<String>>, Error> {
        let Some(given) = self.value(name) else { return Ok(None) };
        let texts = texts(given).ok_or_else(|| self.wrong(name, "a list of strings"))?;
        Ok(Some(texts))
    }

    pub(super) fn flag(&mut self, name: &str, default: bool) -> Result<bool, Error> {
        match self.value(name) {
            Some(Value::Bool(flag)) => Ok(flag),
            None => Ok(default),
            Some(_) => Err(self.wrong(name, "true or false")),
        }
    }

    pub(super) fn number(&mut self, name: &str) -> Result<Option<f64>, Error> {
        let Some(given) = self.value(name) else { return Ok(None) };
        given.as_f64().map(Some).ok_or_else(|| self.wrong(name, "a number"))
    }

    /// Takes a whole number that is not negative.
    pub(super) fn count(&mut self, name: &str) -> Result<u64, Error> {
        let Some(given) = self.value(name) else { return Ok(0) };
        given.as_u64().ok_or_else(|| self.wrong(name, "a whole number, 0 or more"))
    }

    /// Takes a number of seconds. One that no duration has becomes the longest, which no option accepts.
    pub(super) fn duration(&mut self, name: &str, default: Duration) -> Result<Duration, Error> {
        let seconds = self.number(name)?.map(Duration::try_from_secs_f64);
        Ok(seconds.map_or(default, |duration| duration.unwrap_or(Duration::MAX)))
    }

    /// Takes one of these words, and returns its place among them. Default: the first.
    pub(super) fn choice(&mut self, name: &str, words: &[&str]) -> Result<usize, Error> {
        let Some(given) = self.text(name)? else { return Ok(0) };
        let found = words.iter().position(|word| *word == given);
        found.ok_or_else(|| self.wrong(name, &format!("one of {}", words.join(", "))))
    }

    pub(super) fn object(&mut self, name: &str) -> Result<Map<String, Value>, Error> {
        match self.value(name) {
            Some(Value::Object(members)) => Ok(members),
            None => Ok(Map::new()),
            Some(_) => Err(self.wrong(name, "an object")),
        }
    }

    pub(super) fn list(&mut self, name: &str) -> Result<Vec<Value>, Error> {
        match self.value(name) {
            Some(Value::Array(list)) => Ok(list),
            None => Ok(Vec::new()),
            Some(_) => Err(self.wrong(name, "a list")),
        }
    }

    /// Errors if a member is left.
    pub(super) fn finish(&self) -> Result<(), Error> {
        match self.members.keys().next() {
            Some(name) => {
                let known = self.known.join(", ");
                let message =
                    format!("{}unknown option {name:?}; the options are {known}", self.place);
                Err(Error::misuse(message))
            }
            None => Ok(()),
        }
    }
}

fn camel_case(name: &str) -> String {
    let mut camel = String::with_capacity(name.len());
    for word in name.split('_') {
        let start = camel.len();
        camel.push_str(word);
        if start > 0 {
            camel[start..=start].make_ascii_uppercase();
        }
    }
    camel
}

/// Returns the strings of a list. Returns `None` if the value is not a list, or has an entry that is not a string.
pub(super) fn texts(given: Value) -> Option<Vec<String>> {
    let Value::Array(list) = given else { return None };
    let mut texts = Vec::with_capacity(list.len());
    for value in list {
        let Value::String(text) = value else { return None };
        texts.push(text);
    }
    Some(texts)
}

/// Returns the same entries in a map. Collecting them would sort them first, which is 8 KB of code for each type.
pub(super) fn sorted<V>(entries: impl IntoIterator<Item = (String, V)>) -> BTreeMap<String, V> {
    let mut map = BTreeMap::new();
    for (name, value) in entries {
        map.insert(name, value);
    }
    map
}
