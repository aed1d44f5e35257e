//! Characters in a server's texts that a terminal would obey instead of showing.

use std::borrow::Cow;

/// Returns the text with control characters spelled out, such as `\u{1b}`. Newlines and tabs stay.
pub fn lines(text: &str) -> Cow<'_, str> {
    let text = match text.contains("\r\n") {
        true => Cow::Owned(text.replace("\r\n", "\n")),
        false => Cow::Borrowed(text),
    };
    if !text.chars().any(|it| is_control(it) && !is_blank(it)) {
        return text;
    }
    let mut out = String::with_capacity(text.len() + 16);
    for letter in text.chars() {
        match is_control(letter) && !is_blank(letter) {
            true => out.extend(letter.escape_unicode()),
            false => out.push(letter),
        }
    }
    Cow::Owned(out)
}

/// Like [`lines`], with newlines and tabs replaced by spaces.
pub fn one_line(text: &str) -> Cow<'_, str> {
    let text = lines(text);
    match text.contains(is_blank) {
        true => Cow::Owned(text.replace(is_blank, " ")),
        false => text,
    }
}

/// Returns the name of a server on a line, with its version if it has one.
pub fn server(name: &str, version: &str) -> String {
    one_line(format!("{name} {version}").trim_end()).into_owned()
}

/// Returns whether a terminal would act on the character, or reorder the text around it.
pub fn is_control(letter: char) -> bool {
    letter.is_control()
        || matches!(letter, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

fn is_blank(letter: char) -> bool {
    matches!(letter, '\n' | '\t')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_are_spelled_out() {
        for (given, shown) in [
            ("two\nlines\tand a tab", "two\nlines\tand a tab"),
            ("\x1b[2J\x07", r"\u{1b}[2J\u{7}"),
            ("\u{9b}31m\u{7f}", r"\u{9b}31m\u{7f}"),
            ("over\rwritten\r\n", "over\\u{d}written\n"),
            ("\u{202e}gpj.exe", r"\u{202e}gpj.exe"),
            ("Grüße, 世界 👋", "Grüße, 世界 👋"),
        ] {
            assert_eq!(lines(given), shown);
        }
        assert_eq!(one_line("a\nb\tc\x1b"), r"a b c\u{1b}");
        assert_eq!((&*server("a\n", "1"), &*server("a", "")), ("a  1", "a"));
    }
}
