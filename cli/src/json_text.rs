//! JSON of servers, laid out for people without a change of its values: digits of numbers and the order of members stay.

use std::fmt::Write as _;

use gudgeon::bindings::logs::is_invisible;

/// Returns valid JSON on several lines, with an indentation of two spaces.
pub fn pretty(json: &str) -> String {
    let mut out = String::with_capacity(json.len() * 2);
    let (mut depth, mut is_string, mut is_escaped, mut has_opened) = (0_usize, false, false, false);
    for letter in json.chars() {
        if is_string {
            out.push(letter);
            is_string = is_escaped || letter != '"';
            is_escaped = letter == '\\' && !is_escaped;
            continue;
        }
        let is_closing = matches!(letter, '}' | ']');
        if letter.is_ascii_whitespace() {
            continue;
        }
        if is_closing {
            depth = depth.saturating_sub(1);
        }
        // An empty array or object stays on its line.
        if has_opened != is_closing {
            new_line(&mut out, depth);
        }
        has_opened = matches!(letter, '{' | '[');
        depth += usize::from(has_opened);
        out.push(letter);
        match letter {
            ',' => new_line(&mut out, depth),
            ':' => out.push(' '),
            _ => is_string = letter == '"',
        }
    }
    out
}

/// Returns the same JSON with invisible characters in strings as escapes, so that a terminal does not obey them.
pub fn for_terminal(json: &str) -> String {
    let mut out = String::with_capacity(json.len());
    for letter in json.chars() {
        match is_invisible(letter) && letter != '\n' {
            true => {
                for unit in letter.encode_utf16(&mut [0; 2]) {
                    // Writing to a string cannot fail.
                    let _ = write!(out, "\\u{unit:04x}");
                }
            }
            false => out.push(letter),
        }
    }
    out
}

fn new_line(out: &mut String, depth: usize) {
    out.push('\n');
    out.extend(std::iter::repeat_n("  ", depth));
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn the_layout_is_that_of_serde_json() {
        for value in [
            json!({"a": [1, {"b": []}, {}], "c": "x: {\"y\"}, [z]\\", "d": null}),
            json!([]),
            json!([[[]], {"e": {"f": true}}]),
            json!("text"),
            json!(1.5),
        ] {
            let expected = serde_json::to_string_pretty(&value).unwrap();
            assert_eq!(pretty(&value.to_string()), expected);
            assert_eq!(pretty(&expected), expected);
        }
    }

    #[test]
    fn digits_stay() {
        let digits = r#"{"n":12345678901234567890123,"e":1e999}"#;
        assert_eq!(pretty(digits), "{\n  \"n\": 12345678901234567890123,\n  \"e\": 1e999\n}");
    }

    #[test]
    fn control_characters_become_escapes_of_json() {
        let json = "{\n \"a\": \"\u{9b}31m\u{202e}\"}";
        let shown = for_terminal(json);
        assert_eq!(shown, "{\n \"a\": \"\\u009b31m\\u202e\"}");
        let (before, after): (Value, Value) =
            (serde_json::from_str(json).unwrap(), serde_json::from_str(&shown).unwrap());
        assert_eq!(before, after);
    }
}
