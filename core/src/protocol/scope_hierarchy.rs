//! Scopes that include other scopes.
#![cfg_attr(
    not(feature = "auth"),
    allow(unreachable_pub, reason = "the module `auth` has it as a public item")
)]

use std::collections::{BTreeMap, BTreeSet};

/// The scopes that a scope includes, such as `books:write` with `books:read`.
#[derive(Clone, Debug, Default)]
pub struct ScopeHierarchy(BTreeMap<String, BTreeSet<String>>);

impl ScopeHierarchy {
    /// Creates a hierarchy: each scope with those that it implies. Implication is transitive, and may be circular.
    pub fn new<S: Into<String>>(
        implied: impl IntoIterator<Item = (S, impl IntoIterator<Item = S>)>,
    ) -> Self {
        let set = |scopes: &mut dyn Iterator<Item = S>| scopes.map(Into::into).collect();
        Self(
            implied
                .into_iter()
                .map(|(scope, all)| (scope.into(), set(&mut all.into_iter())))
                .collect(),
        )
    }

    /// Returns the granted scopes with all that they imply.
    pub fn expand(&self, granted: &BTreeSet<String>) -> BTreeSet<String> {
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
    pub fn suffices(&self, granted: &BTreeSet<String>, required: &[String]) -> bool {
        match required.iter().all(|scope| granted.contains(scope)) {
            true => true,
            false if self.0.is_empty() => false,
            false => {
                let all = self.expand(granted);
                required.iter().all(|scope| all.contains(scope))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn granted(scopes: &str) -> BTreeSet<String> {
        scopes.split_ascii_whitespace().map(Into::into).collect()
    }

    fn required(scopes: &str) -> Vec<String> {
        scopes.split(' ').map(Into::into).collect()
    }

    /// 2026-07-28, "Step-Up Authorization Flow": servers account for scope hierarchies.
    #[test]
    fn a_broad_scope_includes_narrow_ones() {
        let hierarchy = ScopeHierarchy::new([
            ("admin", vec!["write", "audit"]),
            ("write", vec!["read"]),
            ("read", vec!["admin:nothing", "write"]),
        ]);
        assert!(hierarchy.suffices(&granted("admin"), &required("read audit")));
        assert!(hierarchy.suffices(&granted("read"), &required("write")));
        assert!(!hierarchy.suffices(&granted("write"), &required("read audit")));
        assert!(!ScopeHierarchy::default().suffices(&granted("write"), &required("read")));
        assert!(ScopeHierarchy::default().suffices(&granted(""), &[]));
    }
}
