//! Text of peers in log lines.

use std::borrow::Cow;

/// Returns a string in which a peer can neither begin a new line of a log nor control the terminal that shows it: control
/// characters, line separators and characters that change the direction of writing are escaped as in Rust, such as `\n` and
/// `\u{1b}`.
pub fn single_line(text: &str) -> Cow<'_, str> {
    if !text.contains(is_unsafe) {
        return Cow::Borrowed(text);
    }
    let mut line = String::with_capacity(text.len() + 16);
    for char in text.chars() {
        if is_unsafe(char) {
            line.extend(char.escape_default());
        } else {
            line.push(char);
        }
    }
    Cow::Owned(line)
}

/// Returns the beginning of a string, of at most `max` bytes.
pub(crate) fn beginning(text: &str, max: usize) -> &str {
    if text.len() <= max {
        return text;
    }
    let end = (0..=max).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
    &text[..end]
}

fn is_unsafe(char: char) -> bool {
    let turns = |it| matches!(it, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{200e}' | '\u{200f}');
    char.is_control() || matches!(char, '\u{2028}' | '\u{2029}') || turns(char)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_characters_that_a_log_line_must_not_have_are_escaped() {
        for (text, expected) in [
            ("tools/call Sökning 🦀 \"a\\b\"", "tools/call Sökning 🦀 \"a\\b\""),
            ("a\nERROR b\r\t", r"a\nERROR b\r\t"),
            ("\x1b[2J\x07\x7f\u{9b}", r"\u{1b}[2J\u{7}\u{7f}\u{9b}"),
            ("a\u{2028}b\u{202e}c", r"a\u{2028}b\u{202e}c"),
        ] {
            assert_eq!(single_line(text), expected);
        }
        assert!(matches!(single_line("tools/list"), Cow::Borrowed(_)));
    }
}
