//! String literals that nothing in them can end.

use gudgeon::bindings::logs::is_invisible;

/// Returns a string literal of Python, with the quotes that `ruff format` would choose.
pub fn python(text: &str) -> String {
    let doubles = text.matches('"').count();
    let singles = text.matches('\'').count();
    quoted(text, if doubles > singles { '\'' } else { '"' }, python_escape)
}

/// Returns a string literal of Python for an annotation in double quotes; `None` if it would need an escape.
pub fn python_nested(text: &str) -> Option<String> {
    let is_plain =
        |character: char| !matches!(character, '\'' | '"' | '\\') && !needs_escape(character);
    text.chars().all(is_plain).then(|| format!("'{text}'"))
}

/// Returns a string literal of TypeScript, with the quotes that Prettier would choose.
pub fn typescript(text: &str) -> String {
    let doubles = text.matches('"').count();
    let singles = text.matches('\'').count();
    quoted(text, if doubles > singles { '\'' } else { '"' }, |character| {
        if u32::from(character) > 0xffff {
            format!("\\u{{{:x}}}", u32::from(character))
        } else {
            format!("\\u{:04x}", u32::from(character))
        }
    })
}

fn quoted(text: &str, quote: char, escape: fn(char) -> String) -> String {
    let mut literal = String::with_capacity(text.len() + 2);
    literal.push(quote);
    for character in text.chars() {
        match character {
            '\\' => literal.push_str("\\\\"),
            '\n' => literal.push_str("\\n"),
            '\r' => literal.push_str("\\r"),
            '\t' => literal.push_str("\\t"),
            it if it == quote => {
                literal.push('\\');
                literal.push(it);
            }
            it if needs_escape(it) => literal.push_str(&escape(it)),
            it => literal.push(it),
        }
    }
    literal.push(quote);
    literal
}

fn python_escape(character: char) -> String {
    match u32::from(character) {
        it @ 0..=0xff => format!("\\x{it:02x}"),
        it @ 0x100..=0xffff => format!("\\u{it:04x}"),
        it => format!("\\U{it:08x}"),
    }
}

fn needs_escape(character: char) -> bool {
    is_invisible(character) || character.is_whitespace() && character != ' '
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn literals_cannot_be_left() {
        assert_eq!(python("a\"b'\\\n\u{0}\u{202e}é"), r#""a\"b'\\\n\x00\u202eé""#);
        assert_eq!(python("say \"x\""), r#"'say "x"'"#);
        assert_eq!(typescript("a\"b'\\\n\u{0}\u{2028}é"), r#""a\"b'\\\n\u0000\u2028é""#);
        assert_eq!(typescript("${x} `y`"), "\"${x} `y`\"");
        assert_eq!(python_nested("a b").as_deref(), Some("'a b'"));
        assert_eq!((python_nested("a'b"), python_nested("\\")), (None, None));
    }
}
