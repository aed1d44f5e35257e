//! Character classes of ECMA-262's `v` flag, with nested classes and the operators `--` and `&&`.

use std::fmt::Write;

use regex_syntax::hir::{Class, HirKind};

use super::ecma::{character_escape, class_escape};

/// The classes in a class, one in the other.
const MAX_DEPTH: usize = 16;

/// Returns whether a pattern has what only the `v` flag allows in a class: an operator or a nested class.
pub(super) fn are_used(pattern: &str) -> bool {
    let (mut in_class, mut escaped) = (false, false);
    let mut previous = None;
    for character in pattern.chars() {
        if std::mem::take(&mut escaped) {
            previous = None;
            continue;
        }
        match character {
            '\\' => escaped = true,
            '[' if in_class => return true,
            '-' | '&' if in_class && previous == Some(character) => return true,
            '[' => in_class = true,
            ']' => in_class = false,
            _ => {}
        }
        previous = Some(character);
    }
    false
}

/// Reads a class behind its bracket. Returns it as one class of ranges, and what follows it; `None` for one that is not valid,
/// or that has strings (`\q{…}`).
pub(super) fn read(rest: &str) -> Option<(String, &str)> {
    let mut text = String::from("[");
    let mut depth = 1;
    let mut rest = rest;
    while depth > 0 {
        let character = rest.chars().next()?;
        rest = &rest[character.len_utf8()..];
        match character {
            '\\' => {
                let letter = rest.chars().next()?;
                if letter == 'q' {
                    return None;
                }
                if let Some(ranges) = class_escape(letter) {
                    _ = write!(text, "[{ranges}]");
                    rest = &rest[1..];
                } else {
                    rest = character_escape(rest, true, &mut text);
                }
                continue;
            }
            '[' => depth += 1,
            ']' => depth -= 1,
            _ => {}
        }
        if depth > MAX_DEPTH {
            return None;
        }
        text.push(character);
    }
    let set = regex_syntax::parse(&text).ok()?;
    let ranges: Vec<(char, char)> = match set.kind() {
        HirKind::Class(Class::Unicode(class)) => {
            class.iter().map(|range| (range.start(), range.end())).collect()
        }
        HirKind::Class(Class::Bytes(class)) if class.ranges().is_empty() => Vec::new(),
        HirKind::Literal(literal) => {
            let character = str::from_utf8(&literal.0).ok()?.chars().next()?;
            vec![(character, character)]
        }
        _ => return None,
    };
    Some((spelled(&ranges), rest))
}

fn spelled(ranges: &[(char, char)]) -> String {
    if ranges.is_empty() {
        return super::ecma::NOTHING.into();
    }
    let mut class = String::from("[");
    for (start, end) in ranges {
        _ = write!(class, r"\u{{{:X}}}-\u{{{:X}}}", u32::from(*start), u32::from(*end));
    }
    class.push(']');
    class
}
