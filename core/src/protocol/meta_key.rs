//! The form of keys of `_meta`, which names of extensions share (spec: General fields, "`_meta`").

/// Returns the prefix without its slash, if there is one, and the name.
pub(crate) fn split(key: &str) -> (Option<&str>, &str) {
    key.split_once('/').map_or((None, key), |(prefix, name)| (Some(prefix), name))
}

/// Returns `true` for a key that has both a prefix and a name.
pub(crate) fn has_prefix(key: &str) -> bool {
    let (prefix, name) = split(key);
    prefix.is_some_and(is_prefix) && is_name(name) && !name.is_empty()
}

/// Returns `true` for labels separated by dots.
pub(crate) fn is_prefix(prefix: &str) -> bool {
    prefix.split('.').all(|label| {
        label.starts_with(|first: char| first.is_ascii_alphabetic())
            && label.ends_with(|last: char| last.is_ascii_alphanumeric())
            && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
    })
}

/// Returns `true` for letters, digits, `-`, `_` and `.`, with a letter or digit at both ends, and for the empty name.
pub(crate) fn is_name(name: &str) -> bool {
    let is_end = |character: char| character.is_ascii_alphanumeric();
    let is_inside = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    name.is_empty()
        || name.starts_with(is_end) && name.ends_with(is_end) && name.bytes().all(is_inside)
}
