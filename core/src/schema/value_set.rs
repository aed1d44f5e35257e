//! Sets of values, for `uniqueItems` and `enum`. Numbers are equal by value.

use std::{
    collections::HashMap,
    hash::{BuildHasher, Hash, Hasher, RandomState},
};

use super::instance::Instance;
use super::number;

/// The most values that are compared one after the other.
const COMPARED: usize = 8;

/// The values of an `enum`, in the order of the schema.
#[derive(Debug)]
pub(super) struct Allowed {
    pub(super) values: Vec<Instance<'static>>,
    /// The places of the values by their hash, if there are many.
    places: Option<(RandomState, HashMap<u64, Vec<usize>>)>,
}

/// Returns `true` if no item equals another.
pub(super) fn all_differ(items: &[Instance<'_>]) -> bool {
    if items.len() <= COMPARED {
        return items
            .iter()
            .enumerate()
            .all(|(place, item)| !items[..place].iter().any(|other| item.equals(other)));
    }
    let hashers = RandomState::new();
    let mut seen: HashMap<u64, Vec<&Instance<'_>>> = HashMap::with_capacity(items.len());
    items.iter().all(|item| {
        let alike = seen.entry(hash_of(item, &hashers)).or_default();
        let is_new = !alike.iter().any(|other| item.equals(other));
        alike.push(item);
        is_new
    })
}

impl Allowed {
    pub(super) fn new(values: Vec<Instance<'static>>) -> Self {
        let places = (values.len() > COMPARED).then(|| {
            let hashers = RandomState::new();
            let mut places: HashMap<u64, Vec<usize>> = HashMap::with_capacity(values.len());
            for (place, value) in values.iter().enumerate() {
                places.entry(hash_of(value, &hashers)).or_default().push(place);
            }
            (hashers, places)
        });
        Self { values, places }
    }

    pub(super) fn contains(&self, value: &Instance<'_>) -> bool {
        match &self.places {
            Some((hashers, places)) => places
                .get(&hash_of(value, hashers))
                .is_some_and(|places| places.iter().any(|place| self.values[*place].equals(value))),
            None => self.values.iter().any(|allowed| allowed.equals(value)),
        }
    }
}

fn hash_of(value: &Instance<'_>, hashers: &RandomState) -> u64 {
    let mut hasher = hashers.build_hasher();
    hash(value, hashers, &mut hasher);
    hasher.finish()
}

/// Hashes a value so that equal ones have the same hash.
fn hash(value: &Instance<'_>, hashers: &RandomState, hasher: &mut impl Hasher) {
    match value {
        Instance::Null => 0_u8.hash(hasher),
        Instance::Bool(value) => (1_u8, value).hash(hasher),
        Instance::Number(number) => (2_u8, number::key(number)).hash(hasher),
        Instance::String(text) => (3_u8, text).hash(hasher),
        Instance::Array(items) => {
            (4_u8, items.len()).hash(hasher);
            for item in items {
                hash(item, hashers, hasher);
            }
        }
        Instance::Object(object) => {
            // Their order does not matter.
            let members = object.iter().map(|(name, member)| {
                let mut inner = hashers.build_hasher();
                name.hash(&mut inner);
                hash(member, hashers, &mut inner);
                inner.finish()
            });
            (5_u8, members.fold(0, u64::wrapping_add)).hash(hasher);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_items_are_found_among_few_and_many() {
        for (one, other, are_equal) in [
            ("1", "1.0", true),
            ("0", "-0.0", true),
            ("9007199254740993", "9007199254740992", false),
            ("1", "true", false),
            (r#""1""#, "1", false),
            (r#"{"a":1,"b":[2]}"#, r#"{"b":[2.0],"a":1}"#, true),
            (r#"{"a":1,"b":2}"#, r#"{"a":2,"b":1}"#, false),
            (r#"{"a":1}"#, r#"{"a":1,"b":2}"#, false),
            ("[1,2]", "[2,1]", false),
            ("[]", "{}", false),
            ("null", "false", false),
        ] {
            for others in [0, 100] {
                let others: Vec<_> =
                    (0..others).map(|each| format!(r#""{each} apples""#)).collect();
                let text = [vec![one.to_owned()], others, vec![other.to_owned()]].concat();
                let text = format!("[{}]", text.join(","));
                let Ok(Instance::Array(items)) = serde_json::from_str(&text) else {
                    panic!("{text}")
                };
                assert_eq!(all_differ(&items), !are_equal, "{one} {other}");
            }
        }
    }

    #[test]
    fn few_and_many_allowed_values_are_found() {
        let read =
            |text: &str| serde_json::from_str::<Instance<'_>>(text).expect(text).into_owned();
        for count in [0, 100] {
            let others = (0..count).map(|number| format!(r#""{number} apples""#));
            let texts = ["1", "\"a\"", "null", "[1,{\"b\":2}]", "{}", "0.5"];
            let texts = others.chain(texts.map(str::to_owned));
            let allowed = Allowed::new(texts.map(|text| read(&text)).collect());
            for (text, is_allowed) in [
                ("1.0", true),
                ("2", false),
                ("true", false),
                ("\"a\"", true),
                ("\"b\"", false),
                ("null", true),
                ("[1,{\"b\":2.0}]", true),
                ("[1]", false),
                ("{}", true),
                ("{\"a\":1}", false),
                ("5e-1", true),
            ] {
                assert_eq!(allowed.contains(&read(text)), is_allowed, "{text}");
            }
        }
    }
}
