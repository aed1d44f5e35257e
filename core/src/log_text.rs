//! Text of peers in log lines.

use std::borrow::Cow;

/// Returns a string in which a peer can neither begin a new line of a log, nor control the terminal that shows it, nor hide
/// text: invisible characters are escaped as in Rust, such as `\n` and `\u{1b}`.
pub fn single_line(text: &str) -> Cow<'_, str> {
    if !text.contains(is_invisible) {
        return Cow::Borrowed(text);
    }
    let mut line = String::with_capacity(text.len() + 16);
    for char in text.chars() {
        if is_invisible(char) {
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

/// Returns whether a character is not shown as a letter, sign or space: a control character, one that ends a line, changes the
/// direction of writing, or is blank without being a space, such as those of which hidden text is made.
pub fn is_invisible(character: char) -> bool {
    character.is_control()
        || matches!(
            character,
            '\u{ad}'
                | '\u{34f}'
                | '\u{61c}'
                | '\u{115f}'..='\u{1160}'
                | '\u{17b4}'..='\u{17b5}'
                | '\u{180b}'..='\u{180f}'
                | '\u{200b}'..='\u{200f}'
                | '\u{2028}'..='\u{202e}'
                | '\u{2060}'..='\u{206f}'
                | '\u{2800}'
                | '\u{3164}'
                | '\u{feff}'
                | '\u{ffa0}'
                | '\u{fff0}'..='\u{fffb}'
                | '\u{1d173}'..='\u{1d17a}'
                | '\u{e0000}'..='\u{e0fff}'
        )
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
            ("a\u{200b}b\u{e0041}c\u{3164}", r"a\u{200b}b\u{e0041}c\u{3164}"),
        ] {
            assert_eq!(single_line(text), expected);
        }
        assert!(matches!(single_line("tools/list"), Cow::Borrowed(_)));
    }
}
