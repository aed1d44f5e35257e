//! JSON as people write it: with comments, commas after the last element, and a byte order mark.

use std::borrow::Cow;

use serde_json::Value;

/// The maximum size of a configuration, in bytes.
pub const MAX_SIZE: usize = 64 << 20;

const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// The form of JSON that a host reads.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum JsonForm {
    Strict,
    /// Comments, `// …` and `/* … */`, and commas after the last element are allowed.
    Commented,
}

/// Returns the value of a JSON text, which may begin with a byte order mark. Errors if it is not JSON, with the line and the
/// column in bytes, both from 1; if it is larger than [`MAX_SIZE`]; and if it is nested deeper than 127 levels. Errors show
/// nothing of the text, which may hold secrets.
pub fn parse(text: &[u8], form: JsonForm) -> Result<Value, String> {
    if text.len() > MAX_SIZE {
        return Err(format!("it is larger than {} MiB", MAX_SIZE >> 20));
    }
    if text.starts_with(b"\xff\xfe") || text.starts_with(b"\xfe\xff") {
        return Err("it is UTF-16; save it as UTF-8".to_owned());
    }
    let text = text.strip_prefix(BYTE_ORDER_MARK).unwrap_or(text);
    let plain = without_comments(text);
    let read = match (form, &plain) {
        (JsonForm::Commented, Ok(plain)) => plain.as_ref(),
        (JsonForm::Commented, Err(start)) => {
            return Err(format!("{}: the comment is not closed", position(text, *start)));
        }
        (JsonForm::Strict, _) => text,
    };
    serde_json::from_slice(read).map_err(|error| {
        let place = format!("line {}, column {}", error.line(), error.column());
        let is_commented = form == JsonForm::Strict
            && plain.is_ok_and(|plain| serde_json::from_slice::<Value>(&plain).is_ok());
        if is_commented {
            return format!(
                "{place}: not valid JSON: comments, and commas after the last element, are not allowed in this file"
            );
        }
        let message = error.to_string();
        let reason = message.rsplit_once(" at line ").map_or(message.as_str(), |(reason, _)| reason);
        format!("{place}: not valid JSON: {reason}")
    })
}

/// Returns a text with spaces in place of comments and of commas after the last element, so that positions stay the same.
/// Errors with the offset of a comment that is not closed.
fn without_comments(text: &[u8]) -> Result<Cow<'_, [u8]>, usize> {
    let mut plain = Cow::Borrowed(text);
    // The last byte that is neither a space nor in a comment, and its offset if it is a comma behind a value.
    let (mut last, mut comma) = (b'\0', None);
    let mut at = 0;
    while let Some(&byte) = text.get(at) {
        let next = match (byte, text.get(at + 1)) {
            (b'"', _) => string_end(text, at),
            (b'/', Some(b'/')) => {
                let length = text[at..].iter().position(|byte| matches!(byte, b'\n' | b'\r'));
                let end = length.map_or(text.len(), |length| at + length);
                blank(plain.to_mut(), at, end);
                at = end;
                continue;
            }
            (b'/', Some(b'*')) => {
                let end = memchr::memmem::find(&text[at + 2..], b"*/").ok_or(at)? + at + 4;
                blank(plain.to_mut(), at, end);
                at = end;
                continue;
            }
            _ => at + 1,
        };
        if !byte.is_ascii_whitespace() {
            if let (b'}' | b']', Some(comma)) = (byte, comma) {
                blank(plain.to_mut(), comma, comma + 1);
            }
            let is_after_value = !matches!(last, b'\0' | b'{' | b'[' | b',' | b':');
            comma = (byte == b',' && is_after_value).then_some(at);
            last = byte;
        }
        at = next;
    }
    Ok(plain)
}

/// Returns the offset behind the string that begins at `start`.
fn string_end(text: &[u8], start: usize) -> usize {
    let mut at = start + 1;
    while let Some(length) = text.get(at..).and_then(|rest| memchr::memchr2(b'"', b'\\', rest)) {
        at += length;
        if text[at] == b'"' {
            return at + 1;
        }
        at += 2;
    }
    text.len()
}

/// Replaces bytes by spaces; line breaks stay.
fn blank(text: &mut [u8], start: usize, end: usize) {
    for byte in &mut text[start..end] {
        if !matches!(byte, b'\n' | b'\r') {
            *byte = b' ';
        }
    }
}

/// Returns the line and the column of an offset, both from 1.
fn position(text: &[u8], at: usize) -> String {
    let before = &text[..at];
    let line = memchr::memchr_iter(b'\n', before).count() + 1;
    let column = at - memchr::memrchr(b'\n', before).map_or(0, |end| end + 1) + 1;
    format!("line {line}, column {column}")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn comments_and_last_commas_are_left_out() {
        for (text, value) in [
            ("\u{feff}{}", json!({})),
            ("// a\n[1, /* 2, */ 3,] // b", json!([1, 3])),
            ("[1 /* , */ , /* ] */ // }\n]", json!([1])),
            ("{\"a\": 1, \r\n\t}", json!({"a": 1})),
            ("[[1,],{\"a\":[],},]", json!([[1], {"a": []}])),
            ("/**/1/***/", json!(1)),
            ("1//", json!(1)),
            (
                r#"["//", "/*", "*/", "a,]", "\"//", "\\"]"#,
                json!(["//", "/*", "*/", "a,]", "\"//", "\\"]),
            ),
            ("[\"/* \\\" */\" /* \" */, 2]", json!(["/* \" */", 2])),
            ("// \"\n[\"é\"] /* é\n */", json!(["é"])),
        ] {
            assert_eq!(parse(text.as_bytes(), JsonForm::Commented), Ok(value), "{text}");
        }
    }

    #[test]
    fn an_error_has_its_place_and_no_value() {
        for (text, expected) in [
            ("", "line 1, column 0: not valid JSON: EOF while parsing a value"),
            ("{\n  \"a\": {,}}", "line 2, column 9: not valid JSON: key must be a string"),
            ("[,]", "line 1, column 2: "),
            ("[1,,]", "line 1, column 4: "),
            ("{\"a\":,}", "line 1, column 6: "),
            ("[1],", "line 1, column 4: not valid JSON: trailing characters"),
            ("// é\n/* é */ s3cret", "line 2, column 10: not valid JSON: expected value"),
            ("[\n 1, /* s3cret", "line 2, column 5: the comment is not closed"),
            ("[/*/", "line 1, column 2: the comment is not closed"),
            ("[1 / 2]", "line 1, column 4: "),
            ("\"s3cret // ", "line 1, column 11: not valid JSON: EOF while parsing a string"),
            ("\u{feff}[s3cret]", "line 1, column 2: "),
        ] {
            let error = parse(text.as_bytes(), JsonForm::Commented).unwrap_err();
            assert!(error.starts_with(expected) && !error.contains("s3cret"), "{text}: {error}");
        }
        let error = parse(b"\xff\xfe{\0}\0", JsonForm::Commented).unwrap_err();
        assert_eq!(error, "it is UTF-16; save it as UTF-8");
        assert!(parse(b"[\"\xff\"]", JsonForm::Commented).unwrap_err().contains("unicode"));
    }

    #[test]
    fn a_strict_host_reads_no_comments() {
        for text in ["[1, // a\n 2]", "[1,]"] {
            let error = parse(text.as_bytes(), JsonForm::Strict).unwrap_err();
            assert!(error.contains("are not allowed in this file"), "{error}");
        }
        assert_eq!(parse(b"\xef\xbb\xbf[\"//\"]", JsonForm::Strict), Ok(json!(["//"])));
        assert!(!parse(b"[1,,]", JsonForm::Strict).unwrap_err().contains("allowed"));
    }

    #[test]
    fn size_and_depth_are_limited() {
        let nested = |depth: usize| format!("{}{}", "[".repeat(depth), ",]".repeat(depth));
        assert!(
            parse(
                format!("{}{}", "[".repeat(127), "]".repeat(127)).as_bytes(),
                JsonForm::Commented
            )
            .is_ok()
        );
        let error = parse(nested(1 << 20).as_bytes(), JsonForm::Commented).unwrap_err();
        assert!(error.contains("recursion limit"), "{error}");
        let error = parse(&vec![b' '; MAX_SIZE + 1], JsonForm::Commented).unwrap_err();
        assert_eq!(error, "it is larger than 64 MiB");
    }
}
