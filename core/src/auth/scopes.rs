//! Scopes: sets of names that a token grants and an operation needs.

use std::collections::BTreeSet;

pub use crate::protocol::scope_hierarchy::ScopeHierarchy;

/// A set of scopes.
pub type Scopes = BTreeSet<String>;

/// Reads a list of scopes with spaces between them (RFC 6749, section 3.3). Names with characters that a scope may not
/// have are left out.
pub fn parse(text: &str) -> Scopes {
    text.split_ascii_whitespace().filter(|scope| is_valid(scope)).map(ToOwned::to_owned).collect()
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
    let is_allowed = |byte: u8| matches!(byte, 0x21 | 0x23..=0x5b | 0x5d..=0x7e);
    !scope.is_empty() && scope.bytes().all(is_allowed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_is_read_and_written() {
        let scopes = parse("  b a  a c\"d é ");
        assert_eq!(join(&scopes), "a b");
        assert_eq!(join(&union(&scopes, &parse("c"))), "a b c");
        assert!(parse("").is_empty());
    }
}
