//! Characters that JSON allows inside strings, and that some readers take for line ends: U+0085, U+2028 and U+2029, at which
//! Python's `splitlines` and JavaScript's `readline` divide a text.

/// Appends JSON with these characters as escapes.
pub(super) fn push_escaped(json: &[u8], out: &mut Vec<u8>) {
    let mut copied = 0;
    while let Some((at, length, escape)) = next(json, copied) {
        out.extend_from_slice(&json[copied..at]);
        out.extend_from_slice(escape);
        copied = at + length;
    }
    out.extend_from_slice(&json[copied..]);
}

/// Returns whether a text has one of these characters.
pub(super) fn has_any(json: &[u8]) -> bool {
    next(json, 0).is_some()
}

/// Returns the place of the next of these characters from `start` on, its length in bytes, and its escape.
fn next(json: &[u8], start: usize) -> Option<(usize, usize, &'static [u8])> {
    memchr::memchr2_iter(0xC2, 0xE2, &json[start..]).find_map(|at| {
        let at = start + at;
        match json[at..] {
            [0xC2, 0x85, ..] => Some((at, 2, &b"\\u0085"[..])),
            [0xE2, 0x80, 0xA8, ..] => Some((at, 3, &b"\\u2028"[..])),
            [0xE2, 0x80, 0xA9, ..] => Some((at, 3, &b"\\u2029"[..])),
            _ => None,
        }
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_text_stays_the_same_on_one_line(text in "([\u{85}\u{2028}\u{2029}\u{2027}\u{a0}é\"\\\\\n]|[ -~]){0,40}") {
            let json = serde_json::to_string(&text).unwrap();
            let mut escaped = Vec::new();
            push_escaped(json.as_bytes(), &mut escaped);
            prop_assert_eq!(has_any(json.as_bytes()), json.as_bytes() != escaped);
            let escaped = String::from_utf8(escaped).unwrap();
            let is_divided = escaped.contains(['\u{85}', '\u{2028}', '\u{2029}']);
            prop_assert!(!is_divided);
            prop_assert_eq!(serde_json::from_str::<String>(&escaped).unwrap(), text);
        }
    }
}
