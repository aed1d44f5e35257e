//! Scopes: sets of names that a token grants and an operation needs.

use std::collections::{BTreeMap, BTreeSet};

/// A set of scopes.
pub type Scopes = BTreeSet<String>;

/// Reads a list of scopes with spaces between them (RFC 6749, section 3.3). Names with characters that a scope may not
/// have are left out.
pub fn parse(text: &str) -> Scopes {
    text.split_ascii_whitespace().filter(|it| is_valid(it)).map(ToOwned::to_owned).collect()
}

/// Writes a set as a list with spaces between the scopes.
pub fn join<'a>(scopes: impl IntoIterator<Item = &'a String>) -> String {
    let names: Vec<_> = scopes.into_iter().map(String::as_str).collect();
    names.join(" ")
}

/// Returns the scopes of either set, as a step-up asks for them.
pub fn union(one: &Scopes, other: &Scopes) -> Scopes {
    one.union(other).cloned().collect()
}

/// Returns whether a scope has only characters that RFC 6749, section 3.3, allows.
pub fn is_valid(scope: &str) -> bool {
    let is_allowed = |it: u8| matches!(it, 0x21 | 0x23..=0x5b | 0x5d..=0x7e);
    !scope.is_empty() && scope.bytes().all(is_allowed)
}

/// The scopes that a scope includes, such as `books:write` with `books:read`.
#[derive(Clone, Debug, Default)]
pub struct ScopeHierarchy(BTreeMap<String, Scopes>);

impl ScopeHierarchy {
    /// Creates a hierarchy: each scope with those that it implies. Implication is transitive, and may be circular.
    pub fn new<S: Into<String>>(
        implied: impl IntoIterator<Item = (S, impl IntoIterator<Item = S>)>,
    ) -> Self {
        let set = |scopes: &mut dyn Iterator<Item = S>| scopes.map(Into::into).collect();
        Self(implied.into_iter().map(|(it, all)| (it.into(), set(&mut all.into_iter()))).collect())
    }

    /// Returns the granted scopes with all that they imply.
    pub fn expand(&self, granted: &Scopes) -> Scopes {
        let mut all = granted.clone();
        let mut new: Vec<&String> = granted.iter().collect();
        while let Some(scope) = new.pop() {
            for implied in self.0.get(scope).into_iter().flatten() {
                if all.insert(implied.clone()) {
                    new.push(implied);
                }
            }
        }
        all
    }

    /// Returns whether the granted scopes include all that are required.
    pub fn suffices(&self, granted: &Scopes, required: &[String]) -> bool {
        match required.iter().all(|it| granted.contains(it)) {
            true => true,
            false if self.0.is_empty() => false,
            false => {
                let all = self.expand(granted);
                required.iter().all(|it| all.contains(it))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn required(scopes: &str) -> Vec<String> {
        scopes.split(' ').map(Into::into).collect()
    }

    #[test]
    fn a_list_is_read_and_written() {
        let scopes = parse("  b a  a c\"d é ");
        assert_eq!(join(&scopes), "a b");
        assert_eq!(join(&union(&scopes, &parse("c"))), "a b c");
        assert!(parse("").is_empty());
    }

    /// 2026-07-28, "Step-Up Authorization Flow": servers account for scope hierarchies.
    #[test]
    fn a_broad_scope_includes_narrow_ones() {
        let hierarchy = ScopeHierarchy::new([
            ("admin", vec!["write", "audit"]),
            ("write", vec!["read"]),
            ("read", vec!["admin:nothing", "write"]),
        ]);
        assert!(hierarchy.suffices(&parse("admin"), &required("read audit")));
        assert!(hierarchy.suffices(&parse("read"), &required("write")));
        assert!(!hierarchy.suffices(&parse("write"), &required("read audit")));
        assert!(!ScopeHierarchy::default().suffices(&parse("write"), &required("read")));
        assert!(ScopeHierarchy::default().suffices(&parse(""), &[]));
    }
}
