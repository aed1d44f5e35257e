//! The keyword `uniqueItems`.

use std::{
    collections::HashMap,
    hash::{BuildHasher, Hash, Hasher, RandomState},
};

use super::instance::Instance;
use super::number;

/// The most items that are compared with each other.
const COMPARED: usize = 8;

/// Returns `true` if no item equals another. Numbers are compared by value.
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
        let mut hasher = hashers.build_hasher();
        hash(item, &hashers, &mut hasher);
        let alike = seen.entry(hasher.finish()).or_default();
        let is_new = !alike.iter().any(|other| item.equals(other));
        alike.push(item);
        is_new
    })
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
}
