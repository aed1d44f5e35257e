//! Values in the texts of results without structured content.

use serde_json::Value;

/// The largest integer that every language represents exactly.
const MAX_INTEGER: f64 = 9_007_199_254_740_991.0;

/// Returns whether the data of a tool's result without structured content is the JSON value in its text; otherwise it
/// is the text itself. `blocks` is the number of the result's content blocks.
///
/// A single text is read as JSON for arrays, objects, numbers, `true`, `false` and `null`, so that data is the same in
/// revisions without structured content. A quoted string stays text, and so do integers beyond 2⁵³ and deeply nested values,
/// which not every language reads.
pub fn is_data(text: &str, blocks: usize, is_error: bool) -> bool {
    if blocks != 1 || is_error {
        return false;
    }
    match text.trim_start().as_bytes().first() {
        Some(b'[' | b'{' | b't' | b'f' | b'n') => serde_json::from_str::<Value>(text).is_ok(),
        Some(b'-' | b'0'..=b'9') => serde_json::from_str::<f64>(text)
            .is_ok_and(|it| it.fract() != 0.0 || it.abs() <= MAX_INTEGER),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::is_data;

    #[test]
    fn a_text_is_data_if_every_language_reads_it_alike() {
        for text in ["{\"a\": 1}", " [1]\n", "42", "-0.5", "9007199254740991", "null", "true"] {
            assert!(is_data(text, 1, false), "{text}");
            assert!(!is_data(text, 2, false) && !is_data(text, 1, true), "{text}");
        }
        let deep = "[".repeat(1_000) + &"]".repeat(1_000);
        let texts = [
            "",
            "three",
            "\"quoted\"",
            "007",
            "9007199254740993",
            "1e300",
            "1e999",
            "nan",
            "[1",
            "1 2",
        ];
        for text in texts.into_iter().chain([deep.as_str()]) {
            assert!(!is_data(text, 1, false), "{text}");
        }
    }
}
