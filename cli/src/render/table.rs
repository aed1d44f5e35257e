//! Names beside descriptions, in the width of the terminal.

use unicode_width::UnicodeWidthStr as _;

/// The widest column of names; longer ones have a line of their own.
const NAMES: usize = 32;
/// The narrowest column of descriptions; on narrower terminals they stand below the names.
const DESCRIPTIONS: usize = 24;
const GAP: usize = 2;

/// Lays out rows as lines. Without a width each row is one line.
pub fn lines(rows: &[(String, String)], width: Option<usize>) -> Vec<String> {
    let widest = rows.iter().map(|(name, _)| name.width()).filter(|width| *width <= NAMES).max();
    let names = widest.unwrap_or(NAMES) + GAP;
    let Some(width) = width else {
        let line = |(name, text): &(String, String)| {
            let gap = names.saturating_sub(name.width()).max(GAP);
            format!("{name}{}{text}", " ".repeat(gap)).trim_end().to_owned()
        };
        return rows.iter().map(line).collect();
    };
    let mut out = Vec::new();
    let is_beside = names + DESCRIPTIONS <= width;
    let indent = if is_beside { names } else { GAP.min(width.saturating_sub(1)) };
    for (name, text) in rows {
        let mut texts = wrap(text, width - indent).into_iter();
        let gap = names.saturating_sub(name.width());
        if is_beside && gap >= GAP {
            let first = texts.next().unwrap_or_default();
            out.push(format!("{name}{}{first}", " ".repeat(gap)).trim_end().to_owned());
        } else {
            out.extend(wrap(name, width));
        }
        out.extend(texts.map(|text| format!("{}{text}", " ".repeat(indent))));
    }
    out
}

/// Breaks a string into lines of at most `width` columns, between words where that is possible.
pub fn wrap(text: &str, width: usize) -> Vec<String> {
    let width = width.max(1);
    let mut lines = Vec::new();
    let mut line = String::new();
    for word in text.split_whitespace() {
        if !line.is_empty() && line.width() + 1 + word.width() > width {
            lines.push(std::mem::take(&mut line));
        }
        if !line.is_empty() {
            line.push(' ');
        }
        for letter in word.chars() {
            let mut buffer = [0; 4];
            let letter = &*letter.encode_utf8(&mut buffer);
            if !line.is_empty() && line.width() + letter.width() > width {
                lines.push(std::mem::take(&mut line));
            }
            line.push_str(letter);
        }
    }
    if !line.is_empty() {
        lines.push(line);
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows() -> Vec<(String, String)> {
        vec![
            ("add".into(), "Add two numbers and return their sum".into()),
            ("search_books".into(), "Find books".into()),
        ]
    }

    #[test]
    fn columns_are_aligned() {
        assert_eq!(
            lines(&rows(), None),
            ["add           Add two numbers and return their sum", "search_books  Find books"]
        );
        assert_eq!(
            lines(&rows(), Some(40)),
            [
                "add           Add two numbers and return",
                "              their sum",
                "search_books  Find books",
            ]
        );
    }

    #[test]
    fn no_line_is_wider_than_the_terminal() {
        for width in 1..60 {
            for line in lines(&rows(), Some(width)) {
                assert!(line.width() <= width, "{width}: {line:?}");
            }
        }
        assert_eq!(wrap("世界世界", 5), ["世界", "世界"]);
    }
}
