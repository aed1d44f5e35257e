//! Patterns whose flags are part of their text, because JSON Schema has a place for the text only.

use std::{fmt::Write, sync::LazyLock};

use regex::Regex;
use regex_syntax::hir::{ClassUnicode, ClassUnicodeRange};

use super::{class_sets, ecma};

const LINE_START: &str = r"(?<![^\n\r\u2028\u2029])";
const LINE_END: &str = r"(?![^\n\r\u2028\u2029])";

/// An escape or a character; its groups have a character's code or the character itself.
static TOKEN: LazyLock<Regex> = LazyLock::new(|| {
    let codes = r"\\u\{([0-9A-Fa-f]{1,6})\}|\\u([0-9A-Fa-f]{4})|\\x([0-9A-Fa-f]{2})";
    let others = r"\(\?<[\w$]+>|\\[pP]\{[^}]*\}|\\k<[^>]*>|\\c[A-Za-z]|\\[0-9A-Za-z]|\\?([\s\S])";
    Regex::new(&format!("{codes}|{others}")).expect("the pattern is valid")
});

/// Returns a pattern that matches without flags what `pattern` matches with `flags` (those of ECMA-262, such as `im`). It lists
/// both cases of letters, because validators of older JavaScript engines do not know `(?i:…)`.
///
/// Returns `None` where no pattern says the same: for references to groups, Unicode properties and sets with the flag `i`, and for
/// groups that have flags of their own.
#[must_use]
pub fn without_flags(pattern: &str, flags: &str) -> Option<String> {
    let has = |flag: char| flags.contains(flag);
    if !['i', 'm', 's', 'y'].into_iter().any(has) {
        return Some(pattern.into());
    }
    if ecma::has_modifiers(pattern) || (has('i') && class_sets::are_used(pattern)) {
        return None;
    }
    let mut tokens = tokens(pattern);
    let mut text = String::new();
    while let Some(token) = tokens.next() {
        match token.text {
            "[" => class(&mut tokens, has('i'), &mut text)?,
            "." if has('s') => text.push_str(r"[\s\S]"),
            "^" if has('m') => text.push_str(LINE_START),
            "$" if has('m') => text.push_str(LINE_END),
            _ if !has('i') => text.push_str(token.text),
            _ if token.depends_on_case() => return None,
            _ => {
                let others = token.character.map(|character| {
                    other_cases(&ClassUnicode::new([ClassUnicodeRange::new(character, character)]))
                });
                match others.filter(|others| !others.is_empty()) {
                    Some(others) => _ = write!(text, "[{}{others}]", token.text),
                    None => text.push_str(token.text),
                }
            }
        }
    }
    Some(if has('y') { format!("^(?:{text})") } else { text })
}

struct Token<'a> {
    text: &'a str,
    /// `None` for escapes that are not one character.
    character: Option<char>,
}

impl Token<'_> {
    /// Returns whether the meaning of an escape depends on the case of what was matched, or on that of a whole property.
    fn depends_on_case(&self) -> bool {
        let letter = self.text.strip_prefix('\\').and_then(|letter| letter.chars().next());
        self.character.is_none()
            && letter.is_some_and(|letter| matches!(letter, 'p' | 'P' | 'k' | '1'..='9'))
    }
}

fn tokens(pattern: &str) -> impl Iterator<Item = Token<'_>> {
    TOKEN.captures_iter(pattern).map(|found| {
        let code = (1..=3).find_map(|group| found.get(group));
        let character = match code {
            Some(digits) => u32::from_str_radix(digits.as_str(), 16).ok().and_then(char::from_u32),
            None => found.get(4).and_then(|group| group.as_str().chars().next()),
        };
        Token { text: found.get_match().as_str(), character }
    })
}

/// Appends a class behind its bracket. The other cases of its letters come last.
fn class<'a>(
    tokens: &mut impl Iterator<Item = Token<'a>>,
    ignores_case: bool,
    text: &mut String,
) -> Option<()> {
    text.push('[');
    let mut characters = ClassUnicode::empty();
    let (mut begins, mut in_range) = (true, false);
    let mut start: Option<char> = None;
    for token in tokens {
        let is_first = std::mem::take(&mut begins);
        match token.text {
            "^" if is_first => text.push('^'),
            "]" => {
                if in_range {
                    text.insert(text.len() - 1, '\\');
                }
                if ignores_case {
                    text.push_str(&other_cases(&characters));
                }
                text.push(']');
                return Some(());
            }
            "-" if start.is_some() && !in_range => {
                in_range = true;
                text.push('-');
            }
            _ if ignores_case && token.depends_on_case() => return None,
            written => {
                text.push_str(if written == "-" { r"\-" } else { written });
                let range = std::mem::take(&mut in_range);
                if let Some(end) = token.character {
                    let start = start.filter(|start| range && *start <= end).unwrap_or(end);
                    characters.push(ClassUnicodeRange::new(start, end));
                }
                start = token.character.filter(|_| !range);
            }
        }
    }
    None
}

/// Returns the other cases of characters, as a class has them. Those of ASCII letters are ASCII letters: the Kelvin sign is not
/// listed for `k`, nor the long s for `s`.
fn other_cases(characters: &ClassUnicode) -> String {
    let mut others = characters.clone();
    if others.try_case_fold_simple().is_err() {
        return String::new();
    }
    others.difference(characters);
    others.difference(&ClassUnicode::new(
        ['\u{17F}', '\u{212A}'].map(|sign| ClassUnicodeRange::new(sign, sign)),
    ));
    others.iter().fold(String::new(), |mut text, range| {
        let (start, end) = (range.start(), range.end());
        _ = if start == end { write!(text, "{start}") } else { write!(text, "{start}-{end}") };
        text
    })
}
