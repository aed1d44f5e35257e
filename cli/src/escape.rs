//! Characters in a server's texts that a terminal would obey instead of showing, or not show at all.

use std::borrow::Cow;

use gudgeon::bindings::logs::is_invisible;

/// Returns the text with invisible characters spelled out, such as `\u{1b}`. Newlines and tabs stay, and joiners between
/// letters of scripts and emoji that need them.
pub fn lines(text: &str) -> Cow<'_, str> {
    let text = match text.contains("\r\n") {
        true => Cow::Owned(text.replace("\r\n", "\n")),
        false => Cow::Borrowed(text),
    };
    if !text.chars().any(|letter| is_invisible(letter) && !is_blank(letter)) {
        return text;
    }
    let mut out = String::with_capacity(text.len() + 16);
    let mut before = ' ';
    for letter in text.chars() {
        let joins = matches!(letter, '\u{200c}' | '\u{200d}') && !before.is_ascii();
        match is_invisible(letter) && !is_blank(letter) && !joins {
            true => out.extend(letter.escape_unicode()),
            false => out.push(letter),
        }
        before = letter;
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
            ("a\u{200b}b\u{e0041}", r"a\u{200b}b\u{e0041}"),
            ("a\u{200d}b", r"a\u{200d}b"),
            ("Grüße, 世界 👋 👩\u{200d}👧", "Grüße, 世界 👋 👩\u{200d}👧"),
        ] {
            assert_eq!(lines(given), shown);
        }
        assert_eq!(one_line("a\nb\tc\x1b"), r"a b c\u{1b}");
        assert_eq!((&*server("a\n", "1"), &*server("a", "")), ("a  1", "a"));
    }
}
