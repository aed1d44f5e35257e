//! Counting the values that a client makes of a result.

use crate::protocol::valid_json::skip_string;

/// The members that clients leave as plain JSON, so that they cost little more than their bytes. What counts for the
/// questions of a round is their number.
const PLAIN: [&[u8]; 6] =
    [b"_meta", b"input", b"inputRequests", b"inputSchema", b"outputSchema", b"structuredContent"];

/// Returns the number of objects in valid JSON, except those inside of members that stay plain JSON. It stops counting
/// after `max`.
pub(crate) fn count_values(json: &str, max: usize) -> usize {
    let json = json.as_bytes();
    let (mut count, mut depth, mut at) = (0, 0_usize, 0);
    // The depth outside of the plain member around this place.
    let mut plain = None;
    while let Some(byte) = json.get(at).filter(|_| count <= max) {
        at += 1;
        match byte {
            b'"' => {
                let end = skip_string(json, at - 1);
                let text = json.get(at..end - 1).unwrap_or_default();
                at = end;
                if plain.is_none() && PLAIN.contains(&text) && is_name_of_container(&json[at..]) {
                    plain = Some(depth);
                }
            }
            b'{' | b'[' => {
                depth += 1;
                count += usize::from(*byte == b'{' && plain.is_none());
            }
            b'}' | b']' => {
                depth = depth.saturating_sub(1);
                plain = plain.filter(|outside| *outside != depth);
            }
            _ => (),
        }
    }
    count
}

/// Returns whether a string that ends here is the name of a member that is an object or an array.
fn is_name_of_container(rest: &[u8]) -> bool {
    let value = rest.trim_ascii_start().strip_prefix(b":").map(<[u8]>::trim_ascii_start);
    matches!(value, Some([b'{' | b'[', ..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objects_are_counted_at_any_depth_but_not_in_plain_members() {
        for (json, count) in [
            ("[]", 0),
            ("{}", 1),
            (r#"{"content":[{"a":[{},{}]},{"type":"text","text":"{{{\"{\\"}]}"#, 5),
            (r#"{"_meta":{"a":[{},{"b":{}}]},"content":[{}]}"#, 2),
            (r#"{ "structuredContent" : [[{}],{}] , "content" : [{}] }"#, 2),
            (r#"[{"inputSchema":{"_meta":{},"a":{}},"icons":[{},{}]},{"outputSchema":{}}]"#, 4),
            (r#"{"_meta":3,"a":{"_meta":"{"},"b":["_meta",{}]}"#, 3),
            (r#"{"text":"_meta","a":{}}"#, 2),
            ("{\"cut", 1),
            ("{\"cut\\", 1),
            ("]]{", 1),
        ] {
            assert_eq!(count_values(json, usize::MAX), count, "{json}");
        }
        assert_eq!(count_values("[{},{},{},{},{}]", 2), 3);
    }
}
